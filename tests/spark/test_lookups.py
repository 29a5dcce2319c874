"""Look-ups in large segments: strict as ever, whoever searches; without Spark jobs once the driver has copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import everview as ev
from everview.backends.spark.backend import SparkBackend
from everview.backends.spark.restrict import KeyLookup, Restriction
from everview.backends.spark.task_lookups import Asked, TaskLookups
from everview.relational.nodes import Relation
from tests.corpus.data import Query, queries
from tests.spark.replay import Replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 60
_JOIN = "SELECT c.name, sum(o.price) AS total FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.name"


@pytest.fixture(params=[1 << 30, 0], ids=["driver", "executors"])
def lookup_bytes(request: pytest.FixtureRequest) -> int:
    """Whether the driver may copy segments."""
    budget: int = request.param
    return budget


@pytest.fixture
def db(lookup_bytes: int, spark: SparkSession, tmp_path: Path) -> Iterator[ev.Database]:
    """A database whose first segments are large; its look-ups have found and copied what they could."""
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=5, lookup_bytes=lookup_bytes) as database:
        database.create_table("orders", "id int, line int, customer string, price int", primary_key=["id", "line"])
        database.create_table("customers", "id string, name string", primary_key=["id"])
        database.apply({"customers": [(f"c{i}", f"name {i % 7}") for i in range(10)]})
        database.apply({"orders": [(i // 3, i % 3, f"c{i % 10}", i) for i in reversed(range(_ROWS))]})
        database.create_view("totals", _JOIN)
        for number in range(2):
            database.apply({"orders": [(100, number, "c1", 1)], "customers": [(f"d{number}", "dora")]})
        yield database


def _weighted(rows: list[tuple[int, int, str, int, int]]) -> list[dict[str, int | str]]:
    return [dict(zip(("id", "line", "customer", "price", "_weight"), row, strict=True)) for row in rows]


def test_a_refresh_runs_jobs_only_without_copies(db: ev.Database, lookup_bytes: int) -> None:
    """A change of both tables is joined with what the driver finds in its copies; else each look-up is a job."""
    db.apply({"orders": [(200, 0, "c3", 7)], "customers": [("d9", "dora")]})
    assert (db.view("totals").stats()["spark_jobs"] == 0) == (lookup_bytes > 0)
    db.verify()


def test_keys_and_deletes_are_judged_by_what_is_stored(db: ev.Database) -> None:
    """A key that is there, a row that is not, or differs in one value, is found in large segments too."""
    version, before = db.version, sorted(db.view("totals").rows())
    for rows in (
        [(3, 1, "c9", 0, 1)],
        [(3, 1, "c0", 11, -1)],
        [(3, 7, "c0", 10, -1)],
        [(3, 1, "c0", 10, -1), (3, 1, "c0", 10, -1)],
    ):
        with pytest.raises(ev.InvalidChange):
            db.apply({"orders": _weighted(rows)})
    assert db.version == version
    assert sorted(db.view("totals").rows()) == before
    db.table("orders").delete([(3, 1, "c0", 10)])
    db.table("orders").upsert([(3, 2, "c0", 1000), (3, 1, "c2", 5)])
    db.verify()


@pytest.mark.parametrize("key", ["x", *(pytest.param(k, marks=pytest.mark.slow) for k in ("", "s"))])
def test_deletes_are_judged_by_hashes_of_rows(key: str, lookup_bytes: int, spark: SparkSession, tmp_path: Path) -> None:
    """With NULLs, doubles and duplicates, with a key that can be searched, one of doubles, or none: right, or refused."""
    rows = [(i / 4, f"s{i}", None if i % 3 else i, None if i % 2 else "t") for i in range(_ROWS)]
    with ev.connect(tmp_path / "h", backend="spark", spark=spark, local_rows=5, lookup_bytes=lookup_bytes) as db:
        table = db.create_table("t", "x double, s string, i int, u string", primary_key=key or None)
        table.insert(rows)
        db.create_view("v", "SELECT i, u, count(*) AS n, count(x) AS m FROM t GROUP BY i, u")
        if not key:
            table.insert(rows[:20])
            table.delete([rows[3], rows[3]])
        for place in (7, 8, 12):
            table.delete([rows[place]])
            x, s, _, u = rows[place + 20]
            with pytest.raises(ev.InvalidChange, match="does not have"):
                table.delete([(x, s, 12345, u)])
            new = (x, f"new {place}", 1, u, 1)
            db.apply({"t": _with_weights([(*rows[place + 10], -1), new, (*rows[place + 20], -1)])})
        db.verify()


def _with_weights(rows: list[tuple[object, ...]]) -> list[dict[str, object]]:
    return [dict(zip(("x", "s", "i", "u", "_weight"), row, strict=True)) for row in rows]


def test_deletes_of_other_keys_are_no_matter(db: ev.Database) -> None:
    """A look-up that meets the deletion of a row without the row, or a row without its deletion, does not see it."""
    db.table("orders").delete([(3, 1, "c0", 10)])
    db.table("orders").insert([(3, 1, "c5", 1)])
    db.table("orders").upsert([(3, 2, "c0", 1000), (4, 1, "c1", 8)])
    with pytest.raises(ev.InvalidChange):
        db.table("orders").insert([(3, 1, "c5", 1)])


def test_copies_follow_compaction_and_reopening(
    db: ev.Database, lookup_bytes: int, spark: SparkSession, tmp_path: Path
) -> None:
    """Segments come and go, and a database that is opened again begins without copies."""
    for number in range(5):
        rows = [(300 + number, line, "c4", 1, 1) for line in range(6)]
        db.apply({"orders": _weighted([*rows, (number, 0, f"c{number * 3 % 10}", number * 3, -1)])})
    db.vacuum()
    db.apply({"orders": [(400, 0, "c4", 1)]})
    db.verify()
    db.close()
    assert not (tmp_path / "db" / "_lookup").exists()
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=5, lookup_bytes=lookup_bytes) as again:
        for number in range(2):
            again.table("orders").delete_keys([(300 + number, 0)])
        again.verify()


@pytest.mark.parametrize("name", ["q03", *(pytest.param(q, marks=pytest.mark.slow) for q in ("q18", "q13"))])
def test_the_law_with_copies(
    name: str, corpus_plan: Callable[[Query], Relation], tmp_path: Path, spark: SparkSession
) -> None:
    """Where every segment is large, and is searched by Spark at first and then in its copy: the view is what it should be."""
    (query,) = (q for q in queries("tpch") if q.name == name)
    replay = Replay(
        corpus_plan(query), tmp_path, query.name, lambda path: SparkBackend(str(path), lambda: spark, local_rows=0)
    )
    transactions = replay.transactions(7)
    replay.apply(next(transactions))
    replay.create_view()
    for changes in transactions:  # one by one: what is deleted is chosen from what is there
        replay.apply(changes)
        replay.check()
    assert any((tmp_path / "_lookup").rglob("*.rows"))
    replay.backend.close()


def test_a_wrong_budget_is_refused(spark: SparkSession) -> None:
    """The option is a number of bytes."""
    for wrong in (-1, "1g", True):
        with pytest.raises(ev.UnsupportedOperation, match="lookup_bytes"):
            ev.connect(backend="spark", spark=spark, lookup_bytes=wrong)


def test_what_is_small_and_meets_all_is_not_followed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All customers have one of three nations; an order still finds its customer alone, and one that fails a test none."""
    found: dict[str, int] = {}
    fetch = Restriction.fetch

    def noted(self: Restriction, wanted: list[tuple[KeyLookup, pa.Table]]) -> list[pa.Table]:
        answers = fetch(self, wanted)
        found.update((lookup.relation.name, rows.num_rows) for (lookup, _), rows in zip(wanted, answers, strict=True))
        return answers

    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=5) as db:
        db.create_table("nations", "id int, name string")
        db.create_table("customers", "id int, nation int", primary_key=["id"])
        db.create_table("orders", "customer int, price int")
        db.apply({"nations": [(i, f"nation {i}") for i in range(3)]})
        db.apply({"customers": [(i, i % 3) for i in range(200)]})
        db.create_view(
            "totals",
            "SELECT n.name, count(*) AS orders FROM orders o, customers c, nations n"
            " WHERE o.customer = c.id AND c.nation = n.id AND o.price > 10 GROUP BY n.name",
        )
        monkeypatch.setattr(Restriction, "fetch", noted)
        db.apply({"orders": [(5, 11), (6, 3)]})
        assert found == {"customers": 1}
        assert db.view("totals").rows() == [("nation 2", 1)]
        db.verify()


