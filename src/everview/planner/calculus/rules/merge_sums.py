"""A Sum of a product with a Sum in it adds up all at once."""

from __future__ import annotations

from everview.planner.calculus.terms import CalculusTerm, SumTerm, factors_of, local_variables, open_variables, times


def merge_sums(term: CalculusTerm) -> CalculusTerm | None:
    """Sum[x](p * Sum[y](q)) = Sum[x](p * q), if no variable that the inner Sum adds up over is named in p.

    It makes polynomials flat, so that equal ones are seen to be equal; ``decompose_join_graph`` finds the best way back.

    >>> from everview.planner.calculus.rule_examples import R, S, show
    >>> show(merge_sums(SumTerm(("a",), times(R, SumTerm(("b",), S)))))
    Sum[a](R(a, b) * S(b, c))
    >>> show(merge_sums(SumTerm((), SumTerm(("a",), R))))
    Sum[](R(a, b))
    """
    if not isinstance(term, SumTerm):
        return None
    factors = factors_of(term.body)
    for i, inner in enumerate(factors):
        if not isinstance(inner, SumTerm):
            continue
        others = (*factors[:i], *factors[i + 1 :])
        named = frozenset(term.keys).union(*(open_variables(o) | local_variables(o) for o in others))
        if not local_variables(inner) & named:
            return SumTerm(term.keys, times(*factors[:i], inner.body, *factors[i + 1 :]))
    return None
