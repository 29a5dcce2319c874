"""Sums of limbs by NumPy: rows that still have their floats, a batch at a time, become the sums of each group in the batch.

The same numbers as ``float_limbs`` has as expressions. Five limbs of each float are five expressions a sum, and a query with
dozens of those takes Spark tens of microseconds a row; NumPy takes well below one. It runs in tasks,
on Arrow batches, or at the driver. Groups of several batches are added up afterwards, by whatever engine has them.

A batch has keys, integers (0 or 1), floats (NULL where a row does not count) and a weight. A payload column is a ``SumPart``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
_ROWS: Final = 2**16
"""So many rows are grouped at a time."""
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
    step = max(1, 2**32 // max(1, most))  # a limb is below 2³¹: so many weighted ones have 63 bits
    for start in range(0, len(weights), step):
        some = rows.slice(start, step)
        keys = [c.combine_chunks() for c in some.columns[:key_count]]
        sums = _contributions(some, weights[start : start + step], parts)
        if not key_count:
            arrays = [pa.array(s.sum(keepdims=True)) for s in sums]
            yield pa.RecordBatch.from_arrays(arrays, names=_names(len(arrays)))
            continue
        names = _names(key_count + len(sums))
        table = pa.Table.from_arrays([*keys, *map(pa.array, sums)], names=names)
        grouped = table.group_by(names[:key_count], use_threads=False)
        added = grouped.aggregate([(name, "sum") for name in names[key_count:]])
        yield from (
            added.select([*names[:key_count], *(f"{n}_sum" for n in names[key_count:])])
            .rename_columns(names)
            .to_batches()
        )


def _contributions(rows: pa.Table, weights: _Ints, parts: tuple[SumPart, ...]) -> list[_Ints]:
    """What each row adds to each sum."""
    unfit = np.zeros(len(weights), dtype=bool)
    limbs: dict[SumPart, npt.NDArray[np.float64]] = {}
    for column in sorted({column for column, limb in parts if limb != WHOLE}):
        x = pc.fill_null(rows.column(column), 0.0).to_numpy()
        is_fit = _fits(x)
        unfit |= ~is_fit
        limbs |= {(column, i): limb for i, limb in enumerate(_limbs(np.where(is_fit, x, 0.0)))}
    found = []
    for part in parts:
        if part == UNFIT:
            value = unfit.astype(np.int64)
        elif part in limbs:
            value = limbs[part].astype(np.int64)
        else:
            value = rows.column(part[0]).to_numpy()
        found.append(_times(value, weights))
    return found


def _fits(x: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    size = np.abs(x)
    few = np.where(size >= LEAST, 0.0, x) * 2.0**93
    fits: npt.NDArray[np.bool_] = (size < MOST) & (np.trunc(few) == few)
    return fits


def _limbs(x: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
    """The limbs of floats that fit, the largest first; each step is exact."""
    rest = x / _LIMB
    for _ in range(LIMBS):
        limb = np.trunc(rest)
        yield limb
        rest = (rest - limb) * _LIMB


def _times(value: _Ints, weights: _Ints) -> _Ints:
    product: _Ints = value * weights
    if len(product) == 1 and int(product[0]) != int(value[0]) * int(weights[0]):
        raise OverflowError("[ARITHMETIC_OVERFLOW] long overflow: a row is there too often for a sum of floats.")
    return product


def _names(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]
