"""The streams of the TPC-H benchmark: what arrives, in which order, and what the tables are afterwards."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from benchmarks.tpch_stream import (
    STATIC,
    change_steps,
    insert_steps,
    insert_stream,
    mixed_steps,
    split_tail,
    tables_read,
)
from tests.corpus.data import TPCH_KEYS, queries, tpch_tables


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    """All eight tables; at smaller scales partsupp repeats keys."""
    return tpch_tables(0.01)


def rows(table: pa.Table | pa.RecordBatch, names: list[str]) -> list[tuple[object, ...]]:
    """The rows of some columns as tuples."""
    return list(zip(*(table.column(n).to_pylist() for n in names), strict=True))


def test_inserts_go_round_robin(tables: dict[str, pa.Table]) -> None:
    """A batch of each table in turn until all are exhausted; every row of a changing table once, static tables never."""
    steps = insert_steps(tables, 100)
    assert [s.table for s in steps[:8]] == [
        "supplier",
        "customer",
        "part",
        "partsupp",
        "orders",
        "lineitem",
        "customer",
        "part",
    ]
    for name, table in tables.items():
        own = [s.batch for s in steps if s.table == name]
        assert sum(len(b) for b in own) == (0 if name in STATIC else len(table))
        assert all(len(b) == 100 for b in own[:-1])


def test_mixed_transactions_have_rows_of_all_tables(tables: dict[str, pa.Table]) -> None:
    """The tables take turns row by row as long as they have rows, and every row is there."""
    steps = insert_stream(tables, 600, "mixed")
    assert set(steps[0].changes) == {"supplier", "customer", "part", "partsupp", "orders", "lineitem"}
    assert {len(batch) for batch in steps[0].changes.values()} == {100}
    assert "supplier" not in steps[1].changes  # it has 100 rows
    assert set(steps[-1].changes) == {"lineitem"}
    assert all(step.rows == 600 for step in steps[:-1])
    for name in set(tables) - set(STATIC):
        given = pa.Table.from_batches([s.changes[name] for s in steps if name in s.changes])
        assert given.equals(tables[name].combine_chunks()), name
    assert not any(name in step.changes for step in steps for name in STATIC)
    assert insert_stream(tables, 600, "one_table") == insert_steps(tables, 600)


def test_the_tail_is_taken_from_all_tables(tables: dict[str, pa.Table]) -> None:
    """Single rows come from each changing table in proportion, and head and tail make the whole."""
    head, tail = split_tail(tables, 200)
    assert set(tail) == set(tables) - set(STATIC)
    steps = mixed_steps(tail)
    assert all(s.rows == 1 for s in steps)
    assert Counter(s.table for s in steps).most_common(1)[0][0] == "lineitem"
    assert {n: len(head[n]) + len(tail.get(n, ())) for n in tables} == {n: len(t) for n, t in tables.items()}


def test_changes_lead_to_the_tables_they_say(tables: dict[str, pa.Table]) -> None:
    """Old tables plus weighted rows are the new tables, each key stays unique, and a fifth of the rows is touched."""
    changed = change_steps(tables, 999)
    for name in set(tables) - set(STATIC):
        names = tables[name].column_names
        bag = Counter(rows(tables[name], names))
        for step in changed.steps:
            if step.table == name:
                for row, weight in zip(rows(step.batch, names), step.batch.column("_weight").to_pylist(), strict=True):
                    bag[row] += weight
        assert +bag == Counter(rows(changed.tables[name], names)), name
        assert min(bag.values()) >= 0, name
        keys = rows(changed.tables[name], list(TPCH_KEYS[name]))
        assert len(keys) == len(set(keys)), name
        assert len(changed.tables[name]) == pytest.approx(0.9 * len(tables[name]), abs=1)


def test_tables_read_are_those_that_occur() -> None:
    """Names in columns and strings do not count as tables."""
    read = {q.name: tables_read(q.sql) for q in queries("tpch")}
    assert read["q01"] == ("lineitem",)
    assert read["q11"] == ("nation", "supplier", "partsupp")
    assert read["q15"] == ("supplier", "lineitem")
    assert read["q16"] == ("supplier", "part", "partsupp")
    assert read["q22"] == ("customer", "orders")
