"""Which filters of a table probably leave few of its rows, and joins in which such tables come first."""

from __future__ import annotations

from math import prod

from everview.planner.block_flatten import FlatJoin
from everview.planner.block_join_builder import FactsOf
from everview.relational.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    columns_of,
    remap_columns,
    shift_columns,
)
from everview.relational.failing import can_fail
from everview.relational.nodes import Relation, Scan
from everview.relational.schema import schema

FEW = 0.25
"""The share of its rows that a filter leaves at most, where that is worth a detour: with groups of these rows only, a row that
passes costs a look-up and a stored sum more, and one that does not about half as much."""
GUESSED = 0.1
"""The share of the rows that are equal to a constant, or match a pattern, where nobody has counted."""
_PATTERNS = frozenset(("in", "like", "ilike", "rlike", "startswith", "endswith", "contains"))


def leaves_few(conditions: tuple[Expression, ...], relation: Relation, facts_of: FactsOf) -> bool:
    """Whether conditions on a table compare with constants, cannot fail, and probably leave few rows."""
    if not isinstance(relation, Scan) or any(map(can_fail, conditions)):
        return False
    return prod(_share(c, relation, facts_of) for c in conditions) <= FEW


def _share(condition: Expression, scan: Scan, facts_of: FactsOf) -> float:
    """The share of the rows of which a condition is expected to hold."""
    match condition:
        case Call(function="=", args=(value, Literal()) | (Literal(), value)) if not isinstance(value, Literal):
            while isinstance(value, Cast):
                value = value.child
            facts = facts_of(scan)
            if isinstance(value, Column) and facts.matches is not None:
                return facts.matches((value.index,)) / facts.rows or GUESSED
            return GUESSED
        case Call(function=name, args=(_, *others)) if name in _PATTERNS:
            return min(1.0, GUESSED * len(others)) if all(isinstance(o, Literal) for o in others) else 1.0
        case _:
            return 1.0


def join_few_first(flat: FlatJoin, facts_of: FactsOf) -> FlatJoin | None:
    """(A ⋈ B) ⋈ F = (A ⋈ F) ⋈ B, where a filter leaves few rows of the table F, and an equality joins it with A.

    Rows of A that no row of F meets then do not meet rows of B either, and are not kept with them. None if every such table
    comes as early as it can, or if a condition can fail: it would be evaluated for fewer rows.

    >>> from everview.planner.block_flatten import flatten
    >>> from everview.planner.block_join_builder import Facts
    >>> from everview.relational.nodes import Field, Filter, Join, JoinKind
    >>> from everview.relational.rule_examples import L, R, a, b, c, equal, show
    >>> from everview.relational.types import INT64
    >>> from everview.planner.block_flatten import as_relation
    >>> few = Filter(Scan("f", (Field("e", INT64), Field("f", INT64))), equal(b, 7))
    >>> plan = Join(Join(L, R, JoinKind.INNER, equal(a, c)), few, JoinKind.INNER, equal(b, Column(4, INT64)))
    >>> show(plan)
    inner join on (b = e)
      inner join on (a = c)
        scan l [a, b]
        scan r [c, d]
      filter (f = 7)
        scan f [e, f]
    >>> show(as_relation(join_few_first(flatten(plan), lambda _: Facts()), ("a", "b", "c", "d", "e", "f")))
    project [a, b, c, d, e, f]
      inner join on (a = c)
        inner join on (b = e)
          scan l [a, b]
          filter (f = 7)
            scan f [e, f]
        scan r [c, d]
    """
    if any(map(can_fail, flat.conditions)):
        return None
    order, waiting = [0], list(range(1, len(flat.inputs)))
    few = {i for i in waiting if _is_few(flat, i, facts_of)}
    while waiting:
        following = next((i for i in waiting if i in few and _meets(flat, i, order)), waiting[0])
        waiting.remove(following)
        order.append(following)
    return None if order == sorted(order) else _in_order(flat, order)


def _is_few(flat: FlatJoin, number: int, facts_of: FactsOf) -> bool:
    own = [c for c in flat.conditions if {flat.owner[i] for i in columns_of(c)} == {number}]
    return leaves_few(tuple(shift_columns(c, -flat.start[number]) for c in own), flat.inputs[number], facts_of)


def _meets(flat: FlatJoin, number: int, placed: list[int]) -> bool:
    """Whether an equality joins an input with those that have been placed, and with no other one."""
    for condition in flat.conditions:
        owners = {flat.owner[i] for i in columns_of(condition)}
        is_equality = isinstance(condition, Call) and condition.function == "="
        if is_equality and len(owners) > 1 and number in owners and owners <= {number, *placed}:
            return True
    return False


def _in_order(flat: FlatJoin, order: list[int]) -> FlatJoin:
    """The same join with its inputs in another order."""
    places: dict[int, int] = {}
    at = 0
    for number in order:
        width = len(schema(flat.inputs[number]))
        places.update({flat.start[number] + i: at + i for i in range(width)})
        at += width
    moved = [tuple(remap_columns(e, places.__getitem__) for e in listed) for listed in (flat.conditions, flat.outputs)]
    return FlatJoin(tuple(flat.inputs[i] for i in order), *moved)
