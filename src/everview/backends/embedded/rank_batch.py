"""A change of cells as a product of thin matrices on its way through the operators; those that do not know it see rows."""

from __future__ import annotations

from collections.abc import Callable

from everview.backends.embedded.vectors import Batch, DeferredBatch
from everview.backends.rank_change import RankChange


class RankBatch(DeferredBatch):
    """The columns i, j and v of a ``RankChange``, in this order.

    Attributes:
        change: The factors.
        is_keyed: Whether its cells replace those that were there, so that a cell is counted once.
    """

    __slots__ = ("change", "count", "is_keyed")

    change: RankChange
    is_keyed: bool
    count: int

    def __init__(self, change: RankChange, count: int, *, is_keyed: bool, expand: Callable[[], Batch]) -> None:
        super().__init__(expand, change.u.size + change.v.size + (0 if change.old is None else change.old.size))
        object.__setattr__(self, "change", change)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "is_keyed", is_keyed)

    def __len__(self) -> int:
        return self.count
