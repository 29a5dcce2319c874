"""Aggregates that only Spark's own code computes: sketches, histograms, bitmaps, functions of Python over groups.

A call of ``spark_aggregate`` has its arguments, then a constant that says which function it is: JSON of what is said of a
``SparkExpression``. Its value is what Spark gives for the rows of the group in ascending order of the arguments (NULLs first),
in one partition. For the functions of ``CLOSED`` order and partitions play no part, so that it is Spark's only answer. A
function of Python is taken for one of them: that its value is a function of the bag of rows is its author's promise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from everview.relational import spark_code
from everview.relational.arrow import column_to_arrow, rows_from_arrow
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Column, Expression, Literal, SparkExpression
from everview.relational.functions import sort_key
from everview.relational.nodes import AggregateCall, Field
from everview.relational.types import STRING, Array, DataType, Decimal, Map, Null, Row, Struct, Value

_DEVIATION: Final = re.compile(r"([0-9.Ee+-]+)D?\)$")
_MOST_DIGITS_OF_A_WORD: Final = 18
SPARK_AGGREGATE: Final = "spark_aggregate"
CLOSED: Final = frozenset(
    {
        "approx_count_distinct",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "count_min_sketch",
        "percentile",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
    }
)
"""Functions whose value depends on neither the order nor the partitions of the rows."""

_BITMAPS: Final = frozenset({"bitmap_construct_agg", "bitmap_or_agg"})
"""Not ``bitmap_and_agg``: what it makes of bitmaps of several lengths is not the same in every version of Spark."""


def spark_aggregate(
    function: SparkExpression, *, distinct: bool = False, condition: Expression | None = None
) -> AggregateCall:
    """The call of an aggregate of Spark's over the arguments of ``function``."""
    said = json.dumps([function.name, function.text, function.zone, function.settings])
    args = (*function.args, Literal(said, STRING))
    return AggregateCall(SPARK_AGGREGATE, args, function.type, distinct, condition)


def spark_function(call: AggregateCall) -> SparkExpression:
    """The function of such a call, over columns that stand in the order of its arguments.

    >>> made = SparkExpression("median", ("median(", 0, ")"), (Column(0, STRING),), STRING, "UTC")
    >>> spark_function(spark_aggregate(made)) == made
    True
    """
    name, text, zone, settings = json.loads(evaluate(call.args[-1]))
    args = tuple(Column(i, a.type) for i, a in enumerate(call.args[:-1]))
    return SparkExpression(name, tuple(text), args, call.type, zone, tuple((key, value) for key, value in settings))


def is_spark_aggregate(call: AggregateCall) -> bool:
    """Whether Spark's own code computes the call."""
    return call.function == SPARK_AGGREGATE


def is_bitmap(call: AggregateCall) -> bool:
    """Whether the call is one of which engines with ordered state count the rows that set each bit."""
    return is_spark_aggregate(call) and spark_function(call).name in _BITMAPS


def is_sketch(call: AggregateCall) -> bool:
    """Whether the call is one of which a sketch can be kept that grows with its rows and shrinks with them.

    That is ``approx_count_distinct`` of what has a hash that is ours to compute, as engines with ordered state do.
    """
    if not is_spark_aggregate(call) or spark_function(call).name != "approx_count_distinct":
        return False
    hashed = call.args[0].type
    is_wide = isinstance(hashed, Decimal) and hashed.precision > _MOST_DIGITS_OF_A_WORD
    return not is_wide and not isinstance(hashed, Array | Map | Struct | Null)


def deviation_of(call: AggregateCall) -> float:
    """The relative standard deviation that an ``approx_count_distinct`` is asked for."""
    written = _DEVIATION.search(str(spark_function(call).text[-1]))
    assert written is not None, "Spark writes it in full"
    return float(written[1])


def depends_on_order(call: AggregateCall) -> bool:
    """Whether Spark's answer depends on how the rows lie, so that it is defined here which one is meant."""
    if not is_spark_aggregate(call):
        return False
    return spark_function(call).name not in CLOSED and not is_python_aggregate(call)


def is_python_aggregate(call: AggregateCall) -> bool:
    """Whether the call is one of a function of Python."""
    return is_spark_aggregate(call) and spark_code.is_function(spark_function(call))


def by_spark(call: AggregateCall, rows: Sequence[Row]) -> Value:
    """The value for the argument tuples of one group."""
    types = [a.type for a in call.args[:-1]]
    keys = [_placed(t) for t in types]
    ordered = sorted(
        (row[: len(types)] for row in rows),
        key=lambda row: tuple(key(value) for key, value in zip(keys, row, strict=True)),
    )
    columns = zip(*ordered, strict=True) if ordered else ((),) * len(types)
    inputs = [column_to_arrow(list(values), t) for values, t in zip(columns, types, strict=True)]
    found = spark_code.compute_groups(spark_function(call), inputs, [len(ordered)])
    ((value,),) = rows_from_arrow(pa.table([found], names=["value"]), (Field("value", call.type, True),))
    return value


def _placed(data_type: DataType) -> Any:
    key = sort_key(data_type)
    return lambda value: (0,) if value is None else (1, key(value))
