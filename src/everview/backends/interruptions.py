"""Ctrl-C, and other signals whose handlers raise, wait while the state of a database is being changed.

Python calls a handler between any two steps of the main thread, also between a change of state and the note that would undo it.
So while something is changed, handlers are exchanged for one that notes the signal, and called at the next place where all
can be undone (``Uninterrupted.give_way``), or when the change is made. Other threads are never interrupted. Contract: what
runs ``with UNINTERRUPTED`` is left by an exception of its own or at a ``give_way``, and no signal is lost.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from threading import get_ident, main_thread
from types import FrameType, TracebackType
from typing import Any, ClassVar, Final, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any]

_DEFERRED: Final = (int(signal.SIGINT), int(signal.SIGTERM), int(signal.SIGALRM))
"""Signals that programs take to end something that takes too long."""

_signal: Final[Any] = sys.modules.get("_signal", signal)
"""What ``signal`` wraps to make enums of numbers, which takes a quarter of a small transaction's time."""


class Uninterrupted(ContextDecorator):
    """A section of the main thread in which signals wait; sections may lie inside each other, and the outermost counts."""

    main_thread: ClassVar[int | None] = main_thread().ident

    def __init__(self) -> None:
        self._depth = 0
        self._handlers: dict[int, Handler] = {}
        self._waiting: list[int] = []
        self._noting = self._note
        """The method, which Python would make anew each time."""

    def __enter__(self) -> None:
        if get_ident() == self.main_thread:
            if self._depth == 0:
                for number in _DEFERRED:
                    handler = _signal.getsignal(number)
                    if callable(handler) and handler is not self._noting:
                        self._handlers[number] = handler
                        _signal.signal(number, self._noting)
            self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if get_ident() == self.main_thread:
            self._depth -= 1
            if self._depth == 0 and self._handlers:
                handlers = dict(self._handlers)
                self._give_back()
                if self._waiting:
                    self._call(handlers)

    def give_way(self) -> None:
        """Calls the handlers of signals that have come: nothing has been changed here that could not be undone."""
        if self._waiting and get_ident() == self.main_thread:
            self._call(self._handlers)

    def _call(self, handlers: Mapping[int, Handler]) -> None:
        try:
            while self._waiting:
                number = self._waiting.pop(0)
                handlers[number](number, None)
        finally:
            if self._waiting:  # a handler has raised
                self._call(handlers)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number not in self._waiting:
            self._waiting.append(number)

    def _give_back(self) -> None:
        try:
            while self._handlers:
                number, handler = next(iter(self._handlers.items()))
                if _signal.getsignal(number) is self._noting:  # nobody, such as PySpark, has put another in its place
                    _signal.signal(number, handler)
                del self._handlers[number]
        finally:
            if self._handlers:  # a handler that is back has raised
                self._give_back()


def _forked() -> None:
    """In a new process the thread that has made it is the main one."""
    Uninterrupted.main_thread = get_ident()


os.register_at_fork(after_in_child=_forked)

UNINTERRUPTED: Final = Uninterrupted()
"""Of this process, as its signals are."""
