"""The text form of plans and expressions: what ``explain`` prints and golden tests compare. Deterministic.

A node that is used twice is printed once, with a label, and referred to afterwards.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import assert_never

from everview.relational.definitions.spark_aggregates import is_spark_aggregate, spark_function
from everview.relational.evaluate import evaluate
from everview.relational.expressions import TRUE, Call, Case, Cast, Column, Expression, Literal, SparkExpression
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Filter,
    Frame,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Recursive,
    Relation,
    Scan,
    SortKey,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
    WindowCall,
)
from everview.relational.schema import schema
from everview.relational.spark_code import with_plain_names
from everview.relational.traverse import inputs, nodes_of
from everview.relational.types import STRING, Date, Null, Timestamp, TimestampNtz

_INFIX = frozenset({"+", "-", "*", "/", "%", "div", "=", "<=>", "<", "<=", ">", ">=", "and", "or", "||"})


def format_plan(plan: Relation) -> str:
    """The plan as an indented tree."""
    uses = Counter(id(child) for relation in nodes_of(plan) for child in inputs(relation))
    labels: dict[int, str] = {}
    lines: list[str] = []

    def visit(relation: Relation, depth: int) -> None:
        pad = "  " * depth
        if id(relation) in labels:
            lines.append(f"{pad}see {labels[id(relation)]}")
            return
        label = ""
        if uses[id(relation)] > 1 and not isinstance(relation, Scan):
            labels[id(relation)] = f"#{len(labels) + 1}"
            label = f"{labels[id(relation)]}: "
        lines.append(f"{pad}{label}{format_node(relation)}")
        for child in inputs(relation):
            visit(child, depth + 1)

    visit(plan, 0)
    return "\n".join(lines)


def _names(relation: Relation) -> tuple[str, ...]:
    return tuple(f.name for f in schema(relation))


def format_node(relation: Relation) -> str:
    """One node, without its inputs."""
    match relation:
        case Scan():
            return f"scan {relation.table} [{', '.join(f.name for f in relation.fields)}]"
        case Values():
            return f"values {len(relation.rows)} rows [{', '.join(f.name for f in relation.fields)}]"
        case Filter():
            return f"filter {format_expression(relation.condition, _names(relation.child))}"
        case Project():
            return f"project [{_aliased(relation.expressions, relation.names, _names(relation.child))}]"
        case Join():
            return _join_line(relation)
        case Aggregate():
            return _aggregate_line(relation)
        case Distinct():
            return "distinct"
        case UnionAll():
            return "union all"
        case SparkQuery():
            text = "a DataFrame" if relation.text is None else " ".join(relation.text.split())
            return f"answered by Spark: {text}"
        case Recursive():
            step = format_plan(relation.step).strip().splitlines()
            return "\n".join(
                [f"recursive, at most {relation.limit} rounds of", *(f"  | {line}" for line in step), "from"]
            )
        case ExceptAll():
            return "except all"
        case IntersectAll():
            return "intersect all"
        case UnionMax():
            return "union max"
        case Window():
            return _window_line(relation)
        case TopK():
            order = _order(relation.order, _names(relation.child))
            limit = "" if relation.limit is None else f" limit {relation.limit}"
            offset = f" offset {relation.offset}" if relation.offset else ""
            return f"top by [{order}]{limit}{offset}"
        case Generate():
            kind = ("outer " if relation.outer else "") + ("posexplode" if relation.with_position else "explode")
            return (
                f"{kind} {format_expression(relation.array, _names(relation.child))} as [{', '.join(relation.names)}]"
            )
        case _:
            assert_never(relation)


def _join_line(join: Join) -> str:
    names = _names(join.left) + _names(join.right)
    twice = {n for n, count in Counter(names).items() if count > 1}
    left = tuple(f"left.{n}" if n in twice else n for n in _names(join.left))
    right = tuple(f"right.{n}" if n in twice else n for n in _names(join.right))
    if join.condition == TRUE and join.kind == JoinKind.INNER:
        return "cross join"
    mark = f" as {join.mark}" if join.kind == JoinKind.MARK else ""
    return f"{join.kind.value} join on {format_expression(join.condition, left + right)}{mark}"


def _aggregate_line(aggregate: Aggregate) -> str:
    names = _names(aggregate.child)
    keys = _aliased(aggregate.keys, aggregate.names[: len(aggregate.keys)], names)
    calls = ", ".join(
        f"{format_aggregate(c, names)} as {n}"
        for c, n in zip(aggregate.aggregates, aggregate.names[len(aggregate.keys) :], strict=True)
    )
    return f"aggregate by [{keys}] [{calls}]"


def format_aggregate(call: AggregateCall, names: tuple[str, ...]) -> str:
    """An aggregate call over columns with these names."""
    if is_spark_aggregate(call):
        text = format_expression(replace(spark_function(call), args=call.args[:-1]), names)
        where = f" where {format_expression(call.filter, names)}" if call.filter is not None else ""
        return (text.replace("(", "(distinct ", 1) if call.distinct else text) + where
    args = ", ".join(format_expression(a, names) for a in call.args) or "*"
    where = f" where {format_expression(call.filter, names)}" if call.filter is not None else ""
    return f"{call.function}({'distinct ' if call.distinct else ''}{args}){where}"


def _window_line(window: Window) -> str:
    names = _names(window.child)
    partition = ", ".join(format_expression(e, names) for e in window.partition)
    calls = ", ".join(f"{_window_call(c, names)} as {n}" for c, n in zip(window.functions, window.names, strict=True))
    return f"window partition by [{partition}] order by [{_order(window.order, names)}] [{calls}]"


def _window_call(call: WindowCall, names: tuple[str, ...]) -> str:
    args = ", ".join(format_expression(a, names) for a in call.args)
    nulls = " ignore nulls" if call.ignore_nulls else ""
    where = f" where {format_expression(call.filter, names)}" if call.filter is not None else ""
    return f"{call.function}({args}){nulls}{where} {_frame(call.frame)}"


def _frame(frame: Frame) -> str:
    def bound(offset: Expression | None, unbounded: str) -> str:
        return unbounded if offset is None else format_expression(offset, ())

    return f"{frame.unit.value} {bound(frame.lower, 'start')}..{bound(frame.upper, 'end')}"


def _order(order: tuple[SortKey, ...], names: tuple[str, ...]) -> str:
    def term(key: SortKey) -> str:
        direction = " desc" if key.descending else ""
        nulls = "" if key.nulls_first != key.descending else (" nulls first" if key.nulls_first else " nulls last")
        return f"{format_expression(key.expression, names)}{direction}{nulls}"

    return ", ".join(term(k) for k in order)


def _aliased(expressions: tuple[Expression, ...], aliases: tuple[str, ...], names: tuple[str, ...]) -> str:
    texts = (format_expression(e, names) for e in expressions)
    return ", ".join(t if t == a else f"{t} as {a}" for t, a in zip(texts, aliases, strict=True))


def format_expression(expression: Expression, names: tuple[str, ...]) -> str:
    """The expression in SQL's manner, over columns with these names."""
    match expression:
        case Column():
            return names[expression.index] if expression.index < len(names) else f"${expression.index}"
        case Literal():
            return _literal(expression)
        case Cast():
            name = "try_cast" if expression.is_try else "cast"
            return f"{name}({format_expression(expression.child, names)} as {expression.type})"
        case Case():
            branches = " ".join(
                f"when {format_expression(c, names)} then {format_expression(v, names)}" for c, v in expression.branches
            )
            return f"case {branches} else {format_expression(expression.otherwise, names)} end"
        case Call():
            args = [format_expression(a, names) for a in expression.args]
            if expression.function in _INFIX and len(args) == 2:
                return f"({args[0]} {expression.function} {args[1]})"
            return f"{expression.function}({', '.join(args)})"
        case SparkExpression():
            return with_plain_names(expression.sql([format_expression(a, names) for a in expression.args]))
        case _:
            assert_never(expression)


def _literal(literal: Literal) -> str:
    if literal.value is None:
        return "null" if isinstance(literal.type, Null) else f"null:{literal.type}"
    if literal.type == STRING:
        return "'" + str(literal.value).replace("'", "''") + "'"
    if isinstance(literal.type, Date):
        return f"date '{evaluate(Cast(literal, STRING))}'"
    if isinstance(literal.type, Timestamp | TimestampNtz):
        return f"timestamp '{evaluate(Cast(literal, STRING, zone='UTC'))}'"
    return str(literal.value).lower() if isinstance(literal.value, bool) else str(literal.value)
