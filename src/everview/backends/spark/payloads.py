"""Ring payloads of aggregates: what is summed for each group, and how an aggregate's value comes from the sums.

    count(x)  Σ [x is not NULL]          sum(x)  Σ x, Σ [x is not NULL]          avg(x)  their quotient, as Spark divides

Sums are exact: integers and decimals as decimals. Floats are not among them, because a sum that has lost digits to a value
keeps the loss when the value goes; nor are decimals too wide to multiply with a weight. Such aggregates are recomputed for the
groups that a change touches.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal as PythonDecimal
from typing import Final

from everview.relational.expressions import (
    TRUE,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    conjunction,
)
from everview.relational.functions import function_named
from everview.relational.nodes import Aggregate, AggregateCall, Field, Schema
from everview.relational.schema import is_nullable, schema
from everview.relational.types import (
    BOOLEAN,
    FLOAT64,
    INT64,
    DataType,
    Decimal,
    integer_bounds,
    is_integral,
)

ZERO, ONE = Literal(0, INT64), Literal(1, INT64)
WEIGHT_TYPE: Final = Decimal(10, 0)
"""The type of weights where they are multiplied with decimals; more than 10¹⁰ equal rows are an overflow."""
_WIDE: Final = Decimal(20, 0)
_MAX_PRECISION: Final = 38


@dataclass(frozen=True)
class Payload:
    """The contributions of a row (over the aggregate's input), the state's columns for their sums, and the group's row.

    ``outputs`` is over keys ++ sums. The first sum is the number of rows.
    """

    contributions: tuple[Expression, ...]
    fields: Schema
    outputs: tuple[Expression, ...]


def is_ring_aggregate(node: Aggregate) -> bool:
    """Whether every aggregate of the node is a function of exact sums."""
    return all(_is_ring(call) for call in node.aggregates)


def _is_ring(call: AggregateCall) -> bool:
    if call.distinct or call.is_ring:
        return False
    match call.function:
        case "count":
            return True
        case "sum" | "avg":
            return weighted_type(call.args[0].type) is not None
        case _:
            return False


def weighted_type(data_type: DataType) -> Decimal | None:
    """The type of a value times a weight; None where it would not be exact."""
    if is_integral(data_type):
        return _product_type(_WIDE)
    if isinstance(data_type, Decimal):
        product = _product_type(data_type)
        return product if product.scale == data_type.scale else None
    return None


def _product_type(data_type: Decimal) -> Decimal:
    product = function_named("*").result_type((data_type, WEIGHT_TYPE))
    assert isinstance(product, Decimal)
    return product


def sum_type(data_type: DataType) -> DataType:
    """The type of a sum of weighted contributions."""
    if not isinstance(data_type, Decimal):
        return INT64
    product = _product_type(data_type)
    return Decimal(min(_MAX_PRECISION, product.precision + 10), product.scale)


def group_payload(node: Aggregate) -> Payload:
    """What to sum for an aggregate, and how to read its values from the sums."""
    builder = _Builder(len(node.keys))
    values = tuple(builder.value(call) for call in node.aggregates)
    keys = tuple(Column(i, f.type, f.nullable) for i, f in enumerate(schema(node)[: len(node.keys)]))
    fields = tuple(Field(f"sum{i}", sum_type(c.type), False) for i, c in enumerate(builder.contributions))
    return Payload(tuple(builder.contributions), fields, (*keys, *values))


class _Builder:
    def __init__(self, key_count: int) -> None:
        self._start = key_count
        self.contributions: list[Expression] = [ONE]

    def value(self, call: AggregateCall) -> Expression:
        counted = self._sum(_if(_is_counted(call), ONE, ZERO))
        if call.function == "count":
            return counted
        argument = call.args[0]
        exact = Cast(argument, _WIDE) if is_integral(argument.type) else argument
        assert isinstance(exact.type, Decimal)
        zero = Literal(_zero(exact.type), exact.type)
        total = self._sum(_if(_is_counted(call), exact, zero))
        has_any = Call(">", (counted, ZERO), BOOLEAN)
        if call.function == "avg":
            result = _average(total, counted, argument.type, call.type)
        elif call.type == INT64:
            result = _within_bounds(total, counted)
        else:
            result = _total(total, call.type)
        return Case(((has_any, result),), Literal(None, call.type))

    def _sum(self, contribution: Expression) -> Column:
        if contribution not in self.contributions:
            self.contributions.append(contribution)
        place = self.contributions.index(contribution)
        return Column(self._start + place, sum_type(contribution.type), False)


def _zero(data_type: Decimal) -> PythonDecimal:
    return PythonDecimal(0).scaleb(-data_type.scale)


def _is_counted(call: AggregateCall) -> Expression:
    """Whether a row takes part: it passes the filter and no argument is NULL."""
    known = tuple(Call("isnotnull", (a,), BOOLEAN) for a in call.args if is_nullable(a))
    return conjunction((*(() if call.filter is None else (call.filter,)), *known))


def _if(condition: Expression, value: Expression, otherwise: Expression) -> Expression:
    return value if condition == TRUE else Case(((condition, value),), otherwise)


def _within_bounds(total: Expression, count: Expression) -> Expression:
    """The sum as a 64-bit integer; where it is none, an addition that overflows as Spark's sum does."""
    least, most = integer_bounds(INT64)
    assert isinstance(total.type, Decimal)
    over = Call(">", (total, Literal(PythonDecimal(most), total.type)), BOOLEAN)
    under = Call("<", (total, Literal(PythonDecimal(least), total.type)), BOOLEAN)
    overflow = Call("+", (Literal(most, INT64), count), INT64)
    return Case(((Call("or", (over, under), BOOLEAN), overflow),), Cast(total, INT64))


def _total(total: Expression, data_type: DataType) -> Expression:
    return total if total.type == data_type else Cast(total, data_type)


def _average(total: Expression, count: Expression, argument: DataType, data_type: DataType) -> Expression:
    if not isinstance(argument, Decimal):
        return Call("/", (Cast(total, FLOAT64), Cast(count, FLOAT64)), FLOAT64)
    summed = Decimal(min(_MAX_PRECISION, argument.precision + 10), argument.scale)
    parts = (_total(total, summed), Cast(count, _WIDE))
    quotient = Call("/", parts, function_named("/").result_type((summed, _WIDE)))
    return _total(quotient, data_type)
