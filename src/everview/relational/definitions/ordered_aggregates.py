"""Aggregates that are read off the ordered bag of a group's values: percentiles, modes, lists, the k greatest, bits, shapes.

Arguments that are parameters (a percentage, a delimiter, k) stand behind the values, as constants. Where Spark leaves the
answer open, it is defined here, so that a view is a function of its tables: ``collect_list`` and ``array_agg`` ascend,
``collect_set`` is a sorted set, ``listagg`` without an order ascends, and so do equals of its order; ``mode`` without an order
takes the least of the values that are most frequent, ``max_by(x, y, k)`` the extreme x among equal y.

``approx_percentile`` is the exact percentile here, which is one of the answers that Spark may give: for groups smaller than its
``accuracy`` (10,000 by default) the only one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal as PythonDecimal
from fractions import Fraction
from functools import reduce
from typing import Any, Final

import numpy as np

from everview.algebra.moments import Floats
from everview.algebra.ring import Ints
from everview.relational.definitions.spark_aggregates import SPARK_AGGREGATE, by_spark, depends_on_order
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Expression
from everview.relational.functions import sort_key
from everview.relational.nodes import Aggregate, AggregateCall, Relation
from everview.relational.traverse import nodes_of
from everview.relational.types import INTERVALS, NAN, Array, Binary, DataType, Decimal, Row, Value, is_floating

OPEN: Final = frozenset({"collect_list", "collect_set", "listagg", "mode", "approx_percentile", "max_by_k", "min_by_k"})
"""Functions of which Spark may give another answer than the one defined here; ``verify`` asks Spark for the defined one."""


def has_open_answers(plan: Relation) -> bool:
    """Whether a query has an aggregate of which Spark leaves the answer open."""
    calls = (call for node in nodes_of(plan) if isinstance(node, Aggregate) for call in node.aggregates)
    return any(call.function in OPEN or depends_on_order(call) for call in calls)


PERCENTILES: Final = frozenset(
    {"percentile", "percentile_desc", "percentile_disc", "percentile_disc_desc", "approx_percentile"}
)


def parameter(call: AggregateCall, place: int) -> Value:
    """The value of a constant argument."""
    return evaluate(call.args[place])


# Percentiles


def percentages_of(call: AggregateCall) -> tuple[tuple[float, ...], bool]:
    """The percentages of a percentile, and whether the answer is an array of them."""
    given = parameter(call, 1)
    return (tuple(given), True) if isinstance(given, tuple) else ((given,), False)


def percentage_ranks(function: str, percentage: float, counts: Ints) -> tuple[Ints, Ints, Floats]:
    """The two ranks (from 0, ascending) between which each group's percentile lies, and how far on from the first.

    >>> [found.tolist() for found in percentage_ranks("percentile", 0.5, np.array([4, 5]))]
    [[1, 2], [2, 2], [0.5, 0.0]]
    >>> [found.tolist() for found in percentage_ranks("percentile_disc", 0.5, np.array([4, 5]))]
    [[1, 2], [1, 2], [0.0, 0.0]]
    """
    if function.startswith("percentile_disc") or function == "approx_percentile":
        ranks = np.clip(np.ceil(percentage * counts).astype(np.int64), 1, counts) - 1
        if function.endswith("desc"):
            ranks = counts - 1 - ranks
        return ranks, ranks, np.zeros(len(counts))
    position = (counts - 1) * percentage
    lower, higher = np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64)
    share = position - lower
    if function.endswith("desc"):
        lower, higher = counts - 1 - lower, counts - 1 - higher
    return lower, higher, share


def _percentile(call: AggregateCall, rows: Sequence[Row]) -> Value:
    values = _ordered([row[0] for row in rows if row[0] is not None], call.args[0].type)
    percentages, is_array = percentages_of(call)
    if not values:
        return None
    answers = []
    for percentage in percentages:
        ((lower,), (higher,), (share,)) = (
            found.tolist() for found in percentage_ranks(call.function, percentage, np.array([len(values)]))
        )
        answers.append(between(call, values[lower], values[higher], share))
    return tuple(answers) if is_array else answers[0]


def between(call: AggregateCall, lower: Value, higher: Value, share: float) -> Value:
    """The answer between two values: exactly one of them where they are equal, or where the share is 0."""
    if call.function == "approx_percentile":
        return _through_double(lower, call.args[0].type)
    a = float(lower)
    answer = a
    if lower != higher and share:
        answer = (1.0 - share) * a + share * float(higher)
    if answer_type(call) in INTERVALS:
        return int(answer)
    return NAN if math.isnan(answer) else answer


def answer_type(call: AggregateCall) -> DataType:
    """The type of one percentile."""
    return call.type.element if isinstance(call.type, Array) else call.type


def _through_double(value: Value, data_type: DataType) -> Value:
    """Spark's digest holds doubles: beyond 2^53 integers are rounded, and so are decimals."""
    if isinstance(data_type, Decimal):
        return PythonDecimal(repr(float(value))).quantize(PythonDecimal(1).scaleb(-data_type.scale))
    return value if is_floating(data_type) or isinstance(value, bool) else int(float(value))


# Values that are counted