@pytest.mark.parametrize("strategy", ["first_order", "factorized"])
def test_a_refresh_takes_few_jobs(strategy: str, spark: SparkSession, tmp_path: Path) -> None:
    """At most two jobs a level: one for the keys of all tables together, one a round of look-ups, one for old sums."""
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=5, lookup_bytes=0) as db:
        db.create_table("lines", "id int, line int, price int", primary_key=["id", "line"])
        db.create_table("orders", "id int, customer int", primary_key=["id"])
        db.create_table("customers", "id int, nation int", primary_key=["id"])
        db.table("customers").insert([(i, i % 3) for i in range(20)])
        db.table("orders").insert([(i, i % 20) for i in range(40)])
        db.table("lines").insert([(i // 2, i % 2, i) for i in range(80)])
        db.create_view(
            "totals",
            "SELECT c.id, sum(l.price) AS total, count(*) AS n FROM lines l, orders o, customers c"
            " WHERE l.id = o.id AND o.customer = c.id GROUP BY c.id",
            strategy=strategy,
        )
        levels = 3  # lines below orders below customers
        counted = []
        for number in (7, 8, 9):
            old, new = {"id": number, "_weight": -1}, {"id": number, "_weight": 1}
            db.apply(
                {
                    "lines": [{**old, "line": 1, "price": 2 * number + 1}, {**new, "line": 1, "price": 0}],
                    "orders": [{**old, "customer": number}, {**new, "customer": number + 1}],
                    "customers": [{"id": number, "nation": number % 3, "_weight": -1}],
                }
            )
            counted.append(db.view("totals").stats()["spark_jobs"])
            db.verify()
        assert counted[0] > 0
        assert max(counted) <= 2 * levels, counted


def test_keys_of_all_tables_are_looked_up_by_one_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tables a transaction changes; and what is wrong with one of them is said as ever."""
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=5, lookup_bytes=0) as db:
        for name in "abc":
            db.create_table(name, "k int, x int", primary_key="k").insert([(i, i) for i in range(20)])
        jobs: list[int] = []
        rows = TaskLookups.rows

        def counted(lookups: TaskLookups, asked: list[Asked]) -> list[pa.Table]:
            jobs.append(len(asked))
            return rows(lookups, asked)

        monkeypatch.setattr(TaskLookups, "rows", counted)
        old = [{"k": 3, "x": 3, "_weight": -1}, {"k": 3, "x": 4, "_weight": 1}]
        db.apply({"a": old, "b": [(50, 1)], "c": [{"k": 7, "x": 7, "_weight": -1}]})
        assert jobs == [3]
        with pytest.raises(ev.InvalidChange, match=r"table 'b' would have more than one row with the same primary key"):
            db.apply({"a": [(51, 1)], "b": [(50, 2)], "c": [(51, 1)]})
        assert [len(t.rows()) for t in db.tables.values()] == [20, 21, 19]


def test_keys_and_first_look_ups_are_one_job(spark: SparkSession, tmp_path: Path) -> None:
    """What views look up first is asked with the keys of the changes: for all tables and views of a transaction together."""
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=5, lookup_bytes=0) as db:
        db.create_table("lines", "id int, line int, price int", primary_key=["id", "line"])
        db.create_table("orders", "id int, day int", primary_key=["id"])
        db.table("orders").insert([(i, i % 7) for i in range(40)])
        db.table("lines").insert([(i // 2, i % 2, i) for i in range(80)])
        join = "FROM lines l JOIN orders o ON l.id = o.id"
        db.create_view("days", f"SELECT o.day % 3 AS day, sum(l.price) AS total {join} GROUP BY o.day % 3")
        db.create_view("totals", f"SELECT o.id, sum(l.price) AS total {join} GROUP BY o.id")
        for number in (7, 8):
            old, new = {"id": number, "_weight": -1}, {"id": number, "_weight": 1}
            changed = [{**old, "line": 1, "price": 2 * number + 1}, {**new, "line": 1, "price": 0}]
            db.apply({"lines": changed, "orders": [{**old, "day": number % 7}, {**new, "day": 1}]})
            assert [v.stats()["spark_jobs"] for v in db.views.values()] == [1, 1]
            db.verify()
        db.table("lines").upsert([(9, 0, 5), (9, 5, 5)])
        assert db.view("totals").stats()["spark_jobs"] == 1, "orders and totals are looked up by the key that is given"
        db.table("lines").delete_keys([(9, 0)])
        db.verify()


def test_new_keys_are_not_looked_up(spark: SparkSession, tmp_path: Path) -> None:
    """Keys beyond the bounds of what is stored run no job, and strictness is as ever; NULL is between no bounds."""
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=5, lookup_bytes=0) as db:
        orders = db.create_table("orders", "id int, customer bigint", primary_key=["id"])
        orders.insert([(i, i % 20 if i % 5 else None) for i in range(40)])
        view = db.create_view("pairs", "SELECT count(*) AS n FROM orders a JOIN orders b ON a.customer <=> b.customer")
        for key in (1000, -5, 1001):
            orders.insert([(key, 700 + key), (key + 3000, 9000)])
            assert view.stats()["spark_jobs"] == 0
        with pytest.raises(ev.InvalidChange, match="primary key"):
            orders.insert([(5000, 1), (20, 9001)])
        orders.insert([(2000, None), (2001, 19)])
        assert view.stats()["spark_jobs"] == 1
        db.verify()


def test_copies_of_tasks_beside_the_driver_last(spark: SparkSession, tmp_path: Path) -> None:
    """The next process finds them, and removes those of segments that are gone, or from before the system was restarted."""

    def opened() -> ev.Database:
        return ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=5, lookup_bytes=0)

    def kept() -> set[Path]:
        return set((tmp_path / "db" / "_copies").rglob("*.rows"))

    with opened() as db:
        table = db.create_table("t", "k int, x int", primary_key="k")
        table.insert([(i, i) for i in range(40)])
        db.create_view("v", "SELECT x % 3 AS y, count(*) AS n FROM t GROUP BY x % 3")
        assert not kept()
        for k in (3, 4):
            table.delete([(k, k)])
    copied = kept()
    assert copied
    torn = tmp_path / "db" / "_copies" / "an earlier start" / "c" / "0-0.rows"
    torn.parent.mkdir(parents=True)
    torn.touch()
    with opened() as db:
        db.table("t").delete([(5, 5)])
        assert kept() == copied, "used as they are"
        assert db.view("v").stats()["looked_up_bytes"] < 40 * 4096
        with pytest.raises(ev.InvalidChange):
            db.table("t").delete([(5, 5)])
        db.verify()
        db.table("t").insert([(100 + i, i) for i in range(20)])
        db.vacuum()
    with opened() as db:
        assert not copied & kept(), "the segment was summed up with others"
        db.table("t").delete([(6, 6), (100, 0)])
        db.verify()
