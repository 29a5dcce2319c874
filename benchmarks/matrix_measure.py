"""Measuring the product of three matrices: the maintained one, and NumPy's by hand."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import everview as ev

Matrix = npt.NDArray[np.float64]

NAMES = ("A1", "A2", "A3")
MOST_UPDATES = 400


def random_matrices(n: int) -> list[Matrix]:
    """Three matrices of normal numbers, the same for each n."""
    return [np.random.default_rng((n, k)).normal(size=(n, n)) for k in range(3)]


@dataclass
class Maintained:
    """A chain over tables that keep no rows, and the updates of A2 that it has got since the last check."""

    start: Sequence[Matrix]
    storage: str
    updates: list[tuple[Matrix, Matrix]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.middle = self.start[1].copy()
        self.db = ev.connect(history=0)
        for name in NAMES:
            self.db.create_table(name, "i INT NOT NULL, j INT NOT NULL, v DOUBLE NOT NULL", retain=False)
        self.chain = self.db.create_matrix_chain("A", NAMES, storage=self.storage)
        self.db.apply({name: _cells(matrix) for name, matrix in zip(NAMES, self.start, strict=True)})

    def update(self, u: Matrix, v: Matrix) -> None:
        """U · Vᵀ is added to A2."""
        self.chain.update("A2", u=u, v=v)
        self.updates.append((u, v))

    def add_row(self, k: int, values: Matrix) -> None:
        """Numbers are added to a row of A2, as rows of the table."""
        n = len(values)
        rows = {"i": np.full(n, k, dtype=np.int32), "j": np.arange(n, dtype=np.int32), "v": values}
        self.db.apply({"A2": pa.table(rows)})
        self.updates.append((unit(n, k), values))

    def check(self) -> None:
        """Compares with NumPy's product: a wrong answer is no result."""
        for u, v in self.updates:
            self.middle += np.outer(u, v) if u.ndim == 1 else u @ v.T
        self.updates.clear()
        expected = self.start[0] @ self.middle @ self.start[2]
        scale = float(np.abs(expected).max())
        if not np.allclose(self.chain.to_numpy(), expected, rtol=1e-9, atol=1e-10 * scale):
            raise AssertionError("the maintained product differs from NumPy's")


class ByHand:
    """The product in NumPy, brought up to date in two ways."""

    def __init__(self, start: Sequence[Matrix]) -> None:
        self.a = [m.copy() for m in start]
        self.product = self.a[0] @ self.a[1] @ self.a[2]

    def first_order_row(self, k: int, values: Matrix) -> None:
        """δA = (A1 · δA2) · A3, where δA2 is a row."""
        self.a[1][k] += values
        self.product += np.outer(self.a[0][:, k], values) @ self.a[2]

    def recompute_row(self, k: int, values: Matrix) -> None:
        """A1 · A2 · A3 after a row has changed."""
        self.a[1][k] += values
        self.product = self.a[0] @ self.a[1] @ self.a[2]

    def first_order(self, change: Matrix) -> None:
        """δA = (A1 · δA2) · A3."""
        self.a[1] += change
        self.product += (self.a[0] @ change) @ self.a[2]

    def recompute(self, change: Matrix) -> None:
        """A1 · A2 · A3 after all of A2 has changed."""
        self.a[1] += change
        self.product = self.a[0] @ self.a[1] @ self.a[2]


def timed(update: Callable[[], object], seconds: float, finish: Callable[[], object] | None = None) -> float:
    """The mean time of an update, over as many as fit; ``finish`` is part of the time, once."""
    update()
    if finish is not None:
        finish()
    gc.collect()
    started, done = time.perf_counter(), 0
    while done < MOST_UPDATES and (not done or time.perf_counter() - started < seconds):
        update()
        done += 1
    if finish is not None:
        finish()
    return (time.perf_counter() - started) / done


def unit(n: int, k: int) -> Matrix:
    """A vector with one 1."""
    made = np.zeros(n)
    made[k] = 1.0
    return made


def _cells(matrix: Matrix) -> pa.Table:
    i, j = np.indices(matrix.shape, dtype=np.int32)
    return pa.table({"i": i.ravel(), "j": j.ravel(), "v": matrix.ravel()})
