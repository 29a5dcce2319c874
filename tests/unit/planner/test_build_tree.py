"""View trees beyond the paper's figures: sets needed together, key order, names, forests, what is refused."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from everview.errors import InternalError
from everview.planner.build_tree import view_tree
from everview.planner.check_tree import check_tree
from everview.planner.format_tree import format_tree
from everview.planner.plan_tree import plan_tree
from everview.planner.variable_order import parse_order
from everview.planner.view_tree import InnerView, Leaf, ViewTree
from tests.unit.planner.queries import join_query


def text(lines: str) -> str:
    """A tree in the tests below."""
    return dedent(lines).strip("\n")


def test_variables_needed_together_are_carried_to_where_they_meet() -> None:
    """A predicate over A and B keeps both in the keys until the view at K, where they are summed out."""
    query = join_query("Q[] = R[K, A] S[K, B] T[K, C]", together=("A B",))
    tree = view_tree(query, parse_order(query, "K - {A, B, C}"))
    assert format_tree(tree) == text("""
        V@K_RST[] = ⊕K,A,B R ⊗ S ⊗ V@C_T
          R[K, A]
          S[K, B]
          V@C_T[K] = ⊕C T
            T[K, C]
    """)


def test_variables_needed_together_are_carried_no_further() -> None:
    """Where the order joins them below K, the view above no longer has them."""
    query = join_query("Q[K] = R[K, J, A] S[J, B] T[K, C]", together=("A B",))
    tree = view_tree(query, parse_order(query, "K - {J - {A, B}, C}"))
    assert format_tree(tree) == text("""
        V@K_RST[K] = V@J_RS ⊗ V@C_T
          V@J_RS[K] = ⊕J,A,B R ⊗ S
            R[K, J, A]
            S[J, B]
          V@C_T[K] = ⊕C T
            T[K, C]
    """)


def test_variables_of_one_atom_are_local() -> None:
    """A predicate within an atom is its leaf's own matter."""
    query = join_query("Q[] = R[K, A, B] S[K]", together=("A B",))
    assert format_tree(plan_tree(query).tree) == text("""
        V@K_RS[] = ⊕K V@A_R ⊗ S
          V@A_R[K] = ⊕A,B R
            R[K, A, B]
          S[K]
    """)


def test_a_predicate_joins_components() -> None:
    """A comparison of columns of two tables that share none is a product with one view."""
    query = join_query("Q[A] = R[A] S[B]", together=("A B",))
    tree = plan_tree(query).tree
    assert [r.keys for r in tree.roots] == [("A",)]
    assert isinstance(tree.roots[0], InnerView)
    assert {c.name for c in tree.roots[0].children} == {"R", "S"}


def test_components_stay_apart() -> None:
    """A product is not computed: each component has its root, with its free variables in the order asked for."""
    query = join_query("Q[B, A, C] = R[A, X, C] S[B] T[]")
    assert [(r.name, r.keys) for r in plan_tree(query).tree.roots] == [("V@A_R", ("A", "C")), ("S", ("B",)), ("T", ())]


def test_the_root_has_the_keys_in_the_order_asked_for() -> None:
    """A leaf with the right variables in another order gets a view over it, one in the right order none."""
    assert plan_tree(join_query("Q[A, B] = R[A, B]")).tree.roots[0].name == "R"
    tree = plan_tree(join_query("Q[B, A] = R[A, B]")).tree
    assert format_tree(tree) == "V@A_R[B, A] = R\n  R[A, B]"
    assert plan_tree(join_query("Q[C, A] = R[A, B] S[B, C]")).tree.roots[0].keys == ("C", "A")


def test_long_names_are_separated() -> None:
    """Names of relations are joined with underscores unless they are as short as the paper's."""
    query = join_query("Q[] = orders[o] lines[o]")
    assert plan_tree(query).tree.roots[0].name == "V@o_orders_lines"


