"""Byte strings and their codes: each distinct string of a kind is kept once, and known by a small number.

Codes are small numbers from 1 on, whatever the kind; code 0 stands for NULL. A caller may take codes for values of its own
(``reserve_code``), which then have no bytes here. ``keep_only`` takes back codes that nobody uses; later strings get them. No
Python object is made for a string, however many come in or go out: they come in Arrow's layout and go out in it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from everview.backends.embedded.state import string_kernels as kernels
from everview.backends.embedded.state.memory import reserve
from everview.backends.embedded.state.string_kernels import COUNT, FREE, LIVE, LOW, NEEDED, SHIFT, USED
from everview.backends.embedded.vectors import Bools, Bytes, Ints

OWN: Final = 0
"""The kind of codes that the caller took for itself."""
NOBODY: Final = 255
"""The kind of codes that are free."""
_SMALLEST: Final = 64
NO_NULLS: Final[Bools] = np.zeros(0, dtype=np.bool_)
_NO_TABLE: Final[Ints] = np.zeros(0, dtype=np.int64)


class StringPool:
    """Strings of the kinds 1 … ``kinds``; equal bytes of different kinds are different strings."""

    def __init__(self, kinds: int) -> None:
        self._meta: Ints = np.zeros(SHIFT + 2 * kinds + 1, dtype=np.int64)
        self._heap: Bytes = np.zeros(16 * _SMALLEST, dtype=np.uint8)
        self._spans: Ints = np.zeros(2 * _SMALLEST, dtype=np.int64)
        self._kinds: Bytes = np.zeros(_SMALLEST, dtype=np.uint8)
        self._tables: list[Ints] = [_NO_TABLE] * (kinds + 1)
        for kind in range(1, kinds + 1):
            self._set_table(kind, np.zeros(2 * _SMALLEST, dtype=np.int64))

    def _set_table(self, kind: int, table: Ints) -> None:
        self._tables[kind] = table
        self._meta[SHIFT + 2 * kind] = 33 - len(table).bit_length()

    def __len__(self) -> int:
        """The greatest code."""
        return int(self._meta[COUNT])

    @property
    def nbytes(self) -> int:
        """Memory of the strings and of what finds them; room that was never written to takes none."""
        tables = sum(t.nbytes for t in self._tables)
        return self.used + len(self) * (2 * self._spans.itemsize + self._kinds.itemsize) + tables

    @property
    def used(self) -> int:
        """The bytes of all strings."""
        return int(self._meta[USED])

    @property
    def count(self) -> int:
        """The number of strings."""
        return int(self._meta[LIVE + 2 :: 2].sum())

    @property
    def heap(self) -> Bytes:
        """The bytes of all strings; replaced when it grows."""
        return self._heap

    @property
    def spans(self) -> Ints:
        """Per code two words: where its bytes begin and where they end. Replaced when it grows."""
        return self._spans

    def kinds_of(self, codes: Ints) -> Bytes:
        """The kinds of codes."""
        return self._kinds[codes]

    def kind_of(self, code: int) -> int:
        """The kind of a code."""
        return int(self._kinds[code])

    def bytes_of(self, code: int) -> bytes:
        """The bytes of a code."""
        assert self._kinds[code] != NOBODY, f"code {code} is free"
        return self._heap[self._spans[2 * code] : self._spans[2 * code + 1]].tobytes()

    def reserve_code(self) -> int:
        """A code that no string will have."""
        code = int(self._meta[FREE])
        if code:
            self._meta[FREE] = self._spans[2 * code]
        else:
            code = len(self) + 1
            self._grow_codes(code)
            self._meta[COUNT] = code
        self._spans[2 * code : 2 * code + 2] = 0
        self._kinds[code] = OWN
        return code

    def keep_only(self, is_used: Bools) -> Ints:
        """Takes back all codes but those under the mask, and returns those; the mask has a place for each up to the greatest.

        Raises:
            MemoryError: nothing has changed.
        """
        kinds = self._kinds[: len(self) + 1]
        kept = is_used & (kinds != NOBODY)
        kept[0] = True
        gone = np.flatnonzero(~kept & (kinds != NOBODY))
        codes = np.flatnonzero(kept)
        top = int(codes[-1])
        offsets, data = self.decode(codes)
        size = 1 << max(top + 1, _SMALLEST - 1).bit_length()
        spans, new_kinds = np.zeros((size, 2), dtype=np.int64), np.zeros(size, dtype=np.uint8)
        spans[codes, 0], spans[codes, 1] = offsets[:-1], offsets[1:]
        new_kinds[codes] = kinds[codes]
        free = np.flatnonzero(~kept[: top + 1])
        spans[free[:-1], 0] = free[1:]
        new_kinds[free] = NOBODY
        entries = [t[(t != 0) & kept[t & LOW]] for t in self._tables]
        tables = [np.zeros(max(2 * _SMALLEST, 1 << (2 * len(e)).bit_length()), dtype=np.int64) for e in entries]
        self._spans, self._kinds = spans.reshape(-1), new_kinds
        self._heap = data if len(data) else np.zeros(16 * _SMALLEST, dtype=np.uint8)
        self._meta[COUNT], self._meta[USED] = top, offsets[-1]
        self._meta[FREE] = free[0] if len(free) else 0
        for kind in range(1, len(self._tables)):
            self._set_table(kind, tables[kind])
            self._meta[LIVE + 2 * kind] = len(entries[kind])
            kernels.rehash_strings(entries[kind], tables[kind], int(self._meta[SHIFT + 2 * kind]))
        return gone

    def encode(
        self, kind: int, offsets: int, width: int, data: int, validity: int, first: int, count: int
    ) -> tuple[Ints, Bools]:
        """The codes of strings in Arrow's layout, and the mask of NULLs, which is empty without ``validity``.

        Args:
            kind: Their kind.
            offsets: Address of the offsets.
            width: Bytes of an offset, 4 or 8.
            data: Address of the bytes.
            validity: Address of the validity bits, or 0.
            first: The position of the first string among offsets and validity bits.
            count: How many strings there are.
        """
        out = np.empty((2, count), dtype=np.int64)
        nulls = np.zeros(count, dtype=np.bool_) if validity else NO_NULLS
        done = 0
        while True:
            done = kernels.encode_strings(
                self._tables[kind], kind, self._heap, self._spans, self._kinds, self._meta,
                offsets, width, data, validity, first, done, out, nulls,
            )  # fmt: skip
            if done == count:
                return out[0], nulls
            self._grow(kind, min(count - done, len(self) + _SMALLEST))

    def decode(self, codes: Ints) -> tuple[Ints, Bytes]:
        """The strings of codes: their offsets, one more than there are codes, and the bytes; code 0 has none."""
        offsets = np.empty(len(codes) + 1, dtype=np.int64)
        kernels.measure_strings(self._spans, codes, offsets)
        out = np.empty(int(offsets[-1]), dtype=np.uint8)
        kernels.gather_strings(self._heap, self._spans, codes, offsets, out)
        return offsets, out

    def _grow(self, kind: int, more: int) -> None:
        """Makes room for at least one more string, and in the table for up to ``more``."""
        table, live = self._tables[kind], int(self._meta[LIVE + 2 * kind])
        if 2 * live >= len(table):
            longer = max(2 * len(table), 1 << (2 * (live + more) - 1).bit_length())
            reserve(8 * (longer - len(table)))
            self._set_table(kind, np.zeros(longer, dtype=np.int64))
            kernels.rehash_strings(table, self._tables[kind], int(self._meta[SHIFT + 2 * kind]))
        self._grow_codes(len(self) + 1)
        least = int(self._meta[USED] + self._meta[NEEDED])
        if least > len(self._heap):
            reserve(max(least, 2 * len(self._heap)) - len(self._heap))
            heap = np.empty(max(least, 2 * len(self._heap)), dtype=np.uint8)
            heap[: self._meta[USED]] = self._heap[: self._meta[USED]]
            self._heap = heap

    def _grow_codes(self, code: int) -> None:
        size = len(self._kinds)
        if code >= size:
            reserve(size * (2 * self._spans.itemsize + 1))
            spans, kinds = np.zeros(4 * size, dtype=np.int64), np.zeros(2 * size, dtype=np.uint8)
            spans[: 2 * size], kinds[:size] = self._spans, self._kinds
            self._spans, self._kinds = spans, kinds
