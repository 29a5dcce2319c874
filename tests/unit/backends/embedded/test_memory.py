"""How much memory the engine's state takes: near that of the same data in NumPy columns, and nothing once all is deleted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Arrangement
from everview.backends.embedded.tables import StoredTable
from everview.backends.embedded.vectors import Batch, KeyLayout, Vector
from everview.catalog import TableDefinition
from everview.relational.nodes import Field
from everview.relational.types import INT64

ROWS, SIZE = 200_000, 1_000
FIELDS = tuple(Field(name, INT64, False) for name in "abcd")
COLUMNS = [np.arange(ROWS), np.arange(ROWS) % 1000, np.arange(ROWS) * 7, np.arange(ROWS) % 13]
PLAIN = sum(c.nbytes for c in COLUMNS)


def batches(weight: int) -> list[Batch]:
    """The rows in batches, each row so many times."""
    weights = np.full(SIZE, weight, dtype=np.int64)
    return [
        Batch(tuple(Vector(INT64, c[at : at + SIZE].copy()) for c in COLUMNS), weights) for at in range(0, ROWS, SIZE)
    ]


@pytest.mark.parametrize("columns", [(), (1,)])
def test_an_arrangement_takes_less_than_twice_its_data(columns: tuple[int, ...]) -> None:
    """With the hash table that finds rows, and an index by a column, while rows come in batches and after."""
    arrangement = Arrangement(KeyLayout((INT64,) * 4, (False,) * 4))
    if columns:
        arrangement.index(columns)
    for number, batch in enumerate(batches(1), start=1):
        arrangement.apply(batch)
        arrangement.commit()
        if number >= 20:
            assert sum(arrangement.nbytes().values()) < 2.1 * PLAIN * number * SIZE / ROWS
    assert sum(arrangement.nbytes().values()) < 2 * PLAIN
    for batch in batches(-1):
        arrangement.apply(batch)
        arrangement.commit()
    assert len(arrangement.rows) == 0
    assert all(len(arrangement.index(c)) == 0 for c in [columns] if c)
    assert sum(arrangement.nbytes().values()) < PLAIN / 10


@pytest.mark.parametrize("key", [("a",), ()])
def test_a_table_takes_less_than_twice_its_data(key: tuple[str, ...]) -> None:
    """With the index of its primary key, if it has one."""
    table = StoredTable(TableDefinition("t", FIELDS, key, False, True), Dictionary())
    rows = [pa.table([c[at : at + SIZE] for c in COLUMNS], pa.schema([pa.field(f.name, pa.int64(), False) for f in FIELDS]))
            for at in range(0, ROWS, SIZE)]  # fmt: skip
    for part in rows:
        table.prepare([Change("t", ChangeKind.WEIGHTED, part.to_batches()[0])])
        table.commit()
    assert table.row_count == ROWS
    assert table.nbytes.data + table.nbytes.index < 2 * PLAIN
    for part in rows:
        table.prepare([Change("t", ChangeKind.WEIGHTED, part.to_batches()[0], pa.array([-1] * SIZE, pa.int64()))])
        table.commit()
    assert table.row_count == 0
    assert table.nbytes.data + table.nbytes.index < PLAIN / 10
