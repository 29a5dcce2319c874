"""The values of a sub-expression while a batch is evaluated.

``Cells`` differ from a ``Vector`` in what is cheap inside and of no interest outside:

* booleans are NumPy booleans, not 64-bit words;
* decimals of more than 18 digits lie in one int64 word as long as their magnitudes fit (*narrow*), else in two;
* integers and decimals carry a ``bound`` on their magnitudes, from which operators conclude that nothing can overflow;
* a literal is one cell, which NumPy stretches to any number of rows.

As in a vector, the value beneath NULL is 0. Cells are not changed once another operator may have seen them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from everview.backends.embedded.vectors import NARROW_PRECISION, AnyArray, Bools, Ints, Kind, Vector, kind_of
from everview.relational.types import (
    BOOLEAN,
    INT64,
    Boolean,
    DataType,
    Date,
    Decimal,
    YearMonthInterval,
    integer_bounds,
    is_integral,
)

WORD: Final = 2**63 - 1
"""The greatest 64-bit integer."""
POWERS: Final = tuple(10**i for i in range(80))
UNBOUNDED: Final = 2**63
"""A bound that holds for every 64-bit integer."""


class Cells:
    """The values of one sub-expression for some rows.

    ``suspects`` marks rows whose value an operator could not compute: either there is none, or it takes more than 64-bit
    arithmetic. They are settled with the Python definition before anyone else sees the cells.
    """

    __slots__ = ("bound", "is_tight", "nulls", "suspects", "values")

    def __init__(
        self, values: AnyArray, nulls: Bools | None = None, bound: int = UNBOUNDED, suspects: Bools | None = None
    ) -> None:
        self.values = values
        self.nulls = nulls
        self.bound = bound
        self.suspects = suspects
        self.is_tight = False

    @property
    def is_wide(self) -> bool:
        """Whether the values take two words each."""
        return self.values.ndim == 2

    def tighten(self) -> None:
        """Replaces the bound by the greatest magnitude that really occurs."""
        self.bound = magnitude(self.values)
        self.is_tight = True

    def take(self, rows: Ints) -> Cells:
        """The cells of these rows."""
        return Cells(self.values[rows], None if self.nulls is None else self.nulls[rows], self.bound)


def magnitude(values: Ints) -> int:
    """The greatest absolute value in one-word integers; 0 for none."""
    if len(values) == 1:
        return abs(values.item())
    if len(values) == 0:
        return 0
    return max(int(np.maximum.reduce(values)), -int(np.minimum.reduce(values)))


def type_bound(data_type: DataType) -> int:
    """A bound on the magnitude of every value of an integer-like or decimal type."""
    match data_type:
        case Decimal():
            return int(10**data_type.precision) - 1
        case Date() | YearMonthInterval():
            return 2**31
        case Boolean():
            return 1
        case _ if is_integral(data_type) and data_type != INT64:
            return -integer_bounds(data_type)[0]
        case _:
            return UNBOUNDED


def product_fits(a: Cells, b: Cells, factor: int = 1) -> bool:
    """Whether ``a * b * factor`` stays within 64 bits, looking at the data where the bounds do not say so."""
    if a.bound * b.bound * factor <= WORD:
        return True
    for cells in (a, b) if a.bound > b.bound else (b, a):
        if not cells.is_tight:
            cells.tighten()
            if a.bound * b.bound * factor <= WORD:
                return True
    return False


def sum_fits(a: Cells, a_factor: int, b: Cells, b_factor: int) -> bool:
    """Whether ``a * a_factor ± b * b_factor`` stays within 64 bits, looking at the data where the bounds do not say so."""
    if a.bound * a_factor + b.bound * b_factor <= WORD:
        return a_factor <= WORD >= b_factor
    for cells in (a, b) if a.bound * a_factor > b.bound * b_factor else (b, a):
        if not cells.is_tight:
            cells.tighten()
            if a.bound * a_factor + b.bound * b_factor <= WORD:
                return a_factor <= WORD >= b_factor
    return False


def cells_from_vector(vector: Vector, bound: int) -> Cells:
    """A column as cells; ``bound`` is the type's, which is 1 for booleans alone."""
    values = vector.values
    if bound == 1:
        return Cells(values.astype(np.bool_), vector.nulls, 1)
    if values.ndim == 2:
        return narrowed(Cells(values, vector.nulls, bound))
    return Cells(values, vector.nulls, bound)


