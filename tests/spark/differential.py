"""Runs SQL expressions in Spark and in everview over one table of edge values, and compares row by row.

Spark's results cross to Python in the representation of ``everview.relational.types``. Rows on which we raise are not given to
Spark together with the others (one error would end the query): for them Spark must raise too, with the same condition.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from everview.errors import EvaluationError
from everview.frontend.catalyst_json import CatalystNode, parse_tree, simple_name
from everview.frontend.catalyst_plan import quiet_spark_log
from everview.frontend.spark_types import from_spark_json
from everview.frontend.translate_expression import Scope, expr_id, translate_expression
from everview.relational.evaluate import compile_expression
from everview.relational.expressions import Column, Expression, substitute
from everview.relational.functions.decimals import CONTEXT
from everview.relational.types import (
    NAN,
    Array,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Float32,
    Float64,
    Null,
    Row,
    Struct,
    Timestamp,
    TimestampNtz,
    Value,
    YearMonthInterval,
)

TABLE = "edges"
_RELATIVE_ERROR = 1e-12
_RULES = ("ReplaceExpressions", "RewriteWithExpression")
_WITH_EVAL_MODE = frozenset({"Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod", "Cast"})


@dataclass(frozen=True)
class Raised:
    """What one of the two sides raised instead of a value."""

    condition: str


def our_expressions(spark: SparkSession, texts: list[str]) -> tuple[Expression, ...]:
    """The texts as everview's expressions over the table's columns."""
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))
    plan = spark.sql(f"SELECT {columns} FROM {TABLE}")._jdf.queryExecution().analyzed()
    rules = spark._jvm.org.apache.spark.sql.catalyst.optimizer
    for rule in _RULES:
        plan = getattr(rules, rule).apply(plan)
    return _projected(_exported_plan(plan))[1]


def _exported_plan(plan: Any) -> CatalystNode:
    """A chain of projections, with what the JSON leaves out asked of the JVM for every expression.

    The front end asks only where it must; here nothing may depend on how it finds out.
    """
    nodes: list[dict[str, Any]] = json.loads(plan.toJSON())
    for node in nodes:
        if simple_name(node["class"]) == "Project":
            for expression, tree in zip(_sequence(plan.projectList()), node["projectList"], strict=True):
                _complete(expression, iter(tree))
        plan = plan.children().head() if node["num-children"] else plan
    return parse_tree(nodes)


def _complete(expression: Any, fields: Iterator[dict[str, Any]]) -> None:
    mine = next(fields)
    match simple_name(mine["class"]):
        case name if name in _WITH_EVAL_MODE:
            # try_to_timestamp(s) is a LEGACY cast, which for strings means the same
            mine["is_try"] = expression.evalMode().toString() != "ANSI"
        case "Literal" if mine["dataType"] in ("timestamp", "timestamp_ntz", "binary"):
            value = expression.value()
            mine["exact"] = bytes(value) if isinstance(value, bytes | bytearray) else value
        case "Like":
            mine["escapeChar"] = str(expression.escapeChar())
        case "LikeAny" | "LikeAll" | "NotLikeAny" | "NotLikeAll":
            mine["patterns"] = [p and p.toString() for p in _sequence(expression.patterns())]
    for child in _sequence(expression.children()):
        _complete(child, fields)


def _sequence(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]


def _projected(node: CatalystNode) -> tuple[tuple[int, ...], tuple[Expression, ...]]:
    """The attributes of a chain of projections, and each as an expression over the leaf's columns."""
    if node.name == "Project":
        attributes, below = _projected(node.children[0])
        positions = {a: Column(i, e.type, True) for i, (a, e) in enumerate(zip(attributes, below, strict=True))}
        trees = node.trees("projectList")
        made = tuple(substitute(translate_expression(t, Scope(positions)), below) for t in trees)
        return tuple(expr_id(t) for t in trees), made
    if node.children:
        return _projected(node.children[0])
    output = [parse_tree(tree) for tree in node.fields["output"]]
    leaf = tuple(Column(i, from_spark_json(a.fields["dataType"])) for i, a in enumerate(output))
    return tuple(expr_id(a) for a in output), leaf


def table_types(spark: SparkSession) -> tuple[DataType, ...]:
    """Our types of the table's columns."""
    return tuple(from_spark_json(f.dataType.jsonValue()) for f in spark.table(TABLE).schema)


