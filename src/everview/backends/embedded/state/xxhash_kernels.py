"""XXH64 of byte strings in a pool, with the seed of Spark's ``xxhash64`` and ``approx_count_distinct``.

The hash (Collet's) reads 32 bytes at a time into four lanes of 64 bits, then what is left by eights, by four and by ones, and
mixes. All numbers are unsigned words that wrap around.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.intrinsics import load8, load32, load64, start_of
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.vectors import Bytes, Ints

SEED = np.uint64(42)
P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)
WORD = np.uint64(64)


@inlined
def _rotated(word: Word, by: Word) -> Word:
    return (word << np.uint64(by)) | (word >> (WORD - np.uint64(by)))


@inlined
def _lane(lane: Word, address: Word) -> Word:
    return _rotated(lane + np.uint64(load64(address)) * P2, 31) * P1


@inlined
def _merged(h: Word, lane: Word) -> Word:
    return (h ^ (_rotated(lane * P2, 31) * P1)) * P1 + P4


@inlined
def _hash(at: Word, length: Word) -> Word:
    end = at + length
    if length >= 32:
        a, b, c, d = SEED + P1 + P2, SEED + P2, SEED, SEED - P1
        while at <= end - 32:
            a, b, c, d = _lane(a, at), _lane(b, at + 8), _lane(c, at + 16), _lane(d, at + 24)
            at += 32
        h = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        h = _merged(_merged(_merged(_merged(h, a), b), c), d)
    else:
        h = SEED + P5
    h += np.uint64(length)
    while at <= end - 8:
        h = _rotated(h ^ (_rotated(np.uint64(load64(at)) * P2, 31) * P1), 27) * P1 + P4
        at += 8
    if at <= end - 4:
        h = _rotated(h ^ (np.uint64(load32(at)) * P1), 23) * P2 + P3
        at += 4
    while at < end:
        h = _rotated(h ^ (np.uint64(load8(at)) * P5), 11) * P1
        at += 1
    h = (h ^ (h >> np.uint64(33))) * P2
    h = (h ^ (h >> np.uint64(29))) * P3
    return h ^ (h >> np.uint64(32))


@kernel
def hash_text(heap: Bytes, spans: Ints, codes: Ints, hashes: Ints) -> None:
    """Write the hash of the bytes of each code."""
    base = start_of(heap)
    for i in range(codes.shape[0]):
        begin = spans[2 * codes[i]]
        hashes[i] = np.int64(_hash(base + begin, spans[2 * codes[i] + 1] - begin))
