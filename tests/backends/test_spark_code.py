"""What only Spark's code computes: errors, functions of the session, parameters, answers by Spark, maps, durability."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev
from everview.errors import EvaluationError, InvalidQuery, UnsupportedQuery, ViewSuspended
from everview.relational import spark_code
from everview.relational.expressions import Column, SparkExpression
from everview.relational.types import INT32, STRING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = """INSERT INTO t VALUES (1, '{"a": 1}'), (2, 'x'), (3, NULL), (3, NULL)"""


def _filled(database: ev.Database) -> ev.Database:
    database.sql("CREATE TABLE t (i INT, s STRING)")
    database.sql(ROWS)
    return database


def test_a_view_computed_by_sparks_code_follows_its_table(db: ev.Database) -> None:
    """Inserts, deletes and duplicates pass through expressions that Spark computes, and explain names them."""
    _filled(db)
    view = db.create_view(
        "v", "SELECT get_json_object(s, '$.a') AS a, hash(i) AS h FROM t WHERE soundex(s) IS NULL OR i < 3"
    )
    db.sql("""INSERT INTO t VALUES (4, '{"a": 4}'); DELETE FROM t WHERE i = 1""")
    db.verify("v")
    assert "computed by Spark's own code:\n  " in view.explain()
    assert "get_json_object(s, '$.a')" in view.explain()


def test_an_error_of_sparks_code_suspends_the_view(db: ev.Database) -> None:
    """A row for which Spark raises leaves the table changed and the view without an answer, until it is gone."""
    _filled(db)
    view = db.create_view("v", "SELECT to_number(s, '9') AS n FROM t WHERE i > 8")
    db.sql("INSERT INTO t VALUES (9, '7'), (10, 'seven')")
    with pytest.raises(ViewSuspended, match="INVALID_FORMAT"):
        view.rows()
    db.sql("DELETE FROM t WHERE i = 10")
    assert [int(n) for (n,) in view.rows()] == [7]


def test_a_failure_leaves_nothing_behind_in_sparks_code(db: ev.Database) -> None:
    """An expression of Spark that was building a map when it failed does not add to the next one: each begins anew."""
    db.sql("CREATE TABLE pairs (k INT, s STRING)")
    db.create_view("maps", "SELECT k, str_to_map(s, ',', ':') AS m FROM pairs")
    db.create_view(
        "keys", "SELECT k, map_keys(str_to_map(s, ',', ':')) AS names, count(*) AS n FROM pairs GROUP BY 1, 2"
    )
    db.sql("INSERT INTO pairs VALUES (1, 'a:1,b:2'), (2, NULL)")
    db.sql("INSERT INTO pairs VALUES (3, 'a:1,c:1,a:2')")
    for name in ("maps", "keys"):
        with pytest.raises(ViewSuspended, match="DUPLICATED_MAP_KEY"):
            db.view(name).rows()
    db.sql("DELETE FROM pairs WHERE k = 3; INSERT INTO pairs VALUES (4, 'x:1')")
    assert sorted(db.view("keys").rows()) == [(1, ["a", "b"], 1), (2, None, 1), (4, ["x"], 1)]
    assert sorted((k, None if m is None else dict(m)) for k, m in db.view("maps").rows()) == [
        (1, {"a": "1", "b": "2"}),
        (2, None),
        (4, {"x": "1"}),
    ]


@pytest.mark.parametrize("text", ["reflect('java.lang.System', 'nanoTime')", "rand()", "(SELECT 1)"])
def test_a_stored_text_must_be_a_function_of_its_arguments(spark: SparkSession, text: str) -> None:
    """Text that somebody has put into a folder is not run if it could do more than compute."""
    assert spark is not None
    expression = SparkExpression("f", (f"concat({text}, ", 0, ")"), (Column(0, INT32),), STRING, "UTC")
    with pytest.raises(ev.CorruptDatabase, match="no deterministic function"):
        spark_code.value_of(expression, (1,))


def test_functions_and_views_of_the_session_resolve(spark: SparkSession) -> None:
    """A Python function, a function in SQL and a temp view of the user's session are part of what a view may say."""
    session = spark.newSession()
    session.sql("CREATE TEMPORARY FUNCTION twice(x INT) RETURNS INT RETURN x * 2")
    session.sql("CREATE TEMP VIEW names AS SELECT * FROM VALUES (1, 'one'), (2, 'two') AS n(k, name)")
    session.udf.register("next_one", lambda x: x + 1, "int")
    with _filled(ev.connect(spark=session)) as db:
        db.create_view("v", "SELECT twice(i) AS t, name, next_one(i) AS n FROM t JOIN names ON i = k")
        assert sorted(db.view("v").rows()) == [(2, "one", 2), (4, "two", 3)]
        db.verify("v")


