"""Where arrays and buffers lie, for kernels that are given addresses (``intrinsics``): callers keep the memory alive.

And how much of it an engine may take: structures ``reserve`` what they are about to grow by. They do so when they have
outgrown their room, not for each row, so that a limit costs a small transaction next to nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from everview.backends.embedded.state.checks import structures
from everview.backends.embedded.state.kernel_cache import IS_CHECKED

LARGE = 1 << 22
"""Bytes of an array that has memory ahead of its growth."""
AHEAD = (64, 8, 2)
"""How many times its size it has then: the first that the system gives."""
UNMOVED = 1 << 16
"""Bytes of an array of a key map that has memory ahead; until it is large, the second of those times."""


def address_of(array: Any, what: str = "") -> int:
    """Where the array's first element lies; ``what`` it is, the checked mode says in its errors."""
    if IS_CHECKED:
        structures.add_array(array, what)
    address: int = array.ctypes.data
    return address


def addresses_of_rows(matrix: Any, what: str = "") -> list[int]:
    """Where each row of a matrix begins: in checked mode each is a structure of its own."""
    if IS_CHECKED:
        structures.add_rows(matrix, what)
    start: int = matrix.ctypes.data
    return [start + i * matrix.strides[0] for i in range(len(matrix))]


def resize(array: Any, shape: Any) -> None:
    """Has an array of another length, whose memory may move; its address is to be asked for again."""
    if IS_CHECKED:
        structures.forget(array)
    array.resize(shape, refcheck=False)


def grown(array: Any, length: int) -> Any:
    """An array of more rows with the same first rows, in the same memory if possible; the new rows hold anything.

    A large one lies in more memory than it needs yet: pages that nobody has touched cost nothing but addresses. So it seldom
    moves, and NumPy asks the system for pages of 2 MB, which a map of random keys is read the faster by.
    """
    shape = (length, *array.shape[1:])
    size = length * array.strides[0]
    if size < LARGE:
        resize(array, shape)
        return array
    room = array.base
    if room is None or room.nbytes < size:
        room = _room(size)
        np.ndarray(array.shape, array.dtype, room)[:] = array
    if IS_CHECKED:
        structures.forget(array)
    return np.ndarray(shape, array.dtype, room)


def resized(array: Any, length: int, used: int, *, zeros: bool = False) -> Any:
    """An array of more rows, or of fewer, with the same first ``used`` rows, and behind them anything, or ``zeros``.

    One that grows keeps its memory where that has room, so that few of its rows are ever copied; whoever has the shorter array
    keeps that, too. Both must have been made here, or be all of their memory.
    """
    shape = (length, *array.shape[1:])
    size = length * math.prod(array.shape[1:]) * array.itemsize
    kept = min(length, len(array), used)
    is_growing = length > len(array) and size >= UNMOVED
    room = array.base if is_growing else None
    if room is None or room.nbytes < size:
        room = _room(size) if is_growing else np.empty(size, dtype=np.uint8)
        np.ndarray(shape, array.dtype, room)[:kept] = array[:kept]
    made = np.ndarray(shape, array.dtype, room)
    if zeros:
        made[kept:] = 0
    return made


def _room(size: int) -> Any:
    """Memory for so many bytes, and for more to come if the system lets us."""
    for more in AHEAD if size >= LARGE else AHEAD[1:]:
        try:
            return np.empty(size * more, dtype=np.uint8)
        except MemoryError:  # more than the machine has, or than a limit of addresses lets it have
            continue
    return np.empty(size, dtype=np.uint8)


def address_of_buffer(buffer: Any) -> int:
    """Where a buffer of Arrow lies; 0 for none."""
    if buffer is None:
        return 0
    if IS_CHECKED:
        structures.add_buffer(buffer.address, buffer.size)
    address: int = buffer.address
    return address


class LimitReached(MemoryError):
    """What was to be reserved would pass the limit of an engine."""

    def __init__(self, limit: int, held: int, more: int) -> None:
        super().__init__(f"{held} bytes are held, {more} more would pass the limit of {limit}")
        self.limit, self.held, self.more = limit, held, more


class Budget:
    """How many bytes the state of an engine may take. As a context it is in force for the thread.

    What was reserved is only added up; when the sum passes the limit, the state is measured, and that counts.

    Args:
        limit: The bytes.
        measure: Gives the bytes of all state.
    """

    def __init__(self, limit: int, measure: Callable[[], int]) -> None:
        self.limit = limit
        self._measure = measure
        self._held = limit
        self._is_building = False
        self._outer: Budget | None = None

    def building(self) -> Budget:
        """The same for the time in which structures grow that cannot be measured yet."""
        made = Budget(self.limit, self._measure)
        made._held, made._is_building = self._measure(), True
        return made

    def reserve(self, more: int) -> None:
        """Notes that the state is about to grow.

        Raises:
            LimitReached: it must not.
        """
        self._held += more
        if self._held > self.limit:
            held = self._held - more if self._is_building else self._measure()
            self._held = held + more
            if self._held > self.limit:
                self._held = held
                raise LimitReached(self.limit, held, more)

    def __enter__(self) -> None:
        self._outer, _active.budget = _active.budget, self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        _active.budget, self._outer = self._outer, None


class _Active(threading.local):
    budget: Budget | None = None


_active = _Active()


def reserve(more: int) -> None:
    """Says that some state is about to grow by so many bytes.

    Raises:
        LimitReached: the engine that is at work must not take more.
    """
    budget = _active.budget
    if budget is not None and more > 0:
        budget.reserve(more)


NO_WORDS = np.zeros(1, dtype=np.int64)
"""Something to point at where nothing is read."""
