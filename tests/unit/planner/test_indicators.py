"""Which indicators a plan uses."""

from __future__ import annotations

import pytest

from everview.planner.indicators import add_indicators, add_useful_indicators
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_tree import plan_tree
from everview.planner.variable_order import parse_order
from everview.planner.view_tree import Indicator, InnerView, ViewTree
from tests.unit.planner.queries import join_query


def placed(tree: ViewTree) -> dict[str, list[str]]:
    """The indicators by the view that they stand in."""
    views = (n for n in tree.nodes() if isinstance(n, InnerView))
    found = {v.name: [c.name for c in v.children if isinstance(c, Indicator)] for v in views}
    return {name: indicators for name, indicators in found.items() if indicators}


CLIQUE = "Q[] = R[A, B] S[B, C] T[C, A] U[A, D] W[B, D] X[C, D]"


@pytest.mark.parametrize(
    ("query", "static", "order", "expected"),
    [
        ("Q[] = R[A, B] S[B, C] T[C, A]", "", "A - B - C", {"V@C_ST": ["∃A,B_R"]}),
        ("Q[] = R[A, B] S[B, C] T[C, D] U[D, A]", "", "A - B - C - D", {"V@C_STU": ["∃A,B_R"]}),
        ("Q[] = R[A, B] S[B, C] T[C, D] U[D, A]", "", "A - C - {B, D}", {}),
        (
            "Q[] = R[A, B] S[B, C] T[C, D] U[D, A] W[A, C]",
            "",
            "A - C - {B, D}",
            {"V@B_RS": ["∃A,C_W"], "V@D_TU": ["∃A,C_W"]},
        ),
        ("Q[] = R[A, B] S[B, C] T[C, D]", "", "B - {A, C - D}", {}),
        ("Q[] = R[A, B] S[B, C] T[C, A]", "S T", "A - B - C", {}),
        ("Q[] = R[A, B] S[B, C] T[C, A]", "R", "A - B - C", {}),
        (CLIQUE, "", "A - B - C - D", {"V@D_UWX": ["∃A,B_R", "∃B,C_S", "∃C,A_T"]}),
    ],
)
def test_useful_ones(query: str, static: str, order: str, expected: dict[str, list[str]]) -> None:
    """Where a stored view that changes would outgrow the database; not again where they have already kept rows out."""
    made = join_query(query, static=static)
    tree = plan_tree(made, order=parse_order(made, order), inline=False).tree
    assert placed(add_useful_indicators(made, tree)) == expected


def test_figure_17_repeats_them() -> None:
    """At every view that they close a cycle with."""
    made = join_query(CLIQUE)
    tree = plan_tree(made, order=parse_order(made, "A - B - C - D"), inline=False).tree
    assert placed(add_indicators(made, tree))["V@C_STUWX"] == ["∃A,B_R"]


def test_one_of_an_atom_that_changes_is_stored_whatever_stands_beside_it() -> None:
    """Else nobody would know which changes of the atom change it; one of an atom that does not, only if something else does."""
    for static, is_stored in (("S T", True), ("R S T", False), ("R T", True)):
        made = join_query("Q[] = R[A, B, D] S[B, C] T[C, A] U[D]", static=static)
        tree = plan_tree(made, order=parse_order(made, "A - B - {C, D}"), inline=False, indicators="all").tree
        assert ("∃A,B_R" in materialized_nodes(tree)) == is_stored
