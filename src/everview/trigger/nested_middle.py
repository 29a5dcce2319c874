"""The middle part of a correlated aggregate in a flat join: what Catalyst's decorrelation computes for each outer key.

    γ[k; SUM(v)](δ(π_k O) ⋈ I on I.y < k)

δ(π_k O) is the *domain*. ``find_nested`` says how the middle part is joined with O, and what is made of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from everview.planner.block_flatten import FlatJoin, as_relation, flatten
from everview.relational.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    remap_columns,
    shift_columns,
    substitute,
)
from everview.relational.failing import can_fail
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Relation,
)
from everview.relational.ordered_condition import direction
from everview.relational.range_condition import is_one_word
from everview.relational.schema import schema
from everview.relational.types import INT32, Decimal, is_floating, is_integral
from everview.trigger.compared_keys import ComparedKeys, compared_keys

_FUNCTIONS = ("sum", "avg", "max", "min", "count")
_WIDEST_AVERAGED = 28
"""The most digits of decimals whose average has four digits more, and whose sum cannot overflow."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A column of the inner relation θ an expression of the outer one, over its columns.

    Where computing either can fail, an expression and a column say whether it does.
    """

    outer: Expression
    inner: int
    comparison: str
    outer_fails: Expression | None
    inner_fails: int | None

    def over(self, place: int) -> Compared:
        """The same of another column."""
        outer, fails = (
            None if e is None else remap_columns(e, lambda _: place) for e in (self.outer, self.outer_fails)
        )
        assert outer is not None
        return replace(self, outer=outer, outer_fails=fails)


@dataclass(frozen=True, slots=True)
class MiddlePart:
    """The middle part: for each of its keys, the column of the inner relation, or None for the one that is compared."""

    domain: Aggregate
    inner: Relation
    keys: tuple[int | None, ...]
    compared: tuple[Compared, ...]
    """What is compared, over the one column of the domain."""
    call: AggregateCall
    argument: int


def middle_part(relation: Relation) -> MiddlePart | None:
    """The middle part, if a relation is one: an aggregate over a domain and inner relations."""
    if not isinstance(relation, Aggregate) or len(relation.aggregates) != 1:
        return None
    (call,) = relation.aggregates
    if call.function not in _FUNCTIONS or call.distinct or call.filter is not None or call.is_ring:
        return None
    if call.function == "avg" and not _is_exact_average(call):
        return None
    flat = flatten(relation.child)
    domain, *others = flat.inputs
    if not others or not (isinstance(domain, Aggregate) and not domain.aggregates and len(domain.keys) == 1):
        return None
    width = 1
    argument = _value_column(call, flat)
    own = tuple(c for c in flat.conditions if columns_of(c) and min(columns_of(c)) >= width)
    rest = [c for c in flat.conditions if c not in own]
    compared = _all_compared(tuple(rest), width, call)
    keys = [substitute(k, flat.outputs) for k in relation.keys]
    if argument is None or compared is None or not all(isinstance(k, Column) for k in keys):
        return None
    places = [k.index for k in keys if isinstance(k, Column)]
    if places.count(0) != 1:
        return None
    every = tuple(Column(c.index - width, c.type, c.nullable) for c in _columns_of_inputs(flat)[width:])
    inner = FlatJoin(tuple(others), tuple(shift_columns(c, -width) for c in own), every)
    read = [p - width for p in places if p >= width]
    fields = [f.name for r in others for f in schema(r)]
    kept: list[Expression] = [every[c] for c in read]
    names, made = [fields[c] for c in read], []
    for pair in compared:
        outer_fails, fails = (None, None) if pair.failing is None else pair.failing
        at = len(kept)
        kept.append(pair.inner)
        names.append(fields[pair.inner.index] if isinstance(pair.inner, Column) else "compared")
        if fails is not None:
            kept.append(fails)
            names.append("fails")
        made.append(Compared(pair.outer, at, pair.comparison, outer_fails, None if fails is None else at + 1))
    found = tuple(None if p < width else read.index(p - width) for p in places)
    held = as_relation(replace(inner, outputs=(*kept, argument)), (*names, "argument"))
    return MiddlePart(domain, held, found, tuple(made), call, len(kept))


def _all_compared(
    conditions: tuple[Expression, ...], width: int, call: AggregateCall
) -> tuple[ComparedKeys, ...] | None:
    """What is compared with the domain's column: once, or more than once by expressions that grow with one column a side."""
    found = tuple(compared_keys(c, width) for c in conditions)
    pairs = tuple(c for c in found if c is not None and columns_of(c.outer) == {0})
    if not pairs or len(pairs) < len(found):
        return None
    if len(pairs) == 1:
        return pairs if pairs[0].comparison != "<>" or call.function in ("max", "min") or has_margins(call) else None
    compared = {c for pair in pairs for c in columns_of(pair.inner)}
    grow = all(
        direction(_certain(e), c) == 1 for pair in pairs for e, c in ((pair.outer, 0), (pair.inner, min(compared)))
    )
    fits = len(compared) == 1 and grow and all(p.comparison != "<>" and is_one_word(p.inner.type) for p in pairs)
    return pairs if fits and has_margins(call) and all(p.failing is None for p in pairs[2:]) else None


def _certain(expression: Expression) -> Expression:
    """An expression without the ``try`` around it."""
    return expression.args[0] if isinstance(expression, Call) and expression.function == "try" else expression


def _is_exact_average(call: AggregateCall) -> bool:
    """Whether what is averaged has an exact sum: integers and decimals."""
    (argument,) = call.args
    if isinstance(argument.type, Decimal):
        return argument.type.precision <= _WIDEST_AVERAGED
    return is_integral(argument.type) and is_floating(call.type)


def has_margins(call: AggregateCall) -> bool:
    """Whether the value of an inner row can be added to those of a range of outer rows."""
    return call.function in ("sum", "avg", "count") and all(
        not isinstance(a.type, Decimal) or a.type.precision <= _WIDEST_AVERAGED for a in call.args
    )


def _columns_of_inputs(flat: FlatJoin) -> tuple[Column, ...]:
    fields = [f for r in flat.inputs for f in schema(r)]
    return tuple(Column(i, f.type, f.nullable) for i, f in enumerate(fields))


def _value_column(call: AggregateCall, flat: FlatJoin) -> Expression | None:
    """What is aggregated, over the inner relations alone, and surely no error; the domain has the first column."""
    if len(call.args) > 1:
        return None
    argument = substitute(call.args[0], flat.outputs) if call.args else Literal(1, INT32)
    if 0 in columns_of(argument) or can_fail(argument):
        return None
    return shift_columns(argument, -1)
