from __future__ import annotations

import datetime
import json
from typing import Any

import pyarrow as pa
import pytest

import everview as ev


@pytest.fixture
def sales(db: ev.Database) -> ev.Table:
    """A table with a few rows."""
    table = db.create_table("sales", "shop string, item string, qty int")
    table.insert([("a", "x", 1), ("a", "y", 2), ("b", "x", 3)])
    return table


@pytest.fixture
def per_shop(db: ev.Database, sales: ev.Table) -> ev.View:
    """A view with one row a shop."""
    return db.create_view("per_shop", "SELECT shop, sum(qty) AS total FROM sales GROUP BY shop")


def test_a_view_takes_in_the_rows_that_are_there(per_shop: ev.View) -> None:
    """A view may come after its rows, and can be read in every way."""
    rows = [("a", 3), ("b", 3)]
    assert sorted(per_shop.rows()) == rows
    assert sorted(per_shop) == rows
    assert len(per_shop) == 2
    assert per_shop.columns == ("shop", "total")
    assert per_shop.to_arrow().schema == per_shop.schema
    assert sorted(per_shop.to_pandas().itertuples(index=False, name=None)) == rows
    assert pa.table(per_shop).schema == per_shop.schema
    assert sorted(per_shop.head(7)) == rows
    assert len(per_shop.head(1)) == 1
    assert sorted(tuple(r) for r in per_shop.to_spark().collect()) == rows
    assert per_shop.lookup(shop="b") == [("b", 3)]
    assert per_shop.lookup(SHOP="c") == []
    assert repr(per_shop) == "<View per_shop (shop string, total bigint)>"


def test_a_view_follows_its_table(sales: ev.Table, per_shop: ev.View) -> None:
    """Inserts and deletes reach the view in the same version."""
    sales.insert([("c", "z", 1)])
    sales.delete([("b", "x", 3)])
    assert sorted(per_shop.rows()) == [("a", 3), ("c", 1)]


def test_rows_are_repeated_by_multiplicity(db: ev.Database, sales: ev.Table) -> None:
    """A view is a bag."""
    view = db.create_view("shops", "SELECT shop FROM sales")
    assert sorted(view.rows()) == [("a",), ("a",), ("b",)]
    assert len(view) == 3


def test_views_over_views(db: ev.Database, sales: ev.Table, per_shop: ev.View) -> None:
    """A view may read other views; all move together."""
    best = db.create_view("best", "SELECT max(total) AS m FROM per_shop")
    both = db.create_view("both", "SELECT p.shop FROM per_shop p JOIN best b ON p.total = b.m JOIN sales USING (shop)")
    commit = sales.insert([("b", "y", 10)])
    assert best.rows() == [(13,)]
    assert sorted(both.rows()) == [("b",), ("b",)]
    assert set(commit.changes) == {"per_shop", "best", "both"}
    assert list(db.views) == ["per_shop", "best", "both"]


def test_a_view_from_a_dataframe(db: ev.Database, sales: ev.Table) -> None:
    """The DataFrame API makes the same views as SQL."""
    from pyspark.sql import functions as f

    frame = db.spark_table("sales").where("qty > 1").groupBy("item").agg(f.sum("qty").alias("n"))
    view = db.create_view("items", frame)
    assert sorted(view.rows()) == [("x", 3), ("y", 2)]
    assert view.query is None
    sales.insert([("z", "y", 5)])
    assert sorted(view.rows()) == [("x", 3), ("y", 7)]
    assert [v.name for v in db.verify("items").views] == ["items"]


def test_changes_since_a_version(db: ev.Database, sales: ev.Table, per_shop: ev.View) -> None:
    """The deltas after a version, in order, lead from the rows then to the rows now."""
    start = db.version
    then = dict.fromkeys(per_shop.rows(), 1)
    sales.insert([("a", "z", 1)])
    sales.insert([])
    sales.delete([("b", "x", 3)])
    found = per_shop.changes(since=start)
    assert [change.version for change in found] == [2, 4]
    for change in found:
        for shop, total, weight in zip(*change.delta.to_pydict().values(), strict=True):
            then[shop, total] = then.get((shop, total), 0) + weight
    assert {row for row, weight in then.items() if weight} == set(per_shop.rows())
    assert pa.table(found) == found.to_arrow()
    assert per_shop.changes(since=db.version) == []
    assert [change.version for change in per_shop.changes()] == [2, 4]


