"""The relational ring: its laws, and the payloads of figure 18 (examples 40 and 41)."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from everview.algebra.relational import (
    ONE,
    ZERO,
    Relation,
    add,
    add_all,
    is_zero,
    lift,
    multiply,
    negate,
    project,
    rename,
    rows,
    scale,
    tuple_of,
)

tuples = st.dictionaries(st.sampled_from("ABC"), st.integers(0, 1), max_size=3).map(lambda d: tuple_of(**d))
relations = st.dictionaries(tuples, st.integers(-3, 3).filter(bool), max_size=4)


@given(relations, relations, relations)
def test_it_is_a_commutative_ring(a: Relation, b: Relation, c: Relation) -> None:
    """The axioms, with tuples of different schemas mixed."""
    assert add(a, b) == add(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert add(a, ZERO) == a
    assert is_zero(add(a, negate(a)))
    assert multiply(a, b) == multiply(b, a)
    assert multiply(multiply(a, b), c) == multiply(a, multiply(b, c))
    assert multiply(a, ONE) == a == multiply(ONE, a)
    assert is_zero(multiply(a, ZERO))
    assert multiply(a, add(b, c)) == add(multiply(a, b), multiply(a, c))
    assert scale(a, 3) == add_all([a, a, a])
    assert scale(a, 0) == ZERO


@given(relations, relations)
def test_projection_is_linear(a: Relation, b: Relation) -> None:
    """Summing out variables commutes with union: factorized payloads are maintained by the same deltas."""
    assert project(add(a, b), {"A"}) == add(project(a, {"A"}), project(b, {"A"}))


def test_rename_moves_values_to_other_variables() -> None:
    """A self-join reads the same relation under other names."""
    assert rename({tuple_of(A=1, B=2): 3}, str.lower) == {tuple_of(a=1, b=2): 3}


# The database of figure 6, and the view tree of figure 3: A above B and C, C above D and E.
R = [("a1", "b1"), ("a1", "b2"), ("a2", "b3"), ("a3", "b4")]
S = [("a1", "c1", "e1"), ("a1", "c1", "e2"), ("a1", "c2", "e3"), ("a2", "c2", "e4")]
T = [("c1", "d1"), ("c2", "d2"), ("c2", "d3"), ("c3", "d4")]


def _views(*, factorized: bool) -> dict[str, dict[object, Relation]]:
    """The payloads of all views of figure 18 by key."""
    v_r: dict[object, Relation] = defaultdict(dict)
    v_s: dict[object, Relation] = defaultdict(dict)
    v_t: dict[object, Relation] = defaultdict(dict)
    v_st: dict[object, Relation] = defaultdict(dict)
    for a, b in R:
        v_r[a] = add(v_r[a], lift("B", b))
    for a, c, e in S:
        v_s[a, c] = add(v_s[a, c], lift("E", e, is_free=False))
    for c, d in T:
        v_t[c] = add(v_t[c], lift("D", d))
    for (a, c), payload in v_s.items():  # type: ignore[misc]
        if c in v_t:
            joined = multiply(multiply(v_t[c], payload), lift("C", c))
            v_st[a] = add(v_st[a], project(joined, {"C"}) if factorized else joined)
    root = add_all(multiply(multiply(v_r[a], v_st[a]), lift("A", a)) for a in v_r if a in v_st)
    return {"R": v_r, "S": v_s, "T": v_t, "ST": v_st, "RST": {(): project(root, {"A"}) if factorized else root}}


def test_figure_18_listing() -> None:
    """The red views: the root's payload lists the result of the query with its multiplicities."""
    views = _views(factorized=False)
    assert rows(views["R"]["a1"], "B") == {("b1",): 1, ("b2",): 1}
    assert views["S"] == {("a1", "c1"): {(): 2}, ("a1", "c2"): {(): 1}, ("a2", "c2"): {(): 1}}
    assert rows(views["T"]["c2"], "D") == {("d2",): 1, ("d3",): 1}
    assert rows(views["ST"]["a1"], "CD") == {("c1", "d1"): 2, ("c2", "d2"): 1, ("c2", "d3"): 1}
    assert rows(views["ST"]["a2"], "CD") == {("c2", "d2"): 1, ("c2", "d3"): 1}
    assert rows(views["RST"][()], "ABCD") == {
        ("a1", "b1", "c1", "d1"): 2,
        ("a1", "b1", "c2", "d2"): 1,
        ("a1", "b1", "c2", "d3"): 1,
        ("a1", "b2", "c1", "d1"): 2,
        ("a1", "b2", "c2", "d2"): 1,
        ("a1", "b2", "c2", "d3"): 1,
        ("a2", "b3", "c2", "d2"): 1,
        ("a2", "b3", "c2", "d3"): 1,
    }


def test_figure_18_factorized() -> None:
    """The blue views: each payload has the values of its own variable, and how often each is derived."""
    views = _views(factorized=True)
    assert rows(views["RST"][()], "A") == {("a1",): 8, ("a2",): 2}
    assert rows(views["ST"]["a1"], "C") == {("c1",): 2, ("c2",): 2}
    assert rows(views["ST"]["a2"], "C") == {("c2",): 2}
