"""A product of products is one product."""

from __future__ import annotations

from everview.planner.calculus.terms import CalculusTerm, TimesTerm, factors_of, times


def flatten_products(term: CalculusTerm) -> CalculusTerm | None:
    """(p * q) * r = p * q * r. A product of one factor is that factor.

    >>> from everview.planner.calculus.rule_examples import R, S, T, show
    >>> show(flatten_products(TimesTerm((TimesTerm((R, S)), T))))
    R(a, b) * S(b, c) * T(c, d)
    >>> show(flatten_products(TimesTerm((R, S))))
    nothing to do
    """
    if not isinstance(term, TimesTerm):
        return None
    if len(term.factors) > 1 and not any(isinstance(f, TimesTerm) for f in term.factors):
        return None
    return times(*(inner for factor in term.factors for inner in factors_of(factor)))
