"""A comparison of two constants, or of a value with itself, is a constant."""

from __future__ import annotations

from everview.planner.calculus.terms import COMPARISONS, CalculusTerm, Comparison, Constant


def compare_constants(term: CalculusTerm) -> CalculusTerm | None:
    """{c < d} is 1 or 0; {t = t} = 1 and {t < t} = 0. Numbers only: nothing is NULL here.

    >>> from everview.planner.calculus.rule_examples import less, show
    >>> show(compare_constants(Comparison("<", Constant(2), Constant(3))))
    1
    >>> show(compare_constants(less("a", "a")))
    0
    """
    if not isinstance(term, Comparison):
        return None
    holds = COMPARISONS[term.operator]
    if isinstance(term.left, Constant) and isinstance(term.right, Constant):
        return Constant(int(holds(term.left.value, term.right.value)))
    return Constant(int(holds(0, 0))) if term.left == term.right else None
