"""The calculus that recursive deltas are derived in (section 3.1 of multilevel-ivm): queries as polynomials of relations.

A term maps tuples to numbers, finitely many of which are not 0:

    R(x, y)            the multiplicity of ⟨x, y⟩ in a relation; as a view of a block keeps it, the payload of ⟨x, y⟩
    δR(x, y)           the same in the change of R: negative for what is deleted
    c, {x}             the empty tuple, with a constant or with the value of the variable x as its number
    s < t, p(x, y)     the empty tuple, with 1 where the comparison or the condition holds and 0 elsewhere
    q₁ + q₂            numbers of equal tuples added
    q₁ * q₂            the natural join, numbers multiplied; there is no other selection
    Sum[x](q)          numbers of tuples with equal x added: projection and aggregation at once

What a term is compared with may be a sum over relations again: a nested aggregate, used as a value.

**Binding patterns.** A term has *output variables*, which it lists values of, and *input variables*, which must be given: the
variables that it reads and does not list. Factors of a product bind each other's input variables. The variables that a ``Sum``
adds up over are its own; the same name outside of it would be another variable, so ``verify_term`` forbids it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias, assert_never

from everview.relational.node import Node, node


@node
class RelationTerm(Node):
    """R(variables)."""

    name: str
    variables: tuple[str, ...]


@node
class ChangeTerm(Node):
    """δR(variables): what a transaction adds to R."""

    name: str
    variables: tuple[str, ...]


@node
class Constant(Node):
    """A number."""

    value: int


@node
class VariableTerm(Node):
    """The value of a variable, as a number."""

    name: str


@node
class Comparison(Node):
    """left ``operator`` right, 1 or 0; both sides are values, without output variables."""

    operator: str
    left: CalculusTerm
    right: CalculusTerm

    def _check(self) -> None:
        assert self.operator in COMPARISONS, self.operator


@node
class ConditionTerm(Node):
    """A predicate over variables that the calculus does not look into, 1 or 0."""

    name: str
    variables: tuple[str, ...]


@node
class PlusTerm(Node):
    """The sum of terms with the same output variables."""

    addends: tuple[CalculusTerm, ...]


@node
class TimesTerm(Node):
    """The natural join of terms."""

    factors: tuple[CalculusTerm, ...]


@node
class SumTerm(Node):
    """Sum[keys](body)."""

    keys: tuple[str, ...]
    body: CalculusTerm


CalculusTerm: TypeAlias = (
    RelationTerm | ChangeTerm | Constant | VariableTerm | Comparison | ConditionTerm | PlusTerm | TimesTerm | SumTerm
)

REMEMBERED = 10_000
"""Of so many terms it is remembered what variables they have: rules ask again and again."""
ZERO, ONE, MINUS_ONE = Constant(0), Constant(1), Constant(-1)

COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}


def plus(*addends: CalculusTerm) -> CalculusTerm:
    """Their sum; 0 if there are none."""
    return ZERO if not addends else addends[0] if len(addends) == 1 else PlusTerm(addends)


def times(*factors: CalculusTerm) -> CalculusTerm:
    """Their product; 1 if there are none."""
    return ONE if not factors else factors[0] if len(factors) == 1 else TimesTerm(factors)


def minus(term: CalculusTerm) -> CalculusTerm:
    """(-1) * term."""
    return TimesTerm((MINUS_ONE, term))


def factors_of(term: CalculusTerm) -> tuple[CalculusTerm, ...]:
    """The factors of a product; another term is its only factor."""
    return term.factors if isinstance(term, TimesTerm) else (term,)


def addends_of(term: CalculusTerm) -> tuple[CalculusTerm, ...]:
    """The addends of a sum; another term is its only addend."""
    return term.addends if isinstance(term, PlusTerm) else (term,)


def parts_of(term: CalculusTerm) -> tuple[CalculusTerm, ...]:
    """The terms directly below."""
    match term:
        case RelationTerm() | ChangeTerm() | Constant() | VariableTerm() | ConditionTerm():
            return ()
        case Comparison(left=left, right=right):
            return left, right
        case PlusTerm(addends=addends):
            return addends
        case TimesTerm(factors=factors):
            return factors
        case SumTerm(body=body):
            return (body,)
        case _:
            assert_never(term)


def with_parts(term: CalculusTerm, parts: tuple[CalculusTerm, ...]) -> CalculusTerm:
    """The same term over other parts."""
    if parts == parts_of(term):
        return term
    match term:
        case RelationTerm() | ChangeTerm() | Constant() | VariableTerm() | ConditionTerm():
            return term
        case Comparison(operator=operator):
            left, right = parts
            return Comparison(operator, left, right)
        case PlusTerm():
            return PlusTerm(parts)
        case TimesTerm():
            return TimesTerm(parts)
        case SumTerm(keys=keys):
            (body,) = parts
            return SumTerm(keys, body)
        case _:
            assert_never(term)


@lru_cache(maxsize=REMEMBERED)
def output_variables(term: CalculusTerm) -> tuple[str, ...]:
    """The variables that a term lists values of, in order of first occurrence.

    >>> output_variables(SumTerm(("a",), TimesTerm((RelationTerm("R", ("a", "b")), VariableTerm("c")))))
    ('a',)
    """
    match term:
        case RelationTerm(variables=variables) | ChangeTerm(variables=variables):
            return tuple(dict.fromkeys(variables))
        case Constant() | VariableTerm() | Comparison() | ConditionTerm():
            return ()
        case PlusTerm() | TimesTerm():
            return tuple(dict.fromkeys(v for part in parts_of(term) for v in output_variables(part)))
        case SumTerm(keys=keys):
            return keys
        case _:
            assert_never(term)


@lru_cache(maxsize=REMEMBERED)
def input_variables(term: CalculusTerm) -> tuple[str, ...]:
    """The variables that must be given before a term has a value, in order of first occurrence.

    >>> input_variables(TimesTerm((RelationTerm("R", ("a",)), Comparison("<", VariableTerm("a"), VariableTerm("c")))))
    ('c',)
    """
    match term:
        case RelationTerm() | ChangeTerm() | Constant():
            return ()
        case VariableTerm(name=name):
            return (name,)
        case ConditionTerm(variables=variables):
            return tuple(dict.fromkeys(variables))
        case Comparison() | PlusTerm() | TimesTerm() | SumTerm():
            read = dict.fromkeys(v for part in parts_of(term) for v in input_variables(part))
            own = output_variables(term.body) if isinstance(term, SumTerm) else output_variables(term)
            return tuple(v for v in read if v not in own)
        case _:
            assert_never(term)


@lru_cache(maxsize=REMEMBERED)
def open_variables(term: CalculusTerm) -> frozenset[str]:
    """Output and input variables: what a term has in common with those around it."""
    return frozenset(output_variables(term)) | frozenset(input_variables(term))


@lru_cache(maxsize=REMEMBERED)
def local_variables(term: CalculusTerm) -> frozenset[str]:
    """The variables that sums inside of a term add up over."""
    own = frozenset(output_variables(term.body)) - frozenset(term.keys) if isinstance(term, SumTerm) else frozenset()
    return own.union(*(local_variables(part) for part in parts_of(term)))


def terms_in(term: CalculusTerm) -> Iterator[CalculusTerm]:
    """The term and all below it."""
    yield term
    for part in parts_of(term):
        yield from terms_in(part)


def relations_in(term: CalculusTerm) -> frozenset[str]:
    """The relations that a term reads; their changes are not relations."""
    return frozenset(t.name for t in terms_in(term) if isinstance(t, RelationTerm))


def degree(term: CalculusTerm) -> int:
    """The most relations that are joined in an addend, as of a polynomial; nested aggregates do not count.

    >>> degree(PlusTerm((RelationTerm("R", ("a",)), TimesTerm((RelationTerm("S", ()), RelationTerm("R", ("a",)))))))
    2
    """
    match term:
        case RelationTerm():
            return 1
        case ChangeTerm() | Constant() | VariableTerm() | Comparison() | ConditionTerm():
            return 0
        case PlusTerm(addends=addends):
            return max(map(degree, addends), default=0)
        case TimesTerm(factors=factors):
            return sum(map(degree, factors))
        case SumTerm(body=body):
            return degree(body)
        case _:
            assert_never(term)


def renamed(term: CalculusTerm, names: Mapping[str, str]) -> CalculusTerm:
    """The term with other names of variables."""

    def name(variable: str) -> str:
        return names.get(variable, variable)

    match term:
        case RelationTerm(name=relation, variables=variables):
            return RelationTerm(relation, tuple(map(name, variables)))
        case ChangeTerm(name=relation, variables=variables):
            return ChangeTerm(relation, tuple(map(name, variables)))
        case ConditionTerm(name=condition, variables=variables):
            return ConditionTerm(condition, tuple(map(name, variables)))
        case VariableTerm(name=variable):
            return VariableTerm(name(variable))
        case SumTerm(keys=keys, body=body):
            return SumTerm(tuple(dict.fromkeys(map(name, keys))), renamed(body, names))
        case _:
            return with_parts(term, tuple(renamed(part, names) for part in parts_of(term)))
