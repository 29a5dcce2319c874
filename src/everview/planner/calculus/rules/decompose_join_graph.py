"""Parts of a join that a change holds apart are summed, and stored, apart."""

from __future__ import annotations

from everview.planner.calculus.terms import (
    CalculusTerm,
    ChangeTerm,
    RelationTerm,
    SumTerm,
    factors_of,
    open_variables,
    output_variables,
    times,
)


def decompose_join_graph(term: CalculusTerm) -> CalculusTerm | None:
    """Sum[x](d * g * h * p) = Sum[x](d * Sum[y](g) * Sum[z](h) * p), the generalized distributive law (section 3.2).

    d are the changes in the product, whose variables are given; g and h are the connected parts of what is left of the join
    when these variables are taken out of it; p are values and conditions that read more than one of them. Conditions that read
    one part only go into its Sum. y are the variables of g that x, d, h or p name: all others are summed early. Parts can then
    be stored apart, in one dimension each, and not as their product.

    >>> from everview.planner.calculus.rule_examples import R, T, changed_s, less, show
    >>> show(decompose_join_graph(SumTerm((), times(R, changed_s, T))))
    Sum[](Sum[b](R(a, b)) * δS(b, c) * Sum[c](T(c, d)))
    >>> show(decompose_join_graph(SumTerm((), times(R, changed_s, T, less("a", "b"), less("a", "d")))))
    Sum[](Sum[a, b](R(a, b) * {a < b}) * δS(b, c) * T(c, d) * {a < d})
    """
    if not isinstance(term, SumTerm):
        return None
    factors = factors_of(term.body)
    given = {v for f in factors if isinstance(f, ChangeTerm) for v in f.variables}
    parts = _connected([f for f in factors if isinstance(f, RelationTerm | SumTerm)], given)
    outside: list[CalculusTerm] = [f for f in factors if not isinstance(f, RelationTerm | SumTerm)]
    inside: list[list[CalculusTerm]] = []
    for part in parts:
        listed = set(output_variables(times(*part)))
        own = [
            f for f in outside if not isinstance(f, ChangeTerm) and open_variables(f) and open_variables(f) <= listed
        ]
        outside = [f for f in outside if f not in own]
        inside.append([*part, *own])
    if len(inside) + len(outside) < 2:
        return None
    summed = {id(part[0]): _summed(part, term, outside, inside) for part in inside}
    gone = {id(f) for part in inside for f in part[1:]}
    new = tuple(summed.get(id(f), f) for f in factors if id(f) not in gone)
    return None if new == factors else SumTerm(term.keys, times(*new))


def _summed(
    part: list[CalculusTerm], term: SumTerm, outside: list[CalculusTerm], inside: list[list[CalculusTerm]]
) -> CalculusTerm:
    """The part, with what nobody else reads summed."""
    others = (f for group in (outside, *(p for p in inside if p is not part)) for f in group)
    read = set(term.keys).union(*(open_variables(f) for f in others))
    body = times(*part)
    listed = output_variables(body)
    keys = (*(v for v in listed if v in read and v in term.keys), *(v for v in listed if v in read - set(term.keys)))
    whole = len(part) == 1 and set(keys) == set(listed)
    return body if whole else SumTerm(keys, body)


def _connected(factors: list[CalculusTerm], given: set[str]) -> list[list[CalculusTerm]]:
    """The factors in groups that share no variable but those given, each in the order of the product."""
    groups: list[tuple[set[str], list[CalculusTerm]]] = []
    for factor in factors:
        names = set(output_variables(factor)) - given
        met = [g for g in groups if g[0] & names]
        joined = [f for _, found in met for f in found]
        groups = [g for g in groups if g not in met]
        groups.append((names.union(*(n for n, _ in met)), [*joined, factor]))
    place = {id(f): i for i, f in enumerate(factors)}
    return sorted((sorted(found, key=lambda f: place[id(f)]) for _, found in groups), key=lambda g: place[id(g[0])])
