"""A sum of sums is one sum."""

from __future__ import annotations

from everview.planner.calculus.terms import CalculusTerm, PlusTerm, addends_of, plus


def flatten_additions(term: CalculusTerm) -> CalculusTerm | None:
    """(p + q) + r = p + q + r. A sum of one addend is that addend.

    >>> from everview.planner.calculus.rule_examples import R, show
    >>> show(flatten_additions(PlusTerm((PlusTerm((R, R)), R))))
    R(a, b) + R(a, b) + R(a, b)
    """
    if not isinstance(term, PlusTerm):
        return None
    if len(term.addends) > 1 and not any(isinstance(a, PlusTerm) for a in term.addends):
        return None
    return plus(*(inner for addend in term.addends for inner in addends_of(addend)))
