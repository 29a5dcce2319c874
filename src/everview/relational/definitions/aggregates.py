"""The aggregate functions: from the bag of argument values of one group to the aggregate's value.

Rows with a NULL argument do not count, as in Spark; an aggregate of nothing is NULL, a count of nothing 0. Float sums are
correctly rounded (``math.fsum``): the reference is right to the last bit, and comparisons allow for others' rounding.

Beyond the range of a double, Spark's answer may depend on the order of rows: 1e308 + 1e308 - 1e308 is 1e308 or infinite. Here
it does not. A sum is the exact one, infinite only where that is out of range; so are the sums that a variance is a quotient
of. Infinities of both signs, or a NaN, make NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal as PythonDecimal
from fractions import Fraction

from everview.errors import EvaluationError
from everview.relational.definitions.ordered_aggregates import ORDERED_AGGREGATES
from everview.relational.definitions.ring_aggregates import evaluate_ring_aggregate
from everview.relational.functions import sort_key
from everview.relational.functions.decimals import CONTEXT, fitter, quotient
from everview.relational.functions.failures import arithmetic_overflow, interval_overflow
from everview.relational.nodes import AggregateCall
from everview.relational.types import (
    INT32,
    INT64,
    INTERVALS,
    NAN,
    YEAR_MONTH_INTERVAL,
    Decimal,
    Row,
    Value,
    integer_bounds,
    is_floating,
)


def evaluate_aggregate(call: AggregateCall, rows: Sequence[Row]) -> Value:
    """The value of an aggregate over the argument tuples of a group's rows."""
    if call.is_ring:
        return evaluate_ring_aggregate(call, _complete(rows))
    name = call.function
    if name.startswith("try_"):
        try:
            return _FUNCTIONS[name.removeprefix("try_")](call, rows)
        except EvaluationError:
            return None
    return _FUNCTIONS[name](call, rows)


def is_aggregate(name: str) -> bool:
    """Whether an aggregate function has this name."""
    return name.removeprefix("try_") in _FUNCTIONS


def _complete(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if None not in row]


def _values(rows: Sequence[Row]) -> list[Value]:
    return [row[0] for row in rows if row[0] is not None]


def _count(call: AggregateCall, rows: Sequence[Row]) -> int:
    return len(_complete(rows))


def _sum(call: AggregateCall, rows: Sequence[Row]) -> Value:
    values = _values(rows)
    if not values:
        return None
    if isinstance(call.type, Decimal):
        return fitter(call.type)(_exact_sum(values))
    if is_floating(call.type):
        return float_sum(values)
    total = sum(values)
    low, high = integer_bounds(INT32 if call.type == YEAR_MONTH_INTERVAL else INT64)
    if low <= total <= high:
        return total
    raise interval_overflow("a sum") if call.type in INTERVALS else arithmetic_overflow("a sum", "try_sum")


def _exact_sum(values: Sequence[PythonDecimal]) -> PythonDecimal:
    """The sum of decimals in integer arithmetic, which no context precision can round."""
    scale = -min(int(v.as_tuple().exponent) for v in values)
    total = sum(int(CONTEXT.scaleb(v, scale)) for v in values)
    sign, digits = (1 if total < 0 else 0), tuple(int(d) for d in str(abs(total)))
    return PythonDecimal((sign, digits, -scale))


def float_sum(values: Sequence[float]) -> float:
    """The correctly rounded sum, with infinities and NaN as IEEE arithmetic has them."""
    if any(not math.isfinite(v) for v in values):
        total = sum(v for v in values if not math.isfinite(v))
        return NAN if math.isnan(total) else total
    try:
        return math.fsum(values)
    except OverflowError:
        return _to_float(sum(Fraction(v) for v in values))  # on the way, or in the end: exact numbers tell


def _average(call: AggregateCall, rows: Sequence[Row]) -> Value:
    values = _values(rows)
    if not values:
        return None
    if isinstance(call.type, Decimal):
        return fitter(call.type)(quotient(_exact_sum(values), PythonDecimal(len(values))))
    if is_floating(call.type):
        total = float_sum([float(v) for v in values])
        return NAN if math.isnan(total) else total / len(values)
    return _interval_average(sum(values), len(values))


def _interval_average(total: int, count: int) -> int:
    """An interval divided by a count, rounded half up (away from zero), as Spark does."""
    quotient_, remainder_ = divmod(abs(total), count)
    rounded = quotient_ + (1 if 2 * remainder_ >= count else 0)
    return rounded if total >= 0 else -rounded


def _extreme(choose: Callable[..., Value]) -> Callable[[AggregateCall, Sequence[Row]], Value]:
    def extreme(call: AggregateCall, rows: Sequence[Row]) -> Value:
        values = _values(rows)
        return choose(values, key=sort_key(call.type)) if values else None

    return extreme


