"""What is 0 is left out."""

from __future__ import annotations

from everview.planner.calculus.terms import ZERO, CalculusTerm, PlusTerm, SumTerm, plus


def drop_zeros(term: CalculusTerm) -> CalculusTerm | None:
    """Q + 0 = q, and Sum[x](0) = 0.

    >>> from everview.planner.calculus.rule_examples import R, show
    >>> show(drop_zeros(PlusTerm((ZERO, R))))
    R(a, b)
    >>> show(drop_zeros(SumTerm((), ZERO)))
    0
    """
    if isinstance(term, SumTerm) and term.body == ZERO:
        return ZERO
    if isinstance(term, PlusTerm) and ZERO in term.addends:
        return plus(*(a for a in term.addends if a != ZERO))
    return None
