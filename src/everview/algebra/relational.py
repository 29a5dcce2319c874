"""The relational ring F[Z]: payloads that are relations, added by union and multiplied by natural join (F-IVM, 3 and 8.3).

An element is a Z-set of *tuples*, where a tuple knows its own schema: pairs of a variable and its value, sorted by variable.
Zero is the empty relation, one the relation {() → 1}. Two tuples that agree on their common variables join into one, others
into nothing; a join of Z-sets multiplies the weights, a union adds them. With tuples that carry their schemas this is a
commutative ring, not only a set of operations that sometimes apply (footnote 4 of the paper).

Lifting a free variable X gives {(X: x) → 1} and a bound one {() → 1}: a count query in this ring lists the result of the
conjunctive query. ``project`` sums out variables of a payload, which is what makes payloads *factorized*: each view keeps the
values of its own variable only, and the listing is spread over the tree.

Elements have no fixed size, so this ring is not a ``Ring`` of payload matrices; it has the same operations on single elements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, TypeAlias

from everview.algebra import zset
from everview.algebra.zset import ZSet

Tuple: TypeAlias = tuple[tuple[str, Hashable], ...]
"""Variables and values, sorted by variable."""
Relation: TypeAlias = ZSet[Tuple]

ZERO: Relation = {}
ONE: Relation = {(): 1}


def tuple_of(**values: Hashable) -> Tuple:
    """A tuple by the names of its variables.

    >>> tuple_of(B=1, A="x")
    (('A', 'x'), ('B', 1))
    """
    return tuple(sorted(values.items()))


def lift(variable: str, value: Hashable, *, is_free: bool = True) -> Relation:
    """{x → 1} for a free variable, 1 for a bound one.

    >>> lift("A", 7)
    {(('A', 7),): 1}
    """
    return {((variable, value),): 1} if is_free else dict(ONE)


def add(a: Relation, b: Relation) -> Relation:
    """The union: weights are added."""
    return zset.add(a, b)


def negate(a: Relation) -> Relation:
    """All weights negated."""
    return zset.negate(a)


def multiply(a: Relation, b: Relation) -> Relation:
    """The natural join: weights are multiplied.

    >>> multiply({tuple_of(A=1, B=2): 3}, {tuple_of(B=2, C=5): 2, tuple_of(B=9, C=5): 1})
    {(('A', 1), ('B', 2), ('C', 5)): 6}
    """
    if ONE in (a, b):
        return dict(b if a == ONE else a)
    joined = ((_joined(x, y), v * w) for x, v in a.items() for y, w in b.items())
    return zset.consolidate((row, weight) for row, weight in joined if row is not None)


def is_zero(a: Relation) -> bool:
    """Whether the relation is empty."""
    return not a


def scale(a: Relation, weight: int) -> Relation:
    """The relation ``weight`` times."""
    return {row: w * weight for row, w in a.items()} if weight else {}


def add_all(relations: Iterable[Relation]) -> Relation:
    """The union of all."""
    return zset.consolidate(pair for relation in relations for pair in relation.items())


def project(a: Relation, variables: Collection[str]) -> Relation:
    """The relation with only these variables, weights summed up.

    >>> project({tuple_of(A=1, B=2): 3, tuple_of(A=1, B=4): 1}, {"A"})
    {(('A', 1),): 4}
    """
    kept = set(variables)
    return zset.consolidate((tuple(p for p in row if p[0] in kept), weight) for row, weight in a.items())


def rename(a: Relation, new_name: Callable[[str], str]) -> Relation:
    """The relation with other names for its variables, which must stay different."""
    return zset.consolidate((tuple(sorted((new_name(v), x) for v, x in row)), weight) for row, weight in a.items())


def rows(a: Relation, variables: Collection[str]) -> Mapping[tuple[Any, ...], int]:
    """The relation as plain rows over variables that all its tuples have.

    >>> rows({tuple_of(A=1, B=2): 3}, ["B", "A"])
    {(2, 1): 3}
    """
    return {tuple(dict(row)[v] for v in variables): weight for row, weight in a.items()}


def _joined(x: Tuple, y: Tuple) -> Tuple | None:
    """Both tuples as one, or None where they disagree on a variable."""
    both = dict(x)
    for variable, value in y:
        if both.setdefault(variable, value) != value:
            return None
    return tuple(sorted(both.items(), key=lambda pair: pair[0]))
