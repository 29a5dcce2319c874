"""Catalyst expressions to ours: attributes become positions, short-hands become their meaning.

``Scope`` says where each attribute of Catalyst (by its ``exprId``) stands in the input row. Uncorrelated scalar subqueries
are columns too: whoever translates the enclosing plan node has joined them to its input beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal as PythonDecimal
from functools import reduce
from typing import Any

from everview.errors import InternalError, UnsupportedQuery
from everview.frontend.catalyst_functions import EvalMode, translate_function
from everview.frontend.catalyst_json import CatalystNode
from everview.frontend.spark_types import from_spark_json
from everview.frontend.stand_in import hidden_expression
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal
from everview.relational.functions.decimals import CONTEXT
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT32,
    INT64,
    INTERVALS,
    NAN,
    NULL,
    STRING,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
    Timestamp,
    Value,
    holds,
    is_floating,
)

SUBQUERIES = frozenset({"ScalarSubquery", "Exists"})
"""Catalyst's classes of subqueries that stay expressions because nothing correlates them with the query around."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where attributes stand in the input row; ``common`` holds the definitions of an enclosing ``With``."""

    columns: dict[int, Column]
    common: dict[int, Expression] = field(default_factory=dict)

    @staticmethod
    def of(relation: Relation, attributes: tuple[int, ...]) -> Scope:
        """The scope of a relation whose columns are these attributes (the first of equal ones counts)."""
        columns: dict[int, Column] = {}
        for index, (attribute, f) in enumerate(zip(attributes, schema(relation), strict=True)):
            columns.setdefault(attribute, Column(index, f.type, f.nullable))
        return Scope(columns)


def expr_id(node: CatalystNode) -> int:
    """The identity Catalyst gave to an attribute, alias or subquery."""
    return int(node.fields["exprId"]["id"])


def translate_expression(node: CatalystNode, scope: Scope) -> Expression:
    """The expression over the scope's columns.

    Raises:
        UnsupportedQuery: a function or expression everview does not have, named as Catalyst names it.
    """
    match node.name:
        case "AttributeReference":
            return _attribute(node, scope)
        case "Alias" | "KnownFloatingPointNormalized" | "NormalizeNaNAndZero" | "KnownNotNull" | "TempResolvedColumn":
            return translate_expression(node.children[0], scope)
        case "Literal":
            return translate_literal(node)
        case "Cast":
            return _cast(node, scope)
        case "CaseWhen":
            return _case_when(node, scope)
        case "If":
            condition, then, otherwise = (translate_expression(c, scope) for c in node.children)
            return _case([(condition, then)], otherwise)
        case "In" | "InSet":
            return _in_list(node, scope)
        case "AtLeastNNonNulls":
            return _at_least_known(node, scope)
        case "ScalarSubquery" | "Exists" | "GroupColumn":
            return scope.columns[expr_id(node)]
        case "InSubquery":
            return scope.columns[expr_id(node.children[-1])]
        case "TimestampAddInterval" if node.children[1].fields.get("dataType") == "interval":
            return _plus_calendar_interval(node, scope)
        case "With":
            return _with(node, scope)
        case "CommonExpressionRef":
            return scope.common[node.fields["common_id"]]
        case "PythonUDF":
            return _stood_for(node, scope)
        case _:
            return _function(node, scope)


def contains(node: CatalystNode, names: frozenset[str]) -> bool:
    """Whether an expression of one of these classes occurs in the tree."""
    return node.name in names or any(contains(c, names) for c in node.children)


def _attribute(node: CatalystNode, scope: Scope) -> Expression:
    column = scope.columns.get(expr_id(node))
    if column is None:
        raise InternalError(f"attribute {node.fields['name']}#{expr_id(node)} is not among the node's input columns.")
    declared = from_spark_json(node.fields["dataType"])
    if not _same_type(declared, column.type):
        raise InternalError(
            f"column {node.fields['name']} has type {column.type} where Spark has {declared}.",
        )
    return column


