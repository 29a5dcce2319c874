"""A join's condition taken apart: equalities between the two sides, and the rest."""

from __future__ import annotations

from dataclasses import dataclass

from everview.relational.expressions import Call, Column, Expression, columns_of, conjuncts, shift_columns
from everview.relational.nodes import Join
from everview.relational.schema import schema


@dataclass(frozen=True, slots=True)
class Equality:
    """``left = right`` (``<=>`` if null-safe), each side over its own input's columns."""

    left: Expression
    right: Expression
    null_safe: bool


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """The conjunction of ``equalities`` and ``residual`` (over left ++ right columns) is the join's condition."""

    equalities: tuple[Equality, ...]
    residual: tuple[Expression, ...]


def split_join_condition(join: Join) -> JoinCondition:
    """Separates what a hash index can answer from what must be checked pair by pair."""
    width = len(schema(join.left))
    equalities: list[Equality] = []
    residual: list[Expression] = []
    for part in conjuncts(join.condition):
        equality = _as_equality(part, width)
        if equality is None:
            residual.append(part)
        else:
            equalities.append(equality)
    return JoinCondition(tuple(equalities), tuple(residual))


def _as_equality(part: Expression, width: int) -> Equality | None:
    if not (isinstance(part, Call) and part.function in ("=", "<=>")):
        return None
    a, b = part.args
    reads_a, reads_b = columns_of(a), columns_of(b)
    if not reads_a or not reads_b:
        return None
    if min(reads_a) >= width and max(reads_b) < width:
        a, b, reads_a, reads_b = b, a, reads_b, reads_a
    if max(reads_a) >= width or min(reads_b) < width:
        return None
    return Equality(a, shift_columns(b, -width), part.function == "<=>")


def differing_columns(join: Join) -> tuple[int, int] | None:
    """The columns of the left and the right side that must differ, if that is all that is asked besides equalities."""
    residual = split_join_condition(join).residual
    width = len(schema(join.left))
    match residual:
        case (
            Call(function="<>", args=(Column() as a, Column() as b))
            | Call(function="not", args=(Call(function="=", args=(Column() as a, Column() as b)),)),
        ) if a.type == b.type:
            first, second = sorted((a.index, b.index))
            return (first, second - width) if first < width <= second else None
        case _:
            return None
