"""What a term means, by definition: the oracle of the calculus. And terms, databases and changes to try it with."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from hypothesis import strategies as st

from everview.planner.calculus.terms import (
    COMPARISONS,
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
    input_variables,
    output_variables,
    plus,
    times,
)

Bag = dict[tuple[int, ...], int]
Database = Mapping[str, Bag]
Meaning = dict[frozenset[tuple[str, int]], int]
"""Numbers by tuples; those that are 0 are left out."""

ARITIES = {"R": 1, "S": 2, "T": 2}
VALUES = (0, 1, 2)
CONDITIONS = {"odd": lambda *values: sum(values) % 2 == 1}


def meaning(term: CalculusTerm, old: Database, change: Database, given: Mapping[str, int]) -> Meaning:
    """The numbers of a term over a database and a change, for given input variables."""
    match term:
        case RelationTerm(name=name, variables=variables):
            return _listed(old[name], variables, given)
        case ChangeTerm(name=name, variables=variables):
            return _listed(change[name], variables, given)
        case Constant(value=value):
            return _kept({frozenset(): value})
        case VariableTerm(name=name):
            return _kept({frozenset(): given[name]})
        case ConditionTerm(name=name, variables=variables):
            return _kept({frozenset(): int(CONDITIONS[name](*(given[v] for v in variables)))})
        case Comparison(operator=operator, left=left, right=right):
            a, b = (meaning(side, old, change, given).get(frozenset(), 0) for side in (left, right))
            return _kept({frozenset(): int(COMPARISONS[operator](a, b))})
        case PlusTerm(addends=addends):
            total: Meaning = {}
            for addend in addends:
                for row, number in meaning(addend, old, change, given).items():
                    total[row] = total.get(row, 0) + number
            return _kept(total)
        case TimesTerm(factors=factors):
            return _joined(list(factors), old, change, given)
        case SumTerm(keys=keys, body=body):
            own = set(output_variables(body)) - set(keys)
            inner = {v: value for v, value in given.items() if v not in own}
            sums: Meaning = {}
            for row, number in meaning(body, old, change, inner).items():
                key = frozenset((v, value) for v, value in row if v in keys)
                sums[key] = sums.get(key, 0) + number
            return _kept(sums)


def _joined(factors: list[CalculusTerm], old: Database, change: Database, given: Mapping[str, int]) -> Meaning:
    """Factors whose input variables are known come first."""
    if not factors:
        return {frozenset(): 1}
    first = next(f for f in factors if set(input_variables(f)) <= given.keys())
    rest = list(factors)
    rest.remove(first)
    found: Meaning = {}
    for row, number in meaning(first, old, change, given).items():
        for more, times_number in _joined(rest, old, change, {**given, **dict(row)}).items():
            key = row | more
            found[key] = found.get(key, 0) + number * times_number
    return _kept(found)


def _listed(bag: Bag, variables: tuple[str, ...], given: Mapping[str, int]) -> Meaning:
    found: Meaning = {}
    for values, number in bag.items():
        row = dict(zip(variables, values, strict=True))
        fits = all(row[v] == value for v, value in zip(variables, values, strict=True))
        if fits and all(given.get(v, value) == value for v, value in row.items()):
            key = frozenset(row.items())
            found[key] = found.get(key, 0) + number
    return _kept(found)


def _kept(found: Meaning) -> Meaning:
    return {row: number for row, number in found.items() if number}


def meanings(term: CalculusTerm, old: Database, change: Database) -> dict[tuple[int, ...], Meaning]:
    """The meaning for all values of the input variables."""
    names = sorted(input_variables(term))
    return {
        values: meaning(term, old, change, dict(zip(names, values, strict=True)))
        for values in product(VALUES, repeat=len(names))
    }


def new_contents(old: Database, change: Database) -> Database:
    """R + δR for every relation."""
    return {
        name: {row: n for row in {**bag, **change[name]} if (n := bag.get(row, 0) + change[name].get(row, 0))}
        for name, bag in old.items()
    }


def databases(least: int) -> st.SearchStrategy[Database]:
    """Relations with a few tuples; numbers of ``least`` or more."""

    def bags(arity: int) -> st.SearchStrategy[Bag]:
        row = st.tuples(*[st.sampled_from(VALUES)] * arity)
        return st.dictionaries(row, st.integers(least, 2), max_size=4)

    return st.fixed_dictionaries({name: bags(arity) for name, arity in ARITIES.items()})


NAMES = ("a", "b", "c")


@st.composite
def products(draw: st.DrawFn, nesting: int = 1, prefix: str = "", outer: tuple[str, ...] = ()) -> CalculusTerm:
    """A Sum over a join, with values, conditions, constants and comparisons, also of nested aggregates.

    Variables of a nested aggregate have names of their own; it may read those of the joins around it.
    """
    names = tuple(prefix + n for n in NAMES)
    joined: list[CalculusTerm] = []
    for _ in range(draw(st.integers(1, 3))):
        relation = draw(st.sampled_from(sorted(ARITIES)))
        variables = tuple(draw(st.sampled_from(names)) for _ in range(ARITIES[relation]))
        joined.append(RelationTerm(relation, variables))
    listed = output_variables(times(*joined))
    readable = (*listed, *outer, "z")
    joined += [draw(_factors(readable, nesting, prefix)) for _ in range(draw(st.integers(0, 2)))]
    if len(joined) > 2 and draw(st.booleans()):
        joined = [times(*joined[:2]), *joined[2:]]
    keys = tuple(v for v in listed if draw(st.booleans())) if not prefix else ()
    return SumTerm(keys, times(*joined))


@st.composite
def _factors(draw: st.DrawFn, readable: tuple[str, ...], nesting: int, prefix: str) -> CalculusTerm:
    some = st.sampled_from(readable)
    kind = draw(st.sampled_from(["constant", "value", "condition", "compare", "nested"]))
    if kind == "constant":
        return Constant(draw(st.integers(-1, 2)))
    if kind == "value":
        return VariableTerm(draw(some))
    if kind == "condition":
        return ConditionTerm("odd", (draw(some), draw(some)))
    operator = draw(st.sampled_from(sorted(COMPARISONS)))
    left: CalculusTerm = VariableTerm(draw(some))
    if kind == "nested" and nesting:
        outer = tuple(v for v in readable if v != "z")
        return Comparison(operator, left, draw(products(nesting - 1, prefix + "n", outer)))
    return Comparison(operator, left, VariableTerm(draw(some)))


@st.composite
def any_terms(draw: st.DrawFn) -> CalculusTerm:
    """A sum of such, with the same output variables."""
    first = draw(products())
    if not draw(st.booleans()):
        return first
    other = draw(products())
    keys = tuple(v for v in output_variables(first) if v in output_variables(other))
    assert isinstance(first, SumTerm)
    assert isinstance(other, SumTerm)
    return plus(SumTerm(keys, first.body), SumTerm(keys, other.body))
