"""The lock of a database: whoever reads or changes it holds it, so that everybody sees whole versions only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType


class DatabaseLock:
    """A lock that its holder may take again.

    Args:
        on_entry: Called when somebody takes it who does not hold it, before anything else is done under it.
    """

    def __init__(self, on_entry: Callable[[], None] | None = None) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._on_entry = on_entry

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1 and self._on_entry is not None:
            try:
                self._on_entry()
            except BaseException:
                self._release()
                raise

    @contextmanager
    def within(self, seconds: float) -> Iterator[bool]:
        """The lock, if it is free within so many seconds; says whether it is held."""
        if not self._lock.acquire(timeout=seconds):
            yield False
            return
        try:
            with self:
                yield True
        finally:
            self._lock.release()

    @contextmanager
    def without_following(self) -> Iterator[None]:
        """The lock, taken without telling: what has been seen under it before is still so, unless this process changed it."""
        with self._lock:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        self._depth -= 1
        self._lock.release()
