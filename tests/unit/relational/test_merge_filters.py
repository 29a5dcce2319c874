from __future__ import annotations

from everview.relational.expressions import TRUE, Call, Column, Literal, conjunction
from everview.relational.nodes import Field, Filter, Scan
from everview.relational.rules.merge_filters import merge_filters
from everview.relational.types import BOOLEAN, INT32

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
P = Call("<", (Column(0, INT32), Literal(1, INT32)), BOOLEAN)
Q = Call("isnotnull", (Column(1, INT32),), BOOLEAN)


def test_inner_condition_comes_first() -> None:
    """σ[p](σ[q](R)) = σ[q ∧ p](R): q guards the evaluation of p."""
    assert merge_filters(Filter(Filter(R, Q), P)) == Filter(R, Call("and", (Q, P), BOOLEAN))


def test_repeated_conjuncts_are_kept_once() -> None:
    """σ[p ∧ q](σ[q](R)) = σ[q ∧ p](R), and TRUE adds nothing."""
    assert merge_filters(Filter(Filter(R, Q), conjunction((P, Q)))) == Filter(R, conjunction((Q, P)))
    assert merge_filters(Filter(Filter(R, Q), TRUE)) == Filter(R, Q)


def test_single_filter_stays() -> None:
    """One filter is as merged as it gets."""
    assert merge_filters(Filter(R, P)) is None
    assert merge_filters(R) is None
