"""Settings of the user's Spark session: each is followed and recorded, or refused by name; none is silently ignored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = [(1, "a"), (2, "B"), (2, "B")]
_COLUMNS = "k int, s string"


def _session(spark: SparkSession, settings: dict[str, str]) -> SparkSession:
    """A user's session with the table ``t`` and some settings."""
    session = spark.newSession()
    session.createDataFrame(_ROWS, _COLUMNS).createOrReplaceTempView("t")
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def _filled(backend: str, session: SparkSession) -> ev.Database:
    db = ev.connect(backend=backend, spark=session)
    db.create_table("t", _COLUMNS).insert(_ROWS)
    return db


@pytest.mark.parametrize(
    ("setting", "query"),
    [
        (("spark.sql.caseSensitive", "true"), "SELECT k, s FROM t"),
        (("spark.sql.groupByOrdinal", "false"), "SELECT count(*) AS c FROM t GROUP BY 1"),
        (("spark.sql.orderByOrdinal", "false"), "SELECT s, k FROM t ORDER BY 1, k LIMIT 1"),
        (("spark.sql.ansi.doubleQuotedIdentifiers", "true"), 'SELECT "k" AS c FROM t'),
        (("spark.sql.mapKeyDedupPolicy", "LAST_WIN"), "SELECT k, map(1, 'a', 1, 'b')[1] AS c FROM t"),
        (
            ("spark.sql.session.timeZone", "Asia/Tokyo"),
            "SELECT k, date_format(timestamp'2024-01-01 00:00:00 UTC', 'HH') AS c FROM t",
        ),
    ],
)
def test_a_setting_of_the_plan_is_followed(
    spark: SparkSession, backend: str, setting: tuple[str, str], query: str
) -> None:
    """The view has the rows that the session itself answers, keeps them when the setting changes, and is verified so."""
    session = _session(spark, dict([setting]))
    theirs = sorted(tuple(row) for row in session.sql(query).collect())
    with _filled(backend, session) as db:
        view = db.create_view("v", query)
        assert sorted(view.rows()) == theirs
        session.conf.unset(setting[0])
        db.table("t").insert([(7, "z")])
        db.verify()
        db.table("t").delete([(7, "z")])
        assert sorted(view.rows()) == theirs


@pytest.mark.parametrize(
    ("setting", "query"),
    [
        (("spark.sql.caseSensitive", "true"), "SELECT K FROM t"),
        (("spark.sql.groupByAliases", "false"), "SELECT k + 1 AS g, count(*) AS c FROM t GROUP BY g"),
    ],
)
def test_a_setting_under_which_names_are_unknown(
    spark: SparkSession, backend: str, setting: tuple[str, str], query: str
) -> None:
    """What Spark does not resolve in the user's session is not resolved here either."""
    with _filled(backend, _session(spark, dict([setting]))) as db, pytest.raises(ev.UnknownName):
        db.create_view("v", query)


_REFUSED = [
    ("spark.sql.ansi.enabled", "false"),
    ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
    ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    ("spark.sql.legacy.sizeOfNull", "false"),
    ("spark.sql.legacy.nullInEmptyListBehavior", "true"),  # Spark knows it and has no default for it
    ("spark.sql.parser.escapedStringLiterals", "true"),
    ("spark.sql.storeAssignmentPolicy", "LEGACY"),
    ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
]


@pytest.mark.parametrize(("key", "value"), _REFUSED)
def test_a_setting_of_the_values_is_refused_by_name(spark: SparkSession, backend: str, key: str, value: str) -> None:
    """The kernels compute as Spark does by default; another way is refused at ``connect``, with how to go on."""
    session = _session(spark, {key: value})
    with pytest.raises(ev.UnsupportedOperation, match=f"{key} = {value}") as caught:
        ev.connect(backend=backend, spark=session)
    assert caught.value.hint is not None
    assert f"set('{key}'" in caught.value.hint  # set or unset


def test_a_setting_that_changes_afterwards(spark: SparkSession, backend: str) -> None:
    """A refused setting is noticed at the next query; the view that is there stays, and can still be verified."""
    session = _session(spark, {})
    with _filled(backend, session) as db:
        db.create_view("v", "SELECT k FROM t")
        session.conf.set("spark.sql.ansi.enabled", "false")
        for query in (lambda: db.create_view("w", "SELECT k / 0 AS c FROM t"), lambda: db.sql("SELECT k FROM t")):
            with pytest.raises(ev.UnsupportedOperation, match=r"spark\.sql\.ansi\.enabled = false"):
                query()
        assert list(db.views) == ["v"]
        db.verify()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.sql.ansi.enabled": "TRUE", "spark.sql.legacy.timeParserPolicy": "corrected"},
        {"spark.sql.legacy.parquet.nanosAsLong": "true", "spark.sql.legacy.ofOurOwn": "1"},
        {"spark.sql.shuffle.partitions": "3", "spark.sql.adaptive.enabled": "false"},
    ],
)
def test_defaults_and_what_is_not_about_answers(spark: SparkSession, backend: str, settings: dict[str, str]) -> None:
    """A plain session, defaults said aloud, and settings for files and speed are all as good as none."""
    with _filled(backend, _session(spark, settings)) as db:
        assert sorted(db.create_view("v", "SELECT K FROM t").rows()) == [(1,), (2,), (2,)]


def test_the_active_session_stays_the_users(spark: SparkSession) -> None:
    """Translating and verifying happens in a session of ours, which must not become the one that the program goes on with."""
    session = _session(spark, {})
    session.createDataFrame([(1,)], "k int")  # PySpark makes a session active when it makes a DataFrame
    with _filled("embedded", session) as db:
        db.create_view("v", "SELECT k FROM t")
        db.spark_table("t")
        db.verify()
    active = type(session).getActiveSession()
    assert active is not None
    assert active._jsparkSession.equals(session._jsparkSession)


def test_a_database_is_opened_with_other_settings(spark: SparkSession, tmp_path: Path) -> None:
    """A view means what it meant when it was made, whatever the session says that opens the database later."""
    made = _session(spark, {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.groupByOrdinal": "false"})
    with ev.connect(tmp_path, backend="spark", spark=made) as db:
        db.create_table("t", _COLUMNS).insert(_ROWS)
        db.create_view("v", "SELECT 'x' AS x, count(*) AS c FROM t GROUP BY 1")
        db.create_view("w", "SELECT date_format(timestamp_seconds(k), 'HH') AS h FROM t")
    later = _session(spark, {"spark.sql.session.timeZone": "UTC"})
    with ev.connect(tmp_path, backend="spark", spark=later) as db:
        db.table("t").insert([(3, "c")])
        db.verify()
        assert db.view("w").rows() == [("09",)] * 4
    with pytest.raises(ev.UnsupportedOperation, match=r"spark\.sql\.ansi\.enabled"):
        ev.connect(tmp_path, backend="spark", spark=_session(spark, {"spark.sql.ansi.enabled": "false"}))
