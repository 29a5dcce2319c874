"""Bounds of updates and their reasons."""

from __future__ import annotations

import pytest

from everview.planner.build_tree import view_tree
from everview.planner.cost import update_costs
from everview.planner.delta_tree import delta_path
from everview.planner.format_tree import format_delta_path
from everview.planner.plan_tree import plan_tree
from everview.planner.variable_order import parse_order
from tests.unit.planner.queries import join_query


def test_reasons_name_the_look_up() -> None:
    """Which sibling is found by what, and what stays open."""
    query = join_query("Q[] = R[A, B] S[A, C, E] T[C, D]")
    tree = view_tree(query, parse_order(query, "A - {B, C - {D, E}}"))
    assert [c.text for c in update_costs(query, tree)] == [
        "R: O(1) a row: every look-up is by all keys: V@C_ST by A",
        "S: O(1) a row: every look-up is by all keys: V@D_T by C, V@B_R by A",
        "T: O(N) a row: at V@C_ST, V@E_S by C leaves A open",
    ]


def test_reasons_name_dependencies_and_indicators() -> None:
    """What makes a look-up constant is said, and what a change of an indicator costs."""
    keyed = plan_tree(join_query("Q[o, s] = C[c, s] O[o, c]", "c -> s; o -> c"))
    assert keyed.costs[1].text == "O: O(1) a row: dependencies fix what is looked up: C by c finds one s"
    triangle = plan_tree(join_query("Q[] = R[A, B] S[B, C] T[C, A]"), indicators="all")
    assert any("when an indicator of it changes" in c.text for c in triangle.costs)
    alone = plan_tree(join_query("Q[A] = R[A, B]"))
    assert alone.costs[0].text == "R: O(1) a row: it is joined with nothing"


def test_static_atoms_have_no_cost() -> None:
    """Only what changes is bounded."""
    plan = plan_tree(join_query("Q[] = R[A] S[A]", static="S"))
    assert [c.atom for c in plan.costs] == ["R"]
    assert plan.materialized == {"V@A_RS", "S"}


def test_products_multiply() -> None:
    """A row that meets two independent tables costs their product."""
    query = join_query("Q[B, C] = R[A, B] S[A, C] T[A]")
    tree = view_tree(query, parse_order(query, "A - {B, C}"))
    assert {c.atom: str(c.bound) for c in update_costs(query, tree)} == {"R": "O(N)", "S": "O(N)", "T": "O(N^2)"}


def test_look_ups_that_find_one_row_come_first() -> None:
    """With its key known, a sibling is looked up before one that multiplies the rows."""
    text = "Q[k, j, a, b] = R[k, j] S[k, a] T[j, b]"
    query = join_query(text)
    order = parse_order(query, "k - j - {a, b}")
    tree = view_tree(query, order)
    assert format_delta_path(delta_path(tree, "R")) == "δV@k_RST[k, j, a, b] = δR ⊗ S(k) ⊗ T(j)"
    keyed = join_query(text, "j -> b")
    assert [x.node.name for x in delta_path(tree, "R", keyed.dependencies)[0].lookups] == ["T", "S"]


def test_unknown_atoms() -> None:
    """There is no path for an atom that the tree does not have."""
    with pytest.raises(KeyError):
        delta_path(plan_tree(join_query("Q[] = R[A]")).tree, "X")


def test_self_joins_are_several_atoms() -> None:
    """Each occurrence has its own path; the updates go one after the other."""
    query = join_query("Q[] = E1[A, B] E2[B, C]")
    tree = plan_tree(query).tree
    assert [len(delta_path(tree, name)) for name in ("E1", "E2")] == [2, 2]
