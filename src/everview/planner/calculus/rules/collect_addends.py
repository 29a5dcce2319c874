"""Addends that differ in a constant are one."""

from __future__ import annotations

from everview.planner.calculus.terms import CalculusTerm, Constant, PlusTerm, factors_of, plus, times


def collect_addends(term: CalculusTerm) -> CalculusTerm | None:
    """Like addends: c * q + d * q = (c + d) * q: equal addends cancel. The factors of a product may stand in any order.

    >>> from everview.planner.calculus.rule_examples import R, S, show
    >>> from everview.planner.calculus.terms import minus
    >>> show(collect_addends(PlusTerm((times(R, S), R, times(Constant(2), S, R)))))
    3 * R(a, b) * S(b, c) + R(a, b)
    >>> show(collect_addends(PlusTerm((R, minus(R)))))
    0 * R(a, b)
    """
    if not isinstance(term, PlusTerm):
        return None
    numbers: dict[frozenset[tuple[CalculusTerm, int]], int] = {}
    first: dict[frozenset[tuple[CalculusTerm, int]], tuple[CalculusTerm, ...]] = {}
    for addend in term.addends:
        number, others = 1, []
        for factor in factors_of(addend):
            if isinstance(factor, Constant):
                number *= factor.value
            else:
                others.append(factor)
        alike = frozenset((f, others.count(f)) for f in others)
        numbers[alike] = numbers.get(alike, 0) + number
        first.setdefault(alike, tuple(others))
    if len(numbers) == len(term.addends):
        return None
    return plus(*(times(*_number(n, first[k]), *first[k]) for k, n in numbers.items()))


def _number(number: int, others: tuple[CalculusTerm, ...]) -> tuple[CalculusTerm, ...]:
    return () if number == 1 and others else (Constant(number),)
