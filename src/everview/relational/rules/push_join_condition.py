"""Give a join's one-sided conditions to the input they read."""

from __future__ import annotations

from everview.relational.expressions import (
    Call,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    shift_columns,
)
from everview.relational.failing import can_fail
from everview.relational.nodes import Filter, Join, JoinKind, Relation, UnionAll
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN

_RIGHT_IS_ONLY_MATCHED = (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE)


def push_join_condition(relation: Relation) -> Relation | None:
    """What is left of a join's condition is then, more often, equalities alone.

    - L ⟕[c ∧ q] R = L ⟕[c] σ[q](R), q over R's columns; likewise ⋉, ▷ and mark
    - L ⋉[c ∧ p] R = σ[p](L) ⋉[c] R, p over L's columns
    - L ▷[c ∧ p] R = σ[p is not true](L) ⊎ (σ[p](L) ▷[c] R), p never failing: Spark tests it only where rows meet

    >>> from everview.relational.rule_examples import L, R, a, both, c, d, equal, less, show
    >>> plan = Join(L, R, JoinKind.LEFT, both(equal(a, c), less(d, 7)))
    >>> show(plan)
    left join on ((a = c) and (d < 7))
      scan l [a, b]
      scan r [c, d]
    >>> show(push_join_condition(plan))
    left join on (a = c)
      scan l [a, b]
      filter (d < 7)
        scan r [c, d]
    """
    if not (isinstance(relation, Join) and relation.kind in _RIGHT_IS_ONLY_MATCHED):
        return None
    width = len(schema(relation.left))
    parts = conjuncts(relation.condition)
    right = tuple(p for p in parts if columns_of(p) and min(columns_of(p)) >= width)
    if right:
        others = tuple(p for p in parts if p not in right)
        filtered = Filter(relation.right, conjunction(tuple(shift_columns(p, -width) for p in right)))
        return Join(relation.left, filtered, relation.kind, conjunction(others), relation.mark)
    is_anti = relation.kind is JoinKind.ANTI
    left = tuple(p for p in parts if all(c < width for c in columns_of(p)) and not (is_anti and can_fail(p)))
    if not left:
        return None
    condition, rest = conjunction(left), conjunction(tuple(p for p in parts if p not in left))
    matched = Filter(relation.left, condition)
    match relation.kind:
        case JoinKind.SEMI:
            return Join(matched, relation.right, JoinKind.SEMI, rest)
        case JoinKind.ANTI:
            unmatched = Filter(relation.left, _is_not_true(condition))
            return UnionAll((unmatched, Join(matched, relation.right, JoinKind.ANTI, rest)))
        case _:
            return None


def _is_not_true(condition: Expression) -> Expression:
    known = Call("coalesce", (condition, Literal(False, BOOLEAN)), BOOLEAN)
    return Call("not", (known,), BOOLEAN)
