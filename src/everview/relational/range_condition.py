"""A join's inequalities as bounds of an ordered index: ``low ≤ column ≤ high`` with the bounds on the other side.

The ranges found are only candidates: the whole condition is checked on the pairs afterwards, so an access path can be
narrower than the condition or not exist at all, and never changes an answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.relational.expressions import Call, Column, Expression, conjuncts
from everview.relational.types import Array, Binary, DataType, Decimal, String, Struct

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WIDEST = 18
"""The most digits of a decimal whose order is that of one 64-bit number."""


@dataclass(frozen=True, slots=True)
class RangeLimit:
    """A column of the probing side that limits the indexed column, and whether the limit itself is outside."""

    column: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class RangeAccess:
    """``low ≤ column ≤ high`` with the column on the indexed side and the bounds on the probing one."""

    column: int
    low: RangeLimit | None = None
    high: RangeLimit | None = None


def range_accesses(condition: Expression | None, width: int) -> tuple[RangeAccess | None, RangeAccess | None]:
    """How the left and the right side can be searched, given a condition over left (``width`` columns) ++ right."""
    left: dict[int, dict[str, RangeLimit]] = {}
    right: dict[int, dict[str, RangeLimit]] = {}
    for part in conjuncts(condition) if condition is not None else ():
        if not (isinstance(part, Call) and part.function in _MIRRORED):
            continue
        a, b = part.args
        if not (isinstance(a, Column) and isinstance(b, Column)) or not is_one_word(a.type):
            continue
        function = part.function
        if a.index >= width > b.index:
            a, b, function = b, a, _MIRRORED[function]
        if not a.index < width <= b.index:
            continue
        is_open = function in ("<", ">")
        side = "high" if function in ("<", "<=") else "low"
        other = "low" if side == "high" else "high"
        left.setdefault(a.index, {})[side] = RangeLimit(b.index - width, is_open)
        right.setdefault(b.index - width, {})[other] = RangeLimit(a.index, is_open)
    return _tightest(left), _tightest(right)


def _tightest(bounds: dict[int, dict[str, RangeLimit]]) -> RangeAccess | None:
    """The column with the most bounds."""
    if not bounds:
        return None
    column = max(bounds, key=lambda c: (len(bounds[c]), -c))
    return RangeAccess(column, bounds[column].get("low"), bounds[column].get("high"))


def is_one_word(data_type: DataType) -> bool:
    """Whether the values are in the order of single numbers, which ordered indexes have for entries."""
    if isinstance(data_type, Decimal):
        return data_type.precision <= _WIDEST
    return not isinstance(data_type, String | Binary | Array | Struct)
