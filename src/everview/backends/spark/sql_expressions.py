"""Scalar expressions as Spark SQL text over columns named by position.

The algebra came from Catalyst, all casts explicit, so nearly every function is written as Spark's own of the same name;
``_FORMS`` holds those that SQL writes in another way. Contract: in an ANSI session whose time zone is the expression's, the
text has the value and the type that the expression says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, assert_never

from everview.backends.spark.sql_literals import literal_sql, text_sql, type_sql
from everview.errors import UnsupportedQuery
from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal, SparkExpression
from everview.relational.quoting import quote
from everview.relational.spark_code import JSON_TUPLE
from everview.relational.types import Array, Binary, String, Struct, holds

Names = Sequence[str]


def expression_sql(expression: Expression, names: Names) -> str:
    """The text of an expression; ``names[i]`` is how column i is written.

    Raises:
        UnsupportedQuery: the function has no form in Spark SQL.
    """
    match expression:
        case Column():
            return names[expression.index]
        case Literal():
            return literal_sql(expression.value, expression.type)
        case Cast():
            return _cast(expression, names)
        case Case():
            branches = " ".join(
                f"WHEN {expression_sql(c, names)} THEN {expression_sql(v, names)}" for c, v in expression.branches
            )
            return f"CASE {branches} ELSE {expression_sql(expression.otherwise, names)} END"
        case Call():
            return _call(expression, names)
        case SparkExpression() if expression.name == JSON_TUPLE:
            raise UnsupportedQuery(
                "the generator json_tuple is not supported on the spark backend.",
                operator=JSON_TUPLE,
                hint="take the parts with get_json_object(json, '$.name').",
            )
        case SparkExpression():
            text = expression.sql([expression_sql(a, names) for a in expression.args])
            return f"validate_utf8({text})" if isinstance(expression.type, String) else text
        case _:
            assert_never(expression)


def _cast(cast: Cast, names: Names) -> str:
    """A cast; to text only of bytes that are UTF-8, which other strings of Spark need not be."""
    word = "try_cast" if cast.is_try else "CAST"
    text = f"{word}({expression_sql(cast.child, names)} AS {type_sql(cast.type)})"
    if not (holds(cast.child.type, Binary) and holds(cast.type, String)):
        return text
    if isinstance(cast.type, String):
        return f"validate_utf8({text})"
    raise UnsupportedQuery(
        f"CAST from {cast.child.type} to {cast.type} is not supported on the spark backend.",
        operator="CAST",
        hint="cast each element to a string: transform(x, e -> CAST(e AS STRING)).",
    )


def _call(call: Call, names: Names) -> str:
    if _is_split_part(call):
        return _split_part(call, names)
    if call.function == "try":
        return _try(call, names)
    args = [expression_sql(a, names) for a in call.args]
    if call.function in _OPERATORS:
        operator = _OPERATORS[call.function]
        return f"({args[0]} {operator} {args[1]})"
    form = _FORMS.get(call.function)
    if form is not None:
        return form(call, args)
    return f"{call.function}({', '.join(args)})"


def _is_split_part(call: Call) -> bool:
    """``try_element_at(split_sql(…), i, '')`` is what SPLIT_PART means; its parts alone have no SQL."""
    source = call.args[0] if call.args else None
    return call.function == "try_element_at" and isinstance(source, Call) and source.function == "split_sql"


def _split_part(call: Call, names: Names) -> str:
    source = call.args[0]
    assert isinstance(source, Call)
    text, delimiter = (expression_sql(a, names) for a in source.args)
    return f"split_part({text}, {delimiter}, {expression_sql(call.args[1], names)})"


_OPERATORS: Final = {
    **{o: o for o in ("+", "-", "*", "/", "%", "div", "=", "<=>", "<", "<=", ">", ">=", "&", "|", "^")},
    "and": "AND",
    "or": "OR",
    "timestamp_add_interval": "+",
    "date_add_interval": "+",
    "multiply_interval": "*",
    "divide_interval": "/",
    "subtract_timestamps": "-",
    "subtract_dates": "-",
}


def _prefix(operator: str) -> Callable[[Call, list[str]], str]:
    return lambda call, args: f"({operator} {args[0]})"


def _suffix(operator: str) -> Callable[[Call, list[str]], str]:
    return lambda call, args: f"({args[0]} {operator})"


def _extract(part: str) -> Callable[[Call, list[str]], str]:
    return lambda call, args: f"extract({part} FROM {args[0]})"


def _in_list(call: Call, args: list[str]) -> str:
    return f"({args[0]} IN ({', '.join(args[1:])}))"


def _like(word: str) -> Callable[[Call, list[str]], str]:
    def like(call: Call, args: list[str]) -> str:
        if len(call.args) < 3:
            return f"({args[0]} {word} {args[1]})"
        escape = call.args[2]
        assert isinstance(escape, Literal)
        # A backslash is the default, and the parser takes no other spelling of it.
        tail = "" if escape.value == "\\" else f" ESCAPE {text_sql(str(escape.value))}"
        return f"({args[0]} {word} {args[1]}{tail})"

    return like


def _struct(call: Call, args: list[str]) -> str:
    assert isinstance(call.type, Struct)
    pairs = ", ".join(f"{text_sql(n)}, {a}" for n, a in zip(call.type.names, args, strict=True))
    return f"named_struct({pairs})"


def _field(call: Call, args: list[str]) -> str:
    inside, position = call.args[0].type, call.args[1]
    struct = inside.element if isinstance(inside, Array) else inside
    assert isinstance(struct, Struct)
    assert isinstance(position, Literal)
    return f"({args[0]}).{quote(struct.names[position.value])}"


def _unit(call: Call, args: list[str]) -> str:
    unit = call.args[0]
    assert isinstance(unit, Literal)
    return f"{call.function}({unit.value}, {args[1]}, {args[2]})"


_TRY_FORMS: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}


def _try(call: Call, names: Names) -> str:
    inner = call.args[0]
    if isinstance(inner, Call) and _OPERATORS.get(inner.function, "") in _TRY_FORMS:
        inside = ", ".join(expression_sql(a, names) for a in inner.args)
        return f"{_TRY_FORMS[_OPERATORS[inner.function]]}({inside})"
    raise UnsupportedQuery(
        "TRY of this expression cannot be written in Spark SQL.",
        operator="try",
        hint="use the try_ form of the function.",
    )


def _element(call: Call, args: list[str]) -> str:
    return f"try_element_at({args[0]}, {args[1]})"


def _subscript(call: Call, args: list[str]) -> str:
    return f"({args[0]})[{args[1]}]"


def _trim(call: Call, args: list[str]) -> str:
    word = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING", "btrim": "BOTH"}[call.function]
    if len(args) == 1:
        return f"{call.function}({args[0]})"
    return f"trim({word} {args[1]} FROM {args[0]})"


def _array(call: Call, args: list[str]) -> str:
    return f"array({', '.join(args)})" if args else f"CAST(array() AS {type_sql(call.type)})"


_FORMS: Final[dict[str, Callable[[Call, list[str]], str]]] = {
    "negative": _prefix("-"),
    "not": _prefix("NOT"),
    "~": _prefix("~"),
    "isnull": _suffix("IS NULL"),
    "isnotnull": _suffix("IS NOT NULL"),
    "in": _in_list,
    "like": _like("LIKE"),
    "ilike": _like("ILIKE"),
    "struct": _struct,
    "getfield": _field,
    "getfields": _field,
    "timestampadd": _unit,
    "timestampdiff": _unit,
    "try_element_at": _element,
    "subscript": _subscript,
    "trim": _trim,
    "ltrim": _trim,
    "rtrim": _trim,
    "btrim": _trim,
    "array": _array,
    "base64": lambda call, args: f"base64({args[0]})",  # Catalyst's second argument is a setting
    "second_with_fraction": _extract("SECOND"),
    "yearofweek": _extract("YEAROFWEEK"),
    "interval_years": _extract("YEAR"),
    "interval_months": _extract("MONTH"),
    "interval_days": _extract("DAY"),
    "interval_hours": _extract("HOUR"),
    "interval_minutes": _extract("MINUTE"),
    "interval_seconds": _extract("SECOND"),
}
