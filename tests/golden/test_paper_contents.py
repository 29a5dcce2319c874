"""What the views of the F-IVM paper's examples hold on the embedded engine, number by number.

The database is that of figure 6, or a small one where the paper gives none. Trees are those that ``create_view`` makes, and
where the paper fixes another variable order than the planner finds, trees along that order, made by the same calls.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.golden.paper_engine import (
    CHAIN,
    CHAIN_KEYS,
    CHAIN_ROWS,
    FIGURE_6,
    JOINED,
    MATRIX_SCHEMAS,
    MATRIX_SQL,
    SCHEMAS,
    TRIANGLE,
    TRIANGLE_ROWS,
    TRIANGLE_SQL,
    View,
    along,
    as_payloads,
    as_view,
    contents,
    listed_from,
    matrices,
    relations,
    weighted,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""The payloads p1 to p12 of figure 6, as numbers of which no two products are equal."""
B, D, E = (41, 43, 47, 53), (59, 61, 67, 71), (73, 79, 83, 89)
"""What b1, …, d1, … and e1, … are where they are summed up."""
G_A, G_C = {"a1": 97, "a2": 101, "a3": 103}, {"c1": 107, "c2": 109, "c3": 113}


def figure_6(
    g_b: tuple[int, ...], g_d: tuple[int, ...], g_e: tuple[int, ...], p: tuple[int, ...] = P
) -> dict[str, View]:
    """The views of figure 6 as its formulas say, with liftings by position, and 1 for those of A and C."""
    v_r = {"a1": p[0] * g_b[0] + p[1] * g_b[1], "a2": p[2] * g_b[2], "a3": p[3] * g_b[3]}
    v_t = {"c1": p[8] * g_d[0], "c2": p[9] * g_d[1] + p[10] * g_d[2], "c3": p[11] * g_d[3]}
    v_s = {
        ("a1", "c1"): p[4] * g_e[0] + p[5] * g_e[1],
        ("a1", "c2"): p[6] * g_e[2],
        ("a2", "c2"): p[7] * g_e[3],
    }
    v_st = {
        "a1": v_s["a1", "c1"] * v_t["c1"] + v_s["a1", "c2"] * v_t["c2"],
        "a2": v_s["a2", "c2"] * v_t["c2"],
    }
    return {
        "R": v_r,
        "T": v_t,
        "S": v_s,
        "V@C_ST": v_st,
        "V@A_RST": {(): v_r["a1"] * v_st["a1"] + v_r["a2"] * v_st["a2"]},
    }


ONES = (1,) * 4


