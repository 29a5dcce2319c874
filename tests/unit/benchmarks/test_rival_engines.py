"""The engines of the suite ``rivals``: they take the same stream, deletes included, and give the same answer."""

from __future__ import annotations

import pytest

from benchmarks.answers import duckdb_answer, first_difference
from benchmarks.rival_engines import ENGINES, recompute
from benchmarks.rivals import QUERIES, stream_of
from benchmarks.tpch_stream import tables_read
from tests.corpus.data import tpch_tables


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree_at_the_end_of_the_stream(engine: str, query: str) -> None:
    """What an engine has after the last delete is the query over the rows that are left, and time was measured."""
    tables = tpch_tables(0.001)
    stream = stream_of({name: tables[name] for name in tables_read(QUERIES[query])})
    measured = recompute(ENGINES[engine](), QUERIES[query], stream, quick=True)
    expected = duckdb_answer(QUERIES[query], stream.after)
    assert any("_weight" in batch.schema.names for step in stream.steps for batch in step.changes.values())
    assert sum(len(t) for t in stream.after.values()) < sum(len(tables[name]) for name in stream.after)
    assert first_difference(measured.answer, expected) is None
    assert measured.seconds > 0
    assert measured.rows > 0