def test_changes_as_a_change_feed(db: ev.Database, sales: ev.Table) -> None:
    """In cdf format a row is repeated by its weight, with Delta's columns."""
    view = db.create_view("shops", "SELECT shop FROM sales")
    sales.insert([("c", "x", 1), ("c", "y", 1)])
    sales.delete([("a", "x", 1)])
    first, second = view.changes(format="cdf")
    assert first.delta.column_names == ["shop", "_change_type", "_commit_version", "_commit_timestamp"]
    assert (
        first.delta.select([0, 1, 2]).to_pylist() == [{"shop": "c", "_change_type": "insert", "_commit_version": 2}] * 2
    )
    assert second.delta.column("_change_type").to_pylist() == ["delete"]
    copy = db.create_table("copy", "shop string")
    db.apply({"copy": first.delta})
    assert copy.rows() == [("c",), ("c",)]


def test_changes_that_are_not_kept(db: ev.Database, sales: ev.Table, per_shop: ev.View) -> None:
    """A view has no changes from before it was there, nor from the future."""
    with pytest.raises(ev.UnsupportedOperation) as caught:
        per_shop.changes(since=0)
    assert str(caught.value) == (
        "the changes of view 'per_shop' since version 0 are not kept; they are since version 1. "
        "Hint: read the whole view, and follow its changes from the version you read."
    )
    with pytest.raises(ev.UnsupportedOperation) as caught:
        per_shop.changes(since=7)
    assert str(caught.value) == "version 7 has not been committed; the database is at version 1."
    with pytest.raises(ev.UnsupportedOperation) as caught:
        per_shop.changes(format="xml")
    assert str(caught.value) == "there is no format 'xml' for changes. Hint: it is 'weights' or 'cdf'."


def test_history_is_bounded(backend: str, spark: Any) -> None:
    """The option history says for how many versions deltas are kept."""
    with ev.connect(backend=backend, spark=spark, history=2) as db:
        table = db.create_table("t", "x int")
        view = db.create_view("v", "SELECT x FROM t")
        for i in range(5):
            table.insert([(i,)])
        assert [c.version for c in view.changes(since=3)] == [4, 5]
        with pytest.raises(ev.UnsupportedOperation, match="since version 2 are not kept; they are since version 3"):
            view.changes(since=2)


def test_history_is_bounded_by_its_memory() -> None:
    """Large deltas go before there are as many as ``history`` says, small ones do not; the last is always kept."""
    with ev.connect(history=100, history_bytes="64kB") as db:
        table = db.create_table("t", "k int, x int")
        counts = db.create_view("v", "SELECT x, count(*) AS n FROM t GROUP BY x")
        rows = db.create_view("w", "SELECT k + 1 AS k, x FROM t")
        for i in range(5):
            table.insert([(i, i)])
        assert [c.version for c in counts.changes()] == [1, 2, 3, 4, 5]
        for i in range(4):
            table.insert([(k, k) for k in range(1000 * i, 1000 * i + 1000)])
            assert counts.changes()[-1].version == rows.changes()[-1].version == 6 + i
        kept = [c.version for c in rows.changes()]
        assert kept == [c.version for c in counts.changes()] == list(range(kept[0], 10))
        assert 5 < kept[0] <= 9
        with pytest.raises(ev.UnsupportedOperation, match="since version 3 are not kept"):
            counts.changes(since=3)
        table.insert([(k, k) for k in range(20_000)])
        assert [(c.version, c.delta.num_rows) for c in rows.changes()] == [(10, 20_000)]
        for i in range(20):
            table.insert([(i, i)])
        assert [c.version for c in rows.changes()] == list(range(11, 31))


def test_history_must_be_a_number_of_bytes() -> None:
    """As memory_limit, which is given in the same words."""
    with pytest.raises(ev.UnsupportedOperation, match="history_bytes='much' is not a number of bytes"):
        ev.connect(history_bytes="much")


def test_subscribe(sales: ev.Table, per_shop: ev.View) -> None:
    """Subscribers hear of every delta in order, once, until they cancel."""
    heard: list[tuple[int, list[Any]]] = []
    subscription = per_shop.subscribe(lambda change: heard.append((change.version, change.delta.to_pylist())))
    sales.insert([("c", "x", 1)])
    sales.insert([])
    sales.delete([("c", "x", 1)])
    row = {"shop": "c", "total": 1}
    assert heard == [(2, [{**row, "_weight": 1}]), (4, [{**row, "_weight": -1}])]
    assert repr(subscription) == "<Subscription to per_shop, active>"
    subscription.cancel()
    subscription.cancel()
    sales.insert([("c", "x", 1)])
    assert len(heard) == 2
    assert not subscription.is_active


