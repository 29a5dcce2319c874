"""Kernels over UTF-8 text in a pool of strings: matching patterns, cutting substrings.

A pattern is a row of numbers: a byte, or one of the wildcards below. Text is compared byte by byte, which is right for UTF-8,
since no character's bytes begin inside another's; only wildcards count characters, by skipping continuation bytes.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.intrinsics import load8, load32, load64, start_of
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.vectors import Bools, Bytes, Ints

ONE_CHARACTER = -1
ANY_CHARACTERS = -2


@inlined
def _after(text: Word, at: Word, length: Word) -> Word:
    """Where the next character begins."""
    at += 1
    while at < length and load8(text + at) & 0xC0 == 0x80:
        at += 1
    return at


@inlined
def _matches(text: Word, length: Word, pattern: Ints) -> Word:
    """Whether the whole text matches; only the latest ANY_CHARACTERS needs to be tried again."""
    size = pattern.shape[0]
    at, p = np.int64(0), 0
    wildcard, resumed = -1, np.int64(0)
    while at < length:
        if p < size and pattern[p] == load8(text + at):
            at += 1
            p += 1
        elif p < size and pattern[p] == ONE_CHARACTER:
            at = _after(text, at, length)
            p += 1
        elif p < size and pattern[p] == ANY_CHARACTERS:
            wildcard, resumed = p, at
            p += 1
            if p == size:
                return True
        elif wildcard >= 0:
            resumed = _after(text, resumed, length)
            p = wildcard + 1
            if pattern[p] >= 0:  # go where the next part can begin, which is never inside a character
                while resumed < length and load8(text + resumed) != pattern[p]:
                    resumed += 1
            at = resumed
        else:
            return False
    while p < size and pattern[p] == ANY_CHARACTERS:
        p += 1
    return p == size


@kernel
def compare_text(heap: Bytes, spans: Ints, left: Ints, right: Ints, less: Bools) -> None:
    """Write whether the text of each left code is below that of the right one, byte by byte; one code stands for all."""
    base = start_of(heap)
    left_step, right_step = (1 if left.shape[0] > 1 else 0), (1 if right.shape[0] > 1 else 0)
    for i in range(less.shape[0]):
        a, b = left[i * left_step], right[i * right_step]
        less[i] = False
        if b in (0, a):
            continue
        first, second = spans[2 * a], spans[2 * b]
        length, other = spans[2 * a + 1] - first, spans[2 * b + 1] - second
        less[i] = length < other
        for at in range(min(length, other)):
            x, y = load8(base + first + at), load8(base + second + at)
            if x != y:
                less[i] = x < y
                break


@kernel
def match_pattern(heap: Bytes, spans: Ints, codes: Ints, pattern: Ints, found: Bools) -> None:
    """Write whether the text of each code matches; code 0 does not."""
    base = start_of(heap)
    for i in range(codes.shape[0]):
        code = codes[i]
        if code > 0:
            begin = spans[2 * code]
            found[i] = _matches(base + begin, spans[2 * code + 1] - begin, pattern)
        else:
            found[i] = False


@kernel
def match_arrow(data: Word, offsets: Word, width: Word, first: Word, count: Word, pattern: Ints, found: Ints) -> None:
    """Write whether each text of an Arrow array matches, 1 or 0.

    Args:
        data: Address of the bytes.
        offsets: Address of the offsets.
        width: Bytes of an offset, 4 or 8.
        first: The position of the first text among the offsets.
        count: How many texts there are.
        pattern: To match.
        found: Where to write.
    """
    at = offsets + width * first
    begin = load32(at) if width == 4 else load64(at)
    for i in range(count):
        at += width
        end = load32(at) if width == 4 else load64(at)
        found[i] = 1 if _matches(data + begin, end - begin, pattern) else 0
        begin = end


@kernel
def cut_text(heap: Bytes, spans: Ints, codes: Ints, position: Word, count: Word, begins: Ints, offsets: Ints) -> None:
    """Find a substring of each text: write where it begins in the heap, and offsets for all of them side by side.

    Args:
        heap: Of the pool.
        spans: Of the pool.
        codes: The texts.
        position: That of the first character, from 1; from the end where it is negative; 0 is 1.
        count: How many characters, also before the text's first, from ``position`` on.
        begins: Where to write.
        offsets: Where to write, one more.
    """
    base = start_of(heap)
    offsets[0] = 0
    for i in range(codes.shape[0]):
        code = codes[i]
        begins[i], offsets[i + 1] = 0, offsets[i]
        if code <= 0:
            continue
        text = base + spans[2 * code]
        length = spans[2 * code + 1] - spans[2 * code]
        start = position - 1 if position > 0 else np.int64(0)
        if position < 0:
            characters = np.int64(0)
            at = np.int64(0)
            while at < length:
                at = _after(text, at, length)
                characters += 1
            start = characters + position
        stop = max(start + count, 0)
        start = max(start, 0)
        first = np.int64(0)
        seen = np.int64(0)
        while seen < start and first < length:
            first = _after(text, first, length)
            seen += 1
        last = first
        while seen < stop and last < length:
            last = _after(text, last, length)
            seen += 1
        begins[i] = spans[2 * code] + first
        offsets[i + 1] = offsets[i] + last - first


@kernel
def copy_cuts(heap: Bytes, begins: Ints, offsets: Ints, out: Bytes) -> None:
    """Write the bytes that ``cut_text`` found."""
    for i in range(begins.shape[0]):
        for j in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + j] = heap[begins[i] + j]
