"""When a kept translation stands in for Spark, and when Spark must be asked; a stand-in plays Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everview.errors import EverviewError, InvalidQuery, UnknownName, UnsupportedQuery
from everview.frontend import translator
from everview.frontend.translated import SessionReach, SessionSettings, Translated
from everview.frontend.translation_cache import TranslationCache
from everview.frontend.translator import Translator
from everview.relational.nodes import Field, Scan, Schema
from everview.relational.types import INT32, STRING

A, B = (Field("a", INT32),), (Field("b", STRING),)
TABLES: dict[str, Schema] = {"t": A, "u": B}
PLAIN = SessionReach(SessionSettings("UTC"), "spark 4")


class Spark:
    """Counts what it is asked, and answers with the table that a query ends with."""

    def __init__(self, reach: SessionReach | None = PLAIN, error: EverviewError | None = None) -> None:
        self.asked: list[str] = []
        self.started: tuple[str, SessionReach] | None = None
        self._reach = reach
        self._error = error

    def reach(self, _text: str) -> SessionReach | None:
        return self._reach

    def translate(self, query: str) -> Translated:
        self.asked.append(query)
        if self.started is None and self._reach is not None:
            self.started = (translator.environment_of_spark(), self._reach)
        if self._error is not None:
            raise self._error
        table = query.rsplit(maxsplit=1)[-1]
        settings = self._reach.settings if self._reach is not None else SessionSettings("UTC")
        return Translated(Scan(table, TABLES[table]), query, settings)


@pytest.fixture(autouse=True)
def _no_spark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator, "is_spark_running", lambda: False)


def _translate(cache: TranslationCache, spark: Spark, query: str, has_session: bool = False, **names: Schema) -> Any:
    return Translator(cache, lambda: spark, has_session).translate(query, names or TABLES)  # type: ignore[arg-type,return-value]


def test_the_second_process_asks_nobody(tmp_path: Path) -> None:
    """A process that starts later has the plan and the settings without Spark."""
    cache, first, second = TranslationCache(tmp_path), Spark(), Spark()
    told = _translate(cache, first, "SELECT * FROM t")
    assert _translate(cache, second, "SELECT * FROM t") == told
    assert (first.asked, second.asked) == (["SELECT * FROM t"], [])


def test_a_table_that_is_not_mentioned_plays_no_part(tmp_path: Path) -> None:
    """Another table may come, go or change; the columns of one that is mentioned may not."""
    cache, spark = TranslationCache(tmp_path), Spark()
    _translate(cache, spark, "SELECT * FROM t", t=A)
    _translate(cache, spark, "SELECT * FROM t", t=A, u=B)
    assert len(spark.asked) == 1
    _translate(cache, spark, "SELECT * FROM t", t=B)
    _translate(cache, spark, "SELECT * FROM t", t=(Field("a", INT32, nullable=False),))
    assert len(spark.asked) == 3


def test_names_made_by_expressions(tmp_path: Path) -> None:
    """IDENTIFIER(…) may mean any table, so all of them decide."""
    cache, spark = TranslationCache(tmp_path), Spark()
    _translate(cache, spark, "SELECT * FROM IDENTIFIER('x' || '') -- t", t=A)
    _translate(cache, spark, "SELECT * FROM IDENTIFIER('x' || '') -- t", t=A, u=B)
    assert len(spark.asked) == 2


@pytest.mark.parametrize(
    "text",
    ["SELECT DATE'today' FROM t", "SELECT TIMESTAMP 'Now UTC' FROM t", r"SELECT DATE'to\u0064ay' FROM t"],
)
def test_a_query_of_the_moment_is_asked_each_time(tmp_path: Path, text: str) -> None:
    """What Spark's parser reads from the clock is never kept."""
    cache, spark = TranslationCache(tmp_path), Spark()
    _translate(cache, spark, text)
    _translate(cache, spark, text)
    assert len(spark.asked) == 2


def test_a_session_with_names_of_its_own_is_asked_each_time(tmp_path: Path) -> None:
    """Where the user's catalog may resolve something, nothing is taken from the cache and nothing is put there."""
    cache, plain, special = TranslationCache(tmp_path), Spark(), Spark(reach=None)
    _translate(cache, special, "SELECT * FROM t", has_session=True)
    _translate(cache, plain, "SELECT * FROM t", has_session=True)
    _translate(cache, special, "SELECT * FROM t", has_session=True)
    assert (len(special.asked), len(plain.asked)) == (2, 1)


def test_other_settings_are_other_translations(tmp_path: Path) -> None:
    """A session with another time zone, or another analyzer, has its own."""
    cache = TranslationCache(tmp_path)
    reaches = [PLAIN, SessionReach(SessionSettings("Asia/Tokyo"), "spark 4"), SessionReach(PLAIN.settings, "other")]
    for reach in reaches:
        spark = Spark(reach)
        for _ in range(2):
            assert _translate(cache, spark, "SELECT * FROM t", has_session=True).settings == reach.settings
        assert len(spark.asked) == 1


def test_another_environment_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session would be is known only for the environment that one was started in."""
    cache, spark = TranslationCache(tmp_path), Spark()
    _translate(cache, spark, "SELECT * FROM t")
    monkeypatch.setenv("TZ", "Mars/Olympus")
    _translate(cache, spark, "SELECT * FROM t")
    assert len(spark.asked) == 2


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedQuery("no.", operator="Sample", hint="do not."),
        UnknownName("column 'x' cannot be resolved.", hint="did you mean 'a'?"),
        InvalidQuery("[PARSE_SYNTAX_ERROR] Syntax error."),
    ],
)
def test_a_refusal_is_repeated_in_its_own_words(tmp_path: Path, error: EverviewError) -> None:
    """The same error comes without Spark, as long as the same names exist: its hint may be one of them."""
    cache, spark = TranslationCache(tmp_path), Spark(error=error)
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            _translate(cache, spark, "SELECT x FROM t")
        assert (str(caught.value), caught.value.hint) == (str(error), error.hint)
        assert getattr(caught.value, "operator", None) == getattr(error, "operator", None)
    assert len(spark.asked) == 1
    with pytest.raises(type(error)):
        _translate(cache, spark, "SELECT x FROM t", t=A, x=B)
    assert len(spark.asked) == 2


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedQuery("StackOverflowError", operator="Spark's analyzer"),
        InvalidQuery("[PATH_NOT_FOUND] Path does not exist."),
    ],
)
def test_a_refusal_that_may_pass_is_not_kept(tmp_path: Path, error: EverviewError) -> None:
    """What hangs on files or on memory is asked again."""
    cache, spark = TranslationCache(tmp_path), Spark(error=error)
    for _ in range(2):
        with pytest.raises(type(error)):
            _translate(cache, spark, "SELECT x FROM t")
    assert len(spark.asked) == 2