def test_a_subscriber_that_fails(db: ev.Database, sales: ev.Table, per_shop: ev.View) -> None:
    """An error in a callback neither undoes the commit nor keeps others from hearing; it is raised afterwards."""
    heard: list[int] = []

    def fail(change: ev.VersionedDelta) -> None:
        raise KeyError(change.version)

    per_shop.subscribe(fail)
    per_shop.subscribe(lambda change: heard.append(change.version))
    with pytest.raises(ExceptionGroup, match="subscribers failed; the transactions are committed") as caught:
        sales.insert([("c", "x", 1)])
    assert [type(e) for e in caught.value.exceptions] == [KeyError]
    assert heard == [2]
    assert db.version == 2
    with pytest.raises(ExceptionGroup), db.transaction() as tx:
        tx.insert("sales", [("d", "x", 1)])
    assert tx.commit.version == 3


def test_a_subscriber_that_commits(db: ev.Database, sales: ev.Table, per_shop: ev.View) -> None:
    """A commit made by a callback is announced after the one that caused it, to everybody."""
    log = db.create_table("log", "version bigint")
    logged = db.create_view("logged", "SELECT version FROM log")
    heard: list[tuple[str, int]] = []
    per_shop.subscribe(lambda change: log.insert([(change.version,)]))
    logged.subscribe(lambda change: heard.append(("logged", change.version)))
    per_shop.subscribe(lambda change: heard.append(("per_shop", change.version)))
    sales.insert([("c", "x", 1)])
    assert heard == [("per_shop", 2), ("logged", 3)]
    assert logged.rows() == [(2,)]


def test_explain_and_stats(per_shop: ev.View, backend: str) -> None:
    """A view tells its plan and its cost."""
    assert "scan sales" in per_shop.explain()
    told = json.loads(per_shop.explain("json"))
    assert told["view"] == "per_shop"
    assert per_shop.stats()["rows"] == 2
    if backend == "reference":
        assert per_shop.explain().endswith("recompute: O(database)\n")
        with pytest.raises(ev.UnsupportedOperation) as caught:
            per_shop.explain("svg")
        assert str(caught.value) == "the reference backend cannot explain in mode 'svg'. Hint: it has text and json."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "recursiv"}, "there is no strategy 'recursiv'. Hint: did you mean 'recursive'?"),
        ({"representation": "x"}, "there is no representation 'x'. Hint: it is one of auto, listing, factorized."),
        ({"depth": 2}, "depth=2 has no meaning for strategy 'auto'. Hint: it goes with strategy='recursive'."),
        (
            {"depth": -1, "strategy": "recursive"},
            "depth=-1 is not a number of steps: 0, 1, 2, … Hint: 0 recomputes, 1 is classical maintenance, and without depth "
            "deltas are materialized to the end.",
        ),
        ({"epsilon": 0.5}, "epsilon=0.5 has no meaning for strategy 'auto'. Hint: it goes with strategy='skew'."),
        ({"epsilon": 1.5, "strategy": "skew"}, "epsilon=1.5 is not a number from 0 to 1."),
        ({"refresh": "ful"}, "there is no refresh 'ful'. Hint: did you mean 'full'?"),
        (
            {"refresh": "auto", "strategy": "recompute"},
            "refresh='auto' has no meaning for strategy 'recompute', which always recomputes. Hint: leave one of them out.",
        ),
        ({"lazy": "yes"}, "lazy='yes' is not True or False."),
    ],
)
def test_view_options_are_checked(plain_db: ev.Database, options: Any, message: str) -> None:
    """An option that makes no sense is an error before anything else happens."""
    plain_db.create_table("t", "x int")
    with pytest.raises(ev.UnsupportedOperation) as caught:
        plain_db.create_view("v", "SELECT x FROM t", **options)
    assert str(caught.value) == message


