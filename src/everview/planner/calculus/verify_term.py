"""Checks what a term must satisfy as a whole, after every rule.

- The addends of a sum have the same output variables; 0 fits everywhere.
- What is compared are values: terms without output variables.
- A ``Sum`` has as keys output variables of its body.
- The variables that a ``Sum`` adds up over are named nowhere around it, so that no rule has to rename before it moves a term.

A failure is our own bug, never the user's.
"""

from __future__ import annotations

from everview.errors import InternalError
from everview.planner.calculus.format_term import format_term
from everview.planner.calculus.terms import (
    ZERO,
    CalculusTerm,
    Comparison,
    PlusTerm,
    SumTerm,
    TimesTerm,
    local_variables,
    open_variables,
    output_variables,
    parts_of,
)


def verify_term(term: CalculusTerm) -> None:
    """Raises ``InternalError`` if a term is not well-formed."""
    match term:
        case PlusTerm(addends=addends):
            listed = {frozenset(output_variables(a)) for a in addends if not _is_zero(a)}
            _require(len(listed) <= 1, term, "addends with different output variables")
        case Comparison(left=left, right=right):
            _require(not output_variables(left) and not output_variables(right), term, "a compared relation")
        case SumTerm(keys=keys, body=body):
            _require(
                _is_zero(body) or set(keys) <= set(output_variables(body)), term, "a key that the body does not list"
            )
            _require(len(set(keys)) == len(keys), term, "a key that is there twice")
        case _:
            pass
    for part in parts_of(term):
        around = open_variables(term).union(*(open_variables(p) for p in parts_of(term)))
        clash = local_variables(part) & around
        _require(not clash, term, f"{', '.join(sorted(clash))}, summed over, is used around it")
        verify_term(part)


def _is_zero(term: CalculusTerm) -> bool:
    """Whether it is plainly 0, which has any output variables one likes."""
    match term:
        case PlusTerm(addends=addends):
            return all(map(_is_zero, addends))
        case TimesTerm(factors=factors):
            return any(map(_is_zero, factors))
        case SumTerm(body=body):
            return _is_zero(body)
        case _:
            return term == ZERO


def _require(holds: bool, term: CalculusTerm, what: str) -> None:
    if not holds:
        raise InternalError(f"malformed term {format_term(term)}: {what}.")