def _same_type(a: DataType, b: DataType) -> bool:
    if isinstance(a, Array) and isinstance(b, Array):  # Spark itself is loose about containsNull
        return _same_type(a.element, b.element)
    if isinstance(a, Struct) and isinstance(b, Struct):
        return all(_same_type(x, y) for x, y in zip(a.types, b.types, strict=True))
    if isinstance(a, Map) and isinstance(b, Map):
        return _same_type(a.key, b.key) and _same_type(a.value, b.value)
    return a == b


def _cast(node: CatalystNode, scope: Scope) -> Expression:
    child = translate_expression(node.children[0], scope)
    target = from_spark_json(node.fields["dataType"])
    if _same_type(child.type, target):
        return child
    if isinstance(child, Literal) and child.value is None:
        return Literal(None, target)
    _refuse_narrow_intervals(child.type, target, node)
    return Cast(child, target, bool(node.fields.get("is_try")), _zone(child.type, target, node))


def _refuse_narrow_intervals(source: DataType, target: DataType, cast: CatalystNode) -> None:
    """An interval's unit (HOUR, MONTH TO …) is part of Spark's type, not of ours, and decides what such a cast means."""
    given, declared = cast.children[0].fields.get("dataType"), cast.fields["dataType"]
    is_narrow_source = source in INTERVALS and given not in _WHOLE_INTERVALS
    is_narrow_target = target in INTERVALS and declared not in _WHOLE_INTERVALS
    if is_narrow_source or is_narrow_target:
        raise UnsupportedQuery(
            f"CAST of {given or source} to {declared} is not supported.",
            operator="Cast",
            hint="use EXTRACT to take the parts of an interval as numbers.",
        )


_WHOLE_INTERVALS = ("interval year to month", "interval day to second")


def _zone(source: DataType, target: DataType, node: CatalystNode) -> str | None:
    """The time zone, where the cast depends on it: elsewhere equal casts of two zones must be equal."""
    return node.fields.get("timeZoneId") if holds(source, Timestamp) or holds(target, Timestamp) else None


