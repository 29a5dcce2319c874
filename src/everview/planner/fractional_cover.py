"""Fractional edge covers: how large a join can get (Atserias, Grohe and Marx).

A fractional cover gives each edge a weight ≥ 0, so that the edges of every variable weigh 1 or more together. A join of
relations with N rows each has at most N^ρ rows, where ρ is the least total weight of such a cover, and there are relations for
which it has as many. Three edges that form a triangle have ρ = 3/2: each weighs 1/2, where a cover by whole edges takes two.

The linear program is solved exactly. By duality ρ is also the largest total of numbers at the variables of which no edge holds
more than 1. That program starts at 0 and needs one phase of the simplex method.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from everview.planner.bit_sets import bits

REMEMBERED = 1 << 16
"""Programs whose solutions are kept: the search for orders asks for the same ones over and over."""


def fractional_cover(variables: int, edges: Iterable[int]) -> Fraction:
    """The least total weight of a fractional cover of the variables; variables and edges are bit sets.

    >>> str(fractional_cover(0b111, (0b011, 0b110, 0b101)))
    '3/2'
    >>> str(fractional_cover(0b1111, (0b0011, 0b0110, 0b1100)))
    '2'

    Raises:
        ValueError: if a variable is in no edge.
    """
    useful = {edge & variables for edge in edges}
    if variables in useful:
        return Fraction(bool(variables))
    missing = variables
    for edge in useful:
        missing &= ~edge
    if missing:
        raise ValueError(f"no edge has the variables {list(bits(missing))}")
    return _cover(variables, frozenset(useful))


@lru_cache(REMEMBERED)
def _cover(variables: int, edges: frozenset[int]) -> Fraction:
    """Takes what is forced; an acyclic hypergraph is used up by that, and only what goes round in circles is left to solve."""
    whole = 0
    while variables:
        largest = _largest(edge & variables for edge in edges)
        owners = {v: frozenset(e for e in largest if e >> v & 1) for v in bits(variables)}
        forced = next((e for found in owners.values() if len(found) == 1 for e in found), None)
        if forced is not None:
            whole += 1
            variables &= ~forced
            continue
        # A variable is covered as soon as another one is whose edges all have it, too.
        hardest = {found: v for v, found in owners.items() if not any(other < found for other in owners.values())}
        if len(hardest) == len(owners):
            return whole + _largest_packing(tuple(owners), tuple(largest))
        variables = sum(1 << v for v in hardest.values())
    return Fraction(whole)


def _largest(edges: Iterable[int]) -> list[int]:
    distinct = sorted(set(edges))
    return [e for e in distinct if e and not any(e != other and e & ~other == 0 for other in distinct)]


def _largest_packing(variables: tuple[int, ...], edges: tuple[int, ...]) -> Fraction:
    """The largest Σ y(v) where y ≥ 0 and Σ y(v) ≤ 1 over each edge; Bland's rule, so that the simplex method ends."""
    zero, one = Fraction(0), Fraction(1)
    width = len(variables) + len(edges)
    rows = [
        [one if e >> v & 1 else zero for v in variables] + [one if j == i else zero for j in range(len(edges))] + [one]
        for i, e in enumerate(edges)
    ]
    basis = list(range(len(variables), width))
    goal = [-one] * len(variables) + [zero] * (len(edges) + 1)
    while (entering := next((j for j in range(width) if goal[j] < 0), None)) is not None:
        candidates = [i for i, row in enumerate(rows) if row[entering] > 0]
        leaving = min(candidates, key=lambda i: (rows[i][-1] / rows[i][entering], basis[i]))
        pivot = rows[leaving][entering]
        chosen = rows[leaving] = [x / pivot for x in rows[leaving]]
        basis[leaving] = entering
        for i, row in enumerate(rows):
            if i != leaving and row[entering]:
                rows[i] = _less(row, chosen, row[entering])
        goal = _less(goal, chosen, goal[entering])
    return goal[-1]


def _less(row: list[Fraction], other: list[Fraction], times: Fraction) -> list[Fraction]:
    return [x - times * y if y else x for x, y in zip(row, other, strict=True)]
