"""Whether an answer is right: DuckDB's over the same rows, bags of rows compared, and fingerprints where bags are large."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

TOLERANCE = 1e-9

Rows = list[tuple[Any, ...]]


def duckdb_answer(sql: str, tables: Mapping[str, pa.Table]) -> Rows:
    """The query's rows."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.execute(sql).fetchall()


def fingerprint(sql: str, tables: Mapping[str, pa.Table], columns: Sequence[str]) -> tuple[int, int]:
    """The number of a query's rows and the sum of their hashes: equal for equal bags, whatever the order of rows.

    The values must be copied from the input, not computed: a float that differs in its last bit is another value here.
    """
    hashed = f"SELECT COUNT(*), COALESCE(SUM(hash({', '.join(columns)})::HUGEINT), 0) FROM ({sql}) AS bag"
    ((count, total),) = duckdb_answer(hashed, tables)
    return int(count), int(total)


def first_difference(ours: Rows, theirs: Rows) -> str | None:
    """What is different between two bags of rows, or None: floats compare with tolerance, decimals to their last digit.

    >>> first_difference([("a", Decimal("0.333333"))], [("a", 1 / 3)])
    >>> first_difference([("a", 1)], [("a", 2)])
    "1 rows here and 1 there, first difference: ('a', 1) here, ('a', 2) there"
    """
    counts = f"{len(ours)} rows here and {len(theirs)} there"
    if len(ours) != len(theirs):
        return counts
    mine, other = sorted(ours, key=_order), sorted(theirs, key=_order)
    for a, b in zip(mine, other, strict=True):
        if not all(_is_close(x, y) for x, y in zip(a, b, strict=True)):
            return f"{counts}, first difference: {a} here, {b} there"
    return None


def _order(row: tuple[Any, ...]) -> tuple[list[str], list[float]]:
    """Exact values first: those that may differ a little decide only among rows that agree in all else."""
    exact = [str(v) for v in row if not isinstance(v, float | Decimal)]
    return exact, [float(v) for v in row if isinstance(v, float | Decimal)]


def _is_close(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float | Decimal) and isinstance(theirs, float | Decimal | int):
        if isinstance(ours, Decimal) and isinstance(theirs, Decimal | int):
            return ours == theirs
        exponent = ours.as_tuple().exponent if isinstance(ours, Decimal) else -15
        assert isinstance(exponent, int), "a decimal is finite"
        return math.isclose(float(ours), float(theirs), rel_tol=TOLERANCE, abs_tol=0.51 * 10.0**exponent)
    return bool(ours == theirs)
