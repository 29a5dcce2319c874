"""A skewed graph, and the queries that count its paths of ``k`` edges (F-IVM, section 9.5).

Sources and targets are drawn from two Zipf-like distributions over the same nodes, independent of each other: a few nodes have
very many edges out, a few others very many in. Four times as many edges as nodes keeps the number of paths of 20 edges below
2^63, so that counts are exact. *copies*: ``k`` tables hold the same edges, as in the paper, where each is updated by itself;
*self-join*: one table is joined with itself, so that a batch meets itself at every place of the path.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

EDGES = 1_000_000
EDGES_PER_NODE = 4
SKEW = 0.8
"""The exponent of the degrees' power law: the n-th largest is in proportion to n to the minus this."""
SEED = 27


def graph(edges: int = EDGES) -> pa.Table:
    """Edges in random order, some of them several times."""
    rng = np.random.default_rng(SEED)
    nodes = max(2, edges // EDGES_PER_NODE)
    weights = np.arange(1, nodes + 1, dtype=np.float64) ** -SKEW
    drawn = [rng.permutation(nodes)[_draw(rng, weights, edges)] for _ in range(2)]
    return pa.table({"src": drawn[0], "dst": drawn[1]})


def copies(edges: pa.Table, k: int) -> dict[str, pa.Table]:
    """The tables ``e1`` to ``ek`` of the edges, their columns named after the nodes of the path."""
    return {f"e{i}": edges.rename_columns([f"a{i}", f"a{i + 1}"]) for i in range(1, k + 1)}


def copies_sql(k: int) -> str:
    """How many paths of ``k`` edges there are, each edge from a table of its own.

    >>> copies_sql(2)
    'SELECT SUM(1) AS paths FROM e1 NATURAL JOIN e2'
    """
    return "SELECT SUM(1) AS paths FROM " + " NATURAL JOIN ".join(f"e{i}" for i in range(1, k + 1))


def self_join_sql(k: int) -> str:
    """How many paths of ``k`` edges there are in one table.

    >>> self_join_sql(2)
    'SELECT SUM(1) AS paths FROM edge e1 JOIN edge e2 ON e1.dst = e2.src'
    """
    joins = " ".join(f"JOIN edge e{i} ON e{i - 1}.dst = e{i}.src" for i in range(2, k + 1))
    return f"SELECT SUM(1) AS paths FROM edge e1 {joins}"


def counted_sql(tables: list[tuple[str, str, str]]) -> str:
    """For DuckDB: the same count, from how many paths end at each node, without listing any.

    Args:
        tables: The table of each edge of the path in order, with its columns of source and target.
    """
    (first, _, end), *others = tables
    steps = [f"p1 AS (SELECT {end} AS node, COUNT(*)::HUGEINT AS n FROM {first} GROUP BY 1)"]
    for i, (table, source, target) in enumerate(others, start=2):
        joined = f"{table} JOIN p{i - 1} ON {source} = node"
        steps.append(f"p{i} AS (SELECT {target} AS node, SUM(n)::HUGEINT AS n FROM {joined} GROUP BY 1)")
    return f"WITH {', '.join(steps)} SELECT SUM(n) FROM p{len(tables)}"


def _draw(rng: np.random.Generator, weights: np.ndarray, count: int) -> np.ndarray:
    """Numbers with frequencies in proportion to the weights."""
    return np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(count)).clip(max=len(weights) - 1)
