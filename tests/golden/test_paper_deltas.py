"""The deltas of the F-IVM paper's examples: the statements of triggers, and what each update adds to each view.

A trigger lists deltas from the leaf to the root, as the function of figure 7 does; what a statement looks up in, and by which
variables, stands beside it. Leaves have their own variables summed out: δR[A] is the paper's δV with @B and subscript R.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from tests.golden.paper_engine import (
    CHAIN,
    CHAIN_KEYS,
    CHAIN_ROWS,
    COUNT_SQL,
    FIGURE_6,
    JOINED,
    SCHEMAS,
    TRIANGLE,
    TRIANGLE_SQL,
    along,
    changes,
    contents,
    moved,
    relations,
    tree_of,
    trigger_of,
    weighted,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_T = {("c1", "d1"): -1, ("c2", "d2"): 3}
"""The update of example 9."""


def text(lines: str) -> str:
    """A text of several lines."""
    return dedent(lines).strip("\n")


@pytest.fixture
def counted(spark: SparkSession) -> Iterator[ev.Database]:
    """The count of figure 3 over the database of figure 6."""
    with relations(spark) as db:
        db.create_view("q", COUNT_SQL)
        db.apply(FIGURE_6)
        yield db


def test_figure_7_and_example_9(counted: ev.Database) -> None:
    """The statements of an update to T: one view after another, up to the root."""
    assert trigger_of(counted, "T") == text("""
        δT[C] := Σ #
        T[C] += δT[C]
        δV@C_ST[A] := Σ δT[C] * S[A, C]    -- slice by C
        V@C_ST[A] += δV@C_ST[A]
        δV@A_RST[] := Σ δV@C_ST[A] * R[A]    -- look-up by A
        V@A_RST[] += δV@A_RST[]
    """)


def test_example_9(counted: ev.Database) -> None:
    """δT = {(c1, d1) → -1, (c2, d2) → 3} adds {a1 → 1, a2 → 3} to the view at C and 5 to the count."""
    before = contents(counted)
    assert before["S"] == {("a1", "c1"): 2, ("a1", "c2"): 1, ("a2", "c2"): 1}
    assert before["R"] == {"a1": 2, "a2": 1, "a3": 1}
    commit = counted.apply({"T": weighted(SCHEMAS["T"], DELTA_T)})
    assert changes(before, contents(counted)) == {
        "R": {},
        "S": {},
        "T": {"c1": -1, "c2": 3},
        "V@C_ST": {"a1": 1, "a2": 3},
        "V@A_RST": {(): 5},
    }
    assert commit.changes["q"].sort_by("n").to_pylist() == [{"n": 10, "_weight": -1}, {"n": 15, "_weight": 1}]


STORED = {
    "R S T": {"V@A_RST", "V@C_ST", "R", "S", "T"},
    "R": {"V@A_RST", "V@C_ST"},
    "S": {"V@A_RST", "R", "T"},
    "T": {"V@A_RST", "R", "S"},
    "": {"V@A_RST"},
}
"""Section 1.1 and example 10: by the relations that change, the views that are stored."""


@pytest.mark.parametrize("updated", list(STORED))
@pytest.mark.parametrize("select", ["", "A, C, "])
def test_figure_1_and_example_10(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, updated: str, select: str
) -> None:
    """Static tables need no views for their updates; what is stored, and nothing else, has the contents of figure 6."""
    along(monkeypatch, "A - C")
    static = " ".join(name for name in "RST" if name not in updated)
    grouped = f" GROUP BY {select[:-2]}" if select else ""
    with relations(spark, static=static) as db, relations(spark) as other:
        if static:
            db.apply({name: FIGURE_6[name] for name in static.split()})
        for each in (db, other):
            each.create_view("q", f"SELECT {select}SUM(1) AS n FROM {JOINED}{grouped}", strategy="factorized")
        if updated:
            db.apply({name: FIGURE_6[name] for name in updated.split()})
        other.apply(FIGURE_6)
        every = contents(other)
        assert set(every) == STORED["R S T"]
        assert contents(db) == {name: every[name] for name in STORED[updated]}


def test_example_10_update(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """For updates to T only, the root alone is affected."""
    along(monkeypatch, "A - C")
    with relations(spark, static="R S") as db:
        db.apply({name: FIGURE_6[name] for name in "RS"})
        db.create_view("q", COUNT_SQL, strategy="factorized")
        db.apply({"T": FIGURE_6["T"]})
        assert trigger_of(db, "T") == text("""
            δT[C] := Σ #
            δV@C_ST[A] := Σ δT[C] * S[A, C]    -- slice by C
            δV@A_RST[] := Σ δV@C_ST[A] * R[A]    -- look-up by A
            V@A_RST[] += δV@A_RST[]
        """)
        before = contents(db)
        db.apply({"T": weighted(SCHEMAS["T"], DELTA_T)})
        assert changes(before, contents(db)) == {"R": {}, "S": {}, "V@A_RST": {(): 5}}


def test_example_10_as_it_is_planned(spark: SparkSession) -> None:
    """Left to itself the planner takes C to the top, as R and S never change: one view by C, and updates to T are O(1)."""
    with relations(spark, static="R S") as db:
        db.apply({name: FIGURE_6[name] for name in "RS"})
        db.create_view("q", COUNT_SQL)
        db.apply({"T": FIGURE_6["T"]})
        assert contents(db) == {"V@A_RS": {"c1": 4, "c2": 3}, "V@C_RST": {(): 10}}
        db.apply({"T": weighted(SCHEMAS["T"], DELTA_T)})
        assert contents(db)["V@C_RST"] == {(): 15}


def test_example_12(counted: ev.Database) -> None:
    """An update to S looks up by all keys in the views at D and B."""
    assert trigger_of(counted, "S") == text("""
        δS[A, C] := Σ #
        S[A, C] += δS[A, C]
        δV@C_ST[A] := Σ δS[A, C] * T[C]    -- look-up by C
        V@C_ST[A] += δV@C_ST[A]
        δV@A_RST[] := Σ δV@C_ST[A] * R[A]    -- look-up by A
        V@A_RST[] += δV@A_RST[]
    """)
    before = contents(counted)
    counted.apply({"S": [("a2", "c1", "e5")]})
    assert changes(before, contents(counted)) == {
        "R": {},
        "T": {},
        "S": {("a2", "c1"): 1},
        "V@C_ST": {"a2": 1},
        "V@A_RST": {(): 1},
    }


def test_figure_10_and_example_17(spark: SparkSession) -> None:
    """A single-row update to T slices the view at E by C, and looks up by A at the root."""
    with relations(spark) as db:
        db.create_view("q", f"SELECT A, B, C FROM {JOINED}", representation="factorized")
        db.apply(FIGURE_6)
        assert trigger_of(db, "T") == text("""
            δT[C] := Σ #
            T[C] += δT[C]
            δH@C_ST[A, C] := δT[C] * S[A, C]    -- slice by C
            H@C_ST[A, C] += δH@C_ST[A, C]
            δV@C_ST[A] := Σ δH@C_ST[A, C]
            V@C_ST[A] += δV@C_ST[A]
            δH@A_RST[A] := δV@C_ST[A] * V@B_R[A]    -- look-up by A
            H@A_RST[A] += δH@A_RST[A]
        """)
        before = contents(db)
        db.apply({"T": [("c2", "d5")]})
        assert changes(before, contents(db)) == {
            "R": {},
            "V@B_R": {},
            "S": {},
            "T": {"c2": 1},
            "H@C_ST": {("a1", "c2"): 1, ("a2", "c2"): 1},
            "V@C_ST": {"a1": 1, "a2": 1},
            "H@A_RST": {"a1": 2, "a2": 1},
        }


def test_figure_13_and_example_23(spark: SparkSession) -> None:
    """Updates to R and T of the q-hierarchical query look up by all keys only, and each delta has one row."""
    with relations(spark, {**SCHEMAS, "T": ("A", "C", "D")}) as db:
        view = db.create_view("q", f"SELECT A, B, C FROM {JOINED}", representation="factorized")
        db.apply({"R": FIGURE_6["R"], "S": FIGURE_6["S"], "T": [("a1", "c1", "d1"), ("a1", "c2", "d2")]})
        assert trigger_of(db, "R") == text("""
            δR[A, B] := Σ #
            R[A, B] += δR[A, B]
            δV@B_R[A] := Σ δR[A, B]
            V@B_R[A] += δV@B_R[A]
            δH@A_RST[A] := δV@B_R[A] * V@C_ST[A]    -- look-up by A
            H@A_RST[A] += δH@A_RST[A]
        """)
        assert trigger_of(db, "T") == text("""
            δT[A, C] := Σ #
            T[A, C] += δT[A, C]
            δH@C_ST[A, C] := δT[A, C] * S[A, C]    -- look-up by A, C
            H@C_ST[A, C] += δH@C_ST[A, C]
            δV@C_ST[A] := Σ δH@C_ST[A, C]
            V@C_ST[A] += δV@C_ST[A]
            δH@A_RST[A] := δV@C_ST[A] * V@B_R[A]    -- look-up by A
            H@A_RST[A] += δH@A_RST[A]
        """)
        assert costs(view) == {"R": "O(1)", "S": "O(1)", "T": "O(1)"}
        before = contents(db)
        db.apply({"R": [("a1", "b7")]})
        after = contents(db)
        assert moved(before, after) == {"R": {("a1", "b7"): 1}, "V@B_R": {"a1": 1}, "H@A_RST": {"a1": 3}}
        db.apply({"T": weighted(("A", "C", "D"), {("a1", "c1", "d1"): -1})})
        assert moved(after, contents(db)) == {
            "T": {("a1", "c1"): -1},
            "H@C_ST": {("a1", "c1"): -2},
            "V@C_ST": {"a1": -2},
            "H@A_RST": {"a1": -6},
        }


def test_figure_15_and_example_27(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates to R, S and T of the chain: slices by B and C find one row each, as B determines C and C determines D."""
    along(monkeypatch, "D - C - B - A")
    with relations(spark, CHAIN, keys=CHAIN_KEYS) as db:
        view = db.create_view("q", f"SELECT A, B, C, D FROM {JOINED}", representation="factorized")
        db.apply(CHAIN_ROWS)
        assert [line for line in trigger_of(db, "R").splitlines() if "--" in line] == [
            "δH@B_RS[B, C] := δV@A_R[B] * S[B, C]    -- slice by B",
            "δH@C_RST[C, D] := δV@B_RS[C] * T[C, D]    -- slice by C",
        ]
        assert [line for line in trigger_of(db, "S").splitlines() if "--" in line] == [
            "δH@B_RS[B, C] := δS[B, C] * V@A_R[B]    -- look-up by B",
            "δH@C_RST[C, D] := δV@B_RS[C] * T[C, D]    -- slice by C",
        ]
        assert [line for line in trigger_of(db, "T").splitlines() if "--" in line] == [
            "δH@C_RST[C, D] := δT[C, D] * V@B_RS[C]    -- look-up by C",
        ]
        assert costs(view) == {"R": "O(1)", "S": "O(1)", "T": "O(1)"}
        at = [contents(db)]
        for change in ({"R": [("a9", "b1")]}, {"S": [("b9", "c1")]}, {"T": [("c3", "d3")]}):
            db.apply(change)
            at.append(contents(db))
        assert [moved(a, b) for a, b in pairwise(at)] == [
            {
                "R": {("a9", "b1"): 1},
                "V@A_R": {"b1": 1},
                "H@B_RS": {("b1", "c1"): 1},
                "V@B_RS": {"c1": 1},
                "H@C_RST": {("c1", "d1"): 1},
            },
            {"S": {("b9", "c1"): 1}, "H@B_RS": {("b9", "c1"): 1}, "V@B_RS": {"c1": 1}, "H@C_RST": {("c1", "d1"): 1}},
            {"T": {("c3", "d3"): 1}},
        ]


