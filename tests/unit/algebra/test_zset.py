from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from everview.algebra.zset import ZSet, add, bag, consolidate, difference, expand, negate, size

ZSETS = st.dictionaries(st.integers(0, 5), st.integers(-3, 3).filter(bool))
BAGS = st.dictionaries(st.integers(0, 5), st.integers(1, 3))


@given(ZSETS, ZSETS, ZSETS)
def test_z_sets_are_a_commutative_group(a: ZSet[int], b: ZSet[int], c: ZSet[int]) -> None:
    """Addition is associative and commutative, has the empty Z-set as zero, and negatives; no weight is ever 0."""
    assert add(add(a, b), c) == add(a, add(b, c))
    assert add(a, b) == add(b, a)
    assert add(a, {}) == a
    assert add(a, negate(a)) == {}
    assert 0 not in add(a, b).values()


@given(BAGS, BAGS)
def test_a_difference_leads_from_old_to_new(old: ZSet[int], new: ZSet[int]) -> None:
    """The delta between two bags is the one Z-set that added to the old gives the new."""
    delta = difference(new, old)
    assert add(old, delta) == new
    assert delta == add(new, negate(old))
    assert 0 not in delta.values()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3))))
def test_consolidation_sums_weights(weighted: list[tuple[int, int]]) -> None:
    """Consolidating in any order gives each element once with the sum of its weights."""
    total = consolidate(weighted)
    assert total == consolidate(reversed(weighted))
    assert all(w == sum(v for e, v in weighted if e == element) for element, w in total.items())


@given(st.lists(st.integers(0, 5)))
def test_a_bag_is_its_elements(elements: list[int]) -> None:
    """A list becomes a bag and back, but for the order."""
    assert sorted(expand(bag(elements))) == sorted(elements)
    assert bag(elements) == Counter(elements)
    assert size(bag(elements)) == len(elements)
