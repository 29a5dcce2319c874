"""The figures and examples of sections 1 to 7.3 of the F-IVM paper: orders, view trees, delta trees, what is stored, bounds."""

from __future__ import annotations

import pytest

from everview.planner.build_tree import view_tree
from everview.planner.classes import classify, classify_reduct
from everview.planner.delta_tree import delta_path
from everview.planner.format_tree import format_deltas, format_order, format_tree
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_tree import plan_tree
from everview.planner.search_orders import search_order
from everview.planner.variable_order import canonical_order, parse_order
from tests.golden.paper_trees import (
    CHAIN,
    COUNT,
    FIGURE_3,
    FIGURE_3_ORDER,
    FIGURE_5,
    FREE_CONNEX,
    GROUPED,
    OMEGA,
    Q_HIERARCHICAL,
    bounds,
    paper_tree,
    stored_tree,
    text,
)
from tests.unit.planner.queries import join_query, only_updates_to

FIGURE_10 = """
    H@A_RST[A] = V@B_R ⊗ V@C_ST  *
      V@B_R[A] = ⊕B R  *
        R[A, B]  *
      V@C_ST[A] = ⊕C H@C_ST  *
        H@C_ST[A, C] = V@D_T ⊗ V@E_S  *
          V@D_T[C] = ⊕D T  *
            T[C, D]
          V@E_S[A, C] = ⊕E S  *
            S[A, C, E]
"""

FIGURE_12 = """
    H@A_RST[A] = V@B_R ⊗ V@C_ST  *
      V@B_R[A] = ⊕B R  *
        R[A, B]  *
      V@C_ST[A] = ⊕C H@C_ST  *
        H@C_ST[A, C] = V@E_S ⊗ V@D_T  *
          V@E_S[A, C] = ⊕E S  *
            S[A, C, E]
          V@D_T[A, C] = ⊕D T  *
            T[A, C, D]
"""

FIGURE_14 = """
    H@C_RST[C, D] = V@B_RS ⊗ T  *
      V@B_RS[C] = ⊕B H@B_RS  *
        H@B_RS[B, C] = V@A_R ⊗ S  *
          V@A_R[B] = ⊕A R  *
            R[A, B]  *
          S[B, C]  *
      T[C, D]  *
"""


@pytest.mark.parametrize("free", ["", "A, C"])
def test_figure_1(free: str) -> None:
    """Section 1.1: the views to store depend on who changes; S costs constant time, R and T linear time."""
    query = join_query(f"Q[{free}] = R[A, B] S[A, C, E] T[C, D]")
    expected = {
        "R S T": {"V@A_RST", "V@C_ST", "V@B_R", "V@D_T", "V@E_S"},
        "R": {"V@A_RST", "V@C_ST"},
        "S": {"V@A_RST", "V@B_R", "V@D_T"},
        "T": {"V@A_RST", "V@B_R", "V@E_S"},
        "": {"V@A_RST"},
    }
    for names, stored in expected.items():
        assert materialized_nodes(paper_tree(only_updates_to(query, names), OMEGA)) == stored
    if free:
        assert bounds(query, paper_tree(query, OMEGA)) == {"R": "O(N)", "S": "O(1)", "T": "O(N)"}


def test_figure_3() -> None:
    """The variable order with its dep sets, and the view tree over it without free variables."""
    assert format_order(parse_order(COUNT, OMEGA)) == text(FIGURE_3_ORDER)
    assert stored_tree(paper_tree(COUNT, OMEGA)) == text(FIGURE_3)
    assert parse_order(COUNT, OMEGA).text == OMEGA


def test_figure_3_is_found_and_composed_alike() -> None:
    """The search finds an order of the same tree, and composing changes nothing where no chain is."""
    assert search_order(COUNT).parents() == parse_order(COUNT, OMEGA).parents()
    assert stored_tree(view_tree(COUNT, parse_order(COUNT, OMEGA))) == text(FIGURE_3)


def test_figure_5_and_example_5() -> None:
    """The same order with A and C free: their values stay in the keys up to the root."""
    assert stored_tree(paper_tree(GROUPED, OMEGA)) == text(FIGURE_5)


def test_identical_views_are_one() -> None:
    """Section 5: with A and C above all others their views are the same, and only the top one is left."""
    tree = view_tree(GROUPED, parse_order(GROUPED, "A - C - {B, D, E}"))
    assert stored_tree(tree) == text("""
        V@A_RST[A, C] = V@B_R ⊗ V@D_T ⊗ V@E_S  *
          V@B_R[A] = ⊕B R  *
            R[A, B]
          V@D_T[C] = ⊕D T  *
            T[C, D]
          V@E_S[A, C] = ⊕E S  *
            S[A, C, E]
    """)


