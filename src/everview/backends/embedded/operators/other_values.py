"""Nested aggregates over all others: for each key, the sum, number, average or extreme of the entries with another key.

    SUM of i.v where i.p <> p   =   T - S(p),       T the sum of the group, S(p) that of the entries at p

``T - S(p)`` is not below a bound where ``S(p)`` is not above another one, which moves with T. So keys are kept in the order of
their own sums, and when T moves, those between the old and the new bound *turn*, and no others. An average is not below a bound
b where the sum of the differences from b is not below 0: the same order, of ``S(p) - b·n(p)``. If b moves, all keys are judged.

The greatest of all others is the greatest of the group, except for the key that has it, which sees the second one.

A key is the words of a group and those of the compared value. Without an entry of its own, it sees the whole group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.state.ordered_sums import OrderedSums
from everview.backends.embedded.vectors import Bools, Ints, Vector


@dataclass(frozen=True, slots=True)
class Turned:
    """Keys that turn, and what becomes of all others in a group: they come (1), go (-1), or do not turn (0)."""

    keys: Ints
    signs: Ints
    groups: Ints
    group_signs: Ints
    judged: Ints
    """Keys for which what becomes of others means nothing."""


class OtherValues(Protocol):
    """The nested values of keys over the entries with another key of the same group."""

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        """Adds entries; until ``commit``, ``rollback`` takes them back."""

    def turn(self, entries: tuple[Ints, Vector, Ints] | None, old: Within, new: Within) -> Turned:
        """Adds entries; what turns by that, and by bounds that move."""

    def passes(self, keys: Ints, within: Within) -> Bools:
        """Whether outer rows with these keys pass."""

    def stands_apart(self, keys: Ints) -> Bools:
        """Which keys turn by themselves, and not with the others of their group."""

    def overflowing(self, groups: Ints) -> Bools:
        """Which groups have a sum that its type cannot hold: an error if an outer row sees the whole group."""

    def commit(self) -> None:
        """Makes the changes final."""

    def rollback(self) -> None:
        """Takes back the changes since the last commit."""

    @property
    def nbytes(self) -> int:
        """Bytes of state."""


class KeyGroups:
    """Ordered keys whose first words are those of a group."""

    def __init__(self, group_words: int) -> None:
        self.words = group_words

    def extents(self, entries: OrderedSums, groups: Ints) -> tuple[Ints, Ints]:
        """The ranks between which the entries of each group are."""
        if not self.words:
            return np.zeros(len(groups), dtype=np.int64), np.full(len(groups), len(entries), dtype=np.int64)
        return entries.rank(groups), entries.rank(groups, after=True)

    def touched(self, entries: OrderedSums, keys: Ints, *, has_moved: bool) -> Ints:
        """The groups of keys, or all groups where bounds have moved."""
        if not self.words:
            return np.zeros((1, 0), dtype=np.int64)
        found = keys[:, : self.words]
        if has_moved:
            found = np.concatenate([found, keys_at(entries, np.arange(len(entries)))[:, : self.words]])
        return np.unique(found, axis=0)

    def numbers(self, groups: Ints, keys: Ints) -> Ints:
        """The number of the group of each key, which is among the groups; those are sorted."""
        if not self.words:
            return np.zeros(len(keys), dtype=np.int64)
        both = np.concatenate([groups, keys[:, : self.words]])
        return np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)[len(groups) :]


def keys_at(entries: OrderedSums, ranks: Ints) -> Ints:
    """The keys with these ranks."""
    return entries.keys_at(entries.select(ranks))
