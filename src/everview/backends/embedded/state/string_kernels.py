"""The kernels of a pool of byte strings: which code has a string, and which bytes has a code.

A pool is four arrays, and a probe table for each kind of string:

- ``heap``: the bytes of all strings, one after the other.
- ``spans``: per code two words, where its bytes begin and where they end. The first word of a code that is free is the next
  free one, or 0.
- ``kinds``: per code its kind.
- ``meta``: the counters below.
- ``table``: a power of two long, at most half full, linear probing. An entry is the upper half of the string's hash (the tag)
  above the code; 0 is empty. Codes begin at 1.

Strings come as Arrow has them: the addresses of offsets, bytes and validity bits. Words are loaded eight bytes at a time and
never beyond the string: the last word of a long string overlaps the one before, short strings are put together from parts.
A kernel that finds no room stops and returns how many strings it has done; the caller grows what is full and calls again.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.intrinsics import fetch_element, load8, load32, load64, start_of, store8, store64
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.vectors import Bools, Bytes, Ints

COUNT, USED, NEEDED, FREE = range(4)
"""Places in ``meta``: the greatest code; bytes of the heap in use; bytes that a string had no room for; a free code, or 0."""
LIVE, SHIFT = 2, 3
"""Places in ``meta`` for the table of a kind k, each plus 2 * k: its entries; 32 minus the bits of its length."""

LOW = np.int64(0xFFFFFFFF)
HALF = np.int64(32)
ONE = np.int64(1)
FACTOR = np.int64(-7046029254386353131)  # 2**64 / golden ratio, odd
SEED = np.int64(-4417276706812531889)
AHEAD = 12  # strings between asking for a line of the table and reading it
SOON = 6  # the same for what the entry leads to


@inlined
def _mixed(word: Word) -> Word:
    word = word * FACTOR
    return word ^ ((word >> HALF) & LOW)


@inlined
def _tag(address: Word, length: Word) -> Word:
    """The upper half of the hash of some bytes, as a signed number."""
    h = (length + ONE) * SEED
    if length >= 8:
        last = address + length - 8
        at = address
        while at < last:
            h = _mixed(h ^ load64(at))
            at += 8
        h = _mixed(h ^ load64(last))
    else:
        h = _mixed(h ^ _short_word(address, length))
    return (h * FACTOR) >> HALF


@inlined
def _short_word(address: Word, length: Word) -> Word:
    """Fewer than eight bytes in one word; different for different strings of one length."""
    if length >= 4:
        return load32(address) | (load32(address + length - 4) << HALF)
    if length == 0:
        return np.int64(0)
    return load8(address) | (load8(address + (length >> ONE)) << 8) | (load8(address + length - 1) << 16)


@inlined
def _same(a: Word, b: Word, length: Word) -> Word:
    """Whether the bytes at two addresses are the same."""
    if length < 8:
        return _short_word(a, length) == _short_word(b, length)
    at = np.int64(0)
    while at < length - 8:
        if load64(a + at) != load64(b + at):
            return False
        at += 8
    return load64(a + length - 8) == load64(b + length - 8)


@inlined
def _copy(to: Word, source: Word, length: Word) -> None:
    at = np.int64(0)
    while at + 8 <= length:
        store64(to + at, load64(source + at))
        at += 8
    while at < length:
        store8(to + at, load8(source + at))
        at += ONE


@inlined
def _offset(offsets: Word, width: Word, i: Word) -> Word:
    return load64(offsets + 8 * i) if width == 8 else load32(offsets + 4 * i)


@inlined
def _is_valid(validity: Word, i: Word) -> Word:
    return validity == 0 or (load8(validity + (i >> 3)) >> (i & 7)) & ONE != 0


@kernel
def encode_strings(
    table: Ints,
    kind: Word,
    heap: Bytes,
    spans: Ints,
    kinds: Bytes,
    meta: Ints,
    offsets: Word,
    width: Word,
    data: Word,
    validity: Word,
    first: Word,
    start: Word,
    out: Ints,
    nulls: Bools,
) -> Word:
    """Write the codes of strings, from the one at ``start`` on, and take in those that are new.

    Args:
        table: Of the kind.
        kind: That of the strings, from 1.
        heap: Of the pool.
        spans: Of the pool.
        kinds: Of the pool.
        meta: Of the pool.
        offsets: Address of the offsets, ``width`` bytes each; that of string ``first`` is read first.
        width: 4 or 8.
        data: Address of the bytes.
        validity: Address of the validity bits, or 0 where none is NULL.
        first: The position of the first string.
        start: How many are done already.
        out: Two rows: the codes, 0 for NULL, and room for tags.
        nulls: Where NULLs are marked; empty where there is none.
    """
    mask, n = table.shape[0] - 1, out.shape[1]
    live, shift = LIVE + 2 * kind, meta[SHIFT + 2 * kind]
    base = start_of(heap)
    if start == 0:
        for i in range(n):
            if _is_valid(validity, first + i):
                begin = _offset(offsets, width, first + i)
                out[1, i] = _tag(data + begin, _offset(offsets, width, first + i + 1) - begin)
                out[0, i] = -1
            else:
                out[0, i] = out[1, i] = 0
                nulls[i] = True
    for i in range(start, n):
        if i + AHEAD < n:
            fetch_element(table, (out[1, i + AHEAD] & LOW) >> shift)
        if i + SOON < n:
            fetch_element(spans, 2 * (table[(out[1, i + SOON] & LOW) >> shift] & LOW))
        if out[0, i] == 0:
            continue
        begin = _offset(offsets, width, first + i)
        length = _offset(offsets, width, first + i + 1) - begin
        tag = out[1, i]
        at = (tag & LOW) >> shift
        while True:
            entry = table[at]
            if entry == 0:
                break
            if entry >> HALF == tag:
                code = entry & LOW
                known = spans[2 * code]
                if spans[2 * code + 1] - known == length and _same(base + known, data + begin, length):
                    out[0, i] = code
                    break
            at = (at + 1) & mask
        if out[0, i] > 0:
            continue
        free = meta[FREE]
        code = free if free > 0 else meta[COUNT] + ONE
        used = meta[USED]
        if 2 * meta[live] >= table.shape[0] or code >= kinds.shape[0] or used + length > heap.shape[0]:
            meta[NEEDED] = length
            return i
        _copy(base + used, data + begin, length)
        if free > 0:
            meta[FREE] = spans[2 * free]
        else:
            meta[COUNT] = code
        meta[USED] = used + length
        spans[2 * code], spans[2 * code + 1], kinds[code] = used, used + length, kind
        table[at] = (tag << HALF) | code
        meta[live] += ONE
        out[0, i] = code
    return n


@kernel
def rehash_strings(old: Ints, table: Ints, shift: Word) -> None:
    """Fill an empty table with the entries of another."""
    mask = table.shape[0] - 1
    for i in range(old.shape[0]):
        entry = old[i]
        if entry != 0:
            at = ((entry >> HALF) & LOW) >> shift
            while table[at] != 0:
                at = (at + 1) & mask
            table[at] = entry


@kernel
def measure_strings(spans: Ints, codes: Ints, offsets: Ints) -> None:
    """Write the offsets of the strings of codes, one after the other; code 0 has no bytes."""
    total = np.int64(0)
    offsets[0] = 0
    for i in range(codes.shape[0]):
        code = codes[i]
        if code > 0:
            total += spans[2 * code + 1] - spans[2 * code]
        offsets[i + 1] = total


@kernel
def gather_strings(heap: Bytes, spans: Ints, codes: Ints, offsets: Ints, out: Bytes) -> None:
    """Write the bytes of the strings of codes at their offsets."""
    base, to = start_of(heap), start_of(out)
    for i in range(codes.shape[0]):
        code = codes[i]
        if code > 0:
            begin = spans[2 * code]
            _copy(to + offsets[i], base + begin, spans[2 * code + 1] - begin)