def test_a_bound_variable_alone_is_summed_in_factorized_trees() -> None:
    """Figure 9 would return R itself, in which the payload of an A is not to be found."""
    query = join_query("Q[A] = R[A, B]")
    plan = plan_tree(query, representation="factorized")
    assert format_tree(plan.tree, plan.materialized) == "V@B_R[A] = ⊕B R  *\n  R[A, B]"
    assert plan.tree.enumerate_from == (("A", "V@B_R"),)


def test_bound_variables_needed_together_stay_below_the_free_ones() -> None:
    """In a factorized tree Y and Z are joined before anything free is listed."""
    query = join_query("Q[X] = R[X, Y] S[X, Z]", together=("Y Z",))
    plan = plan_tree(query, representation="factorized")
    assert plan.tree.enumerate_from == (("X", "V@Y_RS"),)
    assert plan.tree.roots[0].keys == ("X",)
    assert view_tree(query, parse_order(query, "X - {Y, Z}"), "factorized").roots[0].keys == ("X",)


def test_bound_variables_needed_together_are_not_carried_past_free_ones() -> None:
    """Y below the free W cannot wait for Z: the payload of a pair of X and W would be nowhere."""
    query = join_query("Q[X, W] = R[X, W, Y] S[X, Z]", together=("Y Z",))
    with pytest.raises(ValueError, match="listed before"):
        view_tree(query, parse_order(query, "X - {W - Y, Z}"), "factorized")
    assert plan_tree(query, representation="factorized").order.is_free_top(query.free)


def test_free_variables_needed_together_have_no_factorized_tree() -> None:
    """A predicate over free B and free C makes their values depend on each other, which branches cannot say."""
    query = join_query("Q[A, B, C] = R[A, B] S[A, C]", together=("B C",))
    with pytest.raises(ValueError, match="together"):
        plan_tree(query, representation="factorized")
    assert plan_tree(query).tree.roots[0].keys == ("A", "B", "C")


@pytest.mark.parametrize(
    ("text", "together", "message"),
    [
        ("Q[A] = R[A] R[A]", (), "distinct names"),
        ("Q[Z] = R[A]", (), "no atom has"),
        ("Q[A, A] = R[A]", (), "twice"),
        ("Q[A] = R[A, A]", (), "twice"),
        ("Q[A] = R[A]", ("A Z",), "no atom has"),
    ],
)
def test_what_is_no_query(text: str, together: tuple[str, ...], message: str) -> None:
    """Malformed queries are refused before anything is planned."""
    with pytest.raises(ValueError, match=message):
        plan_tree(join_query(text, together=together))


def test_wrong_trees_are_found_out() -> None:
    """A tree that sums a join variable too early, drops an atom, a variable or a key does not pass."""
    query = join_query("Q[A] = R[A, B] S[B, C]")
    tree = plan_tree(query).tree
    check_tree(query, tree)
    r, s = (Leaf(a) for a in query.atoms)
    early = InnerView("V@B_R", ("B",), ("A",), ("B",), (r,))
    late = InnerView("V@C_S", ("C",), ("B",), ("C",), (s,))
    wrong = [
        ViewTree((InnerView("V@A_RS", ("A",), ("A",), ("B",), (early, late)),), ("A",)),
        ViewTree((early,), ("A",)),
        ViewTree((InnerView("V@A_RS", ("A",), ("A",), (), (r, late)),), ("A",)),
        ViewTree((InnerView("V@A_RS", ("A",), (), ("A", "B"), (r, late)),), ("A",)),
        replace(tree, enumerate_from=(("A", "R"),)),
    ]
    for bad in wrong:
        with pytest.raises(InternalError, match="no valid view tree"):
            check_tree(query, bad)


def test_wrong_predicates_are_found_out() -> None:
    """A variable that a predicate needs cannot be summed out before the others are there."""
    query = join_query("Q[] = R[K, A] S[K, B]", together=("A B",))
    r, s = (Leaf(a) for a in query.atoms)
    early = InnerView("V@A_R", ("A",), ("K",), ("A",), (r,))
    with pytest.raises(InternalError, match="before all"):
        check_tree(query, ViewTree((InnerView("V@K_RS", ("K",), (), ("K", "B"), (early, s)),), ()))
