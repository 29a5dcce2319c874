"""The figures and examples of sections 7.4 and 8 of the F-IVM paper: cyclic queries, factorized results, chains of matrices."""

from __future__ import annotations

from fractions import Fraction

import pytest

from everview.planner.bound import Bound
from everview.planner.build_tree import view_tree
from everview.planner.cost import update_costs
from everview.planner.delta_tree import indicator_paths
from everview.planner.format_tree import format_deltas, format_order, format_tree
from everview.planner.indicators import add_indicators
from everview.planner.variable_order import parse_order
from tests.golden.paper_trees import (
    COUNT,
    FIGURE_3,
    FIGURE_3_ORDER,
    MATRICES,
    OMEGA,
    TRIANGLE,
    bounds,
    paper_tree,
    stored_tree,
    text,
)
from tests.unit.planner.queries import join_query

FIGURE_16 = """
    V@A_RST[] = ⊕A V@B_RST  *
      V@B_RST[A] = ⊕B V@C_ST ⊗ R
        V@C_ST[A, B] = ⊕C S ⊗ T ⊗ ∃A,B_R  *
          S[B, C]  *
          T[C, A]  *
          ∃A,B_R of R[A, B]  *
        R[A, B]  *
"""


def test_example_28() -> None:
    """Over A - B - C the view at C makes updates to R constant and leaves the others linear."""
    assert bounds(TRIANGLE, paper_tree(TRIANGLE, "A - B - C")) == {"R": "O(1)", "S": "O(N)", "T": "O(N)"}


def test_figures_16_and_17_and_example_31() -> None:
    """The indicator of R is placed below the view at C only; a change of it takes linear time, other changes of R none."""
    tree = add_indicators(TRIANGLE, paper_tree(TRIANGLE, "A - B - C"))
    assert stored_tree(tree) == text(FIGURE_16)
    costs = {c.atom: (str(c.bound), c.indicator_bound) for c in update_costs(TRIANGLE, tree)}
    assert costs == {"R": ("O(1)", Bound(Fraction(1))), "S": ("O(N)", None), "T": ("O(N)", None)}


def test_example_31_deltas() -> None:
    """After the path of R itself follows that of its indicator, which starts below the view at C."""
    tree = add_indicators(TRIANGLE, paper_tree(TRIANGLE, "A - B - C"))
    assert len(indicator_paths(tree, "R")) == 1
    assert format_deltas(tree, "R") == text("""
        δV@B_RST[A] = ⊕B δR ⊗ V@C_ST(A, B)
        δV@A_RST[] = ⊕A δV@B_RST
        δV@C_ST[A, B] = ⊕C δ∃A,B_R ⊗ S(B) ⊗ T(C, A)
        δV@B_RST[A] = ⊕B δV@C_ST ⊗ R(A, B)
        δV@A_RST[] = ⊕A δV@B_RST
    """)


def test_the_chord_of_a_loop_closes_two_cycles() -> None:
    """Section 7.4: the chord of the 4-loop is an indicator below both of the views that it bounds."""
    loop = join_query("Q[] = R[A, B] S[B, C] T[C, D] U[D, A] W[A, C]")
    tree = add_indicators(loop, paper_tree(loop, "A - C - {B, D}"))
    assert format_tree(tree) == text("""
        V@A_RSTUW[] = ⊕A V@C_RSTUW
          V@C_RSTUW[A] = ⊕C V@B_RS ⊗ V@D_TU ⊗ W
            V@B_RS[A, C] = ⊕B R ⊗ S ⊗ ∃A,C_W
              R[A, B]
              S[B, C]
              ∃A,C_W of W[A, C]
            V@D_TU[A, C] = ⊕D T ⊗ U ⊗ ∃A,C_W
              T[C, D]
              U[D, A]
              ∃A,C_W of W[A, C]
            W[A, C]
    """)


def test_acyclic_queries_have_no_indicators() -> None:
    """Where nothing closes a cycle the tree stays as it is."""
    tree = paper_tree(COUNT, OMEGA)
    assert add_indicators(COUNT, tree) == tree


@pytest.mark.parametrize("free", ["A, B, C, D", "A, B, C"])
def test_figure_18_and_examples_40_and_41(free: str) -> None:
    """The order of figure 3 serves every query of the same body whose free variables are on top of the bound ones."""
    query = join_query(f"Q[{free}] = R[A, B] S[A, C, E] T[C, D]")
    order = parse_order(query, OMEGA)
    assert order.is_free_top(query.free)
    assert format_order(order) == text(FIGURE_3_ORDER)
    assert format_tree(paper_tree(COUNT, OMEGA)) == text(FIGURE_3).replace("  *", "")
    factorized = view_tree(query, order, "factorized")
    assert dict(factorized.enumerate_from).keys() == set(query.free)


def test_free_below_bound_is_no_factorization() -> None:
    """With D free and C bound the same order is not free-top, and no factorized tree is built over it."""
    query = join_query("Q[A, D] = R[A, B] S[A, C, E] T[C, D]")
    with pytest.raises(ValueError, match="free-top"):
        paper_tree(query, OMEGA, "factorized")


def test_example_42() -> None:
    """A chain of four matrices: two products below, one on top, which the views at X5 and X1 repeat."""
    order = "X1 - X5 - X3 - {X2, X4}"
    assert format_tree(paper_tree(MATRICES, order)) == text("""
        V@X1_A1A2A3A4[X1, X5] = V@X5_A1A2A3A4
          V@X5_A1A2A3A4[X1, X5] = V@X3_A1A2A3A4
            V@X3_A1A2A3A4[X1, X5] = ⊕X3 V@X2_A1A2 ⊗ V@X4_A3A4
              V@X2_A1A2[X1, X3] = ⊕X2 A1 ⊗ A2
                A1[X1, X2]
                A2[X2, X3]
              V@X4_A3A4[X3, X5] = ⊕X4 A3 ⊗ A4
                A3[X3, X4]
                A4[X4, X5]
    """)
    composed = view_tree(MATRICES, parse_order(MATRICES, order))
    assert stored_tree(composed) == text("""
        V@X1_A1A2A3A4[X1, X5] = ⊕X3 V@X2_A1A2 ⊗ V@X4_A3A4  *
          V@X2_A1A2[X1, X3] = ⊕X2 A1 ⊗ A2  *
            A1[X1, X2]  *
            A2[X2, X3]  *
          V@X4_A3A4[X3, X5] = ⊕X4 A3 ⊗ A4  *
            A3[X3, X4]  *
            A4[X4, X5]  *
    """)


def test_example_42_deltas() -> None:
    """A change of A2 goes through a column of A1 and rows of the product of A3 and A4."""
    tree = view_tree(MATRICES, parse_order(MATRICES, "X1 - X5 - X3 - {X2, X4}"))
    assert format_deltas(tree, "A2") == text("""
        δV@X2_A1A2[X1, X3] = ⊕X2 δA2 ⊗ A1(X2)
        δV@X1_A1A2A3A4[X1, X5] = ⊕X3 δV@X2_A1A2 ⊗ V@X4_A3A4(X3)
    """)