def _extreme_by(choose: Callable[..., Row]) -> Callable[[AggregateCall, Sequence[Row]], Value]:
    """MIN_BY and MAX_BY: the first argument where the second is extreme; among equals the extreme first argument."""

    def extreme_by(call: AggregateCall, rows: Sequence[Row]) -> Value:
        ordered = [row for row in rows if row[1] is not None]
        if not ordered:
            return None
        value_key, order_key = sort_key(call.args[0].type), sort_key(call.args[1].type)

        def key(row: Row) -> tuple[object, ...]:
            return (order_key(row[1]), (0,) if row[0] is None else (1, value_key(row[0])))

        return choose(ordered, key=key)[0]

    return extreme_by


def _central(pairs: Sequence[tuple[float, float]]) -> float | Fraction:
    """Σ(x - mean x)(y - mean y), exactly; NaN where a value is not finite."""
    if not all(math.isfinite(v) for pair in pairs for v in pair):
        return NAN
    xs, ys = [Fraction(x) for x, _ in pairs], [Fraction(y) for _, y in pairs]
    return sum(x * y for x, y in zip(xs, ys, strict=True)) - sum(xs) * sum(ys) / len(pairs)


def _variance(sample: bool, root: bool) -> Callable[[AggregateCall, Sequence[Row]], Value]:
    def variance(call: AggregateCall, rows: Sequence[Row]) -> Value:
        values = _values(rows)
        if len(values) <= sample:
            return None
        result = _to_float(_to_float(_central([(v, v) for v in values])) / (len(values) - sample))
        return math.sqrt(result) if root and not math.isnan(result) else result

    return variance


def _covariance(sample: bool) -> Callable[[AggregateCall, Sequence[Row]], Value]:
    def covariance(call: AggregateCall, rows: Sequence[Row]) -> Value:
        pairs = _complete(rows)
        if len(pairs) <= sample:
            return None
        return _to_float(_to_float(_central([(x, y) for x, y in pairs])) / (len(pairs) - sample))

    return covariance


def _correlation(call: AggregateCall, rows: Sequence[Row]) -> Value:
    pairs = _complete(rows)
    if len(pairs) <= 1:
        return None
    spread_x = _to_float(_central([(x, x) for x, _ in pairs]))
    spread_y = _to_float(_central([(y, y) for _, y in pairs]))
    # As Spark has it: the product is NaN, infinite or 0 where the two are beyond what a double holds.
    spread = spread_x * spread_y
    if 0 in (spread_x, spread_y, spread):
        return None  # a constant correlates with nothing, not even with NaN: Spark gives NULL
    correlation = _to_float(_central([(x, y) for x, y in pairs])) / math.sqrt(spread)
    return NAN if math.isnan(correlation) else correlation


def _regression(answer: Callable[[Sequence[Row]], float | None]) -> Callable[[AggregateCall, Sequence[Row]], Value]:
    def regression(call: AggregateCall, rows: Sequence[Row]) -> Value:
        pairs = _complete(rows)
        return answer(pairs) if pairs else None

    return regression


def _slope(pairs: Sequence[Row]) -> float | None:
    """Sxy / Sxx, where y is the first argument."""
    spread = _central([(x, x) for _, x in pairs])
    return None if spread == 0 else _to_float(_central([(y, x) for y, x in pairs]) / spread)


def _intercept(pairs: Sequence[Row]) -> float | None:
    slope = _slope(pairs)
    if slope is None:
        return None
    mean_y, mean_x = (float_sum([row[i] for row in pairs]) / len(pairs) for i in (0, 1))
    result = mean_y - slope * mean_x
    return NAN if math.isnan(result) else result


def _determination(pairs: Sequence[Row]) -> float | None:
    """R²; 1 where y is constant and x is not."""
    spread_y, spread_x = (_central([(row[i], row[i]) for row in pairs]) for i in (0, 1))
    if spread_x == 0:
        return None
    if spread_y == 0:
        return 1.0
    return _to_float(_central([(y, x) for y, x in pairs]) ** 2 / (spread_x * spread_y))


def _to_float(value: float | Fraction) -> float:
    try:
        return NAN if isinstance(value, float) and math.isnan(value) else float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_FUNCTIONS: dict[str, Callable[[AggregateCall, Sequence[Row]], Value]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "min": _extreme(min),
    "max": _extreme(max),
    "min_by": _extreme_by(min),
    "max_by": _extreme_by(max),
    "var_pop": _variance(sample=False, root=False),
    "var_samp": _variance(sample=True, root=False),
    "stddev_pop": _variance(sample=False, root=True),
    "stddev_samp": _variance(sample=True, root=True),
    "covar_pop": _covariance(sample=False),
    "covar_samp": _covariance(sample=True),
    "corr": _correlation,
    "regr_s": lambda _call, rows: _to_float(_central([(v, v) for v in values])) if (values := _values(rows)) else None,
    "regr_sxy": _regression(lambda pairs: _to_float(_central([(y, x) for y, x in pairs]))),
    "regr_slope": _regression(_slope),
    "regr_intercept": _regression(_intercept),
    "regr_r2": _regression(_determination),
    **ORDERED_AGGREGATES,
}
