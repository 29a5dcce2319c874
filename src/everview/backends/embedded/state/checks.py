"""The checked mode, ``EVERVIEW_CHECKED=1``: every load and store by address is tested against the bounds of its structure.

Whoever asks for the address of an array, or of an Arrow buffer, makes it known here as a structure, for as long as it lives. An
access has a base and a place: both must lie in one structure. One that does not is not made: the kernel ends with an
``OutOfBounds``, which says what was near. Kernels over arrays test their indices, too.

The test is a function in machine code that kernels call by name, so that compiled kernels can be kept. Without the mode none of
this exists in them, and they are kept elsewhere (``kernel_cache``).
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, insort
from collections import deque
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba import cfunc
from numba.core import cgutils, types
from numba.extending import intrinsic

from everview.backends.embedded.state.kernel_cache import IS_CHECKED
from everview.errors import InternalError

_I64 = ir.IntType(64)
_KNOWN = "everview_is_known"
_LEARN = "everview_learn"

# What the machine code reads, by word: where the structures are listed, and what the last failure was.
_COUNT, _STARTS, _ENDS, _REACH, _BASE, _PLACE, _SIZE, _NEXT, _PASSING = range(9)
_RING = 64
"""Arrays that kernels were called with: so many of the last ones are structures, too."""


class OutOfBounds(InternalError):
    """An access outside of its structure; made by a kernel, when the access has been noted."""

    def __init__(self) -> None:
        super().__init__(structures.describe_failure())


_Structure: TypeAlias = tuple[int, int, int, str]
"""Where it begins and ends, a number that tells it from others, and what it is."""


class Structures:
    """All structures that are known, by where they begin."""

    def __init__(self) -> None:
        self.header = np.zeros(_PASSING + 2 * _RING, dtype=np.int64)
        self._sorted: list[_Structure] = []
        self._mirror: npt.NDArray[np.int64] = np.zeros((3, 1024), dtype=np.int64)
        self._held: dict[int, tuple[tuple[_Structure, ...], weakref.ref[Any]]] = {}
        """By the identity of an array, its structures."""
        self._gone: deque[int] = deque()
        self._buffers: dict[int, int] = {}
        self._serial = 0

    def add_array(self, array: Any, what: str = "") -> None:
        """Makes an array known until it is no more; again where it has been resized."""
        self._forget_the_dead()
        key, start = id(array), int(array.ctypes.data)
        end = start + int(array.nbytes)
        known = self._held.get(key)
        if known is not None and known[1]() is array and known[0][0][:2] == (start, end):
            return
        for one in () if known is None else known[0]:
            self._remove(one)
        made = self._insert(start, end, what or f"an array of shape {array.shape}")
        gone = self._gone
        self._held[key] = ((made,), weakref.ref(array, lambda _: gone.append(key)))

    def forget(self, array: Any) -> None:
        """An array is about to move."""
        known = self._held.pop(id(array), None)
        for one in () if known is None else known[0]:
            self._remove(one)

    def add_rows(self, matrix: Any, what: str = "") -> None:
        """Makes each row of a matrix a structure, until the matrix is no more."""
        self._forget_the_dead()
        start, size = int(matrix.ctypes.data), int(matrix.strides[0])
        what = what or f"a row of a matrix of shape {matrix.shape}"
        rows = tuple(self._insert(start + i * size, start + (i + 1) * size, what) for i in range(len(matrix)))
        gone, key = self._gone, id(matrix)
        self._held[key] = (rows, weakref.ref(matrix, lambda _: gone.append(key)))

    def add_buffer(self, start: int, size: int) -> None:
        """Makes a buffer of Arrow known, for good: nobody says when it goes."""
        if self._buffers.get(start, 0) < size:
            self._buffers[start] = size
            self._insert(start, start + size, "a buffer of Arrow")

    def _forget_the_dead(self) -> None:
        while self._gone:
            known = self._held.get(self._gone[0])
            if known is not None and known[1]() is None:
                for one in known[0]:
                    self._remove(one)
                del self._held[self._gone[0]]
            self._gone.popleft()

    def _insert(self, start: int, end: int, what: str) -> _Structure:
        self._serial += 1
        one = (start, end, self._serial, what)
        at = bisect_left(self._sorted, one)
        insort(self._sorted, one)
        count = len(self._sorted)
        if count > self._mirror.shape[1]:
            self._mirror = np.concatenate((self._mirror, np.zeros_like(self._mirror)), axis=1)
        self._mirror[:2, at + 1 : count] = self._mirror[:2, at : count - 1].copy()
        self._mirror[:2, at] = start, end
        self._publish(count)
        return one

    def _remove(self, one: _Structure) -> None:
        at = bisect_left(self._sorted, one)
        del self._sorted[at]
        count = len(self._sorted)
        self._mirror[:2, at:count] = self._mirror[:2, at + 1 : count + 1].copy()
        self._publish(count)

    def _publish(self, count: int) -> None:
        np.maximum.accumulate(self._mirror[1, :count], out=self._mirror[2, :count])
        base, width = self._mirror.ctypes.data, self._mirror.strides[0]
        self.header[: _REACH + 1] = count, base, base + width, base + 2 * width

    def describe_failure(self) -> str:
        """What the last access was that a kernel did not make."""
        base, place, size = (int(w) for w in self.header[_BASE : _SIZE + 1])
        near = next((s for s in reversed(self._sorted) if s[0] <= base <= s[1]), None)
        if near is None:
            return f"a kernel would access {size} bytes at an address that belongs to no structure."
        start, end, _, what = near
        return f"a kernel would access {size} bytes at byte {place - start} of {what}, which has {end - start}."


structures = Structures()


def _peek(_typing: Any, _address: Any, _index: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(builder.gep(builder.inttoptr(arguments[0], _I64.as_pointer()), [arguments[1]]))

    return types.int64(types.int64, types.int64), generate


def _poke(_typing: Any, _address: Any, _index: Any, _value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        place = builder.gep(builder.inttoptr(arguments[0], _I64.as_pointer()), [arguments[1]])
        builder.store(arguments[2], place)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


peek: Any = intrinsic(_peek)
poke: Any = intrinsic(_poke)


def _make_functions() -> tuple[Any, ...]:
    """The functions that checked kernels call by name; they live as long as what is returned."""
    header = int(structures.header.ctypes.data)

    def is_known(base: int, place: int, size: int) -> int:
        starts, ends, reach = peek(header, _STARTS), peek(header, _ENDS), peek(header, _REACH)
        low, high = 0, peek(header, _COUNT)
        while low < high:
            middle = (low + high) >> 1
            if peek(starts, middle) <= place:
                low = middle + 1
            else:
                high = middle
        i = low - 1
        while i >= 0 and peek(reach, i) > place:
            if place + size <= peek(ends, i) and peek(starts, i) <= base <= peek(ends, i):
                return 1
            i -= 1
        for j in range(_RING):
            start, end = peek(header, _PASSING + 2 * j), peek(header, _PASSING + 2 * j + 1)
            if start <= place and place + size <= end and start <= base <= end:
                return 1
        poke(header, _BASE, base)
        poke(header, _PLACE, place)
        poke(header, _SIZE, size)
        return 0

    def learn(start: int, size: int) -> int:
        at = peek(header, _NEXT)
        for j in range(_RING // 2):  # one that a loop asks for again must not drive out the others
            known = _PASSING + 2 * ((at - 1 - j) % _RING)
            if peek(header, known) == start and peek(header, known + 1) == start + size:
                return 0
        poke(header, _NEXT, (at + 1) % _RING)
        poke(header, _PASSING + 2 * at, start)
        poke(header, _PASSING + 2 * at + 1, start + size)
        return 0

    word = types.int64
    made: tuple[Any, ...] = cfunc(word(word, word, word))(is_known), cfunc(word(word, word))(learn)
    for name, function in zip((_KNOWN, _LEARN), made, strict=True):
        binding.add_symbol(name, function.address)
    return made


_FUNCTIONS = _make_functions() if IS_CHECKED else ()


def guard(context: Any, builder: Any, base: Any, place: Any, size: int) -> None:
    """In a checked kernel, the test of an access of so many bytes; in others, nothing."""
    if not IS_CHECKED:
        return
    known = builder.call(_function(builder, _KNOWN, 3), [base, place, _I64(size)])
    is_outside = builder.icmp_signed("==", known, _I64(0))
    with cgutils.if_unlikely(builder, is_outside):
        context.call_conv.return_user_exc(builder, OutOfBounds, ())


def make_known(builder: Any, start: Any, size: Any) -> None:
    """In a checked kernel, makes an array known that it was called with; in others, nothing."""
    if IS_CHECKED:
        builder.call(_function(builder, _LEARN, 2), [start, size])


def _function(builder: Any, name: str, arguments: int) -> Any:
    kind = ir.FunctionType(_I64, [_I64] * arguments)
    return cgutils.get_or_insert_function(builder.module, kind, name)
