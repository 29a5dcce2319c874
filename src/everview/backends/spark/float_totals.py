"""Sums of limbs by NumPy: rows that still have their floats, a batch at a time, become the sums of each group in the batch.

The same numbers as ``float_limbs`` has as expressions. Five limbs of each float are five expressions a sum, and a query with
dozens of those takes Spark tens of microseconds a row; NumPy takes well below one. It runs in tasks,
on Arrow batches, or at the driver. Groups of several batches are added up afterwards, by whatever engine has them.

A batch has keys, integers (0 or 1), floats (NULL where a row does not count) and a weight. A payload column is a ``SumPart``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.spark.float_limbs import LEAST, LIMBS, MOST

SumPart = tuple[int, int]
"""A column of the batch and which limb of it, or ``WHOLE`` for an integer itself; ``UNFIT`` for rows with unfit floats."""
WHOLE: Final = -1
UNFIT: Final[SumPart] = (-1, WHOLE)
_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Add = Callable[[_Floats], _Ints]
_ROWS: Final = 2**16
"""So many rows are grouped at a time."""
_EXACT: Final = 2**22
"""A limb is below 2³¹, so that sums of so many of them are exact as floats, which have 53 bits."""
_LIMB: Final = 2.0**31


def float_totals(
    batches: Iterable[pa.RecordBatch], key_count: int, parts: tuple[SumPart, ...]
) -> Iterator[pa.RecordBatch]:
    """The keys and sums of the groups of some rows; a group may come several times.

    Raises:
        OverflowError: a row is there so often that a single contribution has no 64 bits.
    """
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= _ROWS:
            yield from _totals(waiting, key_count, parts)
            waiting = []
    yield from _totals(waiting, key_count, parts)


def _totals(batches: list[pa.RecordBatch], key_count: int, parts: tuple[SumPart, ...]) -> Iterator[pa.RecordBatch]:
    if not batches:
        return
    rows = pa.Table.from_batches(batches)
    weights = rows.column(rows.num_columns - 1).to_numpy()
    most = max(map(abs, (int(weights.min()), int(weights.max()))), default=0) if len(weights) else 0
    step = max(1, _EXACT // max(1, most))
    for start in range(0, len(weights), step):
        some = rows.slice(start, step)
        keys, add = _by_group(some, key_count, weights[start : start + step])
        arrays = [*keys, *_sums(some, parts, add)]
        yield pa.RecordBatch.from_arrays(arrays, names=_names(len(arrays)))


def _by_group(rows: pa.Table, key_count: int, weights: _Ints) -> tuple[list[pa.Array], _Add]:
    """The keys of the groups of some rows, and what adds up a number of each row, times its weight, by group."""
    if len(weights) == 1:  # of any weight
        return [c.combine_chunks() for c in rows.columns[:key_count]], partial(_times, weight=int(weights[0]))
    times = weights.astype(np.float64)
    if not key_count:
        return [], lambda values: (values * times).sum(keepdims=True).astype(np.int64)
    names = _names(key_count)
    numbered = pa.Table.from_arrays([*rows.columns[:key_count], pa.array(np.arange(len(weights)))], [*names, "row"])
    grouped = numbered.group_by(names, use_threads=False).aggregate([("row", "list")])
    members = grouped.column("row_list").combine_chunks()
    groups = np.empty(len(weights), dtype=np.int64)
    groups[members.flatten().to_numpy()] = np.repeat(np.arange(len(members)), members.value_lengths().to_numpy())

    def add(values: _Floats) -> _Ints:
        return np.bincount(groups, values * times, len(members)).astype(np.int64)

    return [grouped.column(name).combine_chunks() for name in names], add


def _sums(rows: pa.Table, parts: tuple[SumPart, ...], add: _Add) -> list[pa.Array]:
    """The sums of each group, one float after another, so that few numbers of each row are there at once."""
    unfit = np.zeros(rows.num_rows)
    sums: dict[SumPart, _Ints] = {}
    for column, limb in dict.fromkeys((c, min(limb, 0)) for c, limb in parts if c >= 0):
        if limb == WHOLE:
            sums[column, WHOLE] = add(rows.column(column).to_numpy().astype(np.float64))
            continue
        x = pc.fill_null(rows.column(column), 0.0).to_numpy()
        is_fit = _fits(x)
        if not is_fit.all():
            unfit[~is_fit] = 1.0
            x = np.where(is_fit, x, 0.0)
        sums |= {(column, i): add(limb) for i, limb in enumerate(_limbs(x))}
    sums[UNFIT] = add(unfit)
    return [pa.array(sums[part]) for part in parts]


def _fits(x: _Floats) -> npt.NDArray[np.bool_]:
    size = np.abs(x)
    fits: npt.NDArray[np.bool_] = (size >= LEAST) & (size < MOST)
    if not fits.all():
        is_small = size < LEAST
        few = x[is_small] * 2.0**93
        fits[is_small] = np.trunc(few) == few
    return fits


def _limbs(x: _Floats) -> Iterator[_Floats]:
    """The limbs of floats that fit, the largest first; each step is exact."""
    rest = x / _LIMB
    for _ in range(LIMBS):
        limb = np.trunc(rest)
        yield limb
        rest = (rest - limb) * _LIMB


def _times(values: _Floats, weight: int) -> _Ints:
    product = int(values[0]) * weight
    if not -(2**63) <= product < 2**63:
        raise OverflowError("[ARITHMETIC_OVERFLOW] long overflow: a row is there too often for a sum of floats.")
    return np.array([product], dtype=np.int64)


def _names(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]