def test_example_30(spark: SparkSession) -> None:
    """Q[A] = ∃ R[A, B]: deleting one of two rows of a1 changes nothing, deleting the other takes a1 away."""
    with relations(spark, {"R": ("A", "B")}) as db:
        view = db.create_view("q", "SELECT DISTINCT A FROM R")
        db.create_view("cnt", "SELECT A, COUNT(*) AS n FROM R GROUP BY A")
        db.apply({"R": [("a1", "b1"), ("a1", "b2"), ("a2", "b3")]})
        assert list(contents(db, "cnt").values()) == [{"a1": 2, "a2": 1}]
        assert sorted(view.rows()) == [("a1",), ("a2",)]
        first = db.apply({"R": weighted("AB", {("a1", "b2"): -1})})
        assert list(contents(db, "cnt").values()) == [{"a1": 1, "a2": 1}]
        assert "q" not in first.changes
        second = db.apply({"R": weighted("AB", {("a1", "b1"): -1})})
        assert list(contents(db, "cnt").values()) == [{"a2": 1}]
        assert second.changes["q"].to_pylist() == [{"A": "a1", "_weight": -1}]


def test_example_30_within_a_tree(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of an indicator in a tree: the counts are those of the stored relation, and the view it bounds loses the key."""
    along(monkeypatch, "A - B - C", indicators="all")
    with relations(spark, {"R": ("A", "B", "X"), "S": ("B", "C"), "T": ("C", "A")}) as db:
        db.create_view("q", TRIANGLE_SQL)
        r = [("a1", "b1", "x1"), ("a1", "b1", "x2"), ("a2", "b1", "x3")]
        db.apply({"R": r, "S": [("b1", "c1"), ("b1", "c2")], "T": [("c1", "a1"), ("c2", "a1"), ("c1", "a2")]})
        at = [contents(db)]
        assert (at[0]["R"], at[0]["V@C_ST"]) == (
            {("a1", "b1"): 2, ("a2", "b1"): 1},
            {("a1", "b1"): 2, ("a2", "b1"): 1},
        )
        for row in (("a1", "b1", "x2"), ("a1", "b1", "x1")):
            db.apply({"R": weighted("ABX", {row: -1})})
            at.append(contents(db))
        assert moved(at[0], at[1]) == {"R": {("a1", "b1"): -1}, "V@A_RST": {(): -2}}
        assert moved(at[1], at[2]) == {"R": {("a1", "b1"): -1}, "V@C_ST": {("a1", "b1"): -2}, "V@A_RST": {(): -2}}


def test_example_31(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update to R takes its own path, one look-up, and then that of its indicator, which joins S and T only if it moved."""
    along(monkeypatch, "A - B - C", indicators="all")
    with relations(spark, TRIANGLE, types=dict.fromkeys("ABC", "INT")) as db:
        view = db.create_view("q", TRIANGLE_SQL)
        assert trigger_of(db, "R") == text("""
            δR[B, A] := Σ #
            R[B, A] += δR[B, A]
            δV@A_RST[] := Σ δR[B, A] * V@C_ST[B, A]    -- look-up by B, A
            V@A_RST[] += δV@A_RST[]
            δ∃B,A_R[B, A] := 1 for the keys that R[B, A] has gained, -1 for those that it has lost
            δV@C_ST[B, A] := Σ δ∃B,A_R[B, A]
            * S[B, C]    -- slice by B
            * T[C, A]    -- look-up by C, A
            V@C_ST[B, A] += δV@C_ST[B, A]
            δV@A_RST[] := Σ δV@C_ST[B, A] * R[B, A]    -- look-up by B, A
            V@A_RST[] += δV@A_RST[]
        """)
        n = 200
        column = np.arange(n, dtype=np.int32)
        db.apply({"S": pa.table({"B": column * 0, "C": column}), "T": pa.table({"C": column, "A": column * 0})})
        assert contents(db)["V@C_ST"] == {}
        state = tree_of(db).state
        work = []
        for _ in range(2):
            before = state.work
            db.apply({"R": [(0, 0)]})
            work.append(state.work - before)
        assert contents(db)["V@C_ST"] == {(0, 0): n}
        assert view.rows() == [(2 * n,)]
        assert work[0] >= n, "the indicator moved: linear"
        assert work[1] < 20, "it did not: constant"


def costs(view: ev.View) -> dict[str, str]:
    """What one changed row of each relation costs, as ``explain`` says."""
    lines = [line.split(" costs ") for line in view.explain().splitlines() if line.startswith("a changed row of ")]
    return {subject.split()[-1]: words.split(":")[0] for subject, words in lines}