def table_rows(spark: SparkSession) -> list[Row]:
    """The table's rows as our values; the first column numbers them."""
    schema = spark.table(TABLE).schema
    types = [from_spark_json(f.dataType.jsonValue()) for f in schema]
    shown = ", ".join(_exported(f.name, t) for f, t in zip(schema, types, strict=True))
    collected = spark.sql(f"SELECT {shown} FROM {TABLE} ORDER BY id").collect()
    return [tuple(_value(v, t) for v, t in zip(row, types, strict=True)) for row in collected]


def our_results(expression: Expression, rows: list[Row]) -> list[Value | Raised]:
    """The expression's value for each row."""
    compiled = compile_expression(expression)
    results: list[Value | Raised] = []
    for row in rows:
        try:
            results.append(compiled(row))
        except EvaluationError as error:
            results.append(Raised(error.condition))
    return results


def spark_results(spark: SparkSession, texts: list[str], skipped: list[list[int]]) -> list[list[Value]]:
    """Spark's value of each text for each row; NULL for the rows to skip."""
    guarded = [
        f"CASE WHEN id NOT IN ({', '.join(map(str, rows))}) THEN {text} END" if rows else text
        for text, rows in zip(texts, skipped, strict=True)
    ]
    plain = spark.sql(f"SELECT {', '.join(f'{g} AS c{i}' for i, g in enumerate(guarded))} FROM {TABLE}")
    types = [from_spark_json(f.dataType.jsonValue()) for f in plain.schema]
    exported = ", ".join(_exported(f"({g})", t) for g, t in zip(guarded, types, strict=True))
    collected = spark.sql(f"SELECT {exported} FROM {TABLE} ORDER BY id").collect()
    return [[_value(row[i], t) for row in collected] for i, t in enumerate(types)]


def spark_type(spark: SparkSession, text: str) -> DataType:
    """Our type for what Spark says the text's type is."""
    return from_spark_json(spark.sql(f"SELECT {text} AS c FROM {TABLE}").schema[0].dataType.jsonValue())


def spark_error(spark: SparkSession, text: str, row: int) -> str | None:
    """The condition that Spark raises for one row; empty where Java raised without one, None where nothing did."""
    try:
        with quiet_spark_log():
            spark.sql(f"SELECT {text} AS c FROM {TABLE} WHERE id = {row}").collect()
    except PySparkException as error:
        return (error.getCondition() or "").partition(".")[0]
    except Py4JJavaError:
        return ""
    return None


def _exported(text: str, t: DataType) -> str:
    """The expression in a form that crosses to Python without loss."""
    match t:
        case Date():
            return f"unix_date({text})"
        case Timestamp():
            return f"unix_micros({text})"
        case TimestampNtz():
            return f"CAST({text} - TIMESTAMP_NTZ'1970-01-01 00:00:00' AS DECIMAL(20, 6))"
        case YearMonthInterval():
            return f"CAST(CAST({text} AS INTERVAL YEAR TO MONTH) AS INT)"
        case DayTimeInterval():
            return f"CAST(CAST({text} AS INTERVAL DAY TO SECOND) AS DECIMAL(20, 6))"
        case _:
            return text


def _value(raw: Any, t: DataType) -> Value:
    if raw is None or isinstance(t, Null):
        return None
    match t:
        case DayTimeInterval() | TimestampNtz():
            return int(raw.scaleb(6))
        case Decimal():
            return raw.quantize(Number(1).scaleb(-t.scale), context=CONTEXT)  # PySpark adds zeros to small numbers
        case Array():
            return tuple(_value(v, t.element) for v in raw)
        case Struct():
            return tuple(_value(v, each) for v, each in zip(raw, t.types, strict=True))
        case Float32() | Float64():
            return NAN if math.isnan(raw) else raw
        case _:
            return bytes(raw) if isinstance(raw, bytearray) else raw


def is_same(ours: Value, theirs: Value, t: DataType, is_approximate: bool) -> bool:
    """Whether two results agree: to the bit, or for transcendental functions to twelve digits."""
    if ours is None or theirs is None:
        return ours is theirs
    match t:
        case Float32() | Float64():
            if is_approximate and math.isfinite(ours) and math.isfinite(theirs):
                return math.isclose(ours, theirs, rel_tol=_RELATIVE_ERROR, abs_tol=1e-300)
            return repr(ours) == repr(theirs)
        case Decimal():
            return isinstance(ours, Number) and repr(ours) == repr(theirs)
        case Array(element=element):
            pairs = zip(ours, theirs, strict=False)
            return len(ours) == len(theirs) and all(is_same(a, b, element, is_approximate) for a, b in pairs)
        case Struct(types=types):
            return all(is_same(a, b, each, is_approximate) for a, b, each in zip(ours, theirs, types, strict=True))
        case _:
            return type(ours) is type(theirs) and bool(ours == theirs)
