"""Variable orders: notation, placement of atoms, dep sets, and what is no order."""

from __future__ import annotations

import pytest

from everview.planner.dependencies import sigma_reduct
from everview.planner.variable_order import canonical_order, parse_order, variable_order
from tests.unit.planner.queries import join_query

PATH = join_query("Q[] = R[A, B] S[B, C] T[C, D]")


@pytest.mark.parametrize("text", ["A - B - C - D", "B - {A, C - D}", "C - {B - A, D}", "D - C - B - A"])
def test_the_notation_is_read_as_it_is_written(text: str) -> None:
    """An order printed is the order parsed."""
    assert parse_order(PATH, text).text == text


def test_forests() -> None:
    """Components are separate trees, and an atom without variables is a tree of its own."""
    query = join_query("Q[] = R[A, B] S[C] T[]")
    order = parse_order(query, "A - B; C")
    assert order.text == "A - B; C"
    assert [a.name for a in order.loose] == ["T"]


def test_an_atom_is_under_its_lowest_variable() -> None:
    """Dep holds the ancestors that the atoms below have, and no others."""
    order = parse_order(PATH, "A - B - C - D")
    assert {n.variable: (n.dep, [a.name for a in n.atoms]) for n in order.walk()} == {
        "A": ((), []),
        "B": (("A",), ["R"]),
        "C": (("B",), ["S"]),
        "D": (("C",), ["T"]),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A - {B, C - D}", "not along one path"),
        ("A - B - C", "D"),
        ("A - B - C - D - X", "X"),
    ],
)
def test_what_is_no_order(text: str, message: str) -> None:
    """An atom across branches, a missing and an unknown variable are refused."""
    with pytest.raises(ValueError, match=message):
        parse_order(PATH, text)


def test_cycles_are_refused() -> None:
    """A variable cannot be above itself."""
    with pytest.raises(ValueError, match="above itself"):
        variable_order(join_query("Q[] = R[A, B]"), {"A": "B", "B": "A"})


def test_what_is_needed_together_is_in_one_tree() -> None:
    """A predicate over two components joins them, so they cannot be separate trees."""
    query = join_query("Q[] = R[A] S[B]", together=("A B",))
    with pytest.raises(ValueError, match="different trees"):
        parse_order(query, "A; B")
    assert parse_order(query, "A - B").text == "A - B"


def test_canonical_orders_have_the_free_variables_on_top() -> None:
    """Of variables of the same atoms the free ones are above, and every path is the schema of an atom."""
    query = join_query("Q[B, D] = R[A, B, C] S[A, B, D]")
    assert canonical_order(query).text == "B - A - {C, D}"
    query = join_query("Q[A, B, D] = R[A, B, C] S[A, B, D]")
    assert canonical_order(query).text == "A - B - {C, D}"


def test_only_hierarchical_queries_have_canonical_orders() -> None:
    """A path of three is not hierarchical; under keys its reduct is."""
    with pytest.raises(ValueError, match="hierarchical"):
        canonical_order(PATH)
    keyed = join_query("Q[] = R[A, B] S[B, C] T[C, D]", "B -> C; C -> D")
    assert canonical_order(sigma_reduct(keyed), placed=keyed).text == "C - D - B - A"
