"""One query of each class of F-IVM's section 7, over data of ``n`` rows in which a key has about √n partners.

Where a class promises constant time, a maintainer that lists the join pays √n here; where it does not, √n is what a tree pays
too. The relations of two joining variables are random thirds or halves of a grid of about √n by √n, so that no order of the
variables escapes.

==================  ==============================================================  ===============  ==============
class               query                                                           one update       delay
==================  ==============================================================  ===============  ==============
q-hierarchical      r(x, y), s(x, z), all variables free                            O(1)             O(1)
through keys        orders(o, c), customers(c, t), towns(t, v), all free: a path,   O(1)             O(1)
                    hierarchical because o determines c and c determines t
free-connex         r(x, y), s(y, z), t(z, w), all free                             O(√n) here       O(1)
acyclic             r(x, y), s(y, z), free x, z: a product of matrices              O(√n) here       O(1), listed
cyclic              r(a, b), s(b, c), t(c, a), counted                              O(√n) here       one row
==================  ==============================================================  ===============  ==============
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

SEED = 7
PARTNERS = 4
"""Rows of the outer tables for each key of the free-connex query."""


@dataclass(frozen=True, slots=True)
class QueryClass:
    """A class by one query of it. ``update`` and ``delay`` are what the theory says of this data."""

    name: str
    sql: str
    tables: Callable[[int], dict[str, pa.Table]]
    update: str
    delay: str
    columns: tuple[str, ...]
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def q_hierarchical_tables(n: int) -> dict[str, pa.Table]:
    """Two tables of n/2 rows over √n keys."""
    half, side = n // 2, _side(n)
    rng = np.random.default_rng(SEED)
    return {
        "r": pa.table({"x": rng.integers(0, side, half), "y": np.arange(half)}),
        "s": pa.table({"x": rng.integers(0, side, half), "z": np.arange(half)}),
    }


def keyed_tables(n: int) -> dict[str, pa.Table]:
    """Orders of customers in √n towns."""
    towns, customers = _side(n), n // 5
    rng = np.random.default_rng(SEED)
    orders = n - customers - towns
    return {
        "orders": pa.table({"o": np.arange(orders), "c": rng.integers(0, customers, orders)}),
        "customers": pa.table({"c": np.arange(customers), "t": rng.integers(0, towns, customers)}),
        "towns": pa.table({"t": np.arange(towns), "v": rng.integers(0, 1_000, towns)}),
    }


def free_connex_tables(n: int) -> dict[str, pa.Table]:
    """Up to a half of a grid between two tables with a few rows a key."""
    side = _side(2 * n)
    keys, values = np.repeat(np.arange(side), PARTNERS), np.arange(side * PARTNERS)
    y, z = _grid(side, n - 2 * len(keys))
    return {
        "r": pa.table({"x": values, "y": keys}),
        "s": pa.table({"y": y, "z": z}),
        "t": pa.table({"z": keys, "w": values}),
    }


def matrix_tables(n: int) -> dict[str, pa.Table]:
    """Two halves of the grid."""
    (x, y), (y2, z) = (_grid(_side(n), n // 2, seed) for seed in (1, 2))
    return {"r": pa.table({"x": x, "y": y}), "s": pa.table({"y": y2, "z": z})}


def triangle_tables(n: int) -> dict[str, pa.Table]:
    """Three thirds of the grid."""
    (a, b), (b2, c), (c2, a2) = (_grid(_side(n), n // 3, seed) for seed in (1, 2, 3))
    return {"r": pa.table({"a": a, "b": b}), "s": pa.table({"b": b2, "c": c}), "t": pa.table({"c": c2, "a": a2})}


CLASSES = (
    QueryClass(
        "q-hierarchical",
        "SELECT r.x, r.y, s.z FROM r JOIN s ON r.x = s.x",
        q_hierarchical_tables,
        "0",
        "0",
        ("x", "y", "z"),
    ),
    QueryClass(
        "through keys",
        "SELECT o, orders.c, customers.t, v FROM orders JOIN customers ON orders.c = customers.c "
        "JOIN towns ON customers.t = towns.t",
        keyed_tables,
        "0",
        "0",
        ("o", "c", "t", "v"),
        {"orders": ("o",), "customers": ("c",), "towns": ("t",)},
    ),
    QueryClass(
        "free-connex",
        "SELECT r.x, r.y, s.z, t.w FROM r JOIN s ON r.y = s.y JOIN t ON s.z = t.z",
        free_connex_tables,
        "up to 0.5",
        "0",
        ("x", "y", "z", "w"),
    ),
    QueryClass(
        "acyclic",
        "SELECT r.x, s.z, COUNT(*) AS n FROM r JOIN s ON r.y = s.y GROUP BY r.x, s.z",
        matrix_tables,
        "0.5",
        "0",
        ("x", "z", "n"),
    ),
    QueryClass(
        "cyclic",
        "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND r.a = t.a",
        triangle_tables,
        "0.5",
        "0",
        ("n",),
    ),
)


def _side(n: int) -> int:
    return max(2, int(np.sqrt(n)))


def _grid(side: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs of numbers below ``side``."""
    chosen = np.random.default_rng(SEED + seed).choice(side * side, min(count, side * side), replace=False)
    return chosen // side, chosen % side
