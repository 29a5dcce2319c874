"""Fractional covers against another solver, and what they say of joins."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from everview.planner.bound import Bound
from everview.planner.build_tree import view_tree
from everview.planner.cost import update_costs
from everview.planner.fractional_cover import fractional_cover
from everview.planner.hypergraph import Hyperedge, is_acyclic
from everview.planner.indicators import add_useful_indicators
from everview.planner.variable_order import parse_order
from everview.planner.view_tree import Indicator, InnerView, Leaf, ViewTree
from tests.unit.planner.queries import join_query


def covered(edges: list[int]) -> int:
    """All that the edges have."""
    return sum(1 << v for v in range(8) if any(e >> v & 1 for e in edges))


def integral_cover(variables: int, edges: list[int]) -> int:
    """The fewest edges that cover the variables, by trying all."""
    return next(
        n for n in range(len(edges) + 1) if any(not variables & ~covered(list(c)) for c in combinations(edges, n))
    )


EDGES = st.lists(st.integers(1, 2**6 - 1), min_size=1, max_size=8)


@given(EDGES, st.integers(0, 2**6 - 1))
def test_covers_are_the_linear_program_solved(edges: list[int], wanted: int) -> None:
    """The same weight as a general solver finds, up to its precision, and never more than whole edges need."""
    variables = wanted & covered(edges)
    found = fractional_cover(variables, edges)
    rows = [[-(e >> v & 1) for e in edges] for v in range(6) if variables >> v & 1]
    solved = linprog([1] * len(edges), A_ub=rows, b_ub=[-1] * len(rows)).fun if rows else 0
    assert abs(float(found) - solved) < 1e-7
    assert found <= integral_cover(variables, edges)


@given(EDGES)
def test_acyclic_hypergraphs_need_no_fractions(edges: list[int]) -> None:
    """Where there is a join tree, whole edges do as well as parts of them."""
    sets = [Hyperedge(str(i), frozenset(f"{v}" for v in range(6) if e >> v & 1)) for i, e in enumerate(edges)]
    if is_acyclic(sets):
        assert fractional_cover(covered(edges), edges) == integral_cover(covered(edges), edges)


@pytest.mark.parametrize(
    ("query", "exponent"),
    [
        ("R[A, B] S[B, C] T[C, A]", "3/2"),
        ("R[A, B] S[B, C] T[C, D] U[D, A]", "2"),
        ("R[A, B] S[B, C] T[C, D] U[D, E] W[E, A]", "5/2"),
        ("R[A, B, C] S[B, C, D] T[C, D, A] U[D, A, B]", "4/3"),
        ("R[A, B] S[A, C] T[A, D]", "3"),
    ],
)
def test_well_known_joins(query: str, exponent: str) -> None:
    """Loops, the Loomis-Whitney join of degree four, a star."""
    atoms = join_query(f"Q[] = {query}").atoms
    edges = [sum(1 << "ABCDE".index(v) for v in a.variables) for a in atoms]
    assert fractional_cover(covered(edges), edges) == Fraction(exponent)


def test_what_nothing_covers_is_refused() -> None:
    """A variable of no edge has no cover."""
    with pytest.raises(ValueError, match="no edge has the variables"):
        fractional_cover(0b11, (0b01,))


def test_a_factorized_triangle_is_bounded_where_it_is_stored() -> None:
    """The view that lists the third vertex has N^3/2 rows with the indicator, where it would have N² without."""
    query = join_query("Q[A, B, C] = R[A, B] S[B, C] T[C, A]")
    tree = view_tree(query, parse_order(query, "A - B - C"), "factorized")
    views = [n for n in add_useful_indicators(query, tree).nodes() if isinstance(n, InnerView)]
    assert {v.name: [c.name for c in v.children if isinstance(c, Indicator)] for v in views} == {
        "H@C_ST": ["∃A,B_R"],
        "V@C_ST": [],
        "H@B_RST": [],
    }


def test_costs_are_those_of_the_joins_on_the_way() -> None:
    """A view of N^3/2 rows bounds what it is joined with; two edges of a triangle meet N² times before the third is asked."""
    query = join_query("Q[X, A, B, C] = V[X] R[X, A, B] S[X, B, C] T[X, C, A]")
    tree = view_tree(query, parse_order(query, "X - A - B - C"))
    assert {c.atom: c.bound for c in update_costs(query, tree)}["V"] == Bound(Fraction(3, 2))
    flat = InnerView("V@X", ("X",), query.free, (), tuple(Leaf(a) for a in query.atoms))
    costs = {c.atom: c.bound for c in update_costs(query, ViewTree((flat,), query.free))}
    assert costs == {"V": Bound(Fraction(2)), **dict.fromkeys("RST", Bound(Fraction(1)))}
