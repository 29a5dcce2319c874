"""Scalar expressions over the columns of a relation.

Columns are positions in the child's output, not names: equal sub-plans are then equal values, whatever the user called
things, and can be shared. All implicit casts are explicit (Catalyst has inserted them), so an expression means the same
wherever it stands. Semantics: Spark's, in ANSI mode, with three-valued logic; ``functions/`` says what each call means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, assert_never

from everview.relational.node import Node, node
from everview.relational.types import BOOLEAN, DataType, Null, Value


class _Expression(Node):
    """Base of the closed union ``Expression``."""

    __slots__ = ()


@node
class Column(_Expression):
    """The value at ``index`` in the input row."""

    index: int
    type: DataType
    nullable: bool = True


@node
class Literal(_Expression):
    """A constant; ``value`` is None for NULL."""

    value: Value
    type: DataType

    def _key(self) -> tuple[Any, ...]:
        # repr tells 0.0 from -0.0, True from 1 and one NaN from another, which == does not.
        return (repr(self.value), self.type)

    @property
    def nullable(self) -> bool:
        """Whether the constant is NULL."""
        return self.value is None


@node
class Call(_Expression):
    """A function of ``functions/`` applied to arguments; ``zone`` is the session time zone where it matters."""

    function: str
    args: tuple[Expression, ...]
    type: DataType
    zone: str | None = None


@node
class Cast(_Expression):
    """``CAST(child AS type)``; with ``is_try``, NULL instead of an error."""

    child: Expression
    type: DataType
    is_try: bool = False
    zone: str | None = None


@node
class Case(_Expression):
    """The value of the first branch whose condition is true, else ``otherwise``; later branches are not evaluated."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression

    @property
    def type(self) -> DataType:
        """The common type of the branches."""
        types = [value.type for _, value in self.branches] + [self.otherwise.type]
        return next((t for t in types if not isinstance(t, Null)), types[0])


@node
class SparkExpression(_Expression):
    """A deterministic function of ``args`` that only Spark's own code computes (``spark_code``).

    ``text`` is SQL, cut where an argument stands: a number is the position of the argument. It means the same in every
    session of that time zone and those settings. ``name`` is what to call it when speaking of it.
    """

    name: str
    text: tuple[str | int, ...]
    args: tuple[Expression, ...]
    type: DataType
    zone: str
    settings: tuple[tuple[str, str], ...] = ()

    def sql(self, args: Sequence[str]) -> str:
        """The SQL text over arguments that are written like this."""
        return "".join(_enclosed(args[part]) if isinstance(part, int) else part for part in self.text)


def _enclosed(text: str) -> str:
    return text if re.fullmatch(r"\w+|`[^`]*`", text) or _is_closed(text) else f"({text})"


def _is_closed(text: str) -> bool:
    """Whether the text is one call, or stands in parentheses already; a text with quotes may say no."""
    depth = 0
    for place, char in enumerate(text) if re.match(r"\w*\(", text) and not set("'\"`") & set(text) else ():
        depth += (char == "(") - (char == ")")
        if depth == 0 and char == ")":
            return place == len(text) - 1
    return False


Expression = Column | Literal | Call | Cast | Case | SparkExpression

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions, left to right."""
    match expression:
        case Column() | Literal():
            return ()
        case Call() | SparkExpression():
            return expression.args
        case Cast():
            return (expression.child,)
        case Case():
            inside = tuple(part for branch in expression.branches for part in branch)
            return (*inside, expression.otherwise)
        case _:
            assert_never(expression)


def with_children(expression: Expression, new: tuple[Expression, ...]) -> Expression:
    """The same expression over other sub-expressions."""
    if all(a is b for a, b in zip(children(expression), new, strict=True)):
        return expression
    match expression:
        case Column() | Literal():
            return expression
        case Call():
            return Call(expression.function, new, expression.type, expression.zone)
        case Cast():
            return Cast(new[0], expression.type, expression.is_try, expression.zone)
        case Case():
            pairs = tuple((new[i], new[i + 1]) for i in range(0, len(new) - 1, 2))
            return Case(pairs, new[-1])
        case SparkExpression():
            return replace(expression, args=new)
        case _:
            assert_never(expression)


def transform(expression: Expression, visit: Callable[[Expression], Expression | None]) -> Expression:
    """Rewrites bottom-up: ``visit`` gets each rebuilt sub-expression and returns its replacement or None to keep it."""
    rebuilt = with_children(expression, tuple(transform(c, visit) for c in children(expression)))
    return visit(rebuilt) or rebuilt


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it, top-down."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def columns_of(expression: Expression) -> frozenset[int]:
    """The positions the expression reads."""
    return frozenset(e.index for e in walk(expression) if isinstance(e, Column))


def shift_columns(expression: Expression, by: int) -> Expression:
    """The expression over a row with ``by`` more columns in front."""
    return remap_columns(expression, lambda index: index + by)


def remap_columns(expression: Expression, new_index: Callable[[int], int]) -> Expression:
    """The expression with every column position sent through ``new_index``."""

    def visit(e: Expression) -> Expression | None:
        return Column(new_index(e.index), e.type, e.nullable) if isinstance(e, Column) else None

    return transform(expression, visit)


def substitute(expression: Expression, values: tuple[Expression, ...]) -> Expression:
    """The expression with column i replaced by ``values[i]``: composition of projections."""
    return transform(expression, lambda e: values[e.index] if isinstance(e, Column) else None)


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The parts of a conjunction; none for TRUE."""
    if condition == TRUE:
        return ()
    if isinstance(condition, Call) and condition.function == "and":
        return tuple(part for arg in condition.args for part in conjuncts(arg))
    return (condition,)


def conjunction(parts: tuple[Expression, ...]) -> Expression:
    """The AND of the parts; TRUE for none."""
    if not parts:
        return TRUE
    result = parts[0]
    for part in parts[1:]:
        result = Call("and", (result, part), BOOLEAN)
    return result
