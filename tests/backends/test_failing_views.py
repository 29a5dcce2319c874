"""Views that fail alone: what a user sees while a view has no answer, and when it has one again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def t(db: ev.Database) -> ev.Table:
    """A table, a view that divides, one over it, and one that never fails."""
    table = db.create_table("t", "k int, x int")
    db.create_view("shares", "SELECT k, 100 div x AS share FROM t")
    db.create_view("total", "SELECT k, sum(share) AS s FROM shares GROUP BY k")
    db.create_view("counts", "SELECT k, count(*) AS n FROM t GROUP BY k")
    table.insert([(1, 2), (1, 5), (2, 10)])
    return table


def test_a_failing_view_does_not_stop_the_others(db: ev.Database, t: ev.Table) -> None:
    """The transaction commits, the view and what reads it say since when and why, everything else goes on."""
    commit = t.insert([(2, 0)])
    assert (commit.version, set(commit.changes), set(commit.suspended)) == (2, {"counts"}, {"shares", "total"})
    assert commit.suspended["shares"] == ev.Suspension(2, "division by zero.", "DIVIDE_BY_ZERO")
    assert set(commit.refreshed) == {"counts"}
    assert "suspended: shares, total" in repr(commit)
    t.insert([(3, 1)])
    assert sorted(db.view("counts").rows()) == [(1, 2), (2, 2), (3, 1)]
    with pytest.raises(ev.ViewSuspended) as caught:
        db.view("shares").rows()
    assert str(caught.value).startswith("view 'shares' has had no answer since version 2: division by zero.")
    assert (caught.value.code, caught.value.version, caught.value.condition) == ("VIEW_SUSPENDED", 2, "DIVIDE_BY_ZERO")
    total = db.view("total")
    for read in (total.to_arrow, total.rows, total.to_pandas, total.changes, total.head, lambda: total.lookup(k=1)):
        with pytest.raises(ev.ViewSuspended, match="since version 2: view 'shares', which it reads, is suspended"):
            read()
    with pytest.raises(ev.ViewSuspended):
        list(total)
    with pytest.raises(ev.ViewSuspended):
        db.sql("SELECT * FROM total")
    assert db.verify().skipped.keys() == {"shares", "total"}
    with pytest.raises(ev.ViewSuspended):
        db.verify("total")


def test_a_suspended_view_is_told_as_such(db: ev.Database, t: ev.Table) -> None:
    """By its repr, explain, stats and ``suspension``; a view with an answer has none."""
    assert db.views["shares"].suspension is None
    t.insert([(2, 0)])
    shares = db.views["shares"]
    assert shares.suspension == ev.Suspension(2, "division by zero.", "DIVIDE_BY_ZERO")
    assert repr(shares).endswith(", suspended since version 2: division by zero.>")
    assert "suspended since version 2: division by zero." in shares.explain()
    stats = shares.stats()
    assert (stats["rows"], stats["suspended"], stats["updates"]) == (None, shares.suspension, 1)


def test_it_heals_when_the_rows_are_gone(db: ev.Database, t: ev.Table) -> None:
    """Its delta is what has changed since it last answered, in ``changes``, for subscribers and in the commit."""
    told: list[tuple[int, list[dict[str, object]]]] = []
    db.view("total").subscribe(lambda change: told.append((change.version, change.delta.to_pylist())))
    t.insert([(2, 0)])
    t.insert([(3, 4)])
    assert not told
    commit = t.delete([(2, 0), (1, 5)])
    expected = [(1, 70, -1), (1, 50, 1), (3, 25, 1)]
    assert sorted(tuple(row.values()) for row in commit.changes["total"].to_pylist()) == sorted(expected)
    (healed,) = db.view("total").changes(since=1)
    assert (healed.version, healed.delta.num_rows) == (4, 3)
    assert [(version, len(rows)) for version, rows in told] == [(4, 3)]
    assert commit.refreshed["total"].how == ("incremental" if db._core.backend.name == "embedded" else "full")
    assert db.view("total").suspension is None
    assert sorted(db.view("total").rows()) == [(1, 50), (2, 10), (3, 25)]
    t.insert([(3, 1)])
    assert sorted(db.view("total").rows()) == [(1, 50), (2, 10), (3, 125)]
    db.verify()


def test_created_over_rows_on_which_it_fails(db: ev.Database, t: ev.Table) -> None:
    """A view without an answer can be made, as can one over it; what cannot be maintained is refused all the same."""
    ratio = db.create_view("ratio", "SELECT sum(x) / count_if(k = 9) AS r FROM t")  # as TPC-DS 90
    over = db.create_view("over", "SELECT r + 1 AS q FROM ratio")
    assert ratio.suspension is not None
    assert over.suspension is not None
    assert (ratio.suspension.version, ratio.suspension.condition) == (1, "DIVIDE_BY_ZERO")
    with pytest.raises(ev.ViewSuspended):
        db.create_assertion("none", "SELECT * FROM ratio WHERE r < 0")
    with pytest.raises(ev.ViewSuspended):
        db.create_view("strict", "SELECT * FROM ratio", on_error="reject")
    t.insert([(9, 3)])
    assert (ratio.rows(), over.rows()) == ([(20.0,)], [(21.0,)])
    assert [c.delta.to_pylist() for c in ratio.changes(since=1)] == [[{"r": 20.0, "_weight": 1}]]
    t.insert([(9, 0)])
    assert ratio.rows() == [(10.0,)]
    db.drop("over")
    db.drop("ratio")


def test_a_suspended_view_can_be_dropped_and_made_again(db: ev.Database, t: ev.Table) -> None:
    """Dropping needs no answer."""
    t.insert([(2, 0)])
    db.drop("total")
    db.drop("shares")
    again = db.create_view("shares", "SELECT k, try_divide(100, x) AS share FROM t")
    assert len(again) == 4


def test_reject_keeps_the_rows_out(db: ev.Database, t: ev.Table) -> None:
    """One view that must not fail, or an assertion over a view that may, rejects for all, and nothing has changed."""
    db.create_assertion("no_small_shares", "SELECT * FROM total WHERE s < 0")
    with pytest.raises(ev.EvaluationError, match="assertion 'no_small_shares' cannot be computed"):
        t.insert([(2, 0)])
    db.drop("no_small_shares")
    db.create_view("strict", "SELECT k, 7 div x AS q FROM t", on_error="reject")
    with pytest.raises(ev.EvaluationError, match="view 'strict' cannot be computed: division by zero"):
        t.insert([(2, 0)])
    assert db.version == 1
    assert all(view.suspension is None for view in db.views.values())
    t.insert([(2, 1)])
    assert sorted(db.view("total").rows()) == [(1, 70), (2, 110)]
    db.verify()


def test_a_violated_assertion_leaves_a_view_that_would_have_failed(db: ev.Database, t: ev.Table) -> None:
    """Nothing is suspended by a transaction that is rejected."""
    db.create_assertion("few", "SELECT k FROM t GROUP BY k HAVING count(*) > 3")
    with pytest.raises(ev.AssertionViolated):
        t.insert([(2, 0)] * 4)
    assert sorted(db.view("total").rows()) == [(1, 70), (2, 10)]
    t.insert([(2, 5)])
    assert sorted(db.view("total").rows()) == [(1, 70), (2, 30)]


def test_what_cannot_be_computed_anew_is_rejected(db: ev.Database, backend: str) -> None:
    """By default over tables that keep no rows, and asking for suspension there is refused; so with incremental_strict."""
    table = db.create_table("passing", "k int, x int", retain=False)
    view = db.create_view("v", "SELECT k, sum(100 div x) AS s FROM passing GROUP BY k")
    table.insert([(1, 4)])
    with pytest.raises(ev.EvaluationError, match="view 'v' cannot be computed"):
        table.insert([(1, 0)])
    assert view.rows() == [(1, 25)]
    with pytest.raises(ev.UnsupportedOperation, match="which keeps no rows"):
        db.create_view("w", "SELECT * FROM v", on_error="suspend")
    with pytest.raises(ev.UnsupportedOperation, match="there is no on_error 'ignore'"):
        db.create_view("w", "SELECT * FROM v", on_error="ignore")
    if backend != "reference":
        db.create_table("kept", "x int")
        with pytest.raises(ev.UnsupportedOperation, match="is computed anew"):
            db.create_view("w", "SELECT * FROM kept", on_error="suspend", refresh="incremental_strict")


def test_the_spark_backend_remembers_it(spark: SparkSession, tmp_path: Path) -> None:
    """After opening again a suspended view still is, with its last version readable, and heals."""
    path = str(tmp_path / "db")
    with ev.connect(path, backend="spark", spark=spark) as db:
        table = db.create_table("t", "k int, x int")
        db.create_view("failing_here", "SELECT k, 100 div x AS share FROM t")
        table.insert([(1, 2)])
        table.insert([(2, 0)])
        with pytest.raises(Exception, match="has had no answer since version 2"):
            spark.sql("SELECT * FROM failing_here").collect()
    with ev.connect(path, backend="spark", spark=spark) as db:
        view = db.view("failing_here")
        assert view.suspension == ev.Suspension(2, "division by zero.", "DIVIDE_BY_ZERO")
        assert [tuple(row) for row in view.to_spark(version=1).collect()] == [(1, 50)]
        with pytest.raises(ev.ViewSuspended):
            view.to_spark(version=2)
        db.table("t").delete([(2, 0)])
        assert view.rows() == [(1, 50)]
        with pytest.raises(ev.ViewSuspended):
            view.to_spark(version=2)
