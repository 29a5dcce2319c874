"""Z-sets: finite maps from elements to integer weights, the one data model behind tables, views and changes.

They form a group under pointwise addition: the empty Z-set is zero, every Z-set has a negative. A bag is a Z-set
without negative weights. Contract: a Z-set here is *consolidated*, that is, a dict in which each element stands once
and no weight is 0; every function returns such a one and changes none of its arguments.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)

ZSet: TypeAlias = dict[T, int]


def consolidate(weighted: Iterable[tuple[T, int]]) -> ZSet[T]:
    """The Z-set that the weighted elements sum up to; those that cancel leave no trace.

    >>> consolidate([("a", 1), ("b", 2), ("a", -1)])
    {'b': 2}
    """
    total: ZSet[T] = {}
    for element, weight in weighted:
        total[element] = total.get(element, 0) + weight
    return {element: weight for element, weight in total.items() if weight}


def bag(elements: Iterable[T]) -> ZSet[T]:
    """Each element as often as it occurs.

    >>> bag("abba")
    {'a': 2, 'b': 2}
    """
    return consolidate((element, 1) for element in elements)


def add(left: Mapping[T, int], right: Mapping[T, int]) -> ZSet[T]:
    """The pointwise sum."""
    total = dict(left)
    for element, weight in right.items():
        changed = total.get(element, 0) + weight
        if changed:
            total[element] = changed
        else:
            del total[element]  # it was there: a consolidated right side has no weight 0
    return total


def negate(zset: Mapping[T, int]) -> ZSet[T]:
    """The Z-set that added to this one gives the empty one."""
    return {element: -weight for element, weight in zset.items()}


def difference(new: Mapping[T, int], old: Mapping[T, int]) -> ZSet[T]:
    """``new - old``: the strongly minimal delta that leads from the bag ``old`` to the bag ``new``.

    >>> difference({"a": 1, "b": 1}, {"a": 3, "c": 1})
    {'a': -2, 'c': -1, 'b': 1}
    """
    removed = {e: new.get(e, 0) - w for e, w in old.items() if new.get(e, 0) != w}
    return removed | {e: w for e, w in new.items() if e not in old}


def expand(zset: Mapping[T, int]) -> Iterator[T]:
    """The elements of a bag, each repeated by its weight.

    >>> list(expand({"a": 2, "b": 1}))
    ['a', 'a', 'b']
    """
    for element, weight in zset.items():
        assert weight > 0, (element, weight)
        for _ in range(weight):
            yield element


def size(zset: Mapping[T, int]) -> int:
    """The number of elements of a bag, with repetition."""
    return sum(zset.values())
