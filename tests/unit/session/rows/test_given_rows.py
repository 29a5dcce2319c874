"""Arrow data of one batch is taken as that batch, whatever holds it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from everview.session.rows.given_rows import as_arrow

BATCH = pa.record_batch({"id": [1, 2, 3], "name": ["a", None, "c"]})


class Stream:
    """Exports Arrow batches by the C interface and in no other way."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def _forms(table: pa.Table) -> dict[str, Any]:
    return {
        "table": table,
        "reader": table.to_reader(),
        "stream": Stream(table),
    }


@pytest.mark.parametrize("form", ["table", "reader", "stream"])
def test_one_batch_is_that_batch(form: str) -> None:
    """One batch in a table, a reader or a stream."""
    taken = as_arrow(_forms(pa.Table.from_batches([BATCH]))[form])
    assert isinstance(taken, pa.RecordBatch)
    assert taken.equals(BATCH)


@pytest.mark.parametrize("form", ["table", "reader", "stream"])
@pytest.mark.parametrize("batches", [[], [BATCH, BATCH.slice(1)]], ids=["none", "two"])
def test_none_and_several_stay_a_table(form: str, batches: list[pa.RecordBatch]) -> None:
    """No batch has no rows to take apart; several are one after the other."""
    table = pa.Table.from_batches(batches, BATCH.schema)
    taken = as_arrow(_forms(table)[form])
    assert isinstance(taken, pa.Table)
    assert taken.equals(table)


def test_columns_in_pieces_of_their_own_keep_their_rows() -> None:
    """Columns whose pieces end at different rows."""
    table = pa.table({"id": pa.chunked_array([[1, 2], [3]]), "name": pa.chunked_array([["a"], ["b", "c"]])})
    assert as_arrow(table).to_pylist() == table.to_pylist()


def test_what_is_no_arrow_is_as_it_was() -> None:
    """Lists, and what is a batch already."""
    rows = [(1, "a")]
    assert as_arrow(rows) is rows
    assert as_arrow(BATCH) is BATCH
