"""What addends have in common is multiplied once."""

from __future__ import annotations

from everview.planner.calculus.terms import CalculusTerm, PlusTerm, TimesTerm, factors_of, output_variables, plus, times


def factor_addends(term: CalculusTerm) -> CalculusTerm | None:
    """Common factors: p * q + p * r = p * (q + r), for the factor that most addends have (section 3.2).

    The delta of a self-join becomes δR * (R + δR) + R * δR: one occurrence is new already, and no δR * δR is left over.

    Side condition: q and r list the same variables.

    >>> from everview.planner.calculus.rule_examples import R, S, T, changed_s, show
    >>> show(factor_addends(PlusTerm((times(R, changed_s), times(S, T), times(R, S)))))
    R(a, b) * (δS(b, c) + S(b, c)) + S(b, c) * T(c, d)
    """
    if not isinstance(term, PlusTerm):
        return None
    have = [factors_of(a) for a in term.addends]
    counts = {f: sum(f in factors for factors in have) for factors in have for f in factors}
    for common in sorted(counts, key=lambda f: -counts[f]):
        inner = [_without(factors, common) for factors in have if common in factors]
        if len(inner) > 1 and len({frozenset(output_variables(i)) for i in inner}) == 1:
            others = (a for a, factors in zip(term.addends, have, strict=True) if common not in factors)
            return plus(TimesTerm((common, plus(*inner))), *others)
    return None


def _without(factors: tuple[CalculusTerm, ...], factor: CalculusTerm) -> CalculusTerm:
    i = factors.index(factor)
    return times(*factors[:i], *factors[i + 1 :])
