"""The delta of a term is what it changes by, and no rule changes what a term means."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from everview.errors import InternalError
from everview.planner.calculus.delta import delta
from everview.planner.calculus.format_term import format_term
from everview.planner.calculus.rules import DECOMPOSE, FACTOR, POLYNOMIAL, decompose_term, factor_term, simplify_term
from everview.planner.calculus.rules.pipeline import TermRule, run_term_rules
from everview.planner.calculus.terms import (
    ZERO,
    CalculusTerm,
    ChangeTerm,
    Comparison,
    RelationTerm,
    SumTerm,
    VariableTerm,
    degree,
    input_variables,
    minus,
    output_variables,
    plus,
    relations_in,
    terms_in,
    times,
)
from everview.planner.calculus.verify_term import verify_term
from tests.unit.planner.calculus.naive import ARITIES, Database, any_terms, databases, meanings, new_contents, products

RULES = tuple(dict.fromkeys((*POLYNOMIAL, *DECOMPOSE, *FACTOR)))
TRIED = settings(max_examples=40, deadline=None)

R, S = RelationTerm("R", ("a",)), RelationTerm("S", ("a", "b"))


def is_well_formed(term: CalculusTerm) -> bool:
    """Whether a generated term is one."""
    try:
        verify_term(term)
    except InternalError:
        return False
    return True


@TRIED
@given(any_terms(), databases(0), databases(-2), st.sets(st.sampled_from(sorted(ARITIES)), min_size=1))
def test_delta_is_new_minus_old(term: CalculusTerm, old: Database, change: Database, changed: set[str]) -> None:
    """Q(R + δR) = Q(R) + ΔQ, for self-joins, negative multiplicities, and nested aggregates in comparisons."""
    assume(is_well_formed(term))
    change = {name: bag if name in changed else {} for name, bag in change.items()}
    moved = delta(term, changed)
    assert meanings(term, new_contents(old, change), change) == meanings(plus(term, moved), old, change)


@TRIED
@given(any_terms(), databases(-1), databases(-2), st.sets(st.sampled_from(sorted(ARITIES))))
def test_every_pipeline_keeps_the_meaning(
    term: CalculusTerm, old: Database, change: Database, changed: set[str]
) -> None:
    """A term, or its delta, as a polynomial, decomposed and factored means what it meant."""
    assume(is_well_formed(term))
    if changed:
        term = delta(term, changed)
    names = set(input_variables(term))
    for made in (simplify_term(term), decompose_term(simplify_term(term)), factor_term(simplify_term(term))):
        verify_term(made)
        if set(input_variables(made)) == names:
            assert meanings(made, old, change) == meanings(term, old, change), format_term(made)
        else:  # an input variable that does not matter is gone
            assert set(input_variables(made)) < names
            assert meanings(plus(made, _read(names)), old, change) == meanings(plus(term, _read(names)), old, change)


def _read(names: set[str]) -> CalculusTerm:
    """0, of which the variables are inputs."""
    return times(ZERO, *(VariableTerm(n) for n in sorted(names)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@settings(max_examples=10, deadline=None)
@given(term=any_terms(), old=databases(-1), change=databases(-1), is_delta=st.booleans())
@example(
    term=SumTerm((), times(R, S, Comparison("=", VariableTerm("a"), VariableTerm("b")))),
    old={"R": {(1,): 2}, "S": {(1, 1): 1, (1, 2): 1}, "T": {}},
    change={"R": {}, "S": {}, "T": {}},
    is_delta=False,
)
def test_every_rule_keeps_the_meaning(
    rule: TermRule, term: CalculusTerm, old: Database, change: Database, is_delta: bool
) -> None:
    """Each law holds on its own, wherever in a term it applies."""
    assume(is_well_formed(term))
    if is_delta:
        term = delta(term, {"S", "R"})
    made = run_term_rules(term, (rule,))
    names = set(input_variables(term)) | set(input_variables(made))
    assert meanings(plus(made, _read(names)), old, change) == meanings(plus(term, _read(names)), old, change)


@TRIED
@given(products(nesting=0), st.permutations(sorted(ARITIES)))
def test_deltas_of_deltas_end(term: CalculusTerm, order: list[str]) -> None:
    """Without nested aggregates each delta has a lower degree, until it refers to no relation (theorem 3.1)."""
    assume(is_well_formed(term))
    term = simplify_term(term)
    while relations_in(term):
        name = next(n for n in order if n in relations_in(term))
        moved = simplify_term(delta(term, {name}))
        assert moved == ZERO or degree(moved) < degree(term)
        term = moved
    assert degree(term) == 0


def test_the_delta_of_a_self_join_has_three_addends() -> None:
    """R * R changes by δR * R + R * δR + δR * δR, which factor into two, one with new contents."""
    moved = delta(times(R, RelationTerm("R", ("b",))), {"R"})
    assert format_term(moved) == "δR(a) * R(b) + R(a) * δR(b) + δR(a) * δR(b)"
    assert format_term(factor_term(moved)) == "δR(a) * (R(b) + δR(b)) + R(a) * δR(b)"


def test_a_nested_aggregate_stays_in_the_delta_of_its_comparison() -> None:
    """Example 3.3: the delta of a comparison compares the nested aggregate again, new and old."""
    query = times(R, Comparison("<", VariableTerm("a"), SumTerm((), RelationTerm("S", ("x", "y")))))
    moved = delta(query, {"S"})
    assert format_term(moved) == ("R(a) * ({a < Sum[](S(x, y)) + Sum[](δS(x, y))} + -1 * {a < Sum[](S(x, y))})")
    assert degree(moved) == degree(query) == 1


def test_a_chain_falls_apart_where_it_changes() -> None:
    """Section 3.2: a change of the middle of a chain leaves two views of one dimension each."""
    chain = SumTerm(
        (), times(RelationTerm("R", ("a", "b")), RelationTerm("S", ("b", "c")), RelationTerm("T", ("c", "d")))
    )
    moved = decompose_term(simplify_term(delta(chain, {"S"})))
    assert format_term(moved) == "Sum[](Sum[b](R(a, b)) * δS(b, c) * Sum[c](T(c, d)))"
    stored = [t for t in terms_in(moved) if isinstance(t, SumTerm) and t is not moved]
    assert [output_variables(t) for t in stored] == [("b",), ("c",)]


def test_malformed_terms_are_told() -> None:
    """The verifier names what is wrong: keys that nobody lists, compared relations, variables used in two senses."""
    for term, what in (
        (SumTerm(("z",), R), "does not list"),
        (Comparison("<", R, ZERO), "compared relation"),
        (plus(R, S), "different output variables"),
        (times(SumTerm((), R), R), "is used around it"),
    ):
        with pytest.raises(InternalError, match=what):
            verify_term(term)
    verify_term(minus(ChangeTerm("R", ("a",))))
