"""Expressions as users write them in SQL, for ``explain``.

``format_expression`` is the form that stays the same from one version to the next: programs on disk are told apart by it.
"""

from __future__ import annotations

from everview.relational.expressions import Call, Case, Cast, Expression, Literal
from everview.relational.format import format_expression
from everview.relational.types import STRING

_ESCAPE = Literal("\\", STRING)


def sql_text(expression: Expression, names: tuple[str, ...]) -> str:
    r"""The expression as SQL, over columns with these names.

    >>> from everview.relational.expressions import Column
    >>> from everview.relational.types import BOOLEAN, INT64
    >>> like = Call("like", (Column(0, STRING), Literal("%special%", STRING), Literal("\\", STRING)), BOOLEAN)
    >>> sql_text(Call("not", (like,), BOOLEAN), ("comment",))
    "comment NOT LIKE '%special%'"
    >>> sql_text(Call("isnotnull", (Call("+", (Column(0, INT64), Column(1, INT64)), INT64),), BOOLEAN), ("a", "b"))
    '(a + b) IS NOT NULL'
    """
    match expression:
        case Call(function="not", args=(Call(function="like", args=(value, pattern, escape)),)) if escape == _ESCAPE:
            return f"{sql_text(value, names)} NOT LIKE {sql_text(pattern, names)}"
        case Call(function="not", args=(Call(function="isnull", args=(value,)),)):
            return f"{sql_text(value, names)} IS NOT NULL"
        case Call(function="like", args=(value, pattern, escape)) if escape == _ESCAPE:
            return f"{sql_text(value, names)} LIKE {sql_text(pattern, names)}"
        case Call(function="isnull", args=(value,)):
            return f"{sql_text(value, names)} IS NULL"
        case Call(function="isnotnull", args=(value,)):
            return f"{sql_text(value, names)} IS NOT NULL"
        case Call(function="not", args=(value,)):
            return f"NOT {sql_text(value, names)}"
        case Call(function="in", args=(value, *others)):
            return f"{sql_text(value, names)} IN ({', '.join(sql_text(o, names) for o in others)})"
        case Call(function="and" | "or" as function, args=(left, right)):
            return f"({sql_text(left, names)} {function.upper()} {sql_text(right, names)})"
        case Call(function=function, args=(left, right)) if not function[0].isalpha() or function == "div":
            return f"({sql_text(left, names)} {function} {sql_text(right, names)})"
        case Call(function=function, args=args):
            return f"{function}({', '.join(sql_text(a, names) for a in args)})"
        case Cast(child=child, type=kind, is_try=is_try):
            return f"{'TRY_CAST' if is_try else 'CAST'}({sql_text(child, names)} AS {kind})"
        case Case(branches=branches, otherwise=otherwise):
            parts = " ".join(f"WHEN {sql_text(c, names)} THEN {sql_text(v, names)}" for c, v in branches)
            return f"CASE {parts} ELSE {sql_text(otherwise, names)} END"
        case Literal(value=None):
            return "NULL"
        case _:
            return format_expression(expression, names)
