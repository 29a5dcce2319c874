"""The text of a term, the same for the same term: what tests and ``explain`` show."""

from __future__ import annotations

from typing import assert_never

from everview.planner.calculus.terms import (
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
)


def format_term(term: CalculusTerm) -> str:
    """One line.

    >>> from everview.planner.calculus.terms import minus
    >>> product = TimesTerm((RelationTerm("R", ("a", "b")), Comparison("<", VariableTerm("b"), VariableTerm("c"))))
    >>> format_term(PlusTerm((SumTerm(("a",), product), minus(ChangeTerm("S", ("a",))))))
    'Sum[a](R(a, b) * {b < c}) + -1 * δS(a)'
    """
    match term:
        case RelationTerm(name=name, variables=variables) | ConditionTerm(name=name, variables=variables):
            return f"{name}({', '.join(variables)})"
        case ChangeTerm(name=name, variables=variables):
            return f"δ{name}({', '.join(variables)})"
        case Constant(value=value):
            return str(value)
        case VariableTerm(name=name):
            return f"{{{name}}}"
        case Comparison(operator=operator, left=left, right=right):
            return f"{{{_value(left)} {operator} {_value(right)}}}"
        case PlusTerm(addends=addends):
            return " + ".join(format_term(a) for a in addends)
        case TimesTerm(factors=factors):
            return " * ".join(f"({format_term(f)})" if isinstance(f, PlusTerm) else format_term(f) for f in factors)
        case SumTerm(keys=keys, body=body):
            return f"Sum[{', '.join(keys)}]({format_term(body)})"
        case _:
            assert_never(term)


def _value(term: CalculusTerm) -> str:
    """A side of a comparison, where a variable needs no braces."""
    return term.name if isinstance(term, VariableTerm) else format_term(term)