def _case_when(node: CatalystNode, scope: Scope) -> Expression:
    parts = [translate_expression(c, scope) for c in node.children]
    pairs = [(parts[i], parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
    return _case(pairs, parts[-1] if len(parts) % 2 else Literal(None, NULL))


def _case(pairs: list[tuple[Expression, Expression]], otherwise: Expression) -> Expression:
    typed = next((e.type for e in [*(v for _, v in pairs), otherwise] if e.type != NULL), NULL)
    return Case(tuple((c, _typed_null(v, typed)) for c, v in pairs), _typed_null(otherwise, typed))


def _typed_null(value: Expression, data_type: DataType) -> Expression:
    return Literal(None, data_type) if isinstance(value, Literal) and value.value is None else value


def _in_list(node: CatalystNode, scope: Scope) -> Expression:
    args = tuple(translate_expression(c, scope) for c in node.children)
    if node.name == "InSet":  # what Catalyst makes of a long list; sorted, so that equal sets are equal expressions
        values = sorted((literal_value(v, args[0].type) for v in node.fields["values"]), key=repr)
        args = (*args, *(Literal(v, args[0].type) for v in values))
    return Call("in", args, BOOLEAN)


def _at_least_known(node: CatalystNode, scope: Scope) -> Expression:
    """What ``DataFrame.dropna`` asks of a row: that at least n values are neither NULL nor NaN."""
    args = [translate_expression(c, scope) for c in node.children]
    known = [_is_known(a) for a in args]
    if int(node.fields["n"]) == len(known):
        return reduce(lambda a, b: Call("and", (a, b), BOOLEAN), known)
    counted: list[Expression] = [Case(((k, Literal(1, INT32)),), Literal(0, INT32)) for k in known]
    total = reduce(lambda a, b: Call("+", (a, b), INT32), counted)
    return Call(">=", (total, Literal(int(node.fields["n"]), INT32)), BOOLEAN)


def _is_known(value: Expression) -> Expression:
    there = Call("isnotnull", (value,), BOOLEAN)
    if not is_floating(value.type):
        return there
    return Call("and", (there, Call("not", (Call("isnan", (value,), BOOLEAN),), BOOLEAN)), BOOLEAN)


def _plus_calendar_interval(node: CatalystNode, scope: Scope) -> Expression:
    """A time plus a constant of months, days and microseconds, as the gap of a session is; we have no type for such."""
    moment, zone = translate_expression(node.children[0], scope), node.fields.get("timeZoneId")
    if node.children[1].name != "Literal":
        raise UnsupportedQuery("a gap or interval that depends on the row is not supported.", operator="interval")
    parts = zip(("MONTH", "DAY", "MICROSECOND"), node.children[1].fields["exact"], strict=True)
    for unit, quantity in parts:
        if quantity:
            args = (Literal(unit, STRING), Literal(quantity, INT64), moment)
            moment = Call("timestampadd", args, moment.type, zone)
    return moment


def _with(node: CatalystNode, scope: Scope) -> Expression:
    """``With(body, definitions)``: what a short-hand such as NULLIF uses twice, substituted where it is referred to."""
    body, *definitions = node.children
    common = dict(scope.common)
    for definition in definitions:
        known = Scope(scope.columns, common)
        common[definition.fields["common_id"]] = translate_expression(definition.children[0], known)
    return translate_expression(body, Scope(scope.columns, common))


def _stood_for(node: CatalystNode, scope: Scope) -> Expression:
    found = hidden_expression(node, tuple(translate_expression(c, scope) for c in node.children))
    if found is None:
        raise UnsupportedQuery(
            f"the Python function {node.fields['name']} is not supported here.", operator=str(node.fields["name"])
        )
    return found


def _function(node: CatalystNode, scope: Scope) -> Expression:
    args = tuple(translate_expression(c, scope) for c in node.children)
    mode = EvalMode.TRY if node.fields.get("is_try") else EvalMode.ANSI
    translated = translate_function(node, args, mode)
    if translated is None:
        raise UnsupportedQuery(
            f"the expression {node.name} is not supported.",
            operator=node.name,
            hint="docs/supported-sql.md lists the functions that are.",
        )
    return translated


def translate_literal(node: CatalystNode) -> Literal:
    """The constant of a Catalyst ``Literal``."""
    data_type = from_spark_json(node.fields["dataType"])
    if "exact" in node.fields:
        return Literal(_exact_value(node.fields["exact"], data_type), data_type)
    text = node.fields.get("value")
    return Literal(None if text is None else _value_of_text(text, data_type), data_type)


def literal_value(raw: Any, data_type: DataType) -> Value:
    """One of our values for a value as the JVM gave it."""
    return _exact_value(raw, data_type)


def _exact_value(raw: Any, data_type: DataType) -> Value:
    if raw is None:
        return None
    match data_type:
        case Array():
            return tuple(_exact_value(v, data_type.element) for v in raw)
        case Struct():
            return tuple(_exact_value(v, t) for v, t in zip(raw, data_type.types, strict=True))
        case Map():
            return tuple((_exact_value(k, data_type.key), _exact_value(v, data_type.value)) for k, v in raw)
        case Decimal():
            return PythonDecimal(str(raw)).quantize(PythonDecimal(1).scaleb(-data_type.scale), context=CONTEXT)
        case _ if is_floating(data_type):
            return NAN if math.isnan(raw) else float(raw)
        case _:
            return raw


def _value_of_text(text: str, data_type: DataType) -> Value:
    match data_type:
        case Decimal():
            return _exact_value(text, data_type)
        case _ if is_floating(data_type):
            return _exact_value(float(text), data_type)
        case _ if data_type == STRING:
            return text
        case _ if data_type == BOOLEAN:
            return text == "true"
        case _ if data_type == DATE:
            return _days_of(text)
        case _ if data_type == BINARY:
            raise InternalError("a binary literal came without its bytes.")
        case _:
            return int(text)


def _days_of(text: str) -> int:
    """Days since the epoch of ``yyyy-MM-dd``, the form in which Catalyst's JSON writes dates."""
    date = Cast(Literal(text, STRING), DATE)
    return int(evaluate(date))
