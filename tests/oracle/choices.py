"""The choices that generators make, from Hypothesis or from a seed.

Generators ask for nothing but small integers, so the same code makes the examples of the law tests, which Hypothesis shrinks,
and those of ``make soak``, which are cheap, and come again from their seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices:
    """Choices as grammars like to make them; with Hypothesis every one shrinks towards the first option."""

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self._integer = integer
        self._names = 0

    @staticmethod
    def drawn(draw: st.DrawFn) -> Choices:
        """Hypothesis chooses."""
        return Choices(lambda low, high: draw(st.integers(low, high)))

    @staticmethod
    def seeded(seed: str) -> Choices:
        """The seed chooses, the same every time.

        >>> Choices.seeded("a").pick(range(1000)) == Choices.seeded("a").pick(range(1000))
        True
        """
        return Choices(random.Random(seed).randint)

    def count(self, at_least: int, at_most: int) -> int:
        """A small number."""
        return self._integer(at_least, at_most)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self._integer(0, len(options) - 1)]

    def some(self, options: Sequence[T], at_least: int = 1, at_most: int = 3) -> list[T]:
        """Different options, in any order."""
        most = min(at_most, len(options))
        rest = list(options)
        return [rest.pop(self._integer(0, len(rest) - 1)) for _ in range(self.count(min(at_least, most), most))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """All options, in any order."""
        return self.some(options, len(options), len(options))

    def once_in(self, times: int) -> bool:
        """True about once in so many times."""
        return self._integer(1, times) == times

    def name(self, prefix: str) -> str:
        """A name that this object has not given yet."""
        self._names += 1
        return f"{prefix}{self._names}"
