from __future__ import annotations

import pyarrow as pa
import pytest

import everview as ev


def test_verify_everything(db: ev.Database) -> None:
    """Views, views over views and assertions equal what Spark computes from the tables."""
    table = db.create_table("t", "k string, x double, n decimal(10,2), ts timestamp, a array<int>")
    db.sql("INSERT INTO t VALUES ('a', 0.1, 1.5, TIMESTAMP '2024-01-01 00:00:00', array(1))")
    table.insert([(None, float("nan"), None, None, None)])
    table.insert([("a", 0.1 * i, None, None, [i]) for i in range(50)])
    db.create_view("sums", "SELECT k, sum(x) AS s, sum(n) AS n, max(ts) AS ts FROM t GROUP BY k")
    db.create_view("top", "SELECT k FROM sums WHERE s > 1")
    db.create_view("rows_of_t", db.spark_table("t").select("k", "x", "a"))
    db.create_assertion("nothing", "SELECT * FROM top WHERE k = 'z'")
    report = db.verify()
    assert [v.name for v in report.views] == ["sums", "top", "rows_of_t", "nothing"]
    assert [v.rows for v in report.views] == [2, 2, 52, 0]
    assert repr(report).startswith(f"verified at version {db.version}:\n  sums: 2 rows equal, ")
    assert [v.name for v in db.verify("TOP").views] == ["top"]


def test_a_table_without_rows_is_read_by_spark(db: ev.Database) -> None:
    """Also one with arrays, structs and timestamps, of which PySpark makes nothing where Arrow has not even an empty chunk."""
    table = db.create_table("t", "a array<double>, s struct<x: int, at: timestamp>, at timestamp")
    view = db.create_view("v", "SELECT a, s, at FROM t")
    assert [v.rows for v in db.verify().views] == [0]
    assert view.to_spark().collect() == []
    table.insert([([1.0], None, None)])
    table.delete([([1.0], None, None)])
    assert [v.rows for v in db.verify().views] == [0]
    assert view.to_spark().collect() == []


def test_a_difference_is_shown(db: ev.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that is not what Spark computes is shown with its rows and both counts."""
    table = db.create_table("t", "x int")
    db.create_view("v", "SELECT x FROM t")
    table.insert([(1,), (1,), (2,)])
    read = db._core.backend.read

    def corrupted(name: str) -> pa.Table:
        return read(name) if name == "t" else pa.table({"x": pa.array([1, 3], pa.int32())})

    monkeypatch.setattr(db._core.backend, "read", corrupted)
    with pytest.raises(ev.VerificationFailed) as caught:
        db.verify("v")
    assert sorted(str(caught.value).splitlines()) == [
        "  (1): 1 here, 2 in Spark",
        "  (2): 0 here, 1 in Spark",
        "  (3): 1 here, 0 in Spark",
        "view 'v' differs from Spark's recomputation in 3 distinct rows:",
    ]


def test_a_table_is_not_verified(plain_db: ev.Database) -> None:
    """A table is what it was given."""
    plain_db.create_table("t", "x int")
    with pytest.raises(ev.UnsupportedOperation) as caught:
        plain_db.verify("t")
    assert str(caught.value) == (
        "table 't' is given, not computed, so there is nothing to verify. Hint: verify the views that read it."
    )
    assert repr(plain_db.verify()) == "verified at version 0: nothing to verify"


@pytest.mark.parametrize(
    "value",
    [
        "INTERVAL '1' MONTH * k",
        "struct(INTERVAL '1-2' YEAR TO MONTH * k AS `a.b`, k AS c)",
        "CASE WHEN k > 1 THEN struct(INTERVAL '1' MONTH * -k AS m) END",
        "array(INTERVAL '1' MONTH * k, NULL)",
        "map(1, array(INTERVAL '1' MONTH * k))",
    ],
)
def test_intervals_of_months_are_read_and_verified(db: ev.Database, value: str) -> None:
    """PySpark converts no interval of months to Arrow; verify compares them all the same, inside structs too."""
    table = db.create_table("t", "k INT")
    db.create_view("v", f"SELECT k, {value} AS v FROM t")
    table.insert([(1,), (2,), (2,), (None,)])
    assert len(db.view("v").rows()) == 4
    db.verify("v")
    table.delete([(2,)])
    db.verify("v")
