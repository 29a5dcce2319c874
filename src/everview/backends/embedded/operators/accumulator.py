"""The contract of an accumulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.trigger.row_cost import Cost


class Accumulator:
    """One aggregate call's state for all groups, addressed by group slot.

    ``cost`` is the cost of one row, for ``explain``.
    """

    cost = Cost.CONSTANT

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        """Adds rows: the argument values of row i count ``weights[i]`` times in group ``slots[i]``."""
        raise NotImplementedError

    def result(self, slots: Ints) -> Vector:
        """The answers of these groups."""
        raise NotImplementedError

    def save(self, slots: Ints) -> Any:
        """What ``rollback`` needs to restore these groups."""
        return None

    def commit(self) -> None:
        """The transaction has succeeded."""

    def rollback(self, slots: Ints, saved: Any) -> None:
        """Restores the groups to what they were when ``save`` was called."""

    def renumber(self, live: Ints) -> None:
        """Group slot ``live[i]`` is now slot i. Payloads that follow the group map have moved by themselves."""

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return 0


def without_nulls(slots: Ints, args: Sequence[Vector], weights: Ints) -> tuple[Ints, list[Vector], Ints]:
    """The rows in which no argument is NULL."""
    mask: Bools | None = None
    for arg in args:
        if arg.nulls is not None:
            mask = ~arg.nulls if mask is None else mask & ~arg.nulls
    if mask is None:
        return slots, list(args), weights
    return slots[mask], [a.take(mask) for a in args], weights[mask]
