"""What a transaction did to views, made into Arrow when somebody looks at it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from everview.backends.embedded.vectors import Batch


@dataclass(slots=True)
class Moved:
    """What one transaction did to the views, by lower-case name; consolidated when somebody asks."""

    version: int
    committed_at: datetime.datetime
    deltas: dict[str, Batch]


class ViewDeltas(Mapping[str, pa.Table]):
    """The deltas of a commit by view name, without those that are empty.

    Args:
        moved: The delta of each view, by a key of the backend.
        make: Gives the name of a view, and its delta as Arrow.
    """

    def __init__(self, moved: dict[str, Batch], make: Callable[[str, Batch], tuple[str, pa.Table]]) -> None:
        self._moved = moved
        self._make = make
        self._made: dict[str, pa.Table] | None = None

    def _all(self) -> dict[str, pa.Table]:
        if self._made is None:
            named = dict(self._make(key, delta) for key, delta in self._moved.items())
            self._made = {name: table for name, table in named.items() if len(table)}
        return self._made

    def __getitem__(self, name: str) -> pa.Table:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
