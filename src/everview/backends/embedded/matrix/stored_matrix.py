"""A dense matrix that changes by sums of products of thin matrices.

    M = base + Σ Lₚ · Rₚ                 each Lₚ · Rₚ on some rows and columns, of some rank

A change is appended to the sum, in time of its factors; a transaction that is taken back removes it again, and what is
stored is the same to the bit. From time to time the sum is added to the base, many factors in one multiplication of
matrices, which the machine does at a multiple of the speed of as many updates one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Positions: TypeAlias = npt.NDArray[np.int64]

MOST_RANK = 32
"""Factors that wait to be added to the base."""
_BLOCK = 256
"""Rows of the base that are added to at a time, so that what is added stays in the cache."""
_FEW = 8
"""A change of at most so many times the rows and columns of the matrix is added at once."""


@dataclass(frozen=True, eq=False)
class LowRank:
    """The change ``left · right`` on some rows and columns (None: all); a missing factor is the identity, and one is there."""

    rows: Positions | None
    left: Floats | None
    right: Floats | None
    columns: Positions | None

    @property
    def rank(self) -> int:
        """How many columns the left factor has."""
        if self.left is not None:
            return int(self.left.shape[1])
        assert self.right is not None
        return int(self.right.shape[0])

    def size(self, shape: tuple[int, int]) -> int:
        """How many cells it changes, of a matrix of this shape."""
        rows = shape[0] if self.rows is None else len(self.rows)
        return rows * (shape[1] if self.columns is None else len(self.columns))

    def on_all(self, shape: tuple[int, int]) -> LowRank:
        """The same, with None for rows or columns that are all there are, in order."""
        rows = None if self.left is not None and _are_all(self.rows, shape[0]) else self.rows
        columns = None if self.right is not None and _are_all(self.columns, shape[1]) else self.columns
        return LowRank(rows, self.left, self.right, columns)

    def product(self) -> Floats:
        """The change itself, on its rows and columns."""
        if self.left is None or self.right is None:
            whole = self.left if self.right is None else self.right
            assert whole is not None
            return whole
        return self.left @ self.right


class StoredMatrix:
    """One matrix, whose rows and columns may become more."""

    def __init__(self) -> None:
        self.shape = (0, 0)
        self._base: Floats = np.zeros((0, 0))
        self._waiting: list[LowRank] = []
        self._settled = 0
        """How many of the waiting changes are committed."""
        self._before: tuple[Floats, list[LowRank], int] | None = None
        """What it was before it was replaced in the transaction under way."""

    @property
    def nbytes(self) -> int:
        """The memory of the base and of what waits."""
        factors = [f for c in self._waiting for f in (c.left, c.right) if f is not None]
        return int(self._base.nbytes + sum(f.nbytes for f in factors))

    def resize(self, rows: int, columns: int) -> None:
        """Makes room; what is new is 0. Waiting changes of all rows or columns are on those that there were."""
        if (rows, columns) == self.shape:
            return
        self._waiting = [self._on_own(c) for c in self._waiting]
        if self._before is not None:
            base, waiting, settled = self._before
            self._before = _grown(base, rows, columns), [self._on_own(c) for c in waiting], settled
        self._base = _grown(self._base, rows, columns)
        self.shape = (rows, columns)

    def _on_own(self, change: LowRank) -> LowRank:
        rows = np.arange(self.shape[0]) if change.rows is None else change.rows
        columns = np.arange(self.shape[1]) if change.columns is None else change.columns
        return LowRank(rows, change.left, change.right, columns)

    @property
    def _used(self) -> Floats:
        return self._base[: self.shape[0], : self.shape[1]]

    # Changes

    def add(self, change: LowRank) -> None:
        """Adds a change."""
        self._waiting.append(change)

    def replace(self, content: Floats) -> None:
        """Has this content from now on."""
        if self._before is None:
            self._before = self._base, self._waiting, self._settled
        self._base, self._waiting, self._settled = content, [], 0

    def commit(self) -> None:
        """Makes the changes final, and adds them to the base where that is due."""
        self._before = None
        rows, columns = self.shape
        small = [c for c in self._waiting if c.size(self.shape) <= _FEW * (rows + columns)]
        if small:
            self._waiting = [c for c in self._waiting if c.size(self.shape) > _FEW * (rows + columns)]
            for change in small:
                _add_to(self._used, change)
        if sum(c.rank for c in self._waiting) >= MOST_RANK:
            self.fold()
        self._settled = len(self._waiting)

    def rollback(self) -> None:
        """Takes back the changes since the last commit."""
        if self._before is not None:
            self._base, self._waiting, self._settled = self._before
            self._before = None
        del self._waiting[self._settled :]

    def fold(self) -> None:
        """Adds all that waits to the base; only between transactions."""
        _fold(self._used, self._waiting)
        self._waiting, self._settled = [], 0

    # Reads

    def array(self) -> Floats:
        """The content, between transactions; nobody changes it."""
        if self._waiting:
            self.fold()
        return self._used

    def content(self) -> Floats:
        """The content, also within a transaction: a copy if something waits."""
        if not self._waiting:
            return self._used
        made = self._used.copy()
        _fold(made, self._waiting)
        return made

    def block(self, rows: Positions, columns: Positions) -> Floats:
        """The cells in some rows and columns."""
        found = self._used[np.ix_(rows, columns)]
        for change in self._waiting:
            left, right = _spread(change.rows, change.left, self.shape[0]), change.right
            found = found + left[rows] @ _spread_right(change.columns, right, self.shape[1])[:, columns]
        return found

    def times(self, rows: Positions | None, factor: Floats | None) -> Floats:
        """M · F, where F is ``factor`` in some of its rows and 0 in the others."""
        if factor is None:
            assert rows is not None
            found = self._used[:, rows]
        else:
            found = (self._used if rows is None else self._used[:, rows]) @ factor
        if self._waiting:
            whole = _spread(rows, factor, self.shape[1])
            for change in self._waiting:
                part = whole if change.columns is None else whole[change.columns]
                turned = part if change.right is None else change.right @ part
                added = turned if change.left is None else change.left @ turned
                if change.rows is None:
                    found += added
                else:
                    found[change.rows] += added
        return found

    def times_left(self, factor: Floats | None, columns: Positions | None) -> Floats:
        """F · M, where F is ``factor`` in some of its columns and 0 in the others."""
        if factor is None:
            assert columns is not None
            found = self._used[columns]
        else:
            found = factor @ (self._used if columns is None else self._used[columns])
        if self._waiting:
            whole = _spread_right(columns, factor, self.shape[0])
            for change in self._waiting:
                part = whole if change.rows is None else whole[:, change.rows]
                turned = part if change.left is None else part @ change.left
                added = turned if change.right is None else turned @ change.right
                if change.columns is None:
                    found += added
                else:
                    found[:, change.columns] += added
        return found


def _are_all(positions: Positions | None, count: int) -> bool:
    return positions is None or (len(positions) == count and bool((positions == np.arange(count)).all()))


def _grown(base: Floats, rows: int, columns: int) -> Floats:
    """A base with room for as much, and for half as much again where it grows."""
    if base.shape[0] >= rows and base.shape[1] >= columns:
        return base
    room = [
        have if have >= need else (need if not have else need + need // 2)
        for have, need in zip(base.shape, (rows, columns), strict=True)
    ]
    grown = np.zeros(room)
    grown[: base.shape[0], : base.shape[1]] = base
    return grown


def _spread(rows: Positions | None, factor: Floats | None, count: int) -> Floats:
    """A factor with a row for each of ``count``."""
    if rows is None:
        assert factor is not None
        return factor
    whole = np.zeros((count, len(rows) if factor is None else factor.shape[1]))
    whole[rows] = np.eye(len(rows)) if factor is None else factor
    return whole


def _spread_right(columns: Positions | None, factor: Floats | None, count: int) -> Floats:
    return _spread(columns, None if factor is None else factor.T, count).T


def _add_to(array: Floats, change: LowRank) -> None:
    made = change.product()
    if change.rows is None and change.columns is None:
        array += made
    elif change.columns is None:
        array[change.rows] += made
    elif change.rows is None:
        array[:, change.columns] += made
    else:
        array[np.ix_(change.rows, change.columns)] += made


def _fold(array: Floats, changes: list[LowRank]) -> None:
    """Adds changes: those of all rows and columns together, as one product of matrices."""
    whole = [c for c in changes if c.rows is None and c.columns is None and c.left is not None and c.right is not None]
    for change in changes:
        if not any(change is c for c in whole):
            _add_to(array, change)
    if not whole:
        return
    left = np.concatenate([c.left for c in whole if c.left is not None], axis=1)
    right = np.concatenate([c.right for c in whole if c.right is not None], axis=0)
    for start in range(0, len(array), _BLOCK):
        array[start : start + _BLOCK] += left[start : start + _BLOCK] @ right
