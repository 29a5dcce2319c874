from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

import everview as ev


def test_a_commit_tells_what_it_did(db: ev.Database) -> None:
    """A commit has its version and the delta of every view that moved, each row once."""
    table = db.create_table("t", "k string, x int")
    db.create_view("sums", "SELECT k, sum(x) AS s FROM t GROUP BY k")
    db.create_view("big", "SELECT k FROM t WHERE x > 100")
    commit = table.insert([("a", 1), ("a", 2), ("b", 3)])
    assert commit.version == db.version == 1
    assert set(commit.changes) == {"sums"}
    assert commit.changes["sums"].to_pylist() == [
        {"k": "a", "s": 3, "_weight": 1},
        {"k": "b", "s": 3, "_weight": 1},
    ]
    assert commit.seconds >= 0
    assert repr(commit).startswith("<Commit version 1, sums: 2 rows, ")


def test_cancelling_changes_leave_no_trace(db: ev.Database) -> None:
    """A row inserted and deleted in one transaction was never there; the version counts all the same."""
    table = db.create_table("t", "x int")
    view = db.create_view("v", "SELECT x FROM t")
    with db.transaction() as tx:
        tx.insert("t", [(1,), (2,)])
        tx.delete("t", [(2,), (1,)])
    assert (tx.commit.version, dict(tx.commit.changes), table.rows()) == (1, {}, [])
    assert view.changes(since=0) == []


def test_an_empty_transaction_is_a_version(plain_db: ev.Database) -> None:
    """Nothing can be committed too."""
    with plain_db.transaction() as tx:
        pass
    assert tx.commit.version == plain_db.version == 1
    assert plain_db.apply({}).version == 2
    assert repr(tx.commit).startswith("<Commit version 1, no view changed, ")


def test_the_order_inside_a_transaction_does_not_matter(plain_db: ev.Database) -> None:
    """Strictness is judged on the sum: a row may be deleted before it is inserted."""
    table = plain_db.create_table("t", "k int, v string", primary_key="k")
    table.insert([(1, "old")])
    with plain_db.transaction() as tx:
        tx.insert("t", [(1, "new")])
        tx.delete("t", [(2, "x")])
        tx.delete("t", [(1, "old")])
        tx.apply({"T": [{"k": 2, "v": "x", "_weight": 1}]})
    assert table.rows() == [(1, "new")]


def test_deleting_an_absent_row(orders: ev.Table, plain_db: ev.Database) -> None:
    """A row must be there, in all its columns, to be deleted."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.delete([(1, "ann", 5), (2, "bob", 8), (9, None, None)])
    assert str(caught.value) == (
        "the transaction deletes rows that table 'orders' does not have: (2, 'bob', 8.00), (9, NULL, NULL)."
    )
    assert len(orders) == 2
    assert plain_db.version == 1


def test_deleting_a_row_too_often(plain_db: ev.Database) -> None:
    """Multiplicity counts."""
    table = plain_db.create_table("t", "x int")
    table.insert([(1,), (1,)])
    with pytest.raises(ev.InvalidChange) as caught:
        table.delete([(1,)] * 4)
    expected = "the transaction deletes rows that table 't' does not have: (1) (2 times too often)."
    assert str(caught.value) == expected
    assert table.rows() == [(1,), (1,)]


def test_many_offending_rows_are_cut_short(plain_db: ev.Database) -> None:
    """A message shows the first rows and counts the rest."""
    table = plain_db.create_table("t", "x int")
    with pytest.raises(ev.InvalidChange, match=r"\(0\), \(1\), \(2\), \(3\), \(4\) and 95 more\.$"):
        table.delete([(i,) for i in range(100)])


def test_a_duplicate_key(orders: ev.Table) -> None:
    """Two rows never have the same primary key, whether old and new, both new, or equal."""
    words = "table 'orders' would have more than one row with the same primary key (id)"
    hint = "Hint: upsert replaces the row that has the key."
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert([(2, "eve", 1)])
    assert str(caught.value) == f"{words}: (2, 'bob', 7.00), (2, 'eve', 1.00). {hint}"
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert([(3, "eve", 1), (3, "eve", 1)])
    assert str(caught.value) == f"{words}: (3, 'eve', 1.00), (3, 'eve', 1.00). {hint}"
    assert len(orders) == 2


def test_upsert(orders: ev.Table) -> None:
    """An upsert replaces by key and adds what is new; what stays the same is no change."""
    orders.upsert([(2, "bob", 8), (3, "eve", 1)])
    assert sorted(orders.rows()) == [(1, "ann", 5), (2, "bob", 8), (3, "eve", 1)]
    orders.upsert([(2, "bob", 8)])
    assert len(orders) == 3


def test_upsert_sees_what_came_before(orders: ev.Table, plain_db: ev.Database) -> None:
    """Inside a transaction an upsert and a delete by key act on the rows as they are by then."""
    with plain_db.transaction() as tx:
        tx.insert("orders", [(3, "new", 1)])
        tx.upsert("orders", [(3, "newer", 1), (1, "ann", 6)])
        tx.delete("orders", [(1, "ann", 6)])
        tx.upsert("orders", [(4, "x", 1)])
        tx.delete_keys("orders", [4, 2])
    assert orders.rows() == [(3, "newer", 1)]


def test_the_same_key_twice_in_one_upsert(orders: ev.Table) -> None:
    """Which of two rows should win is not guessed."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.upsert([(3, "x", 1), (4, "y", 1), (3, "z", 1)])
    assert str(caught.value) == (
        "one upsert on table 'orders' names the same primary key (id) twice: (3, 'x', 1.00), (3, 'z', 1.00)."
    )


