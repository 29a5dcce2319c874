"""Batches that are taken as they are: what a kernel has looked at is what a look at each column would have taken."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.arrow_batches import BatchCheck
from everview.backends.embedded.state.kernel_cache import IS_CHECKED
from everview.catalog import TableDefinition
from everview.relational.nodes import Field
from everview.relational.types import FLOAT64, INT64, STRING, Array
from everview.session.rows.change_shape import as_it_is

FIELDS = (
    Field("k", INT64, nullable=False),
    Field("t", STRING, nullable=False),
    Field("u", STRING, nullable=True),
    Field("f", FLOAT64, nullable=True),
    Field("a", Array(STRING, True), nullable=True),
)
TABLE = TableDefinition("t", FIELDS, ("k",))
TEXTS = st.sampled_from(["", "a", "twelve bytes", "a line of more than sixteen bytes", "é", "日本"])
BYTES = st.sampled_from([b"", b"plain", b"\xff", b"\xc3"])
"""Some of them are no UTF-8."""


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """A few rows, perhaps the middle of more, that may or may not fit the table."""
    count = draw(st.integers(1, 12))

    def column(values: st.SearchStrategy[object], *, nulls: bool) -> list[object]:
        return draw(st.lists(values | st.none() if nulls else values, min_size=count, max_size=count))

    bytes_of_u = pa.array(column(BYTES, nulls=True), pa.binary()).view(pa.string())
    u = bytes_of_u if draw(st.booleans()) else pa.array(column(TEXTS, nulls=True), pa.string())
    numbers = st.sampled_from([0.0, -0.0, 1.5, float("nan")])
    arrays = [
        pa.array(column(st.integers(0, 9), nulls=draw(st.booleans())), pa.int64()),
        pa.array(column(TEXTS, nulls=draw(st.booleans())), pa.string()),
        u,
        pa.array(column(numbers, nulls=True), pa.float64()),
        pa.array(column(st.lists(TEXTS, max_size=2), nulls=True), pa.list_(pa.string())),
    ]
    whole = pa.RecordBatch.from_arrays(arrays, names=[f.name for f in FIELDS])
    start = draw(st.integers(0, count - 1))
    return whole.slice(start, draw(st.integers(1, count - start)))


@given(batches())
@settings(max_examples=300, deadline=None)
def test_what_a_kernel_has_looked_at_is_taken_as_by_columns(batch: pa.RecordBatch) -> None:
    """The short way gives the rows of the longer one, or none where that gives none."""
    short = as_it_is(TABLE, batch)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BatchCheck, "passed", lambda *_, **__: None)
        long = as_it_is(TABLE, batch)
    assert (short is None) == (long is None)
    if short is not None and long is not None:
        assert short.schema == long.schema
        assert repr(short.to_pylist()) == repr(long.to_pylist())
        short.validate(full=True)


@pytest.mark.skipif(IS_CHECKED, reason="in checked mode all batches are looked at by columns")
def test_a_batch_that_fits_is_imported_with_the_schema_of_the_table() -> None:
    """Its buffers are those of what was given, which may go; one that has the schema is returned itself."""
    exact = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("t", pa.string())])
    check = BatchCheck(exact, [0], [1])
    given = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), pa.array(["a", None, "c"])], names=["k", "t"]).slice(1)
    taken = check.passed(given, is_exact=False)
    address = given.column(0).buffers()[1].address
    assert taken is not None
    assert taken.schema.equals(exact)
    assert taken.column(0).buffers()[1].address == address
    del given
    assert taken.to_pylist() == [{"k": 2, "t": None}, {"k": 3, "t": "c"}]
    assert check.passed(taken, is_exact=True) is taken
    assert taken.to_pylist() == [{"k": 2, "t": None}, {"k": 3, "t": "c"}]
    for wrong in ([[1, None], ["a", "b"]], [[1, 2], ["a", "é"]]):
        assert (
            check.passed(pa.RecordBatch.from_arrays(list(map(pa.array, wrong)), names=["k", "t"]), is_exact=False)
            is None
        )
