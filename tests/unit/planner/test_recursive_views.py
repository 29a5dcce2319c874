"""Hierarchies of recursive views: which views there are at which depth, what they cost, and when ``auto`` takes them."""

from __future__ import annotations

import pytest

from everview.planner.calculus.format_term import format_term
from everview.planner.join_query import Atom, Dependency, JoinQuery
from everview.planner.plan_recursive import compare_with_tree, plan_recursive
from everview.planner.plan_tree import plan_tree
from everview.planner.recursive_views import TooManyViewsError, recursive_views
from everview.planner.variable_order import parse_order


def query(free: str, *atoms: str, static: str = "", **options: tuple[Dependency, ...]) -> JoinQuery:
    """A query from atoms such as ``R:AB``."""
    pairs = [atom.split(":") for atom in atoms]
    made = tuple(Atom(name, name, tuple(variables), updatable=name not in static) for name, variables in pairs)
    return JoinQuery(made, tuple(free), **options)


CHAIN = query("", "R:AB", "S:BC", "T:CD")


def test_a_chain_has_views_of_its_connected_parts() -> None:
    """The middle is met by two views of one dimension, the ends by one view of what is left."""
    found = recursive_views(CHAIN)
    assert {v.name: "".join(v.keys) for v in found.views} == {
        "M_S_T": "B",
        "M_R": "B",
        "M_T": "C",
        "M_R_S": "C",
        "S": "BC",
        "result": "",
    }


def test_equal_views_are_one() -> None:
    """A part that several deltas read is stored once, whatever the path to it."""
    star = query("", "R:AB", "S:AC", "T:AD", "U:AE")
    found = recursive_views(star)
    identities = [(v.atoms, v.keys, v.conditions) for v in found.views]
    assert len(set(identities)) == len(identities)
    # The change of any atom leaves three that only meet in A, which is given: four views, each of one atom.
    assert sorted(v.name for v in found.views) == ["M_R", "M_S", "M_T", "M_U", "result"]


def test_depth_one_reads_the_relations() -> None:
    """Classical maintenance stores the relations and the result; more depth than atoms is full depth."""
    assert [v.name for v in recursive_views(CHAIN, depth=1).views] == ["S", "T", "R", "result"]
    assert recursive_views(CHAIN, depth=9).views == recursive_views(CHAIN).views


def test_every_delta_has_an_atom_less() -> None:
    """What a delta reads does not contain what has changed, so that the statements of a trigger do not meet."""
    for depth in (None, 1, 2, 3):
        for change in recursive_views(query("A", "R:AB", "S:BC", "T:CD", "U:DA"), depth=depth).deltas:
            assert all(change.atom not in view.atoms for view in change.joined)
            joined = sorted(i for view in change.joined for i in view.atoms)
            assert sorted([*joined, change.atom]) == sorted(change.view.atoms)


def test_a_condition_with_the_changed_atom_stays_outside() -> None:
    """Example 3.4: what is compared with the change is a key of the view, and the costs of both ways are told."""
    pair = query("", "R:AB", "S:CD")
    plan = plan_recursive(pair, (("B", "C"),))
    found = {v.name: "".join(v.keys) for v in plan.hierarchy.views}
    assert found == {"M_S": "C", "M_R": "B", "result": ""}
    change = next(d for d in plan.hierarchy.deltas if d.view.name == "result" and d.atom == 0)
    assert format_term(change.term) == "Sum[](δR(A, B) * Sum[C](S(C, D)) * 0(B, C))"
    assert {(p.view, p.part < p.full) for p in plan.pulled} == {("M_S", True), ("M_R", True)}


def test_relations_that_do_not_change_need_fewer_views() -> None:
    """For changes of T only, one view of what it meets is stored; the rest is there to fill it."""
    found = recursive_views(query("", "R:AB", "S:BC", "T:CD", static="RS"))
    assert [v.name for v in found.restricted().views] == ["M_R_S", "result"]
    assert len(found.views) > 2


def test_too_many_views_are_refused() -> None:
    """A clique of relations has as many connected parts as sets of atoms."""
    names = "ABCDEFGHIJ"
    grid = [f"R{i}:{names[i]}{names[(i + 1) % 10]}{names[(i + 3) % 10]}{names[(i + 5) % 10]}" for i in range(10)]
    with pytest.raises(TooManyViewsError, match="more than 300 views"):
        recursive_views(query("".join(names), *grid))


def test_auto_does_not_take_quadratic_views() -> None:
    """In a cycle of four, what a change meets has up to N² rows: the view tree stays, and the view is named."""
    cycle = query("", "R:AB", "S:BC", "T:CD", "U:DA")
    taken, why = compare_with_tree(plan_tree(cycle))
    assert taken is None
    assert "of up to N^2 rows" in why


def test_auto_keeps_the_tree_on_a_tie() -> None:
    """With equal bounds and similar estimates the tree has fewer views."""
    taken, why = compare_with_tree(plan_tree(query("", "R:AB", "S:AC")))
    assert taken is None
    assert why.startswith("view tree taken: recursive deltas have no lower bounds")


def test_auto_takes_what_a_tree_cannot_do() -> None:
    """Where the order of the tree makes a change of T large on its way up, a view of the others is looked up instead."""
    only_t = query("", "R:A", "S:AC", "T:C", static="RS")
    taken, why = compare_with_tree(plan_tree(only_t, order=parse_order(only_t, "A - C")))
    assert taken is not None
    assert why.startswith("recursive deltas taken: a row of T costs O(1), in a view tree O(N)")


def test_large_joins_are_not_compared() -> None:
    """Auto does not look at hierarchies of more than seven relations."""
    _, why = compare_with_tree(plan_tree(query("", *(f"R{i}:A{b}" for i, b in enumerate("BCDEFGHI")))))
    assert "have too many views to look at" in why
