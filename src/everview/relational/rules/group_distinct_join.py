"""DISTINCT over a join is a grouping that aggregates nothing."""

from __future__ import annotations

from everview.relational.nodes import Aggregate, Distinct, Filter, Join, JoinKind, Project, Relation
from everview.relational.schema import columns, schema


def group_distinct_join(relation: Relation) -> Relation | None:
    """δ(L ⋈ R) = γ[all columns](L ⋈ R), and the right side of a semi- or anti-join may be made distinct first.

    A group is there as long as its count is above 0, so a view tree of counts maintains it: rows are counted before they are
    joined. L ⋉ R = L ⋉ δ(R), as a row with several partners is there as often as with one. For inner joins only, with filters
    and projections above: other relations are listed anyway, and their rows are counted as they come. Without columns there is
    nothing to group by: an aggregate without keys has a row even if no row is below it.

    >>> from everview.relational.rule_examples import L, R, a, c, equal, show
    >>> plan = Distinct(Join(L, R, JoinKind.INNER, equal(a, c)))
    >>> show(plan)
    distinct
      inner join on (a = c)
        scan l [a, b]
        scan r [c, d]
    >>> show(group_distinct_join(plan))
    aggregate by [a, b, c, d] []
      inner join on (a = c)
        scan l [a, b]
        scan r [c, d]
    """
    match relation:
        case Distinct(child=child) if _is_join(child):
            return _grouped(child)
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI, right=right) if _is_join(right):
            return Join(relation.left, _grouped(right), relation.kind, relation.condition)
        case _:
            return None


def _grouped(relation: Relation) -> Aggregate:
    return Aggregate(relation, columns(relation), (), tuple(f.name for f in schema(relation)))


def _is_join(relation: Relation) -> bool:
    if not schema(relation):
        return False
    while isinstance(relation, Project | Filter):
        relation = relation.child
    return isinstance(relation, Join) and relation.kind is JoinKind.INNER
