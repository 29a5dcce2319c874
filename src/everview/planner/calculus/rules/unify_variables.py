"""Variables that are compared for equality are one."""

from __future__ import annotations

from everview.planner.calculus.terms import (
    CalculusTerm,
    Comparison,
    SumTerm,
    VariableTerm,
    factors_of,
    output_variables,
    renamed,
    times,
)


def unify_variables(term: CalculusTerm) -> CalculusTerm | None:
    """Sum[x](q * {a = b}) = Sum[x](q with a for b), if q lists both a and b, and b is not in x.

    >>> from everview.planner.calculus.rule_examples import R, T, equal, show
    >>> show(unify_variables(SumTerm(("a",), times(R, T, equal("b", "c")))))
    Sum[a](R(a, b) * T(b, d))
    """
    if not isinstance(term, SumTerm):
        return None
    factors = factors_of(term.body)
    for i, factor in enumerate(factors):
        if not isinstance(factor, Comparison) or factor.operator != "=":
            continue
        if not isinstance(factor.left, VariableTerm) or not isinstance(factor.right, VariableTerm):
            continue
        rest = times(*factors[:i], *factors[i + 1 :])
        kept, gone = factor.left.name, factor.right.name
        if gone in term.keys:
            kept, gone = gone, kept
        if gone not in term.keys and {kept, gone} <= set(output_variables(rest)):
            return SumTerm(term.keys, renamed(rest, {gone: kept}))
    return None
