"""NOT IN, which NULLs on either side make fail, as anti-joins on equalities."""

from __future__ import annotations

from everview.relational.expressions import (
    Call,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    shift_columns,
)
from everview.relational.nodes import Filter, Join, JoinKind, Relation, UnionAll
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN


def split_null_aware_anti(relation: Relation) -> Relation | None:
    """L ▷[c ∧ (x = y ∨ isnull(x = y))] R, where x reads L and y reads R, is L without what equality and NULLs rule out.

    - N = L ▷[c ∧ x = y] R                     no partner is equal
    - M = N ▷[c] σ[y is null](R)               no partner is NULL
    - σ[x is not null](M) ⊎ (σ[x is null](M) ▷[c] R)      and a NULL has no partner at all

    For exactly one such disjunction; others are left to be checked pair by pair.

    >>> from everview.relational.rule_examples import L, R, a, c, equal, show
    >>> plan = Join(L, R, JoinKind.ANTI, Call("or", (equal(a, c), Call("isnull", (equal(a, c),), BOOLEAN)), BOOLEAN))
    >>> show(plan)
    anti join on ((a = c) or isnull((a = c)))
      scan l [a, b]
      scan r [c, d]
    >>> show(split_null_aware_anti(plan))
    union all
      filter isnotnull(a)
        #1: anti join on true
          anti join on (a = c)
            scan l [a, b]
            scan r [c, d]
          filter isnull(c)
            scan r [c, d]
      anti join on true
        filter isnull(a)
          see #1
        scan r [c, d]
    """
    if not (isinstance(relation, Join) and relation.kind is JoinKind.ANTI):
        return None
    parts = conjuncts(relation.condition)
    width = len(schema(relation.left))
    found = [(p, sides) for p in parts if (sides := _null_aware_sides(p, width)) is not None]
    if len(found) != 1:
        return None
    part, (x, y, equality) = found[0]
    rest = tuple(p for p in parts if p is not part)
    no_equal = Join(relation.left, relation.right, JoinKind.ANTI, conjunction((*rest, equality)))
    null_partners = Filter(relation.right, _is_null(shift_columns(y, -width)))
    no_null = Join(no_equal, null_partners, JoinKind.ANTI, conjunction(rest))
    present = Filter(no_null, Call("isnotnull", (x,), BOOLEAN))
    absent = Join(Filter(no_null, _is_null(x)), relation.right, JoinKind.ANTI, conjunction(rest))
    return UnionAll((present, absent))


def _is_null(expression: Expression) -> Expression:
    return Call("isnull", (expression,), BOOLEAN)


def _null_aware_sides(part: Expression, width: int) -> tuple[Expression, Expression, Expression] | None:
    """``(x, y, x = y)`` if the condition is ``x = y OR isnull(x = y)`` across the join."""
    match part:
        case Call(function="or", args=(Call(function="=") as equality, Call(function="isnull", args=(inner,)))):
            if inner != equality:
                return None
            a, b = equality.args
            if _is_left(a, width) and _is_right(b, width):
                return a, b, equality
            if _is_left(b, width) and _is_right(a, width):
                return b, a, equality
    return None


def _is_left(expression: Expression, width: int) -> bool:
    return all(c < width for c in columns_of(expression))


def _is_right(expression: Expression, width: int) -> bool:
    return all(c >= width for c in columns_of(expression))
