"""What a view map takes beside what it must hold, and what becomes of dense keys, which lie in runs without a gap."""

from __future__ import annotations

import numpy as np
import pytest

from everview.backends.embedded.tree.layout import COUNT, COUNTED, EXACT, FLOATING, LONGEST, words_of
from everview.backends.embedded.tree.view_map import SMALLEST, ViewMap
from everview.backends.embedded.vectors import Ints
from tests.unit.backends.embedded.tree.drive_map import MapDriver

WORD = 8


def natural_bytes(view: ViewMap) -> int:
    """NumPy columns of the keys and payloads; for a secondary index the order of the rows by it, an int64 each."""
    words = view.key_words + sum(words_of(k) for k in view.kinds) + len(view.index_words)
    return WORD * words * len(view)


def all_bytes(view: ViewMap) -> int:
    """The entries with their probe table and log, and the indexes."""
    return view.nbytes + sum(view.index_nbytes(i) for i in range(len(view.index_words)))


def keys_of(kind: str, count: int, width: int) -> Ints:
    """Distinct keys."""
    rng = np.random.default_rng(count)
    keys = rng.integers(0, 1 << 40, (count, width))
    keys[:, 0] = np.arange(count) if kind == "dense" else rng.permutation(count) * 1_000_003
    if width > 1:
        keys[:, 1] = rng.integers(0, {"few": 50, "some": count // 4}.get(kind, 1 << 40), count)
    return keys


@pytest.mark.parametrize("count", [100_000, 131_073, 200_000, 333_333])
@pytest.mark.parametrize(
    ("kind", "width", "kinds", "index"),
    [
        ("dense", 1, (COUNTED,), None),
        ("sparse", 1, (COUNTED,), None),
        ("sparse", 1, (COUNTED, EXACT), None),
        ("sparse", 2, (COUNTED,), None),
        ("few", 2, (COUNTED,), (1,)),
        ("some", 2, (COUNTED, FLOATING), (1,)),
        ("sparse", 2, (COUNTED,), (1,)),
        ("sparse", 3, (COUNTED, EXACT, FLOATING), (1, 2)),
    ],
)
@pytest.mark.parametrize("is_result", [False, True])
def test_a_map_takes_at_most_twice_its_contents(
    kind: str, count: int, width: int, kinds: tuple[int, ...], index: tuple[int, ...] | None, is_result: bool
) -> None:
    """Whatever its fill, also after large transactions; when all entries have gone, it is small."""
    driver = MapDriver(width, kinds, is_result=is_result)
    if index is not None:
        driver.view.index(index)
    keys = keys_of(kind, count, width)
    for batch in np.array_split(keys, 3):
        driver.add_rows(batch, 1)
        driver.settle()
    assert len(driver.view) == count
    assert all_bytes(driver.view) <= 2 * natural_bytes(driver.view)
    driver.add_rows(keys, -1)
    driver.settle()
    assert driver.view.fields[COUNT] == 0
    assert all_bytes(driver.view) < 64 * SMALLEST * WORD * (driver.view.stride + 1)


@pytest.mark.parametrize("index", [None, (0,)])
def test_dense_keys_lie_at_their_places(index: tuple[int, ...] | None) -> None:
    """Though there is no gap between them, neither a look-up of a missing key nor a removal goes through them all."""
    driver = MapDriver(1, (COUNTED,))
    if index is not None:
        driver.view.index(index)
    keys = np.arange(60_000, dtype=np.int64).reshape(-1, 1)
    driver.add_rows(keys, 1)
    driver.settle()
    assert driver.view.fields[LONGEST] == 0
    assert driver.lookup([(k,) for k in range(10**9, 10**9 + 1000)]) == [-1] * 1000
    driver.add_rows(keys[::2], -1)
    driver.settle()
    assert driver.scan() == {(k,) for k in range(1, 60_000, 2)}
    slots = driver.lookup([(k,) for k in range(2_000)])
    assert [s >= 0 for s in slots] == [k % 2 == 1 for k in range(2_000)]
