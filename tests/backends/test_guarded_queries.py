"""Whatever goes wrong with a query, the user sees an ``EverviewError``, and nothing is half made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import everview as ev
from everview.frontend import gateway

_UNFORESEEN = [KeyError("plan_tree"), IndexError("tuple index"), AttributeError("no 'x'"), AssertionError("never")]


def _fail(error: BaseException) -> Callable[..., object]:
    def failing(*_args: object, **_named: object) -> object:
        raise error

    return failing


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query is translated: what fails here is the translation."""
    monkeypatch.setenv("EVERVIEW_TRANSLATION_CACHE", "off")


@pytest.fixture
def filled(db: ev.Database) -> ev.Database:
    """A database with a table that has rows."""
    db.create_table("t", "k int, s string").insert([(1, "a"), (2, "b")])
    return db


_CALLS: dict[str, Callable[[ev.Database], object]] = {
    "create_view": lambda db: db.create_view("v", "SELECT k FROM t"),
    "create_assertion": lambda db: db.create_assertion("v", "SELECT k FROM t WHERE k > 9"),
    "select": lambda db: db.sql("SELECT k FROM t"),
    "explain": lambda db: db.sql("EXPLAIN SELECT k FROM t"),
    "update": lambda db: db.sql("UPDATE t SET s = 'z'"),
}


@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize("error", _UNFORESEEN, ids=lambda e: type(e).__name__)
def test_a_mistake_in_translation(
    filled: ev.Database, monkeypatch: pytest.MonkeyPatch, call: str, error: Exception
) -> None:
    """It is an InternalError that has the query and the cause; afterwards the same call works."""
    with monkeypatch.context() as patch:
        patch.setattr(gateway, "translate_plan", _fail(error))
        with pytest.raises(ev.InternalError, match="SELECT") as caught:
            _CALLS[call](filled)
    assert caught.value.__cause__ is error
    assert caught.value.hint is not None
    assert "please report" in caught.value.hint
    assert list(filled.views) == []
    assert list(filled.assertions) == []
    _CALLS[call](filled)


@pytest.mark.parametrize("call", ["create_view", "create_assertion", "select"])
def test_a_mistake_in_the_backend(filled: ev.Database, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """The same holds for what comes after the translation."""
    method = "query" if call == "select" else "create_view"
    with monkeypatch.context() as patch:
        patch.setattr(filled._core.backend, method, _fail(KeyError("x")))
        with pytest.raises(ev.InternalError, match="KeyError: 'x'\nwith the query: SELECT"):
            _CALLS[call](filled)
    _CALLS[call](filled)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), OSError(28, "disk full")])
def test_what_is_no_mistake_is_not_called_one(
    filled: ev.Database, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """An interrupt, and what the machine lacks, come through as they are."""
    monkeypatch.setattr(gateway, "translate_plan", _fail(error))
    with pytest.raises(type(error)):
        filled.create_view("v", "SELECT k FROM t")
    assert list(filled.views) == []


def test_a_query_that_is_too_deep(filled: ev.Database) -> None:
    """A condition of thousands of terms is refused, or answered, but is no RecursionError."""
    deep = " OR ".join(f"k + {i} = {i}" for i in range(3000))
    try:
        view = filled.create_view("v", f"SELECT k FROM t WHERE {deep}")
    except (ev.UnsupportedQuery, ev.InvalidQuery):
        assert list(filled.views) == []
    else:
        assert view.rows() == []


@pytest.mark.parametrize("query", [5, None, b"SELECT 1", ["SELECT 1"]])
def test_what_is_no_query(filled: ev.Database, query: object) -> None:
    """Anything but text or a DataFrame is refused for what it is."""
    with pytest.raises(ev.InvalidQuery, match=f"of type {type(query).__name__}"):
        filled.create_view("v", query)  # type: ignore[arg-type]
