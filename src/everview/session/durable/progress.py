"""A progress bar for opening a database: there once it has taken two seconds, and only where somebody can see it."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import Progress, TaskID

PATIENCE: Final = 2.0
"""Seconds before the bar is shown."""


class OpeningProgress:
    """Counts what has been done of a whole; a context manager."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = max(total, 1)
        self._done = 0
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def advance(self, amount: int) -> None:
        """Some more has been done."""
        self._done += amount
        if self._bar is None and time.monotonic() - self._started > PATIENCE:
            console = Console(stderr=True)
            self._bar = Progress(console=console, transient=True, disable=not console.is_interactive)
            self._task = self._bar.add_task(self._title, total=self._total)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)

    def __enter__(self) -> OpeningProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
