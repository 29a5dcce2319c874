"""Exact sums of the few floats that are too large to be summed with others, and of their products.

A float is an integer number of units of 2^-1074, and a product of two one of units of 2^-2148, so sums of them are sums of
Python's integers. A slot that has none costs nothing.

    >>> in_units(1e308) + in_units(1e-300) - in_units(1e308) == in_units(1e-300)
    True
    >>> to_float(in_units(1.5) * in_units(2.0), 2 * UNIT_BITS)
    3.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.vectors import Ints

UNIT_BITS = 1074
"""The smallest float above 0 is 2 to the minus this."""


def in_units(value: float) -> int:
    """A finite float in units of 2^-1074."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * ((1 << UNIT_BITS) // denominator)


def to_float(number: int, bits: int, divisor: int = 1) -> float:
    """The float nearest to number / (divisor · 2^bits); infinity beyond the largest."""
    try:
        return number / (divisor << bits)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


class LargeFloats:
    """Some exact sums for each slot of a map that has any."""

    def __init__(self, keymap: KeyMap, columns: int = 1) -> None:
        self._sums: dict[int, tuple[int, ...]] = {}
        self._none = (0,) * columns
        keymap.follow(self)

    def __bool__(self) -> bool:
        return bool(self._sums)

    def add(self, slots: Iterable[int], numbers: Iterable[Sequence[int]], weights: Iterable[int]) -> None:
        """Adds numbers to the sums of slots, as often as weights say."""
        for slot, more, weight in zip(slots, numbers, weights, strict=True):
            old = self._sums.get(slot, self._none)
            self._put(slot, tuple(a + b * weight for a, b in zip(old, more, strict=True)))

    def _put(self, slot: int, sums: tuple[int, ...]) -> None:
        if any(sums):
            self._sums[slot] = sums
        else:
            self._sums.pop(slot, None)

    def found(self, slots: Ints) -> list[tuple[int, tuple[int, ...]]]:
        """The sums of those of the slots that have any, by their position."""
        if not self._sums:
            return []
        sums = self._sums
        return [(i, sums[slot]) for i, slot in enumerate(slots.tolist()) if slot in sums]

    def restore(self, slots: Ints, saved: list[tuple[int, tuple[int, ...]]]) -> None:
        """Makes the sums of slots those that ``found`` gave."""
        known = dict(saved)
        for i, slot in enumerate(slots.tolist()) if self._sums or saved else ():
            self._put(slot, known.get(i, self._none))

    # What a map asks of those that follow it

    def resize(self, capacity: int) -> None:
        """The map has room for more, or fewer, slots."""

    def vacate(self, slots: Ints) -> None:
        """Slots have gone."""
        for slot in slots.tolist() if self._sums else ():
            self._sums.pop(slot, None)

    def reorder(self, live: Ints, capacity: int) -> None:
        """Slot ``live[i]`` is slot i now."""
        if self._sums:
            self._sums = {i: self._sums[slot] for i, slot in enumerate(live.tolist()) if slot in self._sums}

    @property
    def nbytes(self) -> int:
        """Bytes, about."""
        return sum(100 + sum(28 + n.bit_length() // 8 for n in sums) for sums in self._sums.values())
