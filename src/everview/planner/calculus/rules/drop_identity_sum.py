"""A Sum over nothing is its body."""

from __future__ import annotations

from everview.planner.calculus.terms import CalculusTerm, SumTerm, output_variables


def drop_identity_sum(term: CalculusTerm) -> CalculusTerm | None:
    """Sum[x](q) = q, if x are all output variables of q.

    >>> from everview.planner.calculus.rule_examples import R, show
    >>> show(drop_identity_sum(SumTerm(("b", "a"), R)))
    R(a, b)
    >>> show(drop_identity_sum(SumTerm(("a",), R)))
    nothing to do
    """
    if isinstance(term, SumTerm) and set(term.keys) == set(output_variables(term.body)):
        return term.body
    return None
