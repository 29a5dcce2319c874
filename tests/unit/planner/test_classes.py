"""Query classes, with and without dependencies."""

from __future__ import annotations

import pytest

from everview.planner.classes import classify, classify_reduct
from everview.planner.dependencies import sigma_reduct
from tests.unit.planner.queries import join_query


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Q[A] = R[A, B] S[A]", "q-hierarchical"),
        ("Q[] = R[A, B] S[A, C]", "q-hierarchical"),
        ("Q[A] = R[A, B]", "q-hierarchical"),  # the bound B has the atoms of the free A, and not more
        ("Q[A, B, C] = R[A, B] S[B, C] T[C]", "free-connex acyclic"),
        ("Q[B] = R[A, B] S[A]", "free-connex acyclic"),  # hierarchical, with the bound A above the free B
        ("Q[B, C] = R[A, B] S[A, C]", "hierarchical"),
        ("Q[A, C] = R[A, B] S[B, C] T[C]", "acyclic"),
        ("Q[] = R[A, B] S[B, C] T[C, A]", "cyclic"),
    ],
)
def test_the_strongest_class_is_named(text: str, name: str) -> None:
    """One query for each class."""
    assert classify(join_query(text)).name == name


def test_the_reduct_closes_schemas_and_free_variables() -> None:
    """Definition 25; variables that no atom has stay out."""
    query = join_query("Q[A] = R[A, B] S[B, C]", "A -> B; B -> C Z")
    reduct = sigma_reduct(query)
    assert [a.variables for a in reduct.atoms] == [("A", "B", "C"), ("B", "C")]
    assert reduct.free == ("A", "B", "C")


def test_foreign_keys_make_snowflakes_q_hierarchical() -> None:
    """Customers, orders and lines grouped by a column of the customer."""
    query = join_query("Q[s] = C[c, s] O[o, c] L[o]", "c -> s; o -> c")
    assert classify(query).name == "free-connex acyclic"
    assert not classify(query).is_hierarchical
    assert classify_reduct(query).is_hierarchical
    assert classify_reduct(join_query("Q[o, s] = C[c, s] O[o, c] L[o]", "c -> s; o -> c")).name == "q-hierarchical"
