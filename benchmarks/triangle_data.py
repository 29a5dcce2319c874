"""Graphs for counting triangles under updates, and a static count in worst-case optimal time to compare with.

A graph is three tables of distinct edges: r(a, b), s(b, c), t(c, a).

*worst case*: half of the edges are stars. Of each table there is one edge between two hubs, both of which are joined with the
same linearly many values, in the other two tables: a change of this edge meets two lists of linear length. The other half joins
all of √(N/6) values with all: every list there has about √N rows.
*every degree*: nine parts, each of which joins all of M^(1-k/10) values with all of M^(k/10), for k from 1 to 9. So whatever
the threshold N^ε is, some values are just light, and some are just heavy and as many as there can be.
*power law*: both ends of an edge are drawn so that few values have most of the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Edges = npt.NDArray[np.int64]
"""Rows of two ends."""
Graph = Mapping[str, Edges]
COLUMNS = {"r": ("a", "b"), "s": ("b", "c"), "t": ("c", "a")}
SQL = "SELECT count(*) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND t.a = r.a"
ONE_TABLE = "SELECT count(*) AS n FROM e x JOIN e y ON x.b = y.a JOIN e z ON y.b = z.a AND z.b = x.a"
HUBS = {"r": (1, 2), "s": (3, 4), "t": (5, 6)}
"""The edge of each table whose change meets the most."""
PARTS = range(1, 10)
"""The parts of a graph of every degree."""
PAIRS_AT_ONCE = 1 << 22


def worst_case(edges: int) -> Graph:
    """About so many edges; those of the dense part are the last of each table."""
    spokes = np.arange(10, 10 + edges // 12)
    side = max(2, int((edges // 6) ** 0.5))
    dense = np.stack([np.repeat(np.arange(side), side), np.tile(np.arange(side), side)], axis=1) + 10 * edges
    found = {name: [np.array([hub])] for name, hub in HUBS.items()}
    names = list(COLUMNS)
    for i, name in enumerate(names):
        first, second = HUBS[name]
        after, last = names[(i + 1) % 3], names[(i + 2) % 3]
        found[after].append(np.stack([np.full(len(spokes), second), spokes], axis=1))
        found[last].append(np.stack([spokes, np.full(len(spokes), first)], axis=1))
    return {name: np.concatenate([*own, dense]) for name, own in found.items()}


def every_degree(edges: int) -> Graph:
    """About so many edges; the first edge of part k is between ``first_of(k, edges)`` and itself."""
    found = []
    for k in PARTS:
        size = edges / 3 / len(PARTS)
        left, right = (np.arange(max(1, round(size ** (x / 10)))) + first_of(k, edges) for x in (10 - k, k))
        found.append(np.stack([np.repeat(left, len(right)), np.tile(right, len(left))], axis=1))
    return dict.fromkeys(COLUMNS, np.concatenate(found))


def first_of(k: int, edges: int) -> int:
    """The least value of a part."""
    return 10 * edges * k


def power_law(edges: int, seed: int = 1) -> Graph:
    """So many distinct edges, in random order; the x-th of the values has a share of them that falls with x^(-2/3)."""
    rng = np.random.default_rng(seed)
    wanted, values = edges // 3, max(8, edges // 8)
    found = {}
    for name in COLUMNS:
        ends = (values * rng.random((2 * wanted, 2)) ** 3).astype(np.int64)
        found[name] = rng.permutation(np.unique(ends, axis=0))[:wanted]
    return found


GRAPHS: dict[str, Callable[[int], Graph]] = {
    "worst case": worst_case,
    "power law": power_law,
    "every degree": every_degree,
}


def worst_case_count(edges: int) -> int:
    """How many triangles the worst case has: a static count of ten million edges looks two thousand million pairs up.

    >>> worst_case_count(600) == static_count(worst_case(600))
    True
    """
    return 3 * (edges // 12) + int(max(2, int((edges // 6) ** 0.5)) ** 3)


@lru_cache(maxsize=2)
def known_count(name: str, edges: int) -> int:
    """The number of triangles of a graph, by its name."""
    return worst_case_count(edges) if name == "worst case" else static_count(GRAPHS[name](edges))


def tables(graph: Graph) -> dict[str, pa.Table]:
    """The tables, in Arrow."""
    return {
        name: pa.table({first: edges[:, 0], second: edges[:, 1]})
        for (name, (first, second)), edges in zip(COLUMNS.items(), graph.values(), strict=True)
    }


def static_count(graph: Graph) -> int:
    """The number of triangles: for each edge of r, the shorter of the two lists that it meets is looked up in the other.

    >>> static_count({"r": np.array([[1, 2], [1, 3]]), "s": np.array([[2, 5]]), "t": np.array([[5, 1], [6, 1]])})
    1
    """
    r, s, t = graph["r"], graph["s"], graph["t"]
    span = int(max(e.max() for e in (r, s, t))) + 1
    by_b, by_a = s[np.argsort(s[:, 0], kind="stable")], t[np.argsort(t[:, 1], kind="stable")][:, ::-1]
    known_s, known_t = np.sort(s[:, 0] * span + s[:, 1]), np.sort(t[:, 1] * span + t[:, 0])
    starts = [
        (np.searchsorted(x[:, 0], k, "left"), np.searchsorted(x[:, 0], k, "right"))
        for x, k in ((by_b, r[:, 1]), (by_a, r[:, 0]))
    ]
    lengths = [end - start for start, end in starts]
    through_s = lengths[0] <= lengths[1]
    total = 0
    for chosen, (start, _), length, lists, other, key in (
        (through_s, starts[0], lengths[0], by_b, known_t, r[:, 0]),
        (~through_s, starts[1], lengths[1], by_a, known_s, r[:, 1]),
    ):
        total += _found(start[chosen], length[chosen], lists[:, 1], other, key[chosen], span)
    return total


def _found(start: Edges, length: Edges, values: Edges, known: Edges, key: Edges, span: int) -> int:
    """How many of the listed values, with the key before them, are known."""
    total, ends = 0, np.cumsum(length)
    at = 0
    while at < len(start):
        done = int(ends[at - 1]) if at else 0
        to = max(at + 1, int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")))
        own = length[at:to]
        within = np.arange(int(own.sum())) - np.repeat(np.cumsum(own) - own, own)
        pairs = np.repeat(key[at:to], own) * span + values[np.repeat(start[at:to], own) + within]
        places = np.minimum(np.searchsorted(known, pairs), len(known) - 1)
        total += int((known[places] == pairs).sum())
        at = to
    return total
