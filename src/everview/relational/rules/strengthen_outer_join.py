"""An outer join whose padded rows are filtered away is an inner join."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from everview.relational.expressions import Expression, conjuncts
from everview.relational.nodes import Filter, Join, JoinKind, Relation
from everview.relational.null_rejection import rejects_nulls
from everview.relational.schema import schema


def strengthen_outer_join(relation: Relation) -> Relation | None:
    """σ[p](L ⟕ R) = σ[p](L ⋈ R) where p is not true once all columns of R are NULL; likewise ⟖, and ⟗ side by side.

    The condition of an inner join filters its inputs in the same way.

    >>> from everview.relational.rule_examples import L, R, a, c, d, equal, less, show
    >>> plan = Filter(Join(L, R, JoinKind.LEFT, equal(a, c)), less(d, 7))
    >>> show(plan)
    filter (d < 7)
      left join on (a = c)
        scan l [a, b]
        scan r [c, d]
    >>> show(strengthen_outer_join(plan))
    filter (d < 7)
      inner join on (a = c)
        scan l [a, b]
        scan r [c, d]
    """
    match relation:
        case Filter(child=Join() as join):
            stronger = _strengthen(join, conjuncts(relation.condition), 0)
            return None if stronger is None else replace(relation, child=stronger)
        case Join(kind=JoinKind.INNER):
            parts = conjuncts(relation.condition)
            if isinstance(relation.left, Join):
                stronger = _strengthen(relation.left, parts, 0)
                if stronger is not None:
                    return replace(relation, left=stronger)
            if isinstance(relation.right, Join):
                stronger = _strengthen(relation.right, parts, len(schema(relation.left)))
                if stronger is not None:
                    return replace(relation, right=stronger)
    return None


def _strengthen(join: Join, parts: Iterable[Expression], first: int) -> Join | None:
    """The join without the padding that the conditions reject; its columns start at position ``first`` in them."""
    if join.kind not in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL):
        return None
    width = len(schema(join.left))
    left = frozenset(range(first, first + width))
    right = frozenset(range(first + width, first + width + len(schema(join.right))))
    keeps_left = join.kind in (JoinKind.LEFT, JoinKind.FULL) and not any(rejects_nulls(p, right) for p in parts)
    keeps_right = join.kind in (JoinKind.RIGHT, JoinKind.FULL) and not any(rejects_nulls(p, left) for p in parts)
    kind = {
        (True, True): JoinKind.FULL,
        (True, False): JoinKind.LEFT,
        (False, True): JoinKind.RIGHT,
        (False, False): JoinKind.INNER,
    }[keeps_left, keeps_right]
    return None if kind is join.kind else replace(join, kind=kind)
