"""Ring payloads of aggregates: what is summed for each group, and how an aggregate's value comes from the sums.

    count(x)  Σ [x is not NULL]          sum(x)  Σ x, Σ [x is not NULL]          avg(x)  their quotient, as Spark divides

Which aggregates are functions of sums, and of which, says ``relational.definitions.sum_aggregates``. Sums are exact: integers
and decimals as decimals, floats as integers that make them up (``float_limbs``), with a count of the rows that have one which
does not fit. Decimals too wide to multiply with a weight are not among them, nor variances of floats. Such aggregates are
recomputed for the groups that a change touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal as PythonDecimal
from typing import Final, assert_never

from everview.backends.spark.float_limbs import fits, limbs
from everview.backends.spark.float_limbs import total as total_of_limbs
from everview.backends.spark.float_totals import UNFIT, WHOLE, SumPart
from everview.relational.definitions.sum_aggregates import Summed, sum_aggregate
from everview.relational.expressions import (
    FALSE,
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
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
    integer_bounds,
    is_floating,
    is_integral,
)

ZERO, ONE = Literal(0, INT64), Literal(1, INT64)
_UNFIT: Final = Literal(-1, INT64)
"""Stands for the contribution of a row with floats that do not fit, until all floats are known."""
WEIGHT_TYPE: Final = Decimal(10, 0)
"""The type of weights where they are multiplied with decimals; more than 10¹⁰ equal rows are an overflow."""
WIDE: Final = Decimal(20, 0)
"""Holds every BIGINT."""
_MAX_PRECISION: Final = 38


@dataclass(frozen=True)
class UncutRows:
    """Integers and floats of a row (over the aggregate's input), of which ``float_totals`` makes the contributions."""

    values: tuple[Expression, ...]
    parts: tuple[SumPart, ...]


@dataclass(frozen=True)
class Payload:
    """The contributions of a row (over the aggregate's input), the state's columns for their sums, and the group's row.

    ``outputs`` is over keys ++ sums. The first sum is the number of rows; with ``has_floats`` the second is that of rows with a
    float that does not fit its limbs. ``uncut`` is another way to the same sums, where they are all of integers and floats.
    """

    contributions: tuple[Expression, ...]
    fields: Schema
    outputs: tuple[Expression, ...]
    has_floats: bool = False
    uncut: UncutRows | None = None


def is_nested(data_type: DataType) -> bool:
    """Whether values are arrays, maps or structs: Arrow groups by none of these."""
    return isinstance(data_type, Array | Map | Struct)


def is_ring_aggregate(node: Aggregate) -> bool:
    """Whether every aggregate of the node is a function of sums that are kept."""
    return all(is_function_of_exact_sums(call) or is_float_sum(call) for call in node.aggregates)


def is_float_sum(call: AggregateCall) -> bool:
    """Whether an aggregate is the sum, or mean, of floats: kept as sums of limbs."""
    return call.function in ("sum", "avg") and sum_aggregate(call) is not None and is_floating(call.args[0].type)


def is_function_of_exact_sums(call: AggregateCall) -> bool:
    """Whether an aggregate is a function of sums that lose no digit; TRY_ forms turn an overflow into NULL, and are not."""
    declared = sum_aggregate(call)
    if declared is None:
        return False
    match declared.summed:
        case Summed.ROWS | Summed.TRUTHS:
            return True
        case Summed.NUMBERS:
            return call.function in ("sum", "avg") and weighted_type(call.args[0].type) is not None
        case Summed.FLOATS:
            return False
        case _:
            assert_never(declared.summed)


def weighted_type(data_type: DataType) -> Decimal | None:
    """The type of a value times a weight; None where it would not be exact."""
    if is_integral(data_type):
        return _product_type(WIDE)
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


def payload_fields(contributions: Sequence[Expression]) -> Schema:
    """The state's columns for the sums of contributions."""
    return tuple(Field(f"sum{i}", sum_type(c.type), False) for i, c in enumerate(contributions))


def group_payload(node: Aggregate) -> Payload:
    """What to sum for an aggregate, and how to read its values from the sums."""
    has_floats = any(map(is_float_sum, node.aggregates))
    builder = _Builder(len(node.keys), has_floats=has_floats)
    values = tuple(builder.value(call) for call in node.aggregates)
    keys = tuple(Column(i, f.type, f.nullable) for i, f in enumerate(schema(node)[: len(node.keys)]))
    contributions = builder.finished()
    uncut = builder.uncut() if has_floats and not any(is_nested(k.type) for k in keys) else None
    return Payload(contributions, payload_fields(contributions), (*keys, *values), has_floats, uncut)


def aggregate_value(call: AggregateCall, total: Expression, counted: Expression) -> Expression:
    """An aggregate's value: from its exact sum (a decimal, or the number of rows where it is true) and the rows that count."""
    declared = sum_aggregate(call)
    assert declared is not None, "asked for functions of sums only"
    if declared.summed is Summed.ROWS:
        return counted
    if declared.summed is Summed.TRUTHS:
        is_every = call.function == "min"  # of booleans: whether all are true
        result: Expression = Call("=", (total, counted), BOOLEAN) if is_every else Call(">", (total, ZERO), BOOLEAN)
    elif call.function == "avg":
        result = _average(total, counted, call.args[0].type, call.type)
    elif call.type == INT64:
        result = _within_bounds(total, counted)
    else:
        result = _total(total, call.type)
    return Case(((Call(">", (counted, ZERO), BOOLEAN), result),), Literal(None, call.type))


class _Builder:
    def __init__(self, key_count: int, *, has_floats: bool) -> None:
        self._start = key_count
        self._contributions: list[Expression] = [ONE, _UNFIT] if has_floats else [ONE]
        self._unfit: list[Expression] = []
        self._floats: list[Expression] = []
        """What is summed as floats: NULL where a row does not count."""
        self._limbs: dict[int, SumPart] = {}
        """For a contribution that is a limb, the float and which limb of it."""

    def finished(self) -> tuple[Expression, ...]:
        """All contributions."""
        some = self._unfit[0] if self._unfit else FALSE
        for one in self._unfit[1:]:
            some = Call("or", (some, one), BOOLEAN)
        return tuple(_if(some, ONE, ZERO) if c is _UNFIT else c for c in self._contributions)

    def uncut(self) -> UncutRows | None:
        """The rows before their floats are cut; None where decimals are summed, too."""
        whole = [c for i, c in enumerate(self._contributions) if i not in self._limbs and c is not _UNFIT]
        if any(c.type != INT64 for c in whole):
            return None
        parts: list[SumPart] = []
        for i, contribution in enumerate(self._contributions):
            if contribution is _UNFIT:
                parts.append(UNFIT)
            elif i in self._limbs:
                number, limb = self._limbs[i]
                parts.append((self._start + len(whole) + number, limb))
            else:
                parts.append((self._start + whole.index(contribution), WHOLE))
        return UncutRows((*whole, *self._floats), tuple(parts))

    def value(self, call: AggregateCall) -> Expression:
        declared = sum_aggregate(call)
        assert declared is not None, "asked for functions of sums only"
        counted = self._sum(_if(_is_counted(call), ONE, ZERO))
        if declared.summed is Summed.ROWS:
            return aggregate_value(call, ZERO, counted)
        argument = call.args[0]
        if declared.summed is Summed.TRUTHS:
            holds = conjunction((_is_counted(call), argument))
            return aggregate_value(call, self._sum(_if(holds, ONE, ZERO)), counted)
        if is_floating(argument.type):
            return self._float_value(call, counted)
        exact = Cast(argument, WIDE) if is_integral(argument.type) else argument
        return aggregate_value(call, self._sum(_if(_is_counted(call), exact, zero(exact.type))), counted)

    def _float_value(self, call: AggregateCall, counted: Expression) -> Expression:
        argument = call.args[0]
        x = argument if argument.type == FLOAT64 else Cast(argument, FLOAT64)
        is_counted, is_fit = _is_counted(call), fits(x)
        unfit = conjunction((is_counted, Call("not", (is_fit,), BOOLEAN)))
        if unfit not in self._unfit:
            self._unfit.append(unfit)
        uncut = x if call.filter is None else _if(is_counted, x, Literal(None, FLOAT64))
        if uncut not in self._floats:
            self._floats.append(uncut)
        sums = [self._sum(_if(conjunction((is_counted, is_fit)), limb, ZERO)) for limb in limbs(x)]
        number = self._floats.index(uncut)
        self._limbs |= {column.index - self._start: (number, i) for i, column in enumerate(sums)}
        summed = total_of_limbs(sums)
        if call.function == "avg":
            summed = Call("/", (summed, Cast(counted, FLOAT64)), FLOAT64)
        return Case(((Call(">", (counted, ZERO), BOOLEAN), summed),), Literal(None, call.type))

    def _sum(self, contribution: Expression) -> Column:
        if contribution not in self._contributions:
            self._contributions.append(contribution)
        place = self._contributions.index(contribution)
        return Column(self._start + place, sum_type(contribution.type), False)


def zero(data_type: DataType) -> Literal:
    """Nothing, of a payload's type."""
    if isinstance(data_type, Decimal):
        return Literal(PythonDecimal(0).scaleb(-data_type.scale), data_type)
    return Literal(0, data_type)


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
    parts = (_total(total, summed), Cast(count, WIDE))
    quotient = Call("/", parts, function_named("/").result_type((summed, WIDE)))
    return _total(quotient, data_type)