def test_options_that_make_sense(db: ev.Database, sales: ev.Table, backend: str) -> None:
    """Every strategy that a backend has gives the same answer; one that it does not have is refused, never ignored."""
    for i, options in enumerate(
        [
            {"strategy": "recursive", "depth": 2},
            {"strategy": "skew", "epsilon": 0.5},
            {"lazy": True},
            {"strategy": "recompute"},
        ]
    ):
        if backend == "spark" and options != {"strategy": "recompute"}:
            with pytest.raises(ev.UnsupportedOperation, match=f"the {backend} backend does not have"):
                db.create_view(f"v{i}", "SELECT sum(qty) AS q FROM sales", **options)  # type: ignore[arg-type]
            continue
        view = db.create_view(f"v{i}", "SELECT sum(qty) AS q FROM sales", **options)  # type: ignore[arg-type]
        assert view.rows() == [(6,)]


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("SELECT * FROM sale", ev.UnknownName, "table or view 'sale' does not exist. Hint: did you mean 'sales'?"),
        ("SELECT qyt FROM sales", ev.UnknownName, "column 'qyt' cannot be resolved. Hint: did you mean 'qty'?"),
        (
            "SELECT s.qty, t.qty FROM sales s, sales t",
            ev.InvalidQuery,
            "view 'v' would have two columns named 'qty'. Hint: give each its own name (AS …).",
        ),
        (
            "SELECT qty AS _weight FROM sales",
            ev.InvalidQuery,
            "view 'v' cannot have a column named '_weight': changes use it. Hint: rename the column (AS …).",
        ),
    ],
)
def test_queries_that_make_no_view(
    db: ev.Database, sales: ev.Table, query: str, error: type[ev.EverviewError], message: str
) -> None:
    """A query that cannot be a view is refused with the reason, and leaves nothing behind."""
    with pytest.raises(error) as caught:
        db.create_view("v", query)
    assert str(caught.value) == message
    assert dict(db.views) == {}
    db.create_view("v", "SELECT qty FROM sales")


def test_a_statement_is_no_query(db: ev.Database, sales: ev.Table) -> None:
    """Spark would run a statement when it is only asked to resolve it; a view's query must be a query."""
    with pytest.raises(ev.InvalidQuery) as caught:
        db.create_view("v", "DROP TABLE sales")
    assert str(caught.value) == (
        "a query was expected, and this is a statement (DROP …). "
        "Hint: tables are changed with insert, delete, upsert and apply, or with db.sql(…)."
    )
    assert "v" not in db.views


def test_a_syntax_error(db: ev.Database, sales: ev.Table) -> None:
    """Spark says where it stopped understanding."""
    with pytest.raises(ev.InvalidQuery, match="Syntax error at or near 'sales'"):
        db.create_view("v", "SELECT qty AS q, shop AS FORM sales")


def test_a_view_that_fails_on_rows_that_are_there(db: ev.Database, sales: ev.Table) -> None:
    """Arithmetic that fails on existing rows is found when the view is created."""
    with pytest.raises(ev.EvaluationError) as caught:
        db.create_view("v", "SELECT 1 div (qty - 3) AS x FROM sales", on_error="reject")
    assert str(caught.value).startswith("view 'v' cannot be computed: division by zero")
    assert "v" not in db.views


def test_names_are_shared(db: ev.Database, sales: ev.Table, per_shop: ev.View) -> None:
    """Tables, views and assertions have one name space, and each call says what a name is."""
    with pytest.raises(ev.AlreadyExists) as exists:
        db.create_view("Sales", "SELECT 1 AS x")
    assert str(exists.value) == "there is already a table 'sales'. Hint: choose another name or drop it."
    with pytest.raises(ev.AlreadyExists, match="there is already a view 'per_shop'"):
        db.create_table("PER_SHOP", "x int")
    with pytest.raises(ev.UnknownName) as caught:
        db.apply({"per_shop": [("a", 1)]})
    assert str(caught.value) == (
        "'per_shop' is a view, not a table. Hint: changes go to the tables it reads; db.view() gives the view."
    )
    with pytest.raises(ev.UnknownName) as caught:
        db.view("sales")
    assert str(caught.value) == "'sales' is a table, not a view. Hint: db.table() gives it."
    with pytest.raises(ev.UnknownName) as caught:
        db.view("per_shp")
    assert str(caught.value) == "there is no view 'per_shp'. Hint: did you mean 'per_shop'?"


def test_drop_what_others_need(db: ev.Database, sales: ev.Table, per_shop: ev.View) -> None:
    """A table or view goes only after everything that reads it."""
    db.create_view("above", "SELECT total FROM per_shop")
    db.create_assertion("positive", "SELECT * FROM sales WHERE qty < 0")
    with pytest.raises(ev.DependencyError) as caught:
        db.drop("sales")
    assert str(caught.value) == (
        "table 'sales' cannot be dropped: view 'per_shop', assertion 'positive' read it. Hint: drop those first."
    )
    with pytest.raises(ev.DependencyError) as caught:
        db.drop("per_shop")
    assert str(caught.value) == "view 'per_shop' cannot be dropped: view 'above' reads it. Hint: drop that first."
    for name in ("above", "per_shop", "positive", "sales"):
        db.drop(name)
    assert (dict(db.tables), dict(db.views), dict(db.assertions)) == ({}, {}, {})
    with pytest.raises(ev.UnknownName) as unknown:
        per_shop.rows()
    assert str(unknown.value) == "view 'per_shop' was dropped."
    with pytest.raises(ev.UnknownName):
        db.sql("SELECT * FROM per_shop")


