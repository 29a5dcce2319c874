"""Codes of strings that nothing holds any more are given back, and given to other strings, without anybody noticing."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import everview as ev
from everview.backends.embedded import code_sweep
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.code_sweep import CodeSweep
from everview.backends.embedded.dictionary import Dictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "grouped": "SELECT s, count(*) AS n, min(t) AS low, max(t) AS high FROM r GROUP BY s",
    "computed": "SELECT upper(s) AS u, concat(s, '-', t) AS c, count(*) AS n FROM r GROUP BY 1, 2",
    "tested": "SELECT k, s FROM r WHERE t LIKE '%1%' AND s <> 'word 3'",
    "joined": "SELECT r.s, q.t, count(*) AS n, sum(q.k) AS k FROM r JOIN q ON r.s = q.s GROUP BY r.s, q.t",
    "listed": "SELECT r.k, r.s, q.t FROM r JOIN q ON r.t = q.t AND r.s < q.s",
    "outer_joined": "SELECT r.s, q.k FROM r LEFT JOIN q ON r.s = q.s AND r.t <= q.t",
    "unmatched": "SELECT s FROM r WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.s = r.s)",
    "different": "SELECT s FROM r EXCEPT SELECT t FROM q",
    "ranked": "SELECT s, t, row_number() OVER (PARTITION BY k % 3 ORDER BY s, t, k) AS n FROM r",
    "top": "SELECT s, t, k FROM r ORDER BY s DESC, t, k LIMIT 4",
    "exploded": "SELECT w, count(*) AS n FROM (SELECT explode(split(s, ' ')) AS w FROM r) GROUP BY w",
    "nested": "SELECT max(struct(s, k)) AS m, min(array(t, s)) AS a, k % 2 AS g FROM r GROUP BY k % 2",
    "over_view": "SELECT low, sum(n) AS n FROM grouped GROUP BY low",
}


@pytest.fixture
def sweeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every transaction there is a sweep."""
    monkeypatch.setattr(CodeSweep, "is_due", lambda _self, _changed: True)


def rows_at(step: int, count: int) -> list[tuple[int, str | None, str]]:
    """Rows with strings of their own and some that come again."""
    rng = random.Random(step)
    words = [f"word {rng.randrange(6)}", f"only {step} {rng.randrange(9)}", None, f"a{step}"]
    return [(rng.randrange(50), rng.choice(words), f"{rng.randrange(4)}-{rng.choice(words)}") for _ in range(count)]


def contents(db: ev.Database) -> dict[str, list[Any]]:
    """The rows of all tables and views."""
    kept: dict[str, Any] = {t: db.table(t) for t in "rq"} | {v: db.view(v) for v in VIEWS}
    return {name: sorted(rows, key=repr) for name, rows in kept.items()}


@pytest.mark.usefixtures("sweeping")
def test_views_do_not_notice_a_sweep(spark: SparkSession) -> None:
    """With a sweep after every transaction views are what the reference says, and so are deltas, however late they are read."""
    with ev.connect(spark=spark) as db, ev.connect(backend="reference", spark=spark) as reference:
        commits = []
        live: list[dict[str, list[Any]]] = []
        for one in (db, reference):
            one.create_table("r", "k int, s string, t string")
            one.create_table("q", "k int, s string, t string")
            for name, query in VIEWS.items():
                one.create_view(name, query, lazy=name in ("top", "computed"))
        for step in range(14):
            change = {"r": rows_at(step, 12), "q": rows_at(step + 100, 8)}
            commits.append((db.apply(change), reference.apply(change)))
            live.append(change)
            if len(live) > 3:
                for name, gone in live.pop(0).items():
                    for one in (db, reference):
                        one.table(name).delete(gone)
            if step == 6:
                with pytest.raises(ev.InvalidChange):
                    db.apply(
                        {"r": rows_at(77, 5), "q": pa.table({"k": [1], "s": ["no"], "t": ["no"], "_weight": [-1]})}
                    )
            if step % 3 == 2:
                assert contents(db) == contents(reference)
        for ours, theirs in commits:
            told = {name: sorted(delta.to_pylist(), key=repr) for name, delta in ours.changes.items()}
            assert told == {
                name: sorted(delta.to_pylist(), key=repr)
                for name, delta in theirs.changes.items()
                if name not in ("top", "computed")
            }
        for name in ("grouped", "exploded", "nested"):
            both = [
                one.view(name).changes(since=0).to_arrow().drop_columns("_commit_timestamp") for one in (db, reference)
            ]
            ours, theirs = (sorted(map(repr, changes.to_pylist())) for changes in both)
            assert ours == theirs


def test_the_dictionary_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many strings come and go: the dictionary never has more than those that are there, a history, and as many again."""
    monkeypatch.setattr(code_sweep, "LEAST_VALUES", 1000)
    monkeypatch.setattr(code_sweep, "PAUSE", 0.0)
    with ev.connect(history=2) as db:
        table = db.create_table("t", "k bigint, s string", primary_key="s")
        backend = db._core.backend
        assert isinstance(backend, EmbeddedBackend)
        dictionary: Dictionary = backend._dictionary
        before = dictionary.nbytes
        most = 0
        for step in range(30):
            rows = pa.table(
                {"k": range(2000), "s": [f"a string of step {step} that is number {i}" for i in range(2000)]}
            )
            table.insert(rows)
            most = max(most, dictionary.count)
            table.delete_keys(rows.select(["s"]))
        for _ in range(5):
            table.insert([(1, "x")])
            table.delete_keys([("x",)])
        assert backend._sweep.sweeps > 5
        assert most <= 8000
        assert dictionary.count < 100
        assert dictionary.nbytes < before + 100_000


@pytest.mark.usefixtures("sweeping")
def test_what_a_removed_entry_leaves_behind_keeps_no_string(spark: SparkSession) -> None:
    """Strings that pass through indexes, groups, extremes and distinct rows go, though later rows stay behind them."""
    queries = (
        "SELECT s, count(*) AS n, sum(v) AS v FROM t GROUP BY s",
        "SELECT id, s FROM t WHERE v % 2 = 0",
        "SELECT DISTINCT s FROM t",
        "SELECT v % 10 AS k, max(s) AS m FROM t GROUP BY v % 10",
    )
    live = 40_000
    with ev.connect(spark=spark, history=0) as db:
        table = db.create_table("t", "id bigint, s string, v bigint", primary_key="id")
        for number, query in enumerate(queries):
            db.create_view(f"v{number}", query)
        backend = db._core.backend
        assert isinstance(backend, EmbeddedBackend)
        for step in range(4):
            ids = range(10**9 + live * step, 10**9 + live * (step + 1))
            table.insert(pa.table({"id": ids, "s": [f"text {i}" for i in ids], "v": ids}))
            if step:
                table.delete_keys(pa.table({"id": [i - live for i in ids]}))
        table.insert([(1, "x", 1)])  # the deltas of the transaction before are held no longer
        assert backend._dictionary.count < 1.5 * live
        table.delete_keys(pa.table({"id": ids[:-1]}))
        table.insert([(2, "x", 1)])
        assert backend._dictionary.count < 0.5 * live


def test_a_dictionary_without_use_costs_no_sweep() -> None:
    """As long as there are few strings nothing is swept."""
    with ev.connect() as db:
        table = db.create_table("t", "s string")
        for i in range(50):
            table.insert([(f"s{i}",)])
        backend = db._core.backend
        assert isinstance(backend, EmbeddedBackend)
        assert backend._sweep.sweeps == 0
