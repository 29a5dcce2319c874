"""A product of sums is a sum of products."""

from __future__ import annotations

from itertools import product

from everview.planner.calculus.terms import CalculusTerm, PlusTerm, TimesTerm, addends_of, plus, times


def distribute_product(term: CalculusTerm) -> CalculusTerm | None:
    """(p + q) * r = p * r + q * r.

    >>> from everview.planner.calculus.rule_examples import S, T, changed_s, show
    >>> show(distribute_product(TimesTerm((PlusTerm((S, changed_s)), T))))
    S(b, c) * T(c, d) + δS(b, c) * T(c, d)
    """
    if not isinstance(term, TimesTerm) or not any(isinstance(f, PlusTerm) for f in term.factors):
        return None
    return plus(*(times(*chosen) for chosen in product(*(addends_of(f) for f in term.factors))))
