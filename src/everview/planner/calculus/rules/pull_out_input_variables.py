"""What reads an input variable stays out of what is materialized."""

from __future__ import annotations

from everview.planner.calculus.terms import (
    CalculusTerm,
    SumTerm,
    factors_of,
    input_variables,
    output_variables,
    relations_in,
    times,
)


def pull_out_input_variables(term: CalculusTerm) -> CalculusTerm | None:
    """Sum[x](q * p) = Sum[x](Sum[x, y](q) * p), where y are the variables that q lists and p reads.

    Side conditions: p lists nothing and reads no relation.

    It is used where p reads a variable that q does not list: q can then be stored without a copy of it for every value of that
    variable (M_part of example 3.4), at the price of p being checked when it is read.

    >>> from everview.planner.calculus.rule_examples import S, less, show
    >>> show(pull_out_input_variables(SumTerm((), times(S, less("b", "z")))))
    Sum[](Sum[b](S(b, c)) * {b < z})
    """
    if not isinstance(term, SumTerm):
        return None
    factors = factors_of(term.body)
    listed = output_variables(term.body)
    values = (f for f in factors if not output_variables(f) and not relations_in(f))
    pulled = tuple(f for f in values if set(input_variables(f)) - set(listed))
    inner = tuple(f for f in factors if f not in pulled)
    if not pulled or not inner:
        return None
    read = {v for f in pulled for v in input_variables(f)}
    keys = tuple(v for v in output_variables(times(*inner)) if v in term.keys or v in read)
    if keys == output_variables(times(*inner)):
        return None
    return SumTerm(term.keys, times(SumTerm(keys, times(*inner)), *pulled))
