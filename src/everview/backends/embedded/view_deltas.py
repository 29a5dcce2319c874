"""What a transaction did to views, made into Arrow when somebody looks at it."""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from weakref import ref

import pyarrow as pa

from everview.backends.base import VersionedDelta
from everview.backends.embedded.vectors import Batch, words_held

_FEW_GIVEN: Final = 1024
"""Weak references that are not worth looking through."""
HISTORY_BYTES: Final = 1 << 27
"""How much memory the deltas take that are kept for readers, if nothing else is said."""


@dataclass(slots=True)
class Moved:
    """What one transaction did to the views, by lower-case name; consolidated when somebody asks."""

    version: int
    committed_at: datetime.datetime
    deltas: dict[str, Batch]
    words: int
    """How much memory they took when they came."""


class History:
    """The deltas of views, for as many commits as are kept.

    A version has a second entry where lazy views caught up, or suspended ones answered again, after its commit.

    Args:
        length: For how many commits.
        most_bytes: How much memory they may take; the deltas of the last commit are kept whatever they take.
    """

    def __init__(self, length: int, most_bytes: int = HISTORY_BYTES) -> None:
        self._moved: deque[Moved] = deque()
        self._length = length
        self._words, self._most_words = 0, most_bytes // 8
        self._last_lost: int | None = None
        """The version of the last entry that is not kept any more."""

    def add(self, version: int, committed_at: datetime.datetime, deltas: dict[str, Batch]) -> None:
        """Notes what has happened to views, by key."""
        if not self._length:
            self._last_lost = version
            return
        words = sum(map(words_held, deltas.values()))
        self._moved.append(Moved(version, committed_at, deltas, words))
        self._words += words
        while len(self._moved) > self._length or (self._words > self._most_words and len(self._moved) > 1):
            lost = self._moved.popleft()
            self._words -= lost.words
            self._last_lost = lost.version

    def since(self, version: int, key: str, table: Callable[[str, Batch], pa.Table]) -> list[VersionedDelta]:
        """The non-empty deltas of a view after a version; ``table`` makes Arrow of them."""
        own = ((m, m.deltas[key]) for m in self._moved if m.version > version and key in m.deltas)
        made = (VersionedDelta(m.version, table(key, delta), m.committed_at) for m, delta in own)
        return [change for change in made if change.delta.num_rows]

    def kept_since(self, created_at: int, version: int) -> int:
        """Since which version the deltas of a view are all here."""
        if not self._length:
            return version
        return created_at if self._last_lost is None else max(created_at, self._last_lost)

    def clear(self) -> None:
        """Forgets all."""
        self._moved.clear()
        self._words = 0


class GivenDeltas:
    """Deltas of commits that somebody may still hold, and not have looked at."""

    def __init__(self) -> None:
        self._given: list[ref[ViewDeltas]] = []
        self._most = _FEW_GIVEN

    def add(self, deltas: ViewDeltas) -> ViewDeltas:
        """Notes some, and returns them."""
        self._given.append(ref(deltas))
        if len(self._given) > self._most:
            self._most = 2 * len(self.held) + _FEW_GIVEN
        return deltas

    @property
    def held(self) -> list[ViewDeltas]:
        """Those that are held."""
        held = [deltas for deltas in (r() for r in self._given) if deltas is not None]
        self._given = [ref(deltas) for deltas in held]
        return held


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