def numbers(rows: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    """b1, d1, e1, … replaced by what they are as numbers."""
    meant = {f"{letter}{i + 1}": x for letter, xs in (("b", B), ("d", D), ("e", E)) for i, x in enumerate(xs)}
    return {name: [{c: meant.get(str(v), v) for c, v in row.items()} for row in table] for name, table in rows.items()}


def with_payloads(p: tuple[int, ...] = P) -> dict[str, list[dict[str, object]]]:
    """The relations of figure 6, each row with its payload as its multiplicity."""
    rest = iter(p)
    return {name: weighted(SCHEMAS[name], {row: next(rest) for row in rows}) for name, rows in FIGURE_6.items()}


def test_example_8_and_figure_6_count(spark: SparkSession) -> None:
    """All payloads 1, all liftings 1: the views count, and the root has the 10 rows of the join."""
    with relations(spark) as db:
        view = db.create_view("q", f"SELECT SUM(1) AS n FROM {JOINED}")
        db.apply(FIGURE_6)
        assert contents(db) == {
            "R": {"a1": 2, "a2": 1, "a3": 1},
            "T": {"c1": 1, "c2": 2, "c3": 1},
            "S": {("a1", "c1"): 2, ("a1", "c2"): 1, ("a2", "c2"): 1},
            "V@C_ST": {"a1": 4, "a2": 2},
            "V@A_RST": {(): 10},
        }
        assert view.rows() == [(10,)]


@pytest.mark.parametrize("number", ["DOUBLE", "DECIMAL(9, 0)"])
def test_figure_6_over_any_payloads(spark: SparkSession, number: str) -> None:
    """Payloads p1 to p12 and liftings of B, D and E: in the same tree as counts (liftings 1) and as sums, by figure 6."""
    with relations(spark, types=dict.fromkeys("BDE", number)) as db:
        view = db.create_view("q", f"SELECT SUM(B * D * E) AS s, COUNT(*) AS n FROM {JOINED}")
        db.apply(numbers(with_payloads()))
        counts, sums = figure_6(ONES, ONES, ONES), figure_6(B, D, E)
        assert contents(db) == {name: {k: (n, sums[name][k]) for k, n in counts[name].items()} for name in counts}
        assert view.rows() == [(sums["V@A_RST"][()], counts["V@A_RST"][()])]
        db.apply(numbers(with_payloads(tuple(-p for p in P))))
        assert set(map(len, contents(db).values())) == {0}, "what became zero is gone"


def test_figure_6_with_liftings_of_the_join_variables(spark: SparkSession) -> None:
    """A and C are summed up too; we lift them where a relation has them, the paper where they are summed out: one root."""
    with relations(spark, types=dict.fromkeys("ABCDE", "DOUBLE")) as db:
        view = db.create_view("q", f"SELECT SUM(A * B * C * D * E) AS s FROM {JOINED}")
        meant = {**G_A, **G_C}
        rows = {
            n: [{c: meant.get(str(v), v) for c, v in r.items()} for r in t] for n, t in numbers(with_payloads()).items()
        }
        db.apply(rows)
        inner = figure_6(B, D, E)
        v_st = {a: sum(s * inner["T"][c] * G_C[c] for (x, c), s in inner["S"].items() if x == a) for a in ("a1", "a2")}
        expected = sum(v_st[a] * inner["R"][a] * G_A[a] for a in ("a1", "a2"))
        assert view.rows() == [(expected,)]


def test_figure_5_and_example_5(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """SUM(B * D * E) by A and C, in the tree of figure 5: the view at C, and the root."""
    along(monkeypatch, "A - C")
    with relations(spark, types=dict.fromkeys("BDE", "DOUBLE")) as db:
        view = db.create_view("q", f"SELECT A, C, SUM(B * D * E) AS s FROM {JOINED} GROUP BY A, C")
        db.apply(numbers(with_payloads()))
        n, s = figure_6(ONES, ONES, ONES), figure_6(B, D, E)
        v_st = {(a, c): (n["S"][a, c] * n["T"][c], s["S"][a, c] * s["T"][c]) for a, c in s["S"]}
        root = {(a, c): (count * n["R"][a], total * s["R"][a]) for (a, c), (count, total) in v_st.items()}
        found = contents(db)
        assert found["V@C_ST"] == v_st
        assert found["V@A_RST"] == root
        assert set(view.rows()) == {(a, c, total) for (a, c), (_, total) in root.items()}


def test_figure_5_as_it_is_planned(spark: SparkSession) -> None:
    """Left to itself the planner does not store the view at C, which has the keys of the root: the same root."""
    with relations(spark, types=dict.fromkeys("BDE", "DOUBLE")) as db:
        db.create_view("q", f"SELECT A, C, SUM(B * D * E) AS s FROM {JOINED} GROUP BY A, C")
        db.apply(numbers(with_payloads()))
        found = contents(db)
        assert set(found) == {"R", "S", "T", "V@A_RST"}
        s = figure_6(B, D, E)
        assert {k: total for k, (_, total) in found["V@A_RST"].items()} == {
            (a, c): x * s["T"][c] * s["R"][a] for (a, c), x in s["S"].items()
        }


def test_figure_10_and_example_16(spark: SparkSession) -> None:
    """The factorized result Q[A, B, C]: H views to list from, V views to update by."""
    with relations(spark) as db:
        db.create_view("q", f"SELECT A, B, C FROM {JOINED}", representation="factorized")
        db.apply(FIGURE_6)
        assert contents(db) == {
            "H@A_RST": {"a1": 8, "a2": 2},
            "V@B_R": {"a1": 2, "a2": 1, "a3": 1},
            "R": {("a1", "b1"): 1, ("a1", "b2"): 1, ("a2", "b3"): 1, ("a3", "b4"): 1},
            "V@C_ST": {"a1": 4, "a2": 2},
            "H@C_ST": {("a1", "c1"): 2, ("a1", "c2"): 2, ("a2", "c2"): 2},
            "T": {"c1": 1, "c2": 2, "c3": 1},
            "S": {("a1", "c1"): 2, ("a1", "c2"): 1, ("a2", "c2"): 1},
        }


def test_example_19(spark: SparkSession) -> None:
    """A is listed from the top view, B from R, C from the view at C; a row's payload is R[a, b] times that of (a, c)."""
    with relations(spark) as db:
        view = db.create_view(
            "q", f"SELECT A, B, C, COUNT(*) AS n FROM {JOINED} GROUP BY A, B, C", representation="factorized"
        )
        db.apply(with_payloads())
        found = contents(db)
        expected = {
            (a, b, c, r * h) for (a, b), r in found["R"].items() for (x, c), h in found["H@C_ST"].items() if a == x
        }
        assert len(expected) == 5
        assert set(view) == expected
        v = figure_6(ONES, ONES, ONES)
        assert found["H@C_ST"] == {(a, c): s * v["T"][c] for (a, c), s in v["S"].items()}
        assert listed_from(db) == (("A", "H@A_RST"), ("B", "R"), ("C", "H@C_ST"))


def test_remark_18(spark: SparkSession) -> None:
    """Above the lowest views of free variables only multiplicities are kept: no sum in the views at A and below it."""
    with relations(spark, types=dict.fromkeys("BDE", "DOUBLE")) as db:
        sql = f"SELECT A, B, C, SUM(D * E) AS s FROM {JOINED} GROUP BY A, B, C"
        view = db.create_view("q", sql, representation="factorized")
        db.apply(numbers(with_payloads()))
        found, n, s = contents(db), figure_6(ONES, ONES, ONES), figure_6(ONES, D, E)
        assert found["H@C_ST"] == {(a, c): (n["S"][a, c] * n["T"][c], x * s["T"][c]) for (a, c), x in s["S"].items()}
        assert found["V@C_ST"] == n["V@C_ST"]
        assert found["H@A_RST"] == {a: n["R"][a] * n["V@C_ST"][a] for a in ("a1", "a2")}
        assert ("a2", B[2], "c2", P[2] * s["V@C_ST"]["a2"]) in set(view)


def test_figure_12_and_example_23(spark: SparkSession) -> None:
    """The q-hierarchical query, T with A: the same tree, the view at D by A and C."""
    schemas = {**SCHEMAS, "T": ("A", "C", "D")}
    with relations(spark, schemas) as db:
        view = db.create_view("q", f"SELECT A, B, C FROM {JOINED}", representation="factorized")
        t = [("a1", "c1", "d1"), ("a1", "c2", "d2"), ("a1", "c2", "d3"), ("a2", "c2", "d1"), ("a3", "c3", "d4")]
        db.apply({**FIGURE_6, "T": t})
        assert contents(db) == {
            "H@A_RST": {"a1": 8, "a2": 1},
            "V@B_R": {"a1": 2, "a2": 1, "a3": 1},
            "R": {("a1", "b1"): 1, ("a1", "b2"): 1, ("a2", "b3"): 1, ("a3", "b4"): 1},
            "V@C_ST": {"a1": 4, "a2": 1},
            "H@C_ST": {("a1", "c1"): 2, ("a1", "c2"): 2, ("a2", "c2"): 1},
            "S": {("a1", "c1"): 2, ("a1", "c2"): 1, ("a2", "c2"): 1},
            "T": {("a1", "c1"): 1, ("a1", "c2"): 2, ("a2", "c2"): 1, ("a3", "c3"): 1},
        }
        assert Counter(view) == {
            ("a1", "b1", "c1"): 2,
            ("a1", "b1", "c2"): 2,
            ("a1", "b2", "c1"): 2,
            ("a1", "b2", "c2"): 2,
            ("a2", "b3", "c2"): 1,
        }


def test_figure_14_and_example_27(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """B determines C and C determines D, by primary keys: every view has at most a row for each of its relation."""
    along(monkeypatch, "D - C - B - A")
    with relations(spark, CHAIN, keys=CHAIN_KEYS) as db:
        view = db.create_view("q", f"SELECT A, B, C, D FROM {JOINED}", representation="factorized")
        db.apply(CHAIN_ROWS)
        assert contents(db) == {
            "H@C_RST": {("c1", "d1"): 3, ("c2", "d1"): 1},
            "V@B_RS": {"c1": 3, "c2": 1},
            "H@B_RS": {("b1", "c1"): 2, ("b2", "c1"): 1, ("b3", "c2"): 1},
            "V@A_R": {"b1": 2, "b2": 1, "b3": 1, "b9": 1},
            "R": {("a1", "b1"): 1, ("a2", "b1"): 1, ("a3", "b2"): 1, ("a1", "b3"): 1, ("a4", "b9"): 1},
            "S": {("b1", "c1"): 1, ("b2", "c1"): 1, ("b3", "c2"): 1, ("b4", "c3"): 1},
            "T": {("c1", "d1"): 1, ("c2", "d1"): 1, ("c4", "d2"): 1},
        }
        assert set(view) == {
            ("a1", "b1", "c1", "d1"),
            ("a2", "b1", "c1", "d1"),
            ("a3", "b2", "c1", "d1"),
            ("a1", "b3", "c2", "d1"),
        }


@pytest.mark.parametrize("indicators", ["all", "none"])
def test_figure_16_and_example_31(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, indicators: str) -> None:
    """Over A - B - C the indicator of R leaves only its pairs in the view at C; without it there are all of S and T."""
    along(monkeypatch, "A - B - C", indicators=indicators)  # type: ignore[arg-type]
    with relations(spark, TRIANGLE) as db:
        view = db.create_view("q", TRIANGLE_SQL)
        db.apply(TRIANGLE_ROWS)
        found = contents(db)
        in_r = {("a1", "b1"): 2, ("a1", "b2"): 1}
        others = {("a1", "b3"): 1, ("a2", "b1"): 1, ("a2", "b2"): 1, ("a2", "b3"): 1}
        assert found["V@C_ST"] == (in_r if indicators == "all" else {**in_r, **others})
        assert found["V@A_RST"] == {(): 3}
        assert view.rows() == [(3,)]


LISTED = {
    ("a1", "b1", "c1", "d1"): 2,
    ("a1", "b1", "c2", "d2"): 1,
    ("a1", "b1", "c2", "d3"): 1,
    ("a1", "b2", "c1", "d1"): 2,
    ("a1", "b2", "c2", "d2"): 1,
    ("a1", "b2", "c2", "d3"): 1,
    ("a2", "b3", "c2", "d2"): 1,
    ("a2", "b3", "c2", "d3"): 1,
}
"""The right of figure 18: the payload of its root."""
V_R = {"a1": {"b1": 1, "b2": 1}, "a2": {"b3": 1}, "a3": {"b4": 1}}
V_T = {"c1": {"d1": 1}, "c2": {"d2": 1, "d3": 1}, "c3": {"d4": 1}}
V_S = {("a1", "c1"): {(): 2}, ("a1", "c2"): {(): 1}, ("a2", "c2"): {(): 1}}
"""The black views of figure 18."""


def test_figure_18_and_example_40(spark: SparkSession) -> None:
    """The listing: the red views. Ours keep the values of a payload as further keys, and pass the root on as rows."""
    with relations(spark) as db:
        view = db.create_view("q", f"SELECT A, B, C, D FROM {JOINED}", strategy="factorized", representation="listing")
        db.apply(FIGURE_6)
        found = contents(db)
        assert as_payloads(found["R"], 1) == V_R
        assert as_payloads(found["T"], 1) == V_T
        assert as_payloads(found["S"], 2) == V_S
        assert as_payloads(found["V@C_ST"], 1) == {
            "a1": {("c1", "d1"): 2, ("c2", "d2"): 1, ("c2", "d3"): 1},
            "a2": {("c2", "d2"): 1, ("c2", "d3"): 1},
        }
        assert Counter(view.rows()) == LISTED


def test_figure_18_and_example_41(spark: SparkSession) -> None:
    """The factorization: the blue views, and its size of 13 values where the listing has 32."""
    with relations(spark) as db:
        view = db.create_view("q", f"SELECT A, B, C, D FROM {JOINED}", representation="factorized")
        db.apply(FIGURE_6)
        found = contents(db)
        assert as_payloads(found["H@A_RST"], 0) == {(): {"a1": 8, "a2": 2}}
        assert as_payloads(found["H@C_ST"], 1) == {"a1": {"c1": 2, "c2": 2}, "a2": {"c2": 2}}
        assert as_payloads(found["R"], 1) == V_R
        assert as_payloads(found["T"], 1) == V_T
        assert as_payloads(found["S"], 2) == V_S
        values = sum(len(found[name]) for _, name in listed_from(db))
        assert (values, sum(len(row) for row in LISTED)) == (13, 32)
        assert Counter(view) == LISTED
        assert view.stats()["rows"] == 10


def recomputed(tables: dict[str, Counter[tuple[str, ...]]]) -> Counter[tuple[str, ...]]:
    """The query of example 40 by its definition: sums of products of multiplicities."""
    found: Counter[tuple[str, ...]] = Counter()
    for (a, b), r in tables["R"].items():
        for (a2, c, _), s in tables["S"].items():
            for (c2, d), t in tables["T"].items() if a == a2 else ():
                if c == c2:
                    found[a, b, c, d] += r * s * t
    return found


@pytest.mark.parametrize("seed", range(3))
def test_example_40_under_updates(spark: SparkSession, seed: int) -> None:
    """Section 8.3: after every batch of inserts and deletes, duplicates among them, both representations list the query."""
    rng = random.Random(seed)
    with relations(spark) as db:
        sql = f"SELECT A, B, C, D FROM {JOINED}"
        listing = db.create_view("listing", sql, strategy="factorized", representation="listing")
        factorized = db.create_view("factorized", sql, representation="factorized")
        tables: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in SCHEMAS}
        for batch in range(24):
            name = rng.choice(sorted(SCHEMAS))
            rows = tables[name]
            delta: Counter[tuple[str, ...]] = Counter()
            if batch % 12 == 11:  # all go, and come again later
                delta.subtract(rows)
            for _ in range(rng.randint(1, 6) if batch % 12 != 11 else 0):
                held = [row for row, weight in rows.items() if weight + delta[row] > 0]
                if held and rng.random() < 0.4:
                    delta[rng.choice(held)] -= 1
                else:
                    delta[tuple(f"{column.lower()}{rng.randint(1, 3)}" for column in SCHEMAS[name])] += 1
            changed = {row: weight for row, weight in delta.items() if weight}
            if changed:
                db.apply({name: weighted(SCHEMAS[name], changed)})
            rows.update(changed)
            expected = +recomputed(tables)
            assert Counter(listing.rows()) == expected
            assert Counter(factorized) == expected
            assert factorized.stats()["rows"] == expected.total()


def test_example_41_without_d(spark: SparkSession) -> None:
    """With D bound the factorization is the same but for the values of D."""
    with relations(spark) as db:
        db.create_view("q", f"SELECT A, B, C, D FROM {JOINED}", representation="factorized")
        db.create_view("bound", f"SELECT A, B, C FROM {JOINED}", representation="factorized")
        db.apply(FIGURE_6)
        whole, bound = contents(db), contents(db, "bound")
        assert bound.pop("T") == whole.pop("V@D_T")
        del whole["T"]
        assert bound == whole


def test_example_42(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of four matrices whose values are payloads: the views at X2, X4 and X3 are the products."""
    along(monkeypatch, "X1 - X5 - X3 - {X2, X4}")
    with relations(spark, MATRIX_SCHEMAS, types={f"X{i}": "INT" for i in range(1, 6)}) as db:
        db.create_view("q", MATRIX_SQL)
        a = matrices(3)
        db.apply({name: weighted(MATRIX_SCHEMAS[name], as_view(m)) for name, m in a.items()})
        found = contents(db)
        assert found["V@X2_A1A2"] == as_view(a["A1"] @ a["A2"])
        assert found["V@X4_A3A4"] == as_view(a["A3"] @ a["A4"])
        assert found["V@X1_A1A2A3A4"] == as_view(a["A1"] @ a["A2"] @ a["A3"] @ a["A4"])
        assert {name: found[name] for name in a} == {name: as_view(m) for name, m in a.items()}


def test_example_42_as_it_is_planned(spark: SparkSession) -> None:
    """Left to itself the planner multiplies from the right, which has no cheaper update of the matrices in the middle."""
    with relations(spark, MATRIX_SCHEMAS, types={f"X{i}": "INT" for i in range(1, 6)}) as db:
        db.create_view("q", MATRIX_SQL)
        a = matrices(3)
        db.apply({name: weighted(MATRIX_SCHEMAS[name], as_view(m)) for name, m in a.items()})
        found = contents(db)
        assert as_view(a["A1"] @ a["A2"] @ a["A3"] @ a["A4"]) in found.values()
        assert len(found) == 7
