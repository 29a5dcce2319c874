"""UNIQUE and FOREIGN KEY: what is rejected, when, and what the planner makes of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import everview as ev


@pytest.fixture(params=["reference", "embedded"])
def backend(request: pytest.FixtureRequest) -> str:
    """The backends that check constraints."""
    return str(request.param)


@pytest.fixture
def shop(backend: str) -> Iterator[ev.Database]:
    """Parents with two keys besides the primary one, and children that refer to them."""
    with ev.connect(backend=backend) as database:
        database.sql("CREATE TABLE p (id INT PRIMARY KEY, code STRING UNIQUE, a INT, b INT, UNIQUE (a, b))")
        database.sql(
            "CREATE TABLE c (x INT, pid INT REFERENCES p, code STRING, FOREIGN KEY (code) REFERENCES P (Code))"
        )
        database.table("p").insert([(1, "x", 1, 1), (2, None, None, 1), (3, None, None, 1)])
        database.table("c").insert([(1, 1, "x"), (2, None, None), (3, 2, None), (3, 2, None)])
        yield database


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda db: db.table("p").insert([(4, "x", 2, 2)]),
            "table 'p' has UNIQUE (code), and several rows would have ('x').",
        ),
        (
            lambda db: db.table("p").upsert([(2, None, 5, 5), (3, None, 5, 5)]),
            "table 'p' has UNIQUE (a, b), and several rows would have (5, 5).",
        ),
        (
            lambda db: db.table("c").insert([(1, 9, None)]),
            "table 'c' has FOREIGN KEY (pid) REFERENCES p (id), and would refer to rows that are not there: (9).",
        ),
        (lambda db: db.table("p").delete_keys([2]), "would refer to rows that are not there: (2)."),
        (lambda db: db.table("p").upsert([(1, "z", 1, 1)]), "FOREIGN KEY (code) REFERENCES p (code), and would refer"),
    ],
)
def test_what_breaks_a_constraint_is_rejected(
    shop: ev.Database, change: Callable[[ev.Database], Any], message: str
) -> None:
    """Of both tables, by inserts, deletes and updates; NULLs repeat and refer to nothing; nothing has changed."""
    before = [sorted(shop.table(t).rows(), key=str) for t in ("p", "c")]
    with pytest.raises(ev.InvalidChange, match=re.escape(message)):
        change(shop)
    assert [sorted(shop.table(t).rows(), key=str) for t in ("p", "c")] == before


def test_constraints_are_checked_at_the_end(shop: ev.Database) -> None:
    """A transaction may change the child first, and may exchange the values of a key."""
    with shop.transaction() as tx:
        tx.insert("c", [(7, 7, "seven")])
        tx.delete("c", [(3, 2, None), (3, 2, None)])
        tx.insert("p", [(7, "seven", 7, 7)])
        tx.delete_keys("p", [2])
    with shop.transaction() as tx:
        tx.upsert("p", [(1, "seven", 7, 7), (7, "x", 1, 1)])
    assert Counter(r[0] for r in shop.table("p").rows()) == Counter({1: 1, 3: 1, 7: 1})


def test_tables_come_and_go_with_their_constraints(shop: ev.Database) -> None:
    """A constraint is no view and no assertion; a parent stays as long as a child refers to it."""
    assert not shop.views
    assert not shop.assertions
    with pytest.raises(ev.EverviewError, match="table 'c' has FOREIGN KEY"):
        shop.drop("p")
    shop.drop("c")
    shop.drop("p")
    shop.create_table("p", "id int").insert([(1,), (1,)])
    assert shop.table("p").rows() == [(1,), (1,)]


def test_a_table_may_refer_to_itself(backend: str) -> None:
    """A tree of rows: the root refers to nothing, and a branch may come in one piece."""
    with ev.connect(backend=backend) as db:
        table = db.create_table("t", "id int, up int", primary_key="id", foreign_keys={"up": "t"})
        table.insert([(1, None), (3, 2), (2, 1)])
        with pytest.raises(ev.InvalidChange, match="REFERENCES t"):
            table.delete_keys([2])
        table.delete([(3, 2), (2, 1)])
        assert table.rows() == [(1, None)]


@pytest.mark.parametrize(
    ("schema", "options", "error", "message"),
    [
        ("a int REFERENCES nowhere", {}, ev.UnknownName, "there is no table 'nowhere'."),
        (
            "a int REFERENCES p (name)",
            {},
            ev.InvalidQuery,
            "FOREIGN KEY (a) REFERENCES p (name) of table 't' refers to no key",
        ),
        ("a int, b int", {"foreign_keys": {("a", "b"): "p"}}, ev.InvalidQuery, "refers to no key of table 'p'."),
        ("a bigint REFERENCES p", {}, ev.InvalidQuery, "compares bigint 'a' with int 'id'"),
        ("a int REFERENCES gone", {}, ev.UnsupportedOperation, "table 'gone' keeps no rows (retain=False)"),
        ("a int UNIQUE", {"retain": False}, ev.UnsupportedOperation, "UNIQUE (a) of table 't' cannot be checked"),
    ],
)
def test_constraints_that_cannot_be_checked_are_refused(
    backend: str, schema: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    """By name, when the table is created; there is no such table then."""
    with ev.connect(backend=backend) as db:
        db.create_table("p", "id int, name string", primary_key="id")
        db.create_table("gone", "id int", primary_key="id", retain=False)
        with pytest.raises(error, match=re.escape(message)):
            db.create_table("t", schema, **options)
        assert list(db.tables) == ["p", "gone"]


def test_spark_refuses_them(spark: SparkSession) -> None:
    """What a backend does not check it does not promise."""
    with ev.connect(backend="spark", spark=spark) as db:
        with pytest.raises(ev.UnsupportedOperation, match=r"does not check UNIQUE \(a\) of table 't'"):
            db.create_table("t", "a int", unique=["a"])
        assert not db.tables


KEYS = st.sampled_from([None, 1, 2, 3])


@given(st.lists(st.lists(st.tuples(st.booleans(), st.booleans(), KEYS, KEYS), min_size=1, max_size=4), max_size=8))
def test_any_stream_of_changes(stream: list[list[tuple[bool, bool, int | None, int | None]]]) -> None:
    """A transaction passes exactly if the rows that it would leave satisfy the constraints."""
    with ev.connect() as db:
        db.create_table("p", "k int, v int", unique=[("k", "v"), "k"])
        db.create_table("c", "k int, v int", foreign_keys={("k", "v"): ("p", ("k", "v"))})
        held: dict[str, Counter[tuple[int | None, int | None]]] = {"p": Counter(), "c": Counter()}
        for changes in stream:
            then = {name: Counter(rows) for name, rows in held.items()}
            given: dict[str, list[tuple[int | None, int | None, int]]] = {}
            for is_parent, deletes, k, v in changes:
                name = "p" if is_parent else "c"
                sign = -1 if deletes and then[name][k, v] else 1
                then[name][k, v] += sign
                given.setdefault(name, []).append((k, v, sign))
            parents = Counter(r[0] for r in then["p"].elements() if r[0] is not None)
            is_fine = max(parents.values(), default=0) <= 1 and all(
                then["p"][row] for row in then["c"].elements() if None not in row
            )
            batch = {
                name: [dict(zip(("k", "v", "_weight"), r, strict=True)) for r in rows] for name, rows in given.items()
            }
            if is_fine:
                db.apply(batch)
                held = then
            else:
                with pytest.raises(ev.InvalidChange):
                    db.apply(batch)
            for name, rows in held.items():
                assert Counter(db.table(name).rows()) == +rows


ALONG = {
    "inner": "SELECT sum(x) AS s, count(*) AS n FROM c JOIN p ON pid = id",
    "keys": "SELECT p.id, sum(x) AS s FROM p JOIN c ON pid = id GROUP BY p.id",
    "left": "SELECT x, p.id FROM c LEFT JOIN p ON pid = id",
    "right": "SELECT x, p.id FROM p RIGHT JOIN c ON pid = id",
    "semi": "SELECT x FROM c WHERE EXISTS (SELECT 1 FROM p WHERE p.id = c.pid)",
    "grouped": "SELECT n, p.id FROM (SELECT pid, count(*) AS n FROM c GROUP BY pid) JOIN p ON pid = id",
    "chain": "SELECT x, q.id FROM c JOIN p ON pid = p.id JOIN p q ON q.id = p.up",
    "both": "SELECT x, p.a, p.b FROM c JOIN p ON c.a = p.a AND c.b = p.b",
    "padded": "SELECT c.x, d.id FROM p LEFT JOIN c ON p.up = c.x LEFT JOIN p d ON c.pid = d.id",
}
"""Joins along foreign keys, of which nothing but the key is read: the parent is not read."""
READ_ONCE = ("padded", "chain")
"""Of these one occurrence of the parent is left."""
KEPT = {
    "anti": "SELECT x FROM c WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.id = c.pid)",
    "parents": "SELECT x, p.id FROM p LEFT JOIN c ON pid = id",
    "filtered": "SELECT x FROM c JOIN p ON pid = id WHERE up > 0",
    "further": "SELECT x, p.id FROM c JOIN p ON pid = id AND p.id < x",
    "crossed": "SELECT x, p.a, p.b FROM c JOIN p ON c.a = p.b AND c.b = p.a",
    "halves": "SELECT x, p.a, p.b FROM c LEFT JOIN p ON c.a = p.a AND c.b = p.b",
    "two": "SELECT x, p.a FROM (SELECT c.x, c.a, d.b FROM c JOIN c d ON c.x = d.x) e JOIN p ON e.a = p.a AND e.b = p.b",
    "other": "SELECT x, p.id FROM c JOIN p ON c.x = p.id",
    "matched": "SELECT x, p.up FROM c LEFT JOIN p ON must = id",
    "values": "SELECT sum(x * p.up) AS s, sum(q.up) AS t FROM c LEFT JOIN p ON must = p.id LEFT JOIN p q ON p.up = q.id",
}
"""What foreign keys say nothing of, or where the parent is read."""


def test_joins_along_foreign_keys_have_the_rows_of_the_reference(spark: SparkSession) -> None:
    """After every transaction, passed or rejected, of parent and child at once, with NULL in any part of a key."""
    with ev.connect(spark=spark) as ours, ev.connect(backend="reference", spark=spark) as theirs:
        for db in (ours, theirs):
            db.sql("""
                CREATE TABLE p (id INT PRIMARY KEY, a INT, b INT, up INT NOT NULL REFERENCES p, UNIQUE (a, b));
                CREATE TABLE c (x INT, pid INT REFERENCES p, a INT, b INT, must INT NOT NULL REFERENCES p,
                                FOREIGN KEY (a, b) REFERENCES p (a, b))
            """)
            db.apply({"p": [(1, 1, 1, 1), (2, 1, 2, 1), (3, None, 2, 3)]})
            for name, query in {**ALONG, **KEPT}.items():
                db.create_view(name, query)
        for name in ALONG:
            assert ("\na changed row of p costs nothing: " in ours.view(name).explain()) == (name not in READ_ONCE), (
                name
            )
        for name in KEPT:
            assert "costs nothing" not in ours.view(name).explain(), name
        assert "anti join" not in ours.view("matched").explain(), "an outer join whose rows all find a partner"
        assert "by view trees\n" in ours.view("values").explain()
        rng = Random(12)
        passed = [_changed_alike(ours, theirs, rng) for _ in range(60)]
        assert 15 <= sum(passed) <= 45, "transactions of both kinds"


def _changed_alike(ours: ev.Database, theirs: ev.Database, rng: Random) -> bool:
    """Whether one more transaction has passed; afterwards the views of both hold the same."""
    pairs = [(1, 1), (1, 2), (2, 2), (None, 2), (2, None), (None, None)]
    parents = {r[0]: r for r in theirs.table("p").rows()}
    children = theirs.table("c").rows()
    gone = rng.sample(children, min(len(children), rng.randint(0, 3)))
    more = [
        (rng.randint(1, 4), rng.choice([None, 1, 2, 3]), *rng.choice(pairs), rng.randint(1, 3))
        for _ in range(rng.randint(0, 3))
    ]
    key = rng.randint(1, 4)
    upserted = (key, *rng.choice(pairs), rng.choice([key, 1]))
    outcomes = []
    for db in (ours, theirs):
        try:
            with db.transaction() as tx:
                tx.delete("c", gone)
                tx.insert("c", more)
                if key % 2:
                    tx.upsert("p", [upserted])
                elif key in parents:
                    tx.delete_keys("p", [key])
        except ev.InvalidChange:
            outcomes.append(False)
        else:
            outcomes.append(True)
    for name in (*ALONG, *KEPT):
        assert Counter(ours.view(name).rows()) == Counter(theirs.view(name).rows()), name
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


def test_rows_that_refer_to_nothing_can_be_put_aside(spark: SparkSession) -> None:
    """An assertion sees the transaction before foreign keys are checked, and is not planned as if they were true already."""
    with ev.connect(spark=spark) as db:
        db.sql("CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (x INT, pid INT NOT NULL REFERENCES p)")
        orphans = "SELECT * FROM c WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.id = c.pid)"
        db.create_assertion("orphans", orphans, on_violation="quarantine")
        view = db.create_view("v", "SELECT id, count(*) AS n FROM c JOIN p ON pid = id GROUP BY id")
        db.apply({"p": [(1,)], "c": [(1, 1), (2, 5)]})
        assert db.table("c").rows() == [(1, 1)]
        assert view.rows() == [(1, 1)]


def test_four_ways_to_know_a_key(spark: SparkSession) -> None:
    """Through a cast, with a part fixed, of a view that groups, and declared UNIQUE: a changed row costs O(1)."""
    with ev.connect(spark=spark) as db:
        db.sql("""
            CREATE TABLE fact (k BIGINT NOT NULL, g INT, code STRING, m INT NOT NULL);
            CREATE TABLE wide (k INT PRIMARY KEY, v INT);
            CREATE TABLE parts (k BIGINT, b INT, v INT, PRIMARY KEY (k, b));
            CREATE TABLE codes (code STRING UNIQUE, v INT);
            CREATE MATERIALIZED VIEW best AS SELECT g, max(v) AS v FROM wide JOIN fact USING (k) GROUP BY g
        """)
        ways = {
            "cast": "wide d ON f.k = d.k",
            "part": "parts d ON f.k = d.k AND d.b = 0",
            "group": "best d ON f.g = d.g",
            "unique": "codes d ON f.code = d.code",
        }
        for name, joined in ways.items():
            view = db.create_view(name, f"SELECT f.m, d.v, count(*) AS n FROM fact f JOIN {joined} GROUP BY f.m, d.v")
            if name != "group":  # which is computed from the same table, by a join
                assert "a changed row of fact costs O(1): one look-up (" in view.explain(), view.explain()
            assert "fact: dependencies fix what is looked up: " in view.explain(), view.explain()
        bag = db.create_view(
            "bag", "SELECT f.m, d.v, count(*) AS n FROM fact f JOIN codes d ON f.code <=> d.code GROUP BY 1, 2"
        )
        assert "row of fact costs O(matches): " in bag.explain(), "codes may be NULL any number of times"
