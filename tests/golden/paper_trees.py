"""The queries of the F-IVM paper, and its trees as text.

Views are written V@A_RST for the paper's V with superscript @A and subscript RST; a star marks what is materialized.
"""

from __future__ import annotations

from textwrap import dedent

from everview.planner.build_tree import Representation, view_tree
from everview.planner.cost import update_costs
from everview.planner.format_tree import format_tree
from everview.planner.join_query import JoinQuery
from everview.planner.materialize import materialized_nodes
from everview.planner.variable_order import parse_order
from everview.planner.view_tree import ViewTree
from tests.unit.planner.queries import join_query

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
    return {c.atom: str(c.bound) for c in update_costs(query, tree)}


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
