"""The figures and examples of the F-IVM paper: orders, view trees, delta trees, what is stored, classes and bounds.

Views are written V@A_RST for the paper's V with superscript @A and subscript RST; a star marks what is materialized.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from everview.planner.build_tree import Representation, view_tree
from everview.planner.classes import classify, classify_reduct
from everview.planner.cost import update_costs
from everview.planner.delta_tree import delta_path, indicator_paths
from everview.planner.format_tree import format_deltas, format_order, format_tree
from everview.planner.indicators import add_indicators
from everview.planner.join_query import JoinQuery
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_tree import plan_tree
from everview.planner.search_orders import search_order
from everview.planner.variable_order import canonical_order, parse_order
from everview.planner.view_tree import ViewTree
from tests.unit.planner.queries import join_query, only_updates_to

COUNT = join_query("Q[] = R[A, B] S[A, C, E] T[C, D]")
GROUPED = join_query("Q[A, C] = R[A, B] S[A, C, E] T[C, D]")
FREE_CONNEX = join_query("Q[A, B, C] = R[A, B] S[A, C, E] T[C, D]")
Q_HIERARCHICAL = join_query("Q[A, B, C] = R[A, B] S[A, C, E] T[A, C, D]")
CHAIN = join_query("Q[A, B, C, D] = R[A, B] S[B, C] T[C, D]", "B -> C; C -> D")
TRIANGLE = join_query("Q[] = R[A, B] S[B, C] T[C, A]")
MATRICES = join_query("Q[X1, X5] = A1[X1, X2] A2[X2, X3] A3[X3, X4] A4[X4, X5]")
OMEGA = "A - {B, C - {D, E}}"


def paper_tree(query: JoinQuery, order: str, representation: Representation = "listing") -> ViewTree:
    """The tree as the paper draws it, one view a variable."""
    return view_tree(query, parse_order(query, order), representation, compose_chains=False)


def stored_tree(tree: ViewTree) -> str:
    """The text of a tree with stars."""
    return format_tree(tree, materialized_nodes(tree))


def text(lines: str) -> str:
    """A text of the figures below."""
    return dedent(lines).strip("\n")


def bounds(query: JoinQuery, tree: ViewTree) -> dict[str, str]:
    """The bound of a single-row update to each atom."""
    return {c.atom: c.bound for c in update_costs(query, tree)}


FIGURE_3_ORDER = """
    A {}
      B {A}
        R[A, B]
      C {A}
        D {C}
          T[C, D]
        E {A, C}
          S[A, C, E]
"""

FIGURE_3 = """
    V@A_RST[] = ⊕A V@B_R ⊗ V@C_ST  *
      V@B_R[A] = ⊕B R  *
        R[A, B]
      V@C_ST[A] = ⊕C V@D_T ⊗ V@E_S  *
        V@D_T[C] = ⊕D T  *
          T[C, D]
        V@E_S[A, C] = ⊕E S  *
          S[A, C, E]
"""

FIGURE_5 = """
    V@A_RST[A, C] = V@B_R ⊗ V@C_ST  *
      V@B_R[A] = ⊕B R  *
        R[A, B]
      V@C_ST[A, C] = V@D_T ⊗ V@E_S  *
        V@D_T[C] = ⊕D T  *
          T[C, D]
        V@E_S[A, C] = ⊕E S  *
          S[A, C, E]
"""

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

FIGURE_16 = """
    V@A_RST[] = ⊕A V@B_RST  *
      V@B_RST[A] = ⊕B V@C_ST ⊗ R
        V@C_ST[A, B] = ⊕C S ⊗ T ⊗ ∃A,B_R  *
          S[B, C]  *
          T[C, A]  *
          ∃A,B_R of R[A, B]  *
        R[A, B]  *
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


def test_example_28() -> None:
    """Over A - B - C the view at C makes updates to R constant and leaves the others linear."""
    assert bounds(TRIANGLE, paper_tree(TRIANGLE, "A - B - C")) == {"R": "O(1)", "S": "O(N)", "T": "O(N)"}


def test_figures_16_and_17_and_example_31() -> None:
    """The indicator of R is placed below the view at C only; a change of it takes linear time, other changes of R none."""
    tree = add_indicators(TRIANGLE, paper_tree(TRIANGLE, "A - B - C"))
    assert stored_tree(tree) == text(FIGURE_16)
    costs = {c.atom: (c.bound, c.indicator_exponent) for c in update_costs(TRIANGLE, tree)}
    assert costs == {"R": ("O(1)", 1), "S": ("O(N)", None), "T": ("O(N)", None)}


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
