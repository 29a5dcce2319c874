"""The constants of a product are one, which comes first."""

from __future__ import annotations

from math import prod

from everview.planner.calculus.terms import ONE, ZERO, CalculusTerm, Constant, TimesTerm, times


def multiply_constants(term: CalculusTerm) -> CalculusTerm | None:
    """Constants of a product: c * q * d = (c·d) * q, 1 * q = q, 0 * q = 0. A flat product is given.

    >>> from everview.planner.calculus.rule_examples import R, show
    >>> show(multiply_constants(TimesTerm((R, Constant(-1), Constant(3)))))
    -3 * R(a, b)
    >>> show(multiply_constants(TimesTerm((Constant(2), R, Constant(0)))))
    0
    """
    if not isinstance(term, TimesTerm):
        return None
    number = Constant(prod(f.value for f in term.factors if isinstance(f, Constant)))
    if number == ZERO:
        return ZERO
    others = tuple(f for f in term.factors if not isinstance(f, Constant))
    new = times(*others) if number == ONE and others else times(number, *others)
    return None if new == term else new