def test_long_chains_are_composed() -> None:
    """Section 4: a wide relation with local variables is summed in one view, not in one view a variable."""
    query = join_query("Q[] = R[A, X, Y, Z] S[A]")
    order = parse_order(query, "A - X - Y - Z")
    assert format_tree(view_tree(query, order, compose_chains=False)) == text("""
        V@A_RS[] = ⊕A V@X_R ⊗ S
          V@X_R[A] = ⊕X V@Y_R
            V@Y_R[A, X] = ⊕Y V@Z_R
              V@Z_R[A, X, Y] = ⊕Z R
                R[A, X, Y, Z]
          S[A]
    """)
    assert format_tree(view_tree(query, order)) == text("""
        V@A_RS[] = ⊕A V@X_R ⊗ S
          V@X_R[A] = ⊕X,Y,Z R
            R[A, X, Y, Z]
          S[A]
    """)


def test_example_9() -> None:
    """The delta tree for updates to T, linear; updates to R and S bind all variables on their way, and are constant."""
    tree = paper_tree(COUNT, OMEGA)
    assert format_deltas(tree, "T") == text("""
        δV@D_T[C] = ⊕D δT
        δV@C_ST[A] = ⊕C δV@D_T ⊗ V@E_S(C)
        δV@A_RST[] = ⊕A δV@C_ST ⊗ V@B_R(A)
    """)
    assert bounds(COUNT, tree) == {"R": "O(1)", "S": "O(1)", "T": "O(N)"}


def test_example_10() -> None:
    """For updates to T the root and the views at E and B are stored, for all updates all, for none the root."""
    only_t = paper_tree(only_updates_to(COUNT, "T"), OMEGA)
    assert materialized_nodes(only_t) == {"V@A_RST", "V@E_S", "V@B_R"}
    assert materialized_nodes(paper_tree(COUNT, OMEGA)) == {"V@A_RST", "V@E_S", "V@B_R", "V@C_ST", "V@D_T"}
    assert materialized_nodes(paper_tree(only_updates_to(COUNT, ""), OMEGA)) == {"V@A_RST"}


def test_example_12() -> None:
    """The delta tree for updates to S looks up by all keys in the views at D and B."""
    assert format_deltas(paper_tree(COUNT, OMEGA), "S") == text("""
        δV@E_S[A, C] = ⊕E δS
        δV@C_ST[A] = ⊕C δV@E_S ⊗ V@D_T(C)
        δV@A_RST[] = ⊕A δV@C_ST ⊗ V@B_R(A)
    """)


def test_example_15() -> None:
    """Free-connex with A, B, C free; acyclic only with B, C free; the triangle is cyclic."""
    assert classify(FREE_CONNEX).name == "free-connex acyclic"
    assert classify(join_query("Q[B, C] = R[A, B] S[A, C, E] T[C, D]")).name == "acyclic"
    assert classify(join_query("Q[] = R[A, B] S[B, C] T[A, C]")).name == "cyclic"


def test_figure_10_and_example_16() -> None:
    """The factorized view tree of the free-connex query, with H views to enumerate from and V views to update by."""
    assert parse_order(FREE_CONNEX, OMEGA).is_free_top(FREE_CONNEX.free)
    assert stored_tree(paper_tree(FREE_CONNEX, OMEGA, "factorized")) == text(FIGURE_10)
    assert stored_tree(view_tree(FREE_CONNEX, parse_order(FREE_CONNEX, OMEGA), "factorized")) == text(FIGURE_10)


def test_figure_10_delta_and_example_17() -> None:
    """An update to T goes by an index on C of the view at E, in linear time."""
    tree = paper_tree(FREE_CONNEX, OMEGA, "factorized")
    assert format_deltas(tree, "T") == text("""
        δV@D_T[C] = ⊕D δT
        δH@C_ST[A, C] = δV@D_T ⊗ V@E_S(C)
        δV@C_ST[A] = ⊕C δH@C_ST
        δH@A_RST[A] = δV@C_ST ⊗ V@B_R(A)
    """)
    assert bounds(FREE_CONNEX, tree) == {"R": "O(1)", "S": "O(1)", "T": "O(N)"}


def test_example_19() -> None:
    """A is enumerated from the top view, then B from R and C from the view at C."""
    tree = paper_tree(FREE_CONNEX, OMEGA, "factorized")
    assert tree.enumerate_from == (("A", "H@A_RST"), ("B", "R"), ("C", "H@C_ST"))