def test_assertions(db: ev.Database, sales: ev.Table) -> None:
    """A transaction that would make an assertion's query non-empty is rejected whole."""
    known = db.create_table("shops", "shop string")
    db.apply({"shops": [("a",), ("b",)]})
    query = "SELECT shop, qty FROM sales WHERE shop NOT IN (SELECT shop FROM shops)"
    assertion = db.create_assertion("known_shops", query)
    for change in (lambda: sales.insert([("c", "x", 1), ("c", "y", 2)]), lambda: known.delete([("b",)])):
        with pytest.raises(ev.AssertionViolated) as caught:
            change()
        assert str(caught.value).startswith("assertion 'known_shops' would not hold: its query would return (")
    assert (len(sales), len(known)) == (3, 2)
    db.apply({"sales": [("c", "x", 1)], "shops": [("c",)]})
    assert repr(assertion) == "<Assertion known_shops>"
    assert assertion.query == query
    assert "scan sales" in assertion.explain()
    assert list(db.assertions) == ["known_shops"]
    assert dict(db.views) == {}
    assert [v.name for v in db.verify().views] == ["known_shops"]
    with pytest.raises(ev.UnknownName) as unknown:
        db.view("known_shops")
    assert str(unknown.value) == "'known_shops' is an assertion, not a view. Hint: it cannot be read, only explained."


def test_an_assertion_that_does_not_hold_yet(db: ev.Database, sales: ev.Table) -> None:
    """An assertion is checked against the rows that are there."""
    with pytest.raises(ev.AssertionViolated) as caught:
        db.create_assertion("small", "SELECT shop, qty FROM sales WHERE qty > 2")
    assert str(caught.value) == "assertion 'small' would not hold: its query would return ('b', 3)."
    assert "small" not in db.assertions


def test_a_date_beyond_the_year_9999(db: ev.Database) -> None:
    """Spark has such dates and Python has not: Arrow shows them, and Python's values are refused with how to go on."""
    db.create_table("days", "d DATE")
    view = db.create_view("next_days", "SELECT date_add(d, 1) AS e FROM days")
    db.apply({"days": [(datetime.date(9999, 12, 31),)]})
    assert view.to_arrow().column("e").cast("int32").to_pylist() == [2932897]
    for read in (view.rows, view.to_pandas, lambda: list(view)):
        with pytest.raises(ev.UnsupportedOperation, match="none that Python can hold"):
            read()


def test_results_that_no_table_has_are_frames_too(db: ev.Database, backend: str) -> None:
    """Intervals of months, inside of other types too, and columns of nothing but NULL."""
    db.create_table("t", "id INT", primary_key="id").insert([(1,), (30,)])
    view = db.create_view("v", "SELECT id, INTERVAL 1 MONTH * id AS `a b`, NULL AS nothing FROM t")
    frame = view.to_spark()
    shown = frame.selectExpr("CAST(`a b` AS STRING) AS m", "nothing").orderBy("id").collect()
    assert [tuple(row) for row in shown] == [
        ("INTERVAL '0-1' YEAR TO MONTH", None),
        ("INTERVAL '2-6' YEAR TO MONTH", None),
    ]
    if backend == "spark":
        return  # whose files have no such type
    deep = "array(INTERVAL 1 MONTH * id, NULL) AS l, map(id, struct(INTERVAL 1 YEAR * id AS `x y`)) AS m"
    nested = db.create_view(
        "n", f"SELECT id, {deep}, CASE WHEN id > 1 THEN struct(INTERVAL 1 MONTH AS a) END AS s FROM t"
    )
    shown = (
        nested.to_spark().selectExpr("id", "CAST(l AS STRING) AS l", "CAST(m AS STRING) AS m", "s.a AS a").orderBy("id")
    )
    assert [tuple(row) for row in shown.selectExpr("l", "m", "CAST(a AS STRING)").collect()] == [
        ("[INTERVAL '0-1' YEAR TO MONTH, null]", "{1 -> {INTERVAL '1-0' YEAR TO MONTH}}", None),
        (
            "[INTERVAL '2-6' YEAR TO MONTH, null]",
            "{30 -> {INTERVAL '30-0' YEAR TO MONTH}}",
            "INTERVAL '0-1' YEAR TO MONTH",
        ),
    ]
    db.verify()
