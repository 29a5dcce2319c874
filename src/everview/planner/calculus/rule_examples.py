"""A few relations, variables and short forms for the examples in the docstrings of the rules."""

from __future__ import annotations

from typing import Final

from everview.planner.calculus.format_term import format_term
from everview.planner.calculus.terms import CalculusTerm, ChangeTerm, Comparison, RelationTerm, VariableTerm

R: Final = RelationTerm("R", ("a", "b"))
S: Final = RelationTerm("S", ("b", "c"))
T: Final = RelationTerm("T", ("c", "d"))
changed_s: Final = ChangeTerm("S", ("b", "c"))
"""The change of S."""


def value(name: str) -> CalculusTerm:
    """The value of a variable."""
    return VariableTerm(name)


def less(left: str, right: str) -> CalculusTerm:
    """Left < right, of variables."""
    return Comparison("<", value(left), value(right))


def equal(left: str, right: str) -> CalculusTerm:
    """Left = right, of variables."""
    return Comparison("=", value(left), value(right))


def show(term: CalculusTerm | None) -> None:
    """Prints a term."""
    print("nothing to do" if term is None else format_term(term))