def test_a_function_that_is_not_deterministic_is_refused_by_its_name(db: ev.Database) -> None:
    """The message names the function of SQL, not a class of Catalyst's."""
    _filled(db)
    with pytest.raises(UnsupportedQuery, match="the function uuid is not deterministic"):
        db.create_view("v", "SELECT concat(mask(s), uuid()) AS u FROM t")


def test_a_select_that_we_cannot_run_is_answered_by_spark(db: ev.Database) -> None:
    """The result says who has computed it, and why."""
    _filled(db)
    ours, theirs = db.sql("SELECT i FROM t"), db.sql("SELECT i, rand() < 2 AS r FROM t")
    assert isinstance(ours, ev.Result)
    assert isinstance(theirs, ev.Result)
    assert (ours.computed_by, ours.why_spark) == ("everview", None)
    assert theirs.computed_by == "spark"
    assert sorted(theirs.rows()) == [(1, True), (2, True), (3, True), (3, True)]
    assert "computed by Spark: the function rand is not deterministic" in repr(theirs)


def test_parameters_stand_for_their_values_only(db: ev.Database) -> None:
    """A value is never read as SQL, and a marker in a string is no marker."""
    _filled(db)
    db.sql("INSERT INTO t VALUES (?, ?)", args=[7, "'); DROP TABLE t; --"])
    found = db.sql("SELECT i, ':s' AS m FROM t WHERE s = :s", args={"s": "'); DROP TABLE t; --"})
    assert isinstance(found, ev.Result)
    assert found.rows() == [(7, ":s")]
    with pytest.raises(InvalidQuery, match=":n has no value"):
        db.sql("SELECT :n", args={"m": 1})


def test_a_map_is_a_value_that_cannot_be_grouped_by(db: ev.Database) -> None:
    """Maps go in and out, nested too; nothing compares them."""
    db.sql("CREATE TABLE m (k INT, v MAP<STRING, INT>, a ARRAY<MAP<INT, DOUBLE>>)")
    db.table("m").insert([(1, {"b": 2, "a": None}, [{1: -0.0}, None]), (2, None, None), (2, None, None)])
    view = db.create_view("v", "SELECT k, v, v['b'] AS b, map_keys(v) AS ks, a[0] AS first FROM m")
    db.sql("INSERT INTO m VALUES (3, map(), array(map(1, double('NaN')))); DELETE FROM m WHERE k = 2")
    assert min(view.rows(), key=str) == (1, [("b", 2), ("a", None)], 2, ["b", "a"], [(1, 0.0)])
    db.verify("v")
    with pytest.raises(UnsupportedQuery, match="maps cannot be grouped by"):
        db.create_view("w", "SELECT v, count(*) AS n FROM m GROUP BY v")


def test_a_function_that_is_not_registered_is_asked_for_by_its_name(spark: SparkSession) -> None:
    """A folder holds no code of functions: where one is missing, the message says which."""
    expression = SparkExpression("elsewhere", ("elsewhere(", 0, ")"), (Column(0, INT32),), INT32, "UTC")
    with pytest.raises(EvaluationError, match="the function elsewhere is not registered"):
        spark_code.value_of(expression, (1,))


def test_an_opened_database_computes_again_what_spark_computes(spark: SparkSession, tmp_path: Path) -> None:
    """The folder holds the expression as SQL text, and a view goes on after it was opened again."""
    place = tmp_path / "db"
    with ev.connect(place, spark=spark) as db:
        _filled(db).create_view("v", "SELECT get_json_object(s, '$.a') AS a, count(*) AS n FROM t GROUP BY 1")
    with ev.connect(place, spark=spark) as db:
        db.sql("""INSERT INTO t VALUES (4, '{"a": 4}')""")
        assert sorted(db.view("v").rows(), key=str) == [("1", 1), ("4", 1), (None, 3)]
        db.verify("v")
