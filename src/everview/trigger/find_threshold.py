"""Rows compared with an aggregate of no groups: a join that a threshold in the order of one column answers.

    σ[f(c) > g(v)](O × V)  with V a global aggregate, which has one row, and c a column of O

If nobody else reads V, it is a filter of O whose bound moves with V.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.planner.block_flatten import FlatJoin
from everview.relational.expressions import (
    Call,
    Column,
    Expression,
    children,
    columns_of,
    conjunction,
    conjuncts,
    remap_columns,
    shift_columns,
    with_children,
)
from everview.relational.failing import can_fail
from everview.relational.nodes import Aggregate, Project, Relation, Scan
from everview.relational.ordered_condition import is_interval, ordered_condition
from everview.relational.schema import schema
from everview.relational.types import is_numeric


@dataclass(frozen=True, slots=True)
class Threshold:
    """Which input of a flat join is filtered, and by what: ``condition`` is over its column, then the columns of ``value``."""

    rows: int
    column: int
    value: Relation
    condition: Expression
    single: int
    """The input that goes away."""
    used: tuple[Expression, ...]
    filters: tuple[Expression, ...]
    """Conditions on the rows alone, over their columns, which are checked before; they are among those ``used``."""
    kept: tuple[int, ...]
    """The columns of the rows that somebody reads."""


def find_threshold(flat: FlatJoin) -> Threshold | None:
    """The first input that is compared with a global aggregate which nobody else reads."""
    for number, relation in enumerate(flat.inputs):
        if isinstance(relation, Aggregate) and not relation.keys:
            found = _compared(flat, number)
            if found is not None:
                return found
    return None


def without_threshold(flat: FlatJoin, found: Threshold, filtered: Scan) -> FlatJoin:
    """The join over the filtered rows, which have the columns that are kept."""
    places: dict[int, int] = {}
    inputs = []
    for i, relation in enumerate(flat.inputs):
        if i != found.single:
            kept = found.kept if i == found.rows else range(len(schema(relation)))
            places |= {flat.start[i] + column: len(places) + k for k, column in enumerate(kept)}
            inputs.append(filtered if i == found.rows else relation)
    conditions = tuple(c for c in flat.conditions if c not in found.used)
    moved = [remap_columns(e, places.__getitem__) for e in (*conditions, *flat.outputs)]
    return FlatJoin(tuple(inputs), tuple(moved[: len(conditions)]), tuple(moved[len(conditions) :]))


def _compared(flat: FlatJoin, number: int) -> Threshold | None:
    single, start = flat.inputs[number], flat.start[number]
    own = set(range(start, start + len(schema(single))))
    used = tuple(c for c in flat.conditions if columns_of(c) & own)
    others = {c for e in used for c in columns_of(e)} - own
    if len(others) != 1 or any(columns_of(e) & own for e in flat.outputs):
        return None
    (column,) = others
    rows = flat.owner[column]
    kept = flat.inputs[rows]
    place = column - flat.start[rows]
    if not is_numeric(schema(kept)[place].type) or (isinstance(kept, Aggregate) and not kept.keys):
        return None
    read: list[Expression] = []

    def over(expression: Expression) -> Expression:
        """The condition over the column and what is computed of the value alone."""
        found = columns_of(expression)
        if found and found <= own:
            known = shift_columns(expression, -start)
            if known not in read:
                read.append(known)
            return Column(1 + read.index(known), expression.type)
        if isinstance(expression, Column):
            return Column(0, expression.type, expression.nullable)
        return with_children(expression, tuple(over(c) for c in children(expression)))

    condition = over(conjunction(used))
    ordered = ordered_condition(condition, 0)
    if (
        ordered is None
        or not is_interval(ordered)
        or can_fail(condition)
        or any(map(_is_equality, conjuncts(condition)))
    ):
        return None
    value = Project(single, tuple(read), tuple(f"value_{i}" for i in range(len(read))))
    first, last = flat.start[rows], flat.start[rows] + len(schema(kept))
    alone = [
        c for c in flat.conditions if columns_of(c) and columns_of(c) <= set(range(first, last)) and not can_fail(c)
    ]
    rest = (*(c for c in flat.conditions if c not in (*used, *alone)), *flat.outputs)
    wanted = {c - first for e in rest for c in columns_of(e) if first <= c < last} | {place}
    filters = tuple(shift_columns(c, -first) for c in alone)
    return Threshold(rows, place, value, condition, number, (*used, *alone), filters, tuple(sorted(wanted)))


def _is_equality(condition: Expression) -> bool:
    """Whether hashed rows answer a condition better than ordered ones."""
    return isinstance(condition, Call) and condition.function in ("=", "<=>")
