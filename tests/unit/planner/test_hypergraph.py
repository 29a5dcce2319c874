"""GYO and what rests on it."""

from __future__ import annotations

from everview.planner.hypergraph import (
    Hyperedge,
    components,
    gyo,
    gyo_star,
    hyperedges,
    is_free_connex,
    join_forest,
)
from tests.unit.planner.queries import join_query


def edges(text: str) -> tuple[Hyperedge, ...]:
    """Hyperedges such as ``AB BC``, named after their variables."""
    return tuple(Hyperedge(word, frozenset(word)) for word in text.split())


def test_nothing_is_left_of_a_path() -> None:
    """A path reduces to nothing, with its middle as the root of the join tree."""
    reduction = gyo(edges("AB BC CD"))
    assert reduction.residue == ()
    assert set(reduction.swallowed) == {("AB", "BC"), ("CD", "BC")}
    assert reduction.roots == ("BC",)


def test_a_cycle_is_left_without_its_ears() -> None:
    """What hangs on a triangle is reduced away, the triangle stays."""
    reduction = gyo(edges("AB BC CA CD DE"))
    assert {e.name for e in reduction.residue} == {"AB", "BC", "CA"}
    assert not reduction.is_acyclic


def test_a_large_edge_makes_a_triangle_acyclic() -> None:
    """α-acyclicity is not hereditary: with ABC the triangle has a join tree."""
    assert set(join_forest(edges("AB BC CA ABC")) or ()) == {("AB", "ABC"), ("BC", "ABC"), ("CA", "ABC")}


def test_gyo_star_names_the_indicators_on_cycles() -> None:
    """An indicator within a relation, or hanging loose, is not chosen; one that closes a cycle is."""
    assert gyo_star(edges("AC A C"), edges("AB BC")) == ("AC",)
    assert gyo_star(edges("A"), edges("AB BC")) == ()


def test_free_connex() -> None:
    """Projecting the join variable away from a path of two is the standard example of what is not free-connex."""
    assert is_free_connex(join_query("Q[A, B] = R[A, B] S[B, C]"))
    assert not is_free_connex(join_query("Q[A, C] = R[A, B] S[B, C]"))


def test_components() -> None:
    """Atoms without common variables are apart, unless something needs their variables together."""
    apart = join_query("Q[] = R[A] S[B] T[A, C] U[]")
    assert [[a.name for a in c] for c in components(apart)] == [["R", "T"], ["S"], ["U"]]
    joined = join_query("Q[] = R[A] S[B] T[A, C] U[]", together=("B C",))
    assert [[a.name for a in c] for c in components(joined)] == [["R", "S", "T"], ["U"]]


def test_atoms_without_variables_are_acyclic() -> None:
    """Empty hyperedges are roots of their own."""
    assert gyo(hyperedges(join_query("Q[] = R[] S[]"))).is_acyclic