def test_delete_keys(plain_db: ev.Database) -> None:
    """Rows go by their keys: tuples, dicts, tables, or bare values for a key of one column."""
    table = plain_db.create_table("t", "v string, b int, a int", primary_key=["a", "b"])
    table.insert([("x", i, 10 * i) for i in range(5)])
    table.delete_keys([(10, 1)])
    table.delete_keys([{"B": 2, "a": 20}])
    table.delete_keys(table.to_arrow().select(["a", "b"]).slice(0, 2))
    assert table.rows() == [("x", 4, 40)]


def test_deleting_an_absent_key(orders: ev.Table) -> None:
    """A key must be there to be deleted, and once."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.delete_keys([1, 5, 6])
    assert str(caught.value) == "table 'orders' has no row with the primary key (5), (6)."
    with pytest.raises(ev.InvalidChange) as caught:
        orders.delete_keys([1, 1])
    assert str(caught.value) == "one delete_keys on table 'orders' names the same primary key (id) twice: (1), (1)."
    with pytest.raises(ev.InvalidChange) as caught:
        orders.delete_keys([{"id": 1, "price": 5}])
    assert str(caught.value) == (
        "column 'price' is not in the primary key of table 'orders'. Hint: delete_keys takes only the key: id."
    )
    assert len(orders) == 2


def test_upsert_needs_a_key(plain_db: ev.Database) -> None:
    """Without a primary key there is nothing to find the old row by."""
    table = plain_db.create_table("t", "x int")
    for call in ("upsert", "delete_keys"):
        with pytest.raises(ev.UnsupportedOperation) as caught:
            getattr(table, call)([(1,)])
        assert str(caught.value) == (
            f"table 't' has no primary key, which {call} needs. "
            "Hint: declare one with create_table(..., primary_key=...), or use insert and delete."
        )


def test_an_exception_aborts(orders: ev.Table, plain_db: ev.Database) -> None:
    """What a block raises goes through, and nothing has happened."""
    with pytest.raises(ZeroDivisionError), plain_db.transaction() as tx:  # noqa: PT012 -- the block is what is tested
        tx.insert("orders", [(3, "x", 1)])
        assert len(orders) == 2
        raise ZeroDivisionError
    assert len(orders) == 2
    assert plain_db.version == 1
    with pytest.raises(ev.UnsupportedOperation) as caught:
        tx.insert("orders", [])
    assert str(caught.value) == "the transaction was aborted. Hint: begin another with db.transaction()."


def test_a_rejected_change_inside_a_block_can_be_caught(orders: ev.Table, plain_db: ev.Database) -> None:
    """A change that was refused is not part of the transaction; the others are."""
    with plain_db.transaction() as tx:
        tx.insert("orders", [(3, "x", 1)])
        with pytest.raises(ev.InvalidChange):
            tx.insert("orders", [(4, "x", "y")])
        with pytest.raises(ev.UnsupportedOperation, match="the transaction is open, so there is no commit to show"):
            _ = tx.commit
    assert len(orders) == 3


def test_a_transaction_ends_with_its_block(plain_db: ev.Database) -> None:
    """A transaction cannot be used outside its block, before or after."""
    tx = plain_db.transaction()
    with pytest.raises(ev.UnsupportedOperation, match="has not begun; use it in a with statement"):
        tx.insert("t", [])
    with tx:
        pass
    for use in (lambda: tx.insert("t", []), tx.__enter__):
        with pytest.raises(ev.UnsupportedOperation) as caught:
            use()
        assert str(caught.value) == "the transaction is committed. Hint: begin another with db.transaction()."
    assert repr(tx) == "<Transaction committed, 0 changes to nothing>"


def test_a_table_dropped_during_a_transaction(orders: ev.Table, plain_db: ev.Database) -> None:
    """Rows never reach a table that they were not checked against."""
    with pytest.raises(ev.UnknownName) as caught, plain_db.transaction() as tx:  # noqa: PT012 -- it fails at its end
        tx.insert("orders", [(3, "x", 1)])
        plain_db.drop("orders")
        plain_db.create_table("orders", "id int")
    assert str(caught.value) == "table 'orders' was dropped and made anew during the transaction."


def test_a_table_dropped_while_its_rows_are_read(plain_db: ev.Database) -> None:
    """The same where the rows are given to the database itself, or to the table."""

    class Rows:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            plain_db.drop("u")
            plain_db.create_table("u", "id int")
            return pa.table({"id": pa.array([1], pa.int64())}).__arrow_c_stream__(requested_schema)

    for change in (lambda t: plain_db.apply({"u": Rows()}), lambda t: t.insert(Rows())):
        table = plain_db.create_table("u", "id bigint")
        with pytest.raises(ev.UnknownName, match="dropped and made anew"):
            change(table)
        assert plain_db.table("u").rows() == []
        plain_db.drop("u")


def test_several_tables_are_one_transaction(db: ev.Database) -> None:
    """Either every table and view moves or none does."""
    db.create_table("a", "x int", primary_key="x")
    db.create_table("b", "x int", primary_key="x")
    view = db.create_view("both", "SELECT a.x FROM a JOIN b ON a.x = b.x")
    db.apply({"a": [(1,), (2,)], "b": [(2,)]})
    for bad in ({"a": [(3,)], "b": [(3,), (2,)]}, {"b": [(9,), (9,)], "a": [(9,)]}):
        with pytest.raises(ev.InvalidChange):
            db.apply(bad)
        assert (db.version, view.rows()) == (1, [(2,)])
        assert len(db.table("a")) == 2
        assert len(db.table("b")) == 1


def test_arithmetic_that_fails_rejects_the_transaction(db: ev.Database) -> None:
    """What Spark would reject in ANSI mode rejects the change that brought the row, naming the view."""
    table = db.create_table("t", "x int, y int")
    ratio = db.create_view("ratio", "SELECT x, x div y AS r FROM t", on_error="reject")
    total = db.create_view("total", "SELECT cast(sum(x) AS int) AS s FROM t", on_error="reject")
    table.insert([(4, 2)])
    with pytest.raises(ev.EvaluationError) as caught:
        table.insert([(1, 1), (1, 0)])
    assert str(caught.value).startswith("view 'ratio' cannot be computed: division by zero")
    assert caught.value.condition == "DIVIDE_BY_ZERO"
    with pytest.raises(ev.EvaluationError) as caught:
        table.insert([(2**31 - 1, 1)])
    assert str(caught.value).startswith("view 'total' cannot be computed: ")
    assert caught.value.condition == "CAST_OVERFLOW"
    assert (db.version, table.rows(), ratio.rows(), total.rows()) == (1, [(4, 2)], [(4, 2)], [(4,)])


def test_overflow_in_a_view(db: ev.Database) -> None:
    """Sums do not wrap around."""
    table = db.create_table("t", "x bigint")
    db.create_view("v", "SELECT sum(x) AS s FROM t", on_error="reject")
    table.insert([(2**63 - 1,)])
    with pytest.raises(ev.EvaluationError) as caught:
        table.insert([(1,)])
    assert caught.value.condition == "ARITHMETIC_OVERFLOW"
    assert str(caught.value).startswith("view 'v' cannot be computed: ")
    assert len(table) == 1


def test_reads_wait_for_transactions_of_other_threads(db: ev.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way to read holds the lock that transactions hold, so that none sees a transaction's middle."""
    table = db.create_table("t", "k string, x int")
    view = db.create_view("sums", "SELECT k, sum(x) AS s FROM t GROUP BY k")
    commit = table.insert([("a", 1)])
    reads: dict[str, bool] = {}

    def watch(name: str) -> None:
        call = getattr(db._core.backend, name)

        def locked(*arguments: Any) -> Any:
            reads[name] = db._core.lock._lock._is_owned()  # type: ignore[attr-defined] -- as conditions of threading ask
            return call(*arguments)

        monkeypatch.setattr(db._core.backend, name, locked)

    ways = ("read", "iterate", "lookup", "query", "changes", "explain", "stats")
    for way in ways:
        watch(way)
    assert (view.rows(), list(view), view.lookup(k="b")) == ([("a", 1)], [("a", 1)], [])
    assert len(view.changes(since=0)) == 1
    db.sql("SELECT x FROM t")
    view.explain()
    view.stats()
    assert reads == dict.fromkeys(ways, True)
    assert [commit.changes[name].num_rows for name in commit.changes] == [1]


def test_subscribers_are_told_without_the_lock(db: ev.Database) -> None:
    """A callback may wait for another thread that uses the database, whatever kind of statement committed."""
    db.create_table("t", "x int")
    view = db.create_view("v", "SELECT x FROM t WHERE x < 10")
    ended: list[bool] = []

    def wait_for_another(_change: ev.VersionedDelta) -> None:
        other = threading.Thread(target=lambda: db.apply({"t": [(10,)]}), daemon=True)
        other.start()
        other.join(timeout=30)
        ended.append(not other.is_alive())

    view.subscribe(wait_for_another)
    db.sql("INSERT INTO t VALUES (1)")
    db.sql("UPDATE t SET x = 2 WHERE x = 1")
    db.sql("DELETE FROM t WHERE x = 2")
    db.apply({"t": [(3,)]})
    assert ended == [True] * 4
