"""An assembled trigger, and where its input and its results stand."""

from __future__ import annotations

from dataclasses import dataclass

from everview.backends.embedded.tree.pauses import Pause
from everview.backends.embedded.vectors import Ints


@dataclass(frozen=True, slots=True)
class LeafRegisters:
    """Which registers of frame 0 a change of the atom is put into."""

    keys: tuple[tuple[int, ...], ...]
    lifts: tuple[tuple[int, int], ...]
    """(lift, register)."""
    weights: int
    elements: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(lift into a ring, registers of its words)."""

    @property
    def registers(self) -> frozenset[int]:
        """All of them."""
        words = (*self.keys, *(words for _, words in self.elements))
        return frozenset({*(r for one in words for r in one), *(r for _, r in self.lifts), self.weights})


@dataclass(frozen=True, slots=True)
class ResultRegisters:
    """Where a delta of the view that a trigger ends with stands: its keys in the view's order, and the parts of its payload."""

    frame: int
    keys: tuple[int, ...]
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TriggerCode:
    """A trigger, assembled; ``frames[f]`` lists the registers of frame f, those of frame 0 being given from outside."""

    code: Ints
    frames: tuple[tuple[int, ...], ...]
    registers: int
    leaf: LeafRegisters
    pauses: tuple[Pause, ...]
    results: tuple[ResultRegisters, ...]
    """One for the path of the leaf, and one for each path of an indicator: their sum is the delta."""
    wide_sums: tuple[int, ...]
    """Where the code says WIDE_VALUES: a leaf program, which has values of one word, makes it INT_VALUES."""
    long_rows: tuple[tuple[int, int], ...] = ()
    """The registers that have more than a word for each row of their frame, and how many."""

    @property
    def given(self) -> frozenset[int]:
        """The registers that a change is put into."""
        return self.leaf.registers
