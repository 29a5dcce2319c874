"""A Sum of a sum is the sum of Sums."""

from __future__ import annotations

from everview.planner.calculus.terms import CalculusTerm, PlusTerm, SumTerm, plus


def split_sum(term: CalculusTerm) -> CalculusTerm | None:
    """Sum[x](p + q) = Sum[x](p) + Sum[x](q).

    >>> from everview.planner.calculus.rule_examples import S, changed_s, show
    >>> show(split_sum(SumTerm(("b",), PlusTerm((S, changed_s)))))
    Sum[b](S(b, c)) + Sum[b](δS(b, c))
    """
    if not isinstance(term, SumTerm) or not isinstance(term.body, PlusTerm):
        return None
    return plus(*(SumTerm(term.keys, addend) for addend in term.body.addends))