def _mode(call: AggregateCall, rows: Sequence[Row]) -> Value:
    counts = Counter(row[0] for row in rows if row[0] is not None)
    if not counts:
        return None
    most = max(counts.values())
    choose = max if call.function == "mode_last" else min
    return choose((v for v, n in counts.items() if n == most), key=sort_key(call.type))


def _collect_list(call: AggregateCall, rows: Sequence[Row]) -> Value:
    return tuple(_ordered([row[0] for row in rows if row[0] is not None], call.args[0].type))


def _collect_set(call: AggregateCall, rows: Sequence[Row]) -> Value:
    key = sort_key(call.args[0].type)
    distinct: dict[object, Value] = {}
    for value in _collect_list(call, rows):
        distinct.setdefault(key(value), value)
    return tuple(distinct.values())


def _list_in_order(call: AggregateCall, rows: Sequence[Row]) -> Value:
    """Over a window: the values of the frame in the window's order."""
    return tuple(row[0] for row in rows if row[0] is not None)


def _listagg(call: AggregateCall, rows: Sequence[Row]) -> Value:
    """Arguments: the value, the delimiter, the directions of the order (``directions_of``), its terms."""
    kept = [row for row in rows if row[0] is not None]
    if not kept:
        return None
    value_key = sort_key(call.args[0].type)
    kept.sort(key=lambda row: value_key(row[0]))
    for place, words in reversed(list(enumerate(directions_of(call), start=3))):
        is_falling = words[0] == "d"  # sorting backwards turns the place of NULLs round as well
        key = _placed(call.args[place], place, nulls_first=(words[1] == "f") != is_falling)
        kept.sort(key=key, reverse=is_falling)
    empty: Value = b"" if isinstance(call.type, Binary) else ""
    delimiter = parameter(call, 1)
    return (empty if delimiter is None else delimiter).join(row[0] for row in kept)


def directions_of(call: AggregateCall) -> tuple[str, ...]:
    """The directions of a LISTAGG's order, a word each: ``a`` or ``d`` (descending), ``f`` or ``l`` (NULLs first or last)."""
    words = parameter(call, 2)
    return tuple(words.split(",")) if words else ()


def _placed(expression: Expression, place: int, *, nulls_first: bool) -> Callable[[Row], tuple[Any, ...]]:
    key = sort_key(expression.type)

    def of(row: Row) -> tuple[Any, ...]:
        value = row[place]
        return (1, key(value)) if value is not None else ((0,) if nulls_first else (2,))

    return of


def _extreme_by_k(call: AggregateCall, rows: Sequence[Row]) -> Value:
    """The first arguments of the k rows whose second is greatest (or least), in that order; NULL where there is none."""
    value_key, order_key = sort_key(call.args[0].type), sort_key(call.args[1].type)

    def key(row: Row) -> tuple[object, ...]:
        return (order_key(row[1]), (0,) if row[0] is None else (1, value_key(row[0])))

    ordered = sorted((row for row in rows if row[1] is not None), key=key, reverse=call.function == "max_by_k")
    return tuple(row[0] for row in ordered[: parameter(call, 2)]) if ordered else None


def _bits(combine: Callable[[int, int], int]) -> Callable[[AggregateCall, Sequence[Row]], Value]:
    def bits(call: AggregateCall, rows: Sequence[Row]) -> Value:
        values = [row[0] for row in rows if row[0] is not None]
        return reduce(combine, values) if values else None

    return bits


# Shapes


def _shape(power: int) -> Callable[[AggregateCall, Sequence[Row]], Value]:
    """Skewness √n·m₃ / m₂^1.5 and excess kurtosis n·m₄ / m₂² - 3, where m_k is Σ(x - mean)^k; NULL for equal values."""

    def shape(call: AggregateCall, rows: Sequence[Row]) -> Value:
        values = [float(row[0]) for row in rows if row[0] is not None]
        if not values:
            return None
        if not all(math.isfinite(v) for v in values):
            return NAN
        exact = [Fraction(v) for v in values]
        mean = sum(exact) / len(exact)
        second, higher = (sum((v - mean) ** k for v in exact) for k in (2, power))
        if second == 0:
            return None
        if power == 4:
            return float(len(exact) * higher / second**2) - 3.0
        return math.copysign(math.sqrt(len(exact) * higher**2 / second**3), higher)

    return shape


def _ordered(values: Sequence[Value], data_type: DataType) -> list[Value]:
    return sorted(values, key=sort_key(data_type))


ORDERED_AGGREGATES: Final[dict[str, Callable[[AggregateCall, Sequence[Row]], Value]]] = {
    **dict.fromkeys(PERCENTILES, _percentile),
    "mode": _mode,
    "mode_first": _mode,
    "mode_last": _mode,
    "collect_list": _collect_list,
    "collect_set": _collect_set,
    "list_in_order": _list_in_order,
    "listagg": _listagg,
    "max_by_k": _extreme_by_k,
    "min_by_k": _extreme_by_k,
    "bit_and": _bits(lambda a, b: a & b),
    "bit_or": _bits(lambda a, b: a | b),
    "bit_xor": _bits(lambda a, b: a ^ b),
    "skewness": _shape(3),
    "kurtosis": _shape(4),
    SPARK_AGGREGATE: by_spark,
}
"""By name: from the argument tuples of a group's rows to the value."""
