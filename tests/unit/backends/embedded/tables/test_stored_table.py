"""What a stored table does with one transaction: net effects, rejections, memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from everview.backends.base import Change
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.state.memory import Budget, LimitReached
from everview.backends.embedded.tables import StoredTable
from everview.backends.reference.state import TableState
from everview.catalog import TableDefinition
from everview.errors import InvalidChange, UnsupportedOperation
from everview.relational.nodes import Field
from everview.relational.types import FLOAT64, INT64, NAN, STRING, Array
from tests.unit.backends.embedded.tables.table_changes import (
    apply,
    content,
    delete,
    delete_keys,
    effect,
    insert,
    upsert,
    weighted,
)

FIELDS = (Field("id", INT64, False), Field("name", STRING, True), Field("price", FLOAT64, True))
KEYED = TableDefinition("items", FIELDS, ("id",))
BAG = TableDefinition("items", FIELDS)

START = [(1, "one", 1.0), (2, "two", NAN), (3, None, None)]

REJECTED: dict[str, tuple[TableDefinition, list[Change]]] = {
    "absent row": (KEYED, [delete(KEYED, (9, "nine", 9.0))]),
    "other row with the key": (KEYED, [delete(KEYED, (1, "one", 1.5))]),
    "row deleted twice": (KEYED, [weighted(KEYED, [(1, "one", 1.0), (7, None, None)], [-2, -3])]),
    "taken key": (KEYED, [insert(KEYED, (1, "uno", 1.0))]),
    "same row again": (KEYED, [insert(KEYED, (2, "two", NAN))]),
    "new key twice": (KEYED, [insert(KEYED, (7, "a", 0.0), (8, "b", 0.0), (7, "c", 0.0))]),
    "new row of weight two": (KEYED, [weighted(KEYED, [(7, "a", 0.0)], [2])]),
    "old and two new rows": (KEYED, [delete(KEYED, (1, "one", 1.0)), insert(KEYED, (1, "a", 0.0), (1, "b", 0.0))]),
    "more than five": (KEYED, [insert(KEYED, *((n, str(n), 0.0) for n in (3, 3, 2, 2, 1, 1)))]),
    "absent before duplicate": (KEYED, [insert(KEYED, (1, "a", 0.0)), delete(KEYED, (9, None, None))]),
    "absent key": (KEYED, [delete_keys(KEYED, (1,), (9,), (8,))]),
    "key deleted twice": (KEYED, [delete_keys(KEYED, (1,)), delete_keys(KEYED, (1,))]),
    "absent key beside a doubled one": (KEYED, [insert(KEYED, (1, "a", 0.0)), delete_keys(KEYED, (1,), (9,))]),
    "key twice in an upsert": (KEYED, [upsert(KEYED, (5, "a", 0.0), (1, "b", 0.0), (5, "c", 0.0))]),
    "key twice in a delete": (KEYED, [delete_keys(KEYED, (2,), (1,), (2,))]),
    "delete after its key was upserted": (KEYED, [upsert(KEYED, (1, "uno", 1.0)), delete(KEYED, (1, "one", 1.0))]),
    "absent row of a bag": (BAG, [delete(BAG, (9, "nine", 9.0))]),
    "row of a bag deleted too often": (BAG, [weighted(BAG, [(1, "one", 1.0), (8, None, NAN)], [-3, -1])]),
}


@pytest.mark.parametrize(("table", "changes"), REJECTED.values(), ids=REJECTED)
def test_rejects_in_the_words_of_the_reference(table: TableDefinition, changes: list[Change]) -> None:
    """A user reads the same error on every backend, and a rejected transaction has changed nothing."""
    stored = StoredTable(table, Dictionary())
    apply(stored, insert(table, *START))
    with pytest.raises(InvalidChange) as expected:
        TableState(table, dict.fromkeys(START, 1), has_received_rows=True).after(changes)
    for _ in range(2):
        with pytest.raises(InvalidChange) as raised:
            stored.prepare(changes)
        assert str(raised.value) == str(expected.value)
        assert content(stored) == dict.fromkeys(START, 1)
    apply(stored, *(delete(table, row) for row in START))
    assert content(stored) == {}


NET: dict[str, tuple[list[Change], dict[tuple[object, ...], int]]] = {
    "insert and delete": ([insert(KEYED, (7, "a", 0.0)), delete(KEYED, (7, "a", 0.0))], {}),
    "delete and insert": ([delete(KEYED, START[1]), insert(KEYED, START[1])], {}),
    "delete before insert": ([delete(KEYED, (7, "a", 0.0)), insert(KEYED, (7, "a", 0.0))], {}),
    "update": ([delete(KEYED, START[0]), insert(KEYED, (1, "uno", 1.0))], {START[0]: -1, (1, "uno", 1.0): 1}),
    "upsert": ([upsert(KEYED, (2, "zwei", NAN), (7, "a", 0.0))], {START[1]: -1, (2, "zwei", NAN): 1, (7, "a", 0.0): 1}),
    "upsert of what is there": ([upsert(KEYED, *START)], {}),
    "upsert of new keys": ([upsert(KEYED, (7, "a", 0.0))], {(7, "a", 0.0): 1}),
    "upsert sees inserts": (
        [insert(KEYED, (1, "a", 0.0)), upsert(KEYED, (1, "b", 0.0))],
        {START[0]: -1, (1, "b", 0.0): 1},
    ),
    "upsert does not see debts": (
        [delete(KEYED, (7, "a", 0.0)), upsert(KEYED, (7, "b", 0.0)), insert(KEYED, (7, "a", 0.0))],
        {(7, "b", 0.0): 1},
    ),
    "upserts of one key": ([upsert(KEYED, (1, name, 0.0)) for name in "abc"], {START[0]: -1, (1, "c", 0.0): 1}),
    "delete of a key, then anew": (
        [delete_keys(KEYED, (3,)), insert(KEYED, (3, "x", 0.0))],
        {START[2]: -1, (3, "x", 0.0): 1},
    ),
    "delete of an upserted key": (
        [upsert(KEYED, (7, "a", 0.0), (1, "b", 0.0)), delete_keys(KEYED, (1,), (7,))],
        {START[0]: -1},
    ),
    "nothing": ([insert(KEYED)], {}),
}


@pytest.mark.parametrize(("changes", "expected"), NET.values(), ids=NET)
def test_delta_is_the_net_effect(changes: list[Change], expected: dict[tuple[object, ...], int]) -> None:
    """What a transaction does and undoes leaves no trace; an upsert sees the rows that the changes before it left."""
    stored = StoredTable(KEYED, Dictionary())
    apply(stored, insert(KEYED, *START))
    delta = stored.prepare(changes)
    stored.rollback()
    assert effect(delta, KEYED) == expected
    assert content(stored) == dict.fromkeys(START, 1)
    assert effect(apply(stored, *changes), KEYED) == expected
    assert content(stored) == TableState(KEYED, dict.fromkeys(START, 1)).after(changes).rows


@pytest.mark.parametrize("deleted", [(), (delete(KEYED, *START),)], ids=["insert", "exchange"])
def test_without_memory_for_its_index_a_table_stays_as_it_is(deleted: Sequence[Change]) -> None:
    """Keys that were entered before the memory ran out have gone again, and the same rows come in later."""
    stored = StoredTable(KEYED, Dictionary())
    apply(stored, insert(KEYED, *START))
    changes = [*deleted, insert(KEYED, *((n, str(n), 0.0) for n in range(10, 500)))]
    with Budget(1, lambda: 1), pytest.raises(LimitReached):
        stored.prepare(changes)
    assert (stored.row_count, content(stored)) == (len(START), dict.fromkeys(START, 1))
    with pytest.raises(InvalidChange):
        stored.prepare([insert(KEYED, START[0])])
    apply(stored, *changes)
    assert content(stored) == TableState(KEYED, dict.fromkeys(START, 1)).after(changes).rows
    assert stored.row_count == len(content(stored))


def test_inserted_batches_are_kept_as_they_came() -> None:
    """An append-only table costs no copy, neither when rows come nor when views read them."""
    stored = StoredTable(BAG, Dictionary())
    batch = insert(BAG, *((i, str(i), 0.0) for i in range(1000)))
    assert apply(stored, batch).rows is batch.rows
    rows, weights = stored.content([1, 0])
    assert rows.column(1).chunk(0).buffers()[1].address == batch.rows.column(0).chunk(0).buffers()[1].address
    assert weights.tolist() == [1] * 1000


def test_equal_floats_inside_lists() -> None:
    """A row with a NaN deep inside can be deleted by an equal row."""
    table = TableDefinition("t", (Field("k", INT64, False), Field("xs", Array(FLOAT64), True)), ("k",))
    stored = StoredTable(table, Dictionary())
    apply(stored, insert(table, (1, (NAN, 1.0)), (2, (NAN,))))
    apply(stored, delete(table, (1, (NAN, 1.0))), upsert(table, (2, (NAN,))))
    assert content(stored) == {(2, (NAN,)): 1}


@pytest.mark.parametrize("table", [KEYED, BAG], ids=["keyed", "bag"])
def test_tiny_batches_do_not_pile_up(table: TableDefinition) -> None:
    """A table fed row by row reads in few pieces, and takes about the memory of its rows."""
    stored = StoredTable(table, Dictionary())
    for i in range(3000):
        apply(stored, insert(table, (i, "name", 0.5)))
    rows, _ = stored.content([0, 1, 2])
    assert rows.column(0).num_chunks < 40
    assert rows.column(0).to_pylist() == list(range(3000))
    assert stored.nbytes.data < 3000 * 32


@pytest.mark.parametrize("table", [KEYED, BAG], ids=["keyed", "bag"])
@pytest.mark.parametrize("step", [1, 500, 20_000])
def test_memory_follows_the_rows(table: TableDefinition, step: int) -> None:
    """Rows that are deleted give their memory back, whether they go one by one or all at once."""
    stored = StoredTable(table, Dictionary())
    rows = [(i, f"name {i % 100}", float(i)) for i in range(20_000)]
    apply(stored, insert(table, *rows))
    full = stored.nbytes
    gone = rows if step > 1 else rows[:-50]
    if step == 1:
        apply(stored, delete(table, *gone[:-200]))
        gone = gone[-200:]
    for start in range(0, len(gone), step):
        apply(stored, delete(table, *gone[start : start + step]))
    left = stored.nbytes
    assert left.data + left.index < (full.data + full.index) / 20
    assert stored.row_count == (50 if step == 1 else 0)


def test_compaction_keeps_row_numbers_straight() -> None:
    """After dead rows are taken out, each key still finds its own row."""
    stored = StoredTable(KEYED, Dictionary())
    for start in range(0, 10_000, 100):
        apply(stored, insert(KEYED, *((i, f"name {i}", float(i)) for i in range(start, start + 100))))
    keep = set(range(0, 10_000, 3))
    apply(stored, delete_keys(KEYED, *((i,) for i in range(10_000) if i not in keep)))
    apply(stored, upsert(KEYED, *((i, "new", 0.0) for i in range(0, 10_000, 6))))
    positions, rows = stored.lookup(pa.table({"id": pa.array(np.arange(9_999, -1, -1))}))
    assert (9_999 - positions).tolist() == sorted(keep, reverse=True)
    expected = [(i, "new", 0.0) if i % 6 == 0 else (i, f"name {i}", float(i)) for i in sorted(keep, reverse=True)]
    assert list(zip(*(c.to_pylist() for c in rows.columns), strict=True)) == expected


class TestStatic:
    TABLE = TableDefinition("rates", FIELDS, static=True)

    def test_takes_one_transaction(self) -> None:
        """A static table is loaded once; a load that was undone does not count."""
        stored = StoredTable(self.TABLE, Dictionary())
        apply(stored, insert(self.TABLE))
        stored.prepare([insert(self.TABLE, START[0])])
        stored.rollback()
        assert not stored.has_received_rows
        apply(stored, insert(self.TABLE, *START), delete(self.TABLE, START[0]))
        apply(stored, insert(self.TABLE))
        with pytest.raises(InvalidChange, match="is static and has been loaded"):
            stored.prepare([delete(self.TABLE, START[1])])
        assert content(stored) == dict.fromkeys(START[1:], 1)


class TestNotRetained:
    TABLE = TableDefinition("events", FIELDS, ("id",), retain=False)

    def test_rows_pass(self) -> None:
        """Deletes are trusted, and nothing is kept."""
        stored = StoredTable(self.TABLE, Dictionary())
        given = insert(self.TABLE, START[0], START[0])
        assert apply(stored, given).rows is given.rows
        assert effect(apply(stored, delete(self.TABLE, (9, None, NAN))), self.TABLE) == {(9, None, NAN): -1}
        assert stored.has_received_rows
        assert (stored.row_count, stored.nbytes.data, stored.nbytes.index) == (0, 0, 0)

    def test_rows_that_cancel_leave_no_trace(self) -> None:
        """A transaction that inserts and deletes is summed up."""
        stored = StoredTable(self.TABLE, Dictionary())
        delta = apply(stored, insert(self.TABLE, *START, START[1]), delete(self.TABLE, START[1], START[0], START[0]))
        assert effect(delta, self.TABLE) == {START[0]: -1, START[1]: 1, START[2]: 1}

    @pytest.mark.parametrize(
        "changes", [[upsert(TABLE, START[0])], [delete_keys(TABLE, (1,))]], ids=["upsert", "delete_keys"]
    )
    def test_has_no_old_rows(self, changes: Sequence[Change]) -> None:
        """What needs the rows that were there is refused."""
        stored = StoredTable(self.TABLE, Dictionary())
        with pytest.raises(UnsupportedOperation, match="keeps no rows"):
            stored.prepare(changes)
        with pytest.raises(UnsupportedOperation, match="keeps no rows"):
            stored.content([0])
        with pytest.raises(UnsupportedOperation, match="keeps no rows"):
            stored.lookup(pa.table({"id": [1]}))
        assert not stored.has_received_rows
