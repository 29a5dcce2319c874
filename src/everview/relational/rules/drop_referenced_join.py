"""Drop a join along a foreign key of which nothing but the key is read."""

from __future__ import annotations

from everview.relational.expressions import Call, Expression, conjunction
from everview.relational.nodes import Filter, Join, JoinKind, Project, Relation
from everview.relational.references import ReferencesOf, as_referring_join
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN


def drop_referenced_join(relation: Relation, references_of: ReferencesOf) -> Relation | None:
    """C ⋈[f = k] π[k](P) = π[*, f as k](σ[f is not NULL](C)), f being a foreign key of C's rows to the key k of all of P's.

    A row whose f is NULL refers to nothing: an inner and a semi join drop it, and an outer join of C gives it NULL for k,
    which is f again, unless f has several columns and only some are NULL: then it stays. The law holds in the states that
    transactions leave, of which every foreign key is true.

    >>> from everview.relational.references import Reference
    >>> from everview.relational.rule_examples import L, R, a, c, equal, show
    >>> plan = Join(L, Project(R, (a,), ("c",)), JoinKind.INNER, equal(a, c))
    >>> show(plan)
    inner join on (a = c)
      scan l [a, b]
      project [c]
        scan r [c, d]
    >>> show(drop_referenced_join(plan, lambda scan: (Reference((0,), "r", ("c",)),)))
    project [a, b, a as c]
      filter isnotnull(a)
        scan l [a, b]
    """
    if not isinstance(relation, Join):
        return None
    along = as_referring_join(relation, references_of)
    if along is None:
        return None
    kinds = (JoinKind.LEFT, JoinKind.SEMI) if along.child_is_left else (JoinKind.RIGHT,)
    if relation.kind is not JoinKind.INNER and relation.kind not in kinds:
        return None
    width = len(schema(relation.left))
    child, parent, own, other = relation.left, relation.right, 0, width
    if not along.child_is_left:
        child, parent, own, other = relation.right, relation.left, width, 0
    keeps_all = along.is_never_null or relation.kind in (JoinKind.LEFT, JoinKind.RIGHT)
    if any(other + i not in along.found for i in range(len(schema(parent)))):
        return None
    if keeps_all and not along.is_never_null and len(along.found) > 1:
        return None
    every = columns(child)
    foreign = (every[column - own] for column in along.found.values())
    tests = tuple(Call("isnotnull", (column,), BOOLEAN) for column in foreign if column.nullable)
    kept = child if keeps_all or not tests else Filter(child, conjunction(tests))
    if relation.kind is JoinKind.SEMI:
        return kept
    outputs: list[Expression] = [every[along.found.get(i, i) - own] for i in range(width + len(schema(relation.right)))]
    return Project(kept, tuple(outputs), tuple(f.name for f in schema(relation)))