def test_remark_20() -> None:
    """Of all look-ups only the one in the view at E, by C, is neither by all keys nor by keys shared with the parent."""
    tree = paper_tree(FREE_CONNEX, OMEGA, "factorized")
    lookups = [x for name in "RST" for step in delta_path(tree, name) for x in step.lookups]
    assert [(x.node.name, x.by) for x in lookups if x.adds] == [("V@E_S", ("C",))]


def test_example_22() -> None:
    """With A in T the query is q-hierarchical; with A bound it is hierarchical only; without A in T it is neither."""
    assert not classify(FREE_CONNEX).is_hierarchical
    assert classify(Q_HIERARCHICAL).name == "q-hierarchical"
    bound = classify(join_query("Q[B, C] = R[A, B] S[A, C, E] T[A, C, D]"))
    assert bound.is_hierarchical
    assert not bound.is_q_hierarchical


def test_figure_12_and_example_23() -> None:
    """The canonical free-top order of the q-hierarchical query and its view tree."""
    order = canonical_order(Q_HIERARCHICAL)
    assert order.text == "A - {B, C - {E, D}}"
    assert order.is_free_top(Q_HIERARCHICAL.free)
    assert search_order(Q_HIERARCHICAL, "factorized") == order
    tree = view_tree(Q_HIERARCHICAL, order, "factorized", compose_chains=False)
    assert stored_tree(tree) == text(FIGURE_12)


def test_figure_13_and_example_23() -> None:
    """Updates to R and T look up by all keys of a sibling, in constant time."""
    tree = paper_tree(Q_HIERARCHICAL, "A - {B, C - {E, D}}", "factorized")
    assert format_deltas(tree, "R") == text("""
        δV@B_R[A] = ⊕B δR
        δH@A_RST[A] = δV@B_R ⊗ V@C_ST(A)
    """)
    assert format_deltas(tree, "T") == text("""
        δV@D_T[A, C] = ⊕D δT
        δH@C_ST[A, C] = δV@D_T ⊗ V@E_S(A, C)
        δV@C_ST[A] = ⊕C δH@C_ST
        δH@A_RST[A] = δV@C_ST ⊗ V@B_R(A)
    """)
    assert set(bounds(Q_HIERARCHICAL, tree).values()) == {"O(1)"}


def test_example_27() -> None:
    """The chain is free-connex and not hierarchical; its Σ-reduct under B → C and C → D is q-hierarchical."""
    assert classify(CHAIN).name == "free-connex acyclic"
    assert not classify(CHAIN).is_hierarchical
    assert classify_reduct(CHAIN).name == "q-hierarchical"


def test_figure_14() -> None:
    """The view tree over D - C - B - A."""
    assert stored_tree(paper_tree(CHAIN, "D - C - B - A", "factorized")) == text(FIGURE_14)


def test_figure_14_is_found() -> None:
    """The planner finds the tree of figure 14 by itself; C and D, alike under the dependencies, may be swapped."""
    plan = plan_tree(CHAIN, representation="factorized")
    assert plan.order.text == "C - D - B - A"
    assert format_tree(plan.tree, plan.materialized).replace("@D", "@C") == text(FIGURE_14)
    assert plan.class_sentence == "free-connex acyclic, q-hierarchical under the dependencies"


def test_figure_15() -> None:
    """Deltas of R, S and T; the dependencies make each constant, and without them R and S are linear."""
    tree = paper_tree(CHAIN, "D - C - B - A", "factorized")
    assert format_deltas(tree, "R") == text("""
        δV@A_R[B] = ⊕A δR
        δH@B_RS[B, C] = δV@A_R ⊗ S(B)
        δV@B_RS[C] = ⊕B δH@B_RS
        δH@C_RST[C, D] = δV@B_RS ⊗ T(C)
    """)
    assert format_deltas(tree, "S") == text("""
        δH@B_RS[B, C] = δS ⊗ V@A_R(B)
        δV@B_RS[C] = ⊕B δH@B_RS
        δH@C_RST[C, D] = δV@B_RS ⊗ T(C)
    """)
    assert format_deltas(tree, "T") == "δH@C_RST[C, D] = δT ⊗ V@B_RS(C)"
    assert bounds(CHAIN, tree) == {"R": "O(1)", "S": "O(1)", "T": "O(1)"}
    without = join_query("Q[A, B, C, D] = R[A, B] S[B, C] T[C, D]")
    assert bounds(without, paper_tree(without, "D - C - B - A", "factorized")) == {
        "R": "O(N)",
        "S": "O(N)",
        "T": "O(1)",
    }
