"""Aggregate and window functions of Catalyst: which ours they are, and their result types.

The JSON carries no types, so Spark's rules stand here: SUM of decimal(p,s) is decimal(p+10,s), AVG is decimal(p+4,s+4), of
integers SUM is bigint and AVG double.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.algebra.registry import ring_named
from everview.errors import InvalidQuery, UnsupportedQuery
from everview.frontend.catalyst_json import CatalystNode, snake_case
from everview.frontend.spark_types import from_spark_json
from everview.frontend.stand_in import hidden_expression
from everview.frontend.translate_expression import Scope, translate_expression
from everview.frontend.translate_ordered_aggregate import is_ordered, translate_ordered
from everview.relational.definitions.spark_aggregates import (
    depends_on_order,
    is_spark_aggregate,
    spark_aggregate,
    spark_function,
)
from everview.relational.expressions import Expression, Literal
from everview.relational.nodes import AggregateCall, Frame, FrameUnit, WindowCall
from everview.relational.types import (
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT32,
    INT64,
    INTERVALS,
    DataType,
    Decimal,
    is_integral,
)

_AGGREGATES = {
    "Count": "count",
    "Sum": "sum",
    "Average": "avg",
    "Min": "min",
    "Max": "max",
    "VariancePop": "var_pop",
    "VarianceSamp": "var_samp",
    "StddevPop": "stddev_pop",
    "StddevSamp": "stddev_samp",
    "CovPopulation": "covar_pop",
    "CovSample": "covar_samp",
    "Corr": "corr",
    "RegrReplacement": "regr_s",
    "RegrSXY": "regr_sxy",
    "RegrSlope": "regr_slope",
    "RegrIntercept": "regr_intercept",
    "RegrR2": "regr_r2",
    "MinBy": "min_by",
    "MaxBy": "max_by",
}
_CHOICES = {"First": "first", "Last": "last", "AnyValue": "any_value"}
"""Well-defined only where keys leave no choice: ``relational.settle_choices`` decides, who knows them."""
_RANKING = {
    "RowNumber": ("row_number", INT32),
    "Rank": ("rank", INT32),
    "DenseRank": ("dense_rank", INT32),
    "PercentRank": ("percent_rank", FLOAT64),
    "CumeDist": ("cume_dist", FLOAT64),
    "NTile": ("ntile", INT32),
}
_MAX_PRECISION = 38


def has_translation(name: str, fields: Mapping[str, Any]) -> bool:
    """Whether an aggregate function of Catalyst's, by its class and fields, is one of ours; Spark computes the others."""
    return name in _AGGREGATES or name in _CHOICES or name == "PivotFirst" or is_ordered(name, fields)


def translate_aggregate(node: CatalystNode, scope: Scope) -> AggregateCall:
    """An ``AggregateExpression`` over the scope of the aggregate's input."""
    function, *filters = node.children
    condition = filters[0] if filters else None
    if function.name == "PythonUDAF":
        given = tuple(translate_expression(c, scope) for c in function.children)
        by_spark = hidden_expression(function, given)
        if by_spark is None and function.fields.get("is_ring"):
            return _ring_aggregate(function, given)
        if by_spark is None:
            raise _only_in_spark(function.fields["name"])
        kept = None if condition is None else translate_expression(condition, scope)
        call = spark_aggregate(by_spark, distinct=bool(node.fields["isDistinct"]), condition=kept)
        if call.distinct and depends_on_order(call):
            raise UnsupportedQuery(
                f"DISTINCT in {by_spark.name} is not supported.",
                operator=by_spark.name,
                hint="aggregate over a subquery with SELECT DISTINCT.",
            )
        return call
    if is_ordered(function.name, _usual(function)):
        name, args, data_type = translate_ordered(function, scope)
    else:
        name, args = _function_and_args(function, scope)
        data_type = _result_type(name, args)
    return AggregateCall(
        name,
        args,
        data_type,
        bool(node.fields["isDistinct"]) and name not in ("min", "max"),  # the extremes of a set and of its bag are one
        None if condition is None else translate_expression(condition, scope),
    )


def _usual(function: CatalystNode) -> Mapping[str, Any]:
    """The fields by which ``is_ordered`` tells the usual form of a function."""
    if function.name != "Percentile":
        return function.fields
    frequency = function.children[2]
    is_one = frequency.name == "Literal" and frequency.fields.get("value") == "1"
    return {**function.fields, "has_frequency": not is_one}


def _only_in_spark(name: str) -> UnsupportedQuery:
    """What makes the front end let Spark's own code compute the aggregate."""
    return UnsupportedQuery(
        f"the aggregate {name} is not supported.",
        operator=name,
        hint="docs/supported-sql.md lists the aggregates that are.",
    )


def _ring_aggregate(function: CatalystNode, args: tuple[Expression, ...]) -> AggregateCall:
    """The aggregate of a registered ring, which Spark shows as a Python UDAF; its DISTINCT and FILTER Spark refuses."""
    entry = ring_named(function.fields["name"])
    if not args or (entry.arity is not None and len(args) != entry.arity):
        takes = "at least one argument" if entry.arity is None else f"{entry.arity} arguments"
        raise InvalidQuery(f"{entry.name} takes {takes}, and is given {len(args)}.")
    if len(args) > 1 and not entry.ring.is_commutative:
        raise UnsupportedQuery(
            f"the ring '{entry.name}' does not commute, and a view multiplies the factors of a row in any order.",
            operator=entry.name,
            hint="give the aggregate one argument, from which its lift makes the whole element.",
        )
    return AggregateCall(entry.name, args, from_spark_json(function.fields["dataType"]), is_ring=True)


