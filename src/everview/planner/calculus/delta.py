"""How a term changes when relations do: Δ is again a term of the calculus.

    new(q) = q with R + δR for every relation R that changes            Δq = new(q) - q

The rules (section 3.1.1 of multilevel-ivm), each the law of an operator:

    ΔR           = δR, 0 for a relation that does not change
    Δc           = 0, also for variables, conditions, and what changes already
    Δ(q₁ + q₂)   = Δq₁ + Δq₂
    Δ Sum[x](q)  = Sum[x](Δq)
    Δ(q₁ * q₂)   = Δq₁ * q₂ + q₁ * Δq₂ + Δq₁ * Δq₂
    Δ(s < t)     = (s + Δs < t + Δt) - (s < t), for every comparison; 0 if neither side changes

Without nested aggregates every Δ lowers the degree by one (theorem 3.1), so that Δ of Δ of … ends. A comparison of a nested
aggregate does not get simpler, which is why the aggregate is a view of its own (section 3.3).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from everview.planner.calculus.terms import (
    ZERO,
    CalculusTerm,
    ChangeTerm,
    Comparison,
    ConditionTerm,
    Constant,
    PlusTerm,
    RelationTerm,
    SumTerm,
    TimesTerm,
    VariableTerm,
    minus,
    plus,
    times,
)


def delta(term: CalculusTerm, changed: Collection[str]) -> CalculusTerm:
    """Δ of a term for a change of the named relations. It is as the rules leave it: see ``simplify_term``.

    >>> from everview.planner.calculus.format_term import format_term
    >>> product = TimesTerm((RelationTerm("R", ("a", "b")), RelationTerm("S", ("b",))))
    >>> format_term(delta(SumTerm(("a",), product), {"R"}))
    'Sum[a](δR(a, b) * S(b))'
    >>> format_term(delta(product, {"R", "S"}))
    'δR(a, b) * S(b) + R(a, b) * δS(b) + δR(a, b) * δS(b)'
    """
    match term:
        case RelationTerm(name=name, variables=variables):
            return ChangeTerm(name, variables) if name in changed else ZERO
        case ChangeTerm() | Constant() | VariableTerm() | ConditionTerm():
            return ZERO
        case Comparison(operator=operator, left=left, right=right):
            moved = [(side, delta(side, changed)) for side in (left, right)]
            if all(d == ZERO for _, d in moved):
                return ZERO
            new_left, new_right = (side if d == ZERO else plus(side, d) for side, d in moved)
            return plus(Comparison(operator, new_left, new_right), minus(term))
        case PlusTerm(addends=addends):
            return plus(*(d for a in addends if (d := delta(a, changed)) != ZERO))
        case SumTerm(keys=keys, body=body):
            inner = delta(body, changed)
            return ZERO if inner == ZERO else SumTerm(keys, inner)
        case TimesTerm(factors=(first, *others)):
            return _product(first, times(*others), changed)
        case TimesTerm():
            return ZERO
        case _:
            assert_never(term)


def _product(left: CalculusTerm, right: CalculusTerm, changed: Collection[str]) -> CalculusTerm:
    """Δ of left * right; addends that are 0 are left out."""
    if right == times():
        return delta(left, changed)
    of_left, of_right = delta(left, changed), delta(right, changed)
    found = []
    if of_left != ZERO:
        found.append(times(of_left, right))
    if of_right != ZERO:
        found.append(times(left, of_right))
    if ZERO not in (of_left, of_right):
        found.append(times(of_left, of_right))
    return plus(*found)
