"""``ALTER TABLE`` and ``ALTER VIEW``: columns added, columns, tables and views renamed, and what is refused."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pytest

import everview as ev
from everview.catalog import ViewDefinition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["reference", "embedded", "disk"])
def db(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[ev.Database]:
    """A table with a key and a child, and views over it; on disk too, where it is opened again at the end."""
    on_disk = request.param == "disk"
    database = ev.connect(tmp_path / "db", spark=spark) if on_disk else ev.connect(backend=request.param, spark=spark)
    with database:
        table = database.create_table("t", "k int, s string, x int", primary_key="k", unique=["s"])
        database.create_table("child", "k int REFERENCES t")
        database.create_table("apart", "a int, b int").insert([(1, 2), (1, 2)])
        table.insert([(1, "a", 5), (2, "b", None)])
        database.create_view("all_of_t", "SELECT * FROM t")
        database.create_view("sums", "SELECT count(*) AS n, sum(x) AS x FROM t")
        database.create_view("above", "SELECT n + 1 AS m FROM sums")
        yield database
        if not on_disk:
            return
        before = _contents(database)
    with ev.connect(tmp_path / "db") as again:
        assert _contents(again) == before
    with ev.connect(tmp_path / "db", spark=spark) as again:
        again.checkpoint()
        again.verify()
    with ev.connect(tmp_path / "db") as again:
        assert _contents(again) == before


def _contents(db: ev.Database) -> dict[str, tuple[tuple[str, ...], list[str]]]:
    return {
        name: (relation.columns, sorted(map(repr, relation.rows())))
        for name, relation in {**db.tables, **db.views}.items()
    }


def test_a_column_more(db: ev.Database) -> None:
    """Rows get the default or NULL, views keep their rows and columns, and constraints go on."""
    table, stars, above = db.table("t"), db.view("all_of_t"), db.view("above")
    told: list[int] = []
    above.subscribe(lambda change: told.append(change.version))
    version = db.version
    db.sql("ALTER TABLE t ADD COLUMN day date DEFAULT DATE'2024-02-29'; ALTER TABLE t ADD COLUMN note string")
    day = datetime.date(2024, 2, 29)
    assert sorted(table.rows()) == [(1, "a", 5, day, None), (2, "b", None, day, None)]
    assert (table.columns, stars.columns) == (("k", "s", "x", "day", "note"), ("k", "s", "x"))
    assert (stars.query, db.view("sums").query) == (None, "SELECT count(*) AS n, sum(x) AS x FROM t")
    assert db.version == version
    table.upsert([(2, "b", 7, None, "new"), (3, "c", 1, day, "new")])
    assert (sorted(stars.rows()), above.rows()) == ([(1, "a", 5), (2, "b", 7), (3, "c", 1)], [(4,)])
    assert told == [version + 1]
    later = db.create_view("days", "SELECT day, count(*) AS n FROM t GROUP BY day")
    assert set(later.rows()) == {(day, 2), (None, 1)}
    with pytest.raises(ev.InvalidChange, match="UNIQUE"):
        table.insert([(9, "a", 0, None, None)])
    with pytest.raises(ev.InvalidChange, match="FOREIGN KEY"):
        db.table("child").insert([(9,)])
    db.sql("ALTER TABLE apart ADD c decimal(9,2) NOT NULL DEFAULT 1 + 1")
    assert [str(row) for row in db.table("apart").rows()] == ["(1, 2, Decimal('2.00'))"] * 2
    db.verify()


def test_rows_that_lack_a_column_get_its_default(db: ev.Database) -> None:
    """In whatever form they come, if they have no weights; a renamed column keeps its default, and NULL stays NULL."""
    table = db.create_table("later", "k int, x int", primary_key="k")
    db.sql(
        "ALTER TABLE later ADD COLUMN note string NOT NULL DEFAULT 'none'; ALTER TABLE later ADD COLUMN y int DEFAULT 7"
    )
    db.sql("ALTER TABLE later RENAME COLUMN y TO z")
    table.insert([{"k": 1, "x": 1}])
    table.upsert(pa.table({"K": [2, 3], "x": [2, 3], "Z": [None, 5]}))
    table.insert(pd.DataFrame({"k": [4], "x": [4], "note": ["n"]}))
    db.sql("INSERT INTO later (k) VALUES (5)")
    table.merge(pa.table({"k": [6]}), "ON later.k = source.k WHEN NOT MATCHED THEN INSERT (k) VALUES (source.k)")
    assert sorted(table.rows()) == [
        (1, 1, "none", 7), (2, 2, "none", None), (3, 3, "none", 5), (4, 4, "n", 7), (5, None, "none", 7), (6, None, "none", 7),
    ]  # fmt: skip
    with pytest.raises(ev.InvalidChange, match="'note', 'z' of table 'later' are missing"):
        table.delete([{"k": 1, "x": 1}])
    with pytest.raises(ev.InvalidChange, match="is missing"):
        table.insert([{"k": 1, "z": 1}])
    with pytest.raises(ev.InvalidChange, match="2 values"):
        table.insert([(7, 7)])
    db.sql("ALTER TABLE later ADD COLUMN plain string")
    table.insert([{"k": 8, "x": 8}])
    assert table.lookup(k=8) == [(8, 8, "none", 7, None)]


def test_defaults_are_there_again(tmp_path: Path) -> None:
    """They are part of the table on disk."""
    with ev.connect(tmp_path / "db") as db:
        db.create_table("t", "k int").insert([(1,)])
        db.sql("ALTER TABLE t ADD COLUMN d decimal(5,2) DEFAULT 1.5")
    with ev.connect(tmp_path / "db") as db:
        db.table("t").insert([{"k": 2}])
        assert sorted(map(str, db.table("t").rows())) == ["(1, Decimal('1.50'))", "(2, Decimal('1.50'))"]


@pytest.mark.parametrize(
    ("statement", "error", "says"),
    [
        ("TABLE t ADD COLUMN X int", ev.InvalidQuery, "two columns named 'X'"),
        ("TABLE t ADD COLUMN y int NOT NULL", ev.InvalidQuery, "would be NULL in the rows"),
        ("TABLE t ADD COLUMN y int DEFAULT 'a' || 'b'", ev.InvalidQuery, "cannot be assigned"),
        ("TABLE t ADD COLUMN y tinyint DEFAULT 1000", ev.EvaluationError, "cannot be computed"),
        ("TABLE t ADD COLUMN y int UNIQUE", ev.UnsupportedOperation, "without keys and constraints"),
        ("TABLE t ADD COLUMNS (y int, z int)", ev.UnsupportedOperation, "one column at a time"),
        ("TABLE t DROP COLUMN x", ev.UnsupportedOperation, "ALTER TABLE DROP is not supported"),
        ("TABLE sums ADD COLUMN y int", ev.UnknownName, "'sums' is a view"),
        ("TABLE t RENAME TO u", ev.DependencyError, "renamed: view 'all_of_t', view 'sums' read it"),
        ("TABLE t RENAME COLUMN x TO y", ev.DependencyError, "renamed: view 'all_of_t', view 'sums' read it"),
        ("TABLE child RENAME COLUMN k TO t", ev.DependencyError, "FOREIGN KEY .* of table 'child' reads it"),
        ("TABLE apart RENAME COLUMN a TO b", ev.InvalidQuery, "two columns named 'b'"),
        ("TABLE apart RENAME TO sums", ev.AlreadyExists, "'sums'"),
        ("VIEW sums RENAME TO totals", ev.DependencyError, "renamed: view 'above' reads it"),
        ("VIEW t RENAME TO u", ev.UnknownName, "not a view"),
    ],
)
def test_what_cannot_be_altered(db: ev.Database, statement: str, error: type[ev.EverviewError], says: str) -> None:
    """A clear error, and nothing has changed."""
    before = _contents(db)
    with pytest.raises(error, match=says):
        db.sql(f"ALTER {statement}")
    assert _contents(db) == before
    db.table("t").insert([(3, "c", 1)])
    assert db.view("above").rows() == [(4,)]


def test_other_names(db: ev.Database) -> None:
    """Handles follow a table, a column and a view; the old names are free."""
    apart, above = db.table("apart"), db.view("above")
    told: list[int] = []
    above.subscribe(lambda change: told.append(change.version))
    db.sql("ALTER TABLE apart RENAME TO Far; ALTER TABLE far RENAME COLUMN b TO c; ALTER VIEW above RENAME TO top")
    apart.insert([(3, 4)])
    assert (apart.name, apart.columns, sorted(apart.rows())) == ("Far", ("a", "c"), [(1, 2), (1, 2), (3, 4)])
    db.table("t").insert([(3, "c", 1)])
    assert (above.name, db.view("top").rows(), told) == ("top", [(4,)], [db.version])
    db.sql("CREATE TABLE apart (z int); CREATE VIEW above AS SELECT c, m FROM far CROSS JOIN top")
    assert sorted(db.view("above").rows()) == [(2, 4), (2, 4), (4, 4)]
    with pytest.raises(ev.UnknownName):
        db.sql("SELECT b FROM far")
    db.sql("ALTER TABLE child RENAME TO children")
    with pytest.raises(ev.InvalidChange, match="FOREIGN KEY"):
        db.table("children").insert([(9,)])
    db.verify()


def test_only_what_reads_a_column_keeps_its_name(db: ev.Database) -> None:
    """Views that stood over the table through several changes of it do not read what came later."""
    db.sql(
        "ALTER TABLE t ADD COLUMN first int; ALTER TABLE t ADD COLUMN second int; ALTER TABLE t ADD COLUMN third int"
    )
    db.sql("ALTER TABLE t RENAME COLUMN first TO one; ALTER TABLE t RENAME COLUMN second TO two")
    assert db.table("t").columns == ("k", "s", "x", "one", "two", "third")
    assert sorted(db.view("all_of_t").rows()) == [(1, "a", 5), (2, "b", None)]
    with pytest.raises(ev.DependencyError, match=r"renamed: view 'all_of_t', UNIQUE \(s\) of table 't' read it"):
        db.sql("ALTER TABLE t RENAME COLUMN s TO text")


def test_a_view_that_cannot_be_made_anew_undoes_it(spark: SparkSession) -> None:
    """What cannot be kept is refused before anything is touched: assertions that sort rows out, rows that are gone."""
    with ev.connect(spark=spark) as db:
        db.create_table("t", "k int")
        db.create_assertion("positive", "SELECT * FROM t WHERE k < 0", on_violation="quarantine")
        db.create_table("passing", "k int", retain=False)
        db.create_view("n", "SELECT count(*) AS n FROM passing")
        for table, says in (
            ("t", "sorts its rows out"),
            ("positive_quarantine", "sorts"),
            ("passing", "keeps no rows"),
        ):
            with pytest.raises(ev.UnsupportedOperation, match=says):
                db.sql(f"ALTER TABLE {table} ADD COLUMN c int")
        db.table("t").insert([(1,), (-1,)])
        assert db.table("t").rows() == [(1,)]


def test_spark_refuses_by_name() -> None:
    """The Spark backend alters no tables, and says so."""
    with ev.connect(backend="spark") as db:
        db.create_table("t", "k int")
        with pytest.raises(ev.UnsupportedOperation, match="spark backend does not alter tables"):
            db.sql("ALTER TABLE t ADD COLUMN c int")


def test_a_failure_in_the_midst_undoes_everything(db: ev.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last view cannot be made anew, the table, its views and its constraints are as they were."""
    before, backend = _contents(db), db._core.backend
    create = backend.create_view
    failed: list[str] = []

    def fail_once(view: ViewDefinition) -> None:
        if view.name == "above" and not failed:
            failed.append(view.name)
            raise MemoryError
        create(view)

    monkeypatch.setattr(backend, "create_view", fail_once)
    with pytest.raises(MemoryError):
        db.sql("ALTER TABLE t ADD COLUMN y int")
    assert (failed, _contents(db)) == (["above"], before)
    db.table("t").insert([(3, "c", 1)])
    assert db.view("above").rows() == [(4,)]
    with pytest.raises(ev.InvalidChange, match="UNIQUE"):
        db.table("t").insert([(9, "a", 0)])


@pytest.mark.slow
def test_a_view_gets_another_name_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """There too, and it is there again when the database is opened."""
    with ev.connect(tmp_path / "lake", backend="spark", spark=spark) as db:
        table = db.create_table("t", "k int")
        db.create_view("v", "SELECT k + 1 AS k FROM t")
        table.insert([(1,)])
        db.sql("ALTER VIEW v RENAME TO w")
        table.insert([(2,)])
        assert sorted(db.view("w").rows()) == [(2,), (3,)]
    with ev.connect(tmp_path / "lake", backend="spark", spark=spark) as db:
        assert (list(db.views), sorted(db.view("w").rows())) == (["w"], [(2,), (3,)])