def _function_and_args(function: CatalystNode, scope: Scope) -> tuple[str, tuple[Expression, ...]]:
    if function.name in _CHOICES:
        value = translate_expression(function.children[0], scope)
        return _CHOICES[function.name], (value,)
    if function.name not in _AGGREGATES:
        raise _only_in_spark(function.name)
    name = _AGGREGATES[function.name]
    if function.fields.get("is_try"):
        name = f"try_{name}"
    args = tuple(translate_expression(c, scope) for c in function.children)
    if name == "count":
        # COUNT(*) is count(1): a constant that is never NULL counts every row.
        args = tuple(a for a in args if not (isinstance(a, Literal) and a.value is not None))
    return name, args


def _result_type(name: str, args: tuple[Expression, ...]) -> DataType:
    match name.removeprefix("try_"):
        case "count":
            return INT64
        case "sum":
            return _sum_type(args[0].type)
        case "avg":
            argument = args[0].type
            if isinstance(argument, Decimal):
                return bounded_decimal(argument.precision + 4, argument.scale + 4)
            return FLOAT64 if argument not in INTERVALS else argument
        case "min" | "max" | "min_by" | "max_by" | "first" | "last" | "any_value":
            return args[0].type
        case _:
            return FLOAT64


def _sum_type(argument: DataType) -> DataType:
    if isinstance(argument, Decimal):
        return bounded_decimal(argument.precision + 10, argument.scale)
    if argument in INTERVALS:
        return argument
    return INT64 if is_integral(argument) else FLOAT64


def bounded_decimal(precision: int, scale: int) -> Decimal:
    """Spark's ``DecimalType.bounded``: both cut at 38."""
    return Decimal(min(precision, _MAX_PRECISION), min(scale, _MAX_PRECISION))


def translate_window_function(expression: CatalystNode, scope: Scope, zone: str) -> WindowCall:
    """A ``WindowExpression``: its function and its frame (partition and order belong to the plan node)."""
    function, spec = expression.children
    frame = _frame(spec.children[-1], zone)
    if function.name in _RANKING:
        name, data_type = _RANKING[function.name]
        args = tuple(translate_expression(c, scope) for c in function.children) if name == "ntile" else ()
        return WindowCall(name, args, data_type, frame)
    if function.name in ("Lag", "Lead"):
        return _shift(function, scope, frame)
    if function.name == "NthValue":
        args = tuple(translate_expression(c, scope) for c in function.children)
        return WindowCall("nth_value", args, args[0].type, frame, bool(function.fields.get("ignoreNulls")))
    if function.name == "AggregateExpression":
        return _window_aggregate(function, scope, frame)
    name = snake_case(function.name)
    raise UnsupportedQuery(
        f"the window function {name} is not supported.",
        operator=name,
        hint="docs/supported-sql.md lists the window functions that are.",
    )


def _window_aggregate(expression: CatalystNode, scope: Scope, frame: Frame) -> WindowCall:
    function = expression.children[0]
    if function.name in ("First", "Last"):
        value = translate_expression(function.children[0], scope)
        name = "first_value" if function.name == "First" else "last_value"
        return WindowCall(name, (value,), value.type, frame, bool(function.fields.get("ignoreNulls")))
    call = translate_aggregate(expression, scope)
    if call.is_ring:
        raise UnsupportedQuery(
            f"the aggregate of ring '{call.function}' over a window is not supported.",
            operator="WindowExpression",
            hint="join with a subquery that groups.",
        )
    if is_spark_aggregate(call):
        name = spark_function(call).name
        raise UnsupportedQuery(
            f"the aggregate {name}, which Spark's own code computes, is not supported over a window.",
            operator=name,
            hint="join with a subquery that groups by the partition.",
        )
    if call.distinct:
        raise UnsupportedQuery("DISTINCT in a window aggregate is not supported.", operator="WindowExpression")
    # A frame has an order, in which Spark collects; a group has none.
    name = "list_in_order" if call.function == "collect_list" else call.function
    return WindowCall(name, call.args, call.type, frame, filter=call.filter)


def _shift(function: CatalystNode, scope: Scope, frame: Frame) -> WindowCall:
    """LAG and LEAD as one function: the value ``offset`` rows further on (before, if negative), or the default.

    Catalyst gives both a frame of just that row, which holds the signed offset.
    """
    value, _, default = (translate_expression(c, scope) for c in function.children)
    offset = frame.lower
    assert offset is not None, "LAG and LEAD look at one row"
    if isinstance(default, Literal) and default.value is None:
        default = Literal(None, value.type)
    return WindowCall("lead", (value, offset, default), value.type, frame, bool(function.fields.get("ignoreNulls")))


def _frame(node: CatalystNode, zone: str) -> Frame:
    lower, upper = (_bound(c) for c in node.children)
    if node.object_name("frameType") == "RowFrame":
        return Frame(FrameUnit.ROWS, lower, upper)
    moves_days = any(bound is not None and bound.type == DAY_TIME_INTERVAL for bound in (lower, upper))
    return Frame(FrameUnit.RANGE, lower, upper, zone if moves_days else None)


def _bound(node: CatalystNode) -> Expression | None:
    match node.name:
        case "UnboundedPreceding" | "UnboundedFollowing":
            return None
        case "CurrentRow":
            return Literal(0, INT32)
        case _:
            return translate_expression(node, Scope({}))