def vector_from_cells(cells: Cells, data_type: DataType, count: int) -> Vector:
    """Cells as a column of ``count`` rows."""
    if len(cells.values) != count:
        cells = spread(cells, count)
    values, nulls = cells.values, cells.nulls
    if values.dtype == np.bool_:
        values = values.astype(np.int64)
    elif isinstance(data_type, Decimal) and data_type.precision > NARROW_PRECISION:
        values = widened(cells)
    return Vector(data_type, values, nulls if any_of(nulls) else None)


def narrowed(cells: Cells) -> Cells:
    """The same cells in one word each, where all of them fit."""
    if cells.values.ndim == 1:
        return cells
    low, high = cells.values[:, 0], cells.values[:, 1]
    if not np.array_equal(high, low >> 63):
        return cells
    done = Cells(low, cells.nulls)
    done.tighten()
    return done if done.bound <= WORD else cells


def widened(cells: Cells) -> Ints:
    """The values in two words each."""
    values = cells.values
    if values.ndim == 2:
        return values
    words = np.empty((len(values), 2), dtype=np.int64)
    words[:, 0] = values
    np.right_shift(values, 63, out=words[:, 1])
    return words


def spread(cells: Cells, count: int) -> Cells:
    """The cell of a literal, repeated; other cells as they are."""
    if len(cells.values) == count:
        return cells
    nulls = None if cells.nulls is None else np.repeat(cells.nulls, count)
    return Cells(np.repeat(cells.values, count, axis=0), nulls, cells.bound)


def null_cells(data_type: DataType, count: int) -> Cells:
    """NULL in every row."""
    return Cells(np.zeros(count, cell_dtype(data_type)), np.ones(count, dtype=np.bool_), 0)


def cell_dtype(data_type: DataType) -> np.dtype[Any]:
    """The NumPy type of cells of a type."""
    if data_type == BOOLEAN:
        return np.dtype(np.bool_)
    return np.dtype(np.float64 if kind_of(data_type) is Kind.FLOAT else np.int64)


def either(a: Bools | None, b: Bools | None) -> Bools | None:
    """The union of two masks."""
    if a is None:
        return b
    return a if b is None else a | b


def any_of(mask: Bools | None) -> bool:
    """Whether the mask marks a row."""
    if mask is None:
        return False
    return mask.item() if len(mask) == 1 else bool(np.logical_or.reduce(mask))


def with_zeros_beneath(cells: Cells, nulls: Bools | None) -> Cells:
    """The cells with further NULLs and 0 beneath them; the values must be the caller's own."""
    if nulls is None:
        return cells
    if len(cells.values) != len(nulls):
        cells = spread(cells, len(nulls))
    np.copyto(cells.values, False, where=nulls[:, None] if cells.values.ndim == 2 else nulls)
    cells.nulls = either(cells.nulls, nulls)
    return cells


def merged(parts: list[tuple[Ints, Cells]], data_type: DataType, count: int) -> Cells:
    """Cells of disjoint sets of rows put together; rows of no part are 0."""
    is_wide = any(cells.is_wide for _, cells in parts)
    values: AnyArray = np.zeros((count, 2) if is_wide else count, cell_dtype(data_type))
    nulls: Bools | None = None
    bound = 0
    for rows, cells in parts:
        values[rows] = widened(cells) if is_wide else cells.values
        if cells.nulls is not None:
            if nulls is None:
                nulls = np.zeros(count, dtype=np.bool_)
            nulls[rows] = cells.nulls
        bound = max(bound, cells.bound)
    return Cells(values, nulls, bound)


def merge_where(mask: Bools, chosen: Cells, other: Cells) -> Cells:
    """``chosen`` under the mask, ``other`` elsewhere; both have as many rows as the mask."""
    bound = max(chosen.bound, other.bound)
    nulls = None
    if chosen.nulls is not None or other.nulls is not None:
        none = np.zeros(1, dtype=np.bool_)
        nulls = np.where(
            mask, none if chosen.nulls is None else chosen.nulls, none if other.nulls is None else other.nulls
        )
    if chosen.values.ndim == other.values.ndim == 1:
        return Cells(np.where(mask, chosen.values, other.values), nulls, bound)
    return Cells(np.where(mask[:, None], widened(chosen), widened(other)), nulls, bound)


def outside(values: Ints, low: int, high: int) -> Bools | None:
    """The mask of one-word integers below ``low`` or above ``high``; None where there are none."""
    if len(values) == 1:
        return None if low <= values.item() <= high else np.ones(1, dtype=np.bool_)
    if len(values) == 0 or (low <= np.minimum.reduce(values) and np.maximum.reduce(values) <= high):
        return None
    return (values < low) | (values > high)
