"""Which of the rows that a look-up found a change of a table is judged by."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.spark.table_changes import content_rows, rows_with_keys
from everview.relational.nodes import Field
from everview.relational.types import INT64, STRING

FIELDS = (Field("a", INT64, True), Field("b", STRING, True), Field("c", INT64, True))


def _stored(*rows: tuple[int | None, str | None, int, int]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    types = (pa.int64(), pa.string(), pa.int64(), pa.int64())
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["c0", "c1", "c2", "c3"])


def test_only_rows_with_a_whole_key() -> None:
    """Each value of a key somewhere is not enough: they must stand together, NULL being a value."""
    rows = _stored((1, "x", 0, 1), (1, "y", 1, 1), (2, "x", 2, 1), (2, "y", 3, 1), (None, "x", 4, 1), (1, None, 5, 1))
    keys = pa.table([pa.array([1, 2, None], pa.int64()), pa.array(["x", "y", "x"])], names=["c0", "c1"])
    assert rows_with_keys(rows, FIELDS, (0, 1), keys).column("c").to_pylist() == [0, 3, 4]
    assert rows_with_keys(rows, FIELDS, (2,), pa.table([pa.array([5, 9])], names=["c0"])).column("c").to_pylist() == [5]
    assert rows_with_keys(rows, FIELDS, (2,), pa.table([pa.array([], pa.int64())], names=["c0"])).num_rows == 0
    assert rows_with_keys(rows.slice(0, 0), FIELDS, (0, 1), keys).num_rows == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xy"), st.integers(0, 2)), max_size=12), st.data())
def test_rows_with_a_key_are_the_content_of_those(live: list[tuple[int, str, int]], data: st.DataObject) -> None:
    """Whatever was inserted and deleted before: what is there under the keys, each row as often as it is."""
    past = data.draw(st.lists(st.sampled_from(live), max_size=8)) if live else []
    history = [*((*row, 1) for row in live), *((*row, w) for row in past for w in (1, -1))]
    history = data.draw(st.permutations(history))
    wanted = data.draw(st.lists(st.integers(0, 4), max_size=4))
    found = rows_with_keys(
        _stored(*history) if history else _stored((0, "x", 0, 0)).slice(0, 0),
        FIELDS,
        (0,),
        pa.table([pa.array(wanted, pa.int64())], names=["c0"]),
    )
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert sorted(rows) == sorted(row for row in live if row[0] in wanted)


def test_a_deletion_without_its_row_is_nothing() -> None:
    """The bag of what was found: weights summed up, and what is not there not counted."""
    rows = _stored((1, "x", 0, 1), (1, "x", 0, 2), (2, "y", 0, -1), (3, "z", 0, 1), (3, "z", 0, -1))
    assert content_rows(rows, FIELDS).to_pylist() == [{"a": 1, "b": "x", "c": 0}] * 3
