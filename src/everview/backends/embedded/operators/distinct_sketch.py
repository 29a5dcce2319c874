"""APPROX_COUNT_DISTINCT: HyperLogLog++ as Spark computes it, under inserts and deletes.

A value's hash says which of 2^p registers it belongs to and its rank there. The sketch of a group is the greatest rank in each
register, so that it only ever grows. Here a group keeps how many rows have each (register, rank), in order: a row that comes or
goes changes one count, and the greatest rank with a count is the register. Hence a delete needs no rows of its group again. A
group has at most 2^p times some ten entries, however many rows.

The estimate is Spark's to the bit: sums in the order of registers, and for middling counts the corrections that Spark has
measured, which are asked of its JVM once (``spark_code.distinct_corrections``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from everview.algebra.moments import Floats
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.dictionary_memo import MemoisedFunction
from everview.backends.embedded.operators.accumulator import without_nulls
from everview.backends.embedded.operators.counted_places import CountedPlaces
from everview.backends.embedded.state.xxhash_kernels import P1, P2, P3, P4, P5, SEED, WORD, hash_text
from everview.backends.embedded.vectors import Ints, Kind, Vector, canonical_floats, kind_of
from everview.relational import spark_code
from everview.relational.definitions.spark_aggregates import deviation_of
from everview.relational.nodes import AggregateCall
from everview.relational.types import FLOAT32, INT64, DataType, DayTimeInterval, Decimal, Int64, Timestamp, TimestampNtz

Words = npt.NDArray[np.uint64]
_NEAREST: Final = 6
"""How many of Spark's measurements a correction is the mean of."""
_CORRECTED: Final = 19
"""From so many bits on, there are none."""
_RANKS: Final = 64


class DistinctSketchAccumulator(CountedPlaces):
    """Entries (group, register and complement of the rank), each with its number of rows."""

    def __init__(self, call: AggregateCall, dictionary: Dictionary) -> None:
        super().__init__(dictionary)
        self._bits = math.ceil(2.0 * math.log(1.106 / deviation_of(call)) / math.log(2.0))
        self._text_hashes = text_hashes(dictionary)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values, *_), weights = without_nulls(slots, args[:1], weights)
        hashes = hash_of(values, self._text_hashes)
        bits = np.uint64(self._bits)
        rest = (hashes << bits) | (np.uint64(1) << (bits - np.uint64(1)))
        places = (hashes >> (WORD - bits)).astype(np.int64) * _RANKS + (_RANKS - 1 - _leading_zeros(rest) - 1)
        self.count(slots, places, weights)

    def result(self, slots: Ints) -> Vector:
        rows, places = self.places(slots)
        registers = places // _RANKS
        first = np.ones(len(places), dtype=np.bool_)
        first[1:] = (rows[1:] != rows[:-1]) | (registers[1:] != registers[:-1])
        rows, registers, ranks = rows[first], registers[first], (_RANKS - 1 - places[first] % _RANKS)
        bounds = np.searchsorted(rows, np.arange(len(slots) + 1)).tolist()
        estimates = [self._estimate(registers[a:b], ranks[a:b]) for a, b in pairwise(bounds)]
        return Vector(INT64, np.array(estimates, dtype=np.int64))

    def _estimate(self, registers: Ints, ranks: Ints) -> int:
        """What Spark makes of the registers that are not zero."""
        if not len(registers):
            return 0
        size = 1 << self._bits
        zeros = float(size - len(registers))
        inverses = np.ones(size)
        inverses[registers] = np.ldexp(1.0, -ranks.astype(np.int32))
        raw = _alpha(self._bits) * size * size / float(np.cumsum(inverses)[-1])  # cumsum adds one by one
        return math.floor(self._corrected(raw, zeros, size) + 0.5)

    def _corrected(self, raw: float, zeros: float, size: int) -> float:
        by_zeros = size * math.log(size / zeros) if zeros else math.inf
        if raw <= 2.5 * size and zeros:
            return by_zeros
        if self._bits >= _CORRECTED or (raw >= 5.0 * size and not zeros):
            return raw
        threshold, estimates, biases = spark_code.distinct_corrections(self._bits)
        if by_zeros <= threshold:
            return by_zeros
        return raw - _bias(raw, estimates, biases) if raw < 5.0 * size else raw


def text_hashes(dictionary: Dictionary) -> MemoisedFunction:
    """The hash of a string or binary by its code."""

    def compute(codes: Ints) -> tuple[Ints, None]:
        hashes = np.empty(len(codes), dtype=np.int64)
        hash_text(dictionary.heap, dictionary.spans, codes, hashes)
        return hashes, None

    return dictionary.memo(_no_scalar, key="xxhash64", bulk=compute)


def hash_of(values: Vector, texts: MemoisedFunction) -> Words:
    """Spark's ``xxhash64`` of each value; none is NULL."""
    match kind_of(values.type):
        case Kind.CODE:
            return texts(values.values)[0].view(np.uint64)
        case Kind.FLOAT:
            floats = canonical_floats(values.values)
            if values.type == FLOAT32:
                return _hash_half(floats.astype(np.float32).view(np.int32).astype(np.int64))
            return _hash_word(floats.view(np.int64))
        case _:
            return _hash_word(values.values) if _is_long(values.type) else _hash_half(values.values)


def _is_long(data_type: DataType) -> bool:
    return isinstance(data_type, Int64 | Timestamp | TimestampNtz | DayTimeInterval | Decimal)


def _rotated(words: Words, by: int) -> Words:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))


def _mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(33))) * P2
    words = (words ^ (words >> np.uint64(29))) * P3
    return words ^ (words >> np.uint64(32))


def _hash_word(values: Ints) -> Words:
    start = np.full(len(values), SEED + P5 + np.uint64(8))
    return _mixed(_rotated(start ^ (_rotated(values.view(np.uint64) * P2, 31) * P1), 27) * P1 + P4)


def _hash_half(values: Ints) -> Words:
    start = np.full(len(values), SEED + P5 + np.uint64(4))
    return _mixed(_rotated(start ^ ((values.view(np.uint64) & np.uint64(0xFFFFFFFF)) * P1), 23) * P2 + P3)


def _leading_zeros(words: Words) -> Ints:
    """Of words that are not zero."""
    found = np.zeros(len(words), dtype=np.int64)
    for width in (32, 16, 8, 4, 2, 1):
        is_low = words < (np.uint64(1) << np.uint64(64 - width))
        found[is_low] += width
        words = np.where(is_low, words << np.uint64(width), words)
    return found


def _alpha(bits: int) -> float:
    """The constant of HyperLogLog for so many registers."""
    return {4: 0.673, 5: 0.697, 6: 0.709}.get(bits, 0.7213 / (1.0 + 1.079 / (1 << bits)))


def _bias(raw: float, estimates: Floats, biases: Floats) -> float:
    """The mean of what Spark has measured at the estimates nearest to this one."""
    low = max(int(np.searchsorted(estimates, raw)) - _NEAREST + 1, 0)
    high = min(low + _NEAREST, len(estimates))
    while high < len(estimates) and (raw - estimates[high]) ** 2 < (raw - estimates[low]) ** 2:
        low, high = low + 1, high + 1
    return float(np.cumsum(biases[low:high])[-1]) / (high - low)


def _no_scalar(_value: object) -> int:
    raise AssertionError("hashed in bulk")
