"""Give each conjunct of a filter to the join below it, and through it to the one input it reads."""

from __future__ import annotations

from everview.relational.expressions import Expression, columns_of, conjunction, conjuncts, shift_columns
from everview.relational.nodes import Filter, Join, JoinKind, Relation
from everview.relational.schema import schema

_KEEPS_LEFT_ROWS = (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)


def push_filter_into_join(relation: Relation) -> Relation | None:
    """σ[l ∧ r ∧ b](L ⋈[c] R) = σ[l](L) ⋈[c ∧ b] σ[r](R) for the inner join, l over L's columns, r over R's, b over both.

    Through left, semi, anti and mark joins only l goes, to the left input: each output row carries one left row unchanged. A
    condition of an inner join that reads one side moves to that side by the same law.

    >>> from everview.relational.rule_examples import L, R, a, b, both, c, d, equal, less, show
    >>> plan = Filter(Join(L, R, JoinKind.INNER, equal(a, c)), both(less(b, 5), less(b, d)))
    >>> show(plan)
    filter ((b < 5) and (b < d))
      inner join on (a = c)
        scan l [a, b]
        scan r [c, d]
    >>> show(push_filter_into_join(plan))
    inner join on ((a = c) and (b < d))
      filter (b < 5)
        scan l [a, b]
      scan r [c, d]
    """
    match relation:
        case Filter(child=Join(kind=JoinKind.INNER) as join):
            return _place(join, (*conjuncts(join.condition), *conjuncts(relation.condition)))
        case Filter(child=Join() as join) if join.kind in _KEEPS_LEFT_ROWS:
            return _push_left(relation, join)
        case Join(kind=JoinKind.INNER):
            parts = conjuncts(relation.condition)
            width = len(schema(relation.left))
            return _place(relation, parts) if any(_is_one_sided(p, width) for p in parts) else None
        case _:
            return None


def _is_one_sided(part: Expression, width: int) -> bool:
    read = columns_of(part)
    return bool(read) and (max(read) < width or min(read) >= width)


def _place(join: Join, parts: tuple[Expression, ...]) -> Relation:
    width = len(schema(join.left))
    left, right, both = [], [], []
    for part in dict.fromkeys(parts):
        read = columns_of(part)
        if read and max(read) < width:
            left.append(part)
        elif read and min(read) >= width:
            right.append(shift_columns(part, -width))
        else:
            both.append(part)
    return Join(
        _filtered(join.left, tuple(left)),
        _filtered(join.right, tuple(right)),
        JoinKind.INNER,
        conjunction(tuple(both)),
    )


def _push_left(relation: Filter, join: Join) -> Relation | None:
    width = len(schema(join.left))
    parts = conjuncts(relation.condition)
    left = tuple(p for p in parts if all(c < width for c in columns_of(p)))
    if not left:
        return None
    rest = tuple(p for p in parts if p not in left)
    pushed = Join(_filtered(join.left, left), join.right, join.kind, join.condition, join.mark)
    return Filter(pushed, conjunction(rest)) if rest else pushed


def _filtered(relation: Relation, parts: tuple[Expression, ...]) -> Relation:
    return Filter(relation, conjunction(parts)) if parts else relation
