"""The engine's dictionary: one code for each distinct string, binary, array and struct value.

Codes are positive and dense; code 0 lies beneath NULL and stands for no value. Equal values have equal codes, values of
different Python types different ones (``"a"`` and ``b"a"``, ``(1,)`` and ``(1.0,)``). Inside arrays and structs, where Spark
makes no difference between -0.0 and 0.0, the dictionary keeps 0.0. Codes are never reclaimed: the dictionary grows with the
distinct values that were ever seen, and lives as long as the engine.

Two services follow from codes. ``order_keys`` labels values with integers in Spark's order, leaving gaps, so that a new value
takes a label between its neighbours' without touching theirs. ``memo`` turns a function of a value into an array look-up.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.backends.embedded.dictionary_order import OrderLabels, tuple_key
from everview.backends.embedded.vectors import Bools, Ints, Values
from everview.relational.arrow import column_to_arrow, data_type_from_arrow, is_arrow_list, rows_from_arrow
from everview.relational.nodes import Field
from everview.relational.types import Value

_FEW: Final = 32
"""Up to so many rows, Python's loop is faster than Arrow's set-up."""
_REMEMBERED_DICTIONARIES: Final = 32


class Dictionary:
    """Values by code and codes by value."""

    def __init__(self) -> None:
        self._values: list[Value] = [None]
        self._codes: dict[type, dict[Any, int]] = {str: {}, bytes: {}, tuple: {}}
        self._orders: dict[type, OrderLabels] = {}
        self._pools: dict[type, _ArrowPool] = {}
        self._seen_dictionaries: dict[Hashable, tuple[pa.Array, Ints]] = {}
        self._memos: weakref.WeakValueDictionary[Hashable, MemoisedFunction] = weakref.WeakValueDictionary()
        self._bytes, self._measured = 0, 1
        self.order_epoch = 0
        """Grows when labels change: keys that ``order_keys`` returned under another epoch are void."""

    def __len__(self) -> int:
        """The number of values, that is, the greatest code."""
        return len(self._values) - 1

    @property
    def nbytes(self) -> int:
        """About how much memory the values and their codes take."""
        for value in self._values[self._measured :]:
            self._bytes += sys.getsizeof(value)
        self._measured = len(self._values)
        return self._bytes + len(self._values) * 8 + sum(sys.getsizeof(codes) for codes in self._codes.values())

    def code_of(self, value: Value) -> int:
        """The code of one value, made if it is new; 0 for None."""
        if value is None:
            return 0
        kind = type(value)
        key = value
        if kind is tuple:
            value = _positive_zeros(value)
            key = repr(value)  # equal for equal values of one type, and unlike == it tells 1, 1.0, True and 1.00 apart
        codes = self._codes[kind]
        code = codes.get(key)
        if code is None:
            code = codes[key] = len(self._values)
            self._values.append(value)
        return code

    def value_of(self, code: int) -> Value:
        """The value of one code; None for 0."""
        return self._values[code]

    def encode(self, values: Iterable[Value]) -> Ints:
        """The codes of values; 0 for None."""
        return np.array([self.code_of(v) for v in values], dtype=np.int64)

    def decode(self, codes: Ints) -> list[Value]:
        """The values of codes; None for 0."""
        values = self._values
        return [values[c] for c in codes.tolist()]

    def encode_arrow(self, array: pa.Array | pa.ChunkedArray) -> tuple[Ints, Bools | None]:
        """The codes of an Arrow column and the mask of its NULLs (None where there are none).

        Work in Python is proportional to the distinct values of the column; of a dictionary-encoded column whose dictionary
        was seen before there is none. Lists and structs take a step a row.
        """
        if isinstance(array, pa.ChunkedArray):
            if array.num_chunks != 1:
                return _joined([self.encode_arrow(chunk) for chunk in array.chunks])
            array = array.chunk(0)
        if pa.types.is_dictionary(array.type):
            return self._encode_dictionary(array)
        nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        if pa.types.is_struct(array.type) or is_arrow_list(array.type):
            field = Field("value", data_type_from_arrow(array.type), True)
            rows = rows_from_arrow(pa.table([array], names=["value"]), (field,))
            return self.encode([value for (value,) in rows]), nulls
        if len(array) <= _FEW:
            return self.encode(array.to_pylist()), nulls
        encoded = array.dictionary_encode()
        codes = self.encode(encoded.dictionary.to_pylist())
        return _at(codes, encoded.indices, nulls), nulls

    def _encode_dictionary(self, array: pa.DictionaryArray) -> tuple[Ints, Bools | None]:
        dictionary = array.dictionary
        key = (str(dictionary.type), dictionary.offset, len(dictionary), *map(_address, dictionary.buffers()))
        known = self._seen_dictionaries.get(key)
        if known is None and len(array) < len(dictionary):
            return self.encode_arrow(array.dictionary_decode())  # a short slice does not pay for the whole dictionary
        if known is None:
            known = dictionary, self.encode(dictionary.to_pylist())
            while len(self._seen_dictionaries) >= _REMEMBERED_DICTIONARIES:
                self._seen_dictionaries.pop(next(iter(self._seen_dictionaries)))
            self._seen_dictionaries[key] = known  # keeps the array too: its buffers' addresses are the key
        nulls = array.indices.is_null().to_numpy(zero_copy_only=False) if array.indices.null_count else None
        codes = _at(known[1], array.indices, nulls)
        if dictionary.null_count:
            nulls = codes == 0
        return codes, nulls

    def decode_arrow(self, codes: Ints, nulls: Bools | None, arrow: pa.DataType) -> pa.Array:
        """The values as an Arrow array of a type that can hold them; NULL under the mask."""
        if pa.types.is_struct(arrow) or is_arrow_list(arrow):
            distinct, inverse = np.unique(codes, return_inverse=True)
            return column_to_arrow(self.decode(distinct), data_type_from_arrow(arrow)).take(pa.array(inverse))
        if len(codes) <= _FEW:
            return pa.array(self.decode(codes), arrow)
        kind = bytes if pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) else str
        pool = self._pools.setdefault(kind, _ArrowPool(kind))
        return pool.take(self._values, pa.array(codes, mask=nulls)).cast(arrow)

    def order_keys(self, codes: Ints) -> Ints:
        """An integer for each code, such that integers of values of one type compare as Spark compares the values.

        The integers hold as long as ``order_epoch`` stays what it was before the call: read it after the call, and
        when it has changed, ask again for the keys that you keep. It changes when a gap between labels is exhausted.
        """
        distinct, inverse = np.unique(codes, return_inverse=True)
        kinds = {type(self._values[code]) for code in distinct.tolist() if code}
        assert len(kinds) <= 1, "values of different types have no order"
        if not kinds:
            return np.zeros(len(codes), dtype=np.int64)
        (kind,) = kinds
        order = self._orders.setdefault(kind, OrderLabels())
        key = tuple_key if kind is tuple else None
        self.order_epoch += order.insert(distinct.tolist(), self._values, key)
        return order.labels[distinct][inverse]

    def memo(
        self,
        function: Callable[[Value], Any],
        dtype: npt.DTypeLike = np.int64,
        *,
        wide: bool = False,
        key: Hashable = None,
    ) -> MemoisedFunction:
        """A function of a value (None for code 0) as an array look-up by code.

        Args:
            function: From a value to a word: an integer, float or boolean, or None for NULL. It may raise EvaluationError.
            dtype: The type of the words.
            wide: Whether a word is an integer of 128 bits.
            key: Equal keys mean equal functions, which then share one memo for as long as anyone holds it.
        """
        known = self._memos.get(key) if key is not None else None
        if known is None:
            known = MemoisedFunction(function, self._values, np.dtype(dtype), wide)
            if key is not None:
                self._memos[key] = known
        return known


class MemoisedFunction:
    """A function of values, computed once for each distinct code. It takes memory up to the greatest code it has met."""

    def __init__(self, function: Callable[[Value], Any], values: list[Value], dtype: np.dtype[Any], wide: bool) -> None:
        self._function = function
        self._values = values
        self._is_wide = wide
        self._results: Values = np.zeros((0, 2) if wide else 0, dtype)
        self._state = np.zeros(0, dtype=np.int8)  # what is known about a code: nothing, a value, or NULL
        self._has_nulls = False

    @property
    def nbytes(self) -> int:
        """The memory of the results."""
        return self._results.nbytes + self._state.nbytes

    def __call__(self, codes: Ints) -> tuple[Values, Bools | None]:
        """The results, 0 beneath NULL, and the mask of NULLs.

        Raises:
            EvaluationError: the function has no value for one of these codes.
        """
        if len(codes) == 0:
            return self._results[:0], None
        if len(codes) == 1:
            return self._one(codes.item())
        if int(codes.max()) >= len(self._state):
            self._grow(int(codes.max()) + 1)
        state = self._state[codes]
        if not state.all():
            self._compute(np.unique(codes[state == 0]).tolist())
            state = self._state[codes]
        return self._results[codes], state == 2 if self._has_nulls else None

    def _one(self, code: int) -> tuple[Values, Bools | None]:
        if code >= len(self._state):
            self._grow(code + 1)
        if not self._state[code]:
            self._compute([code])
        return self._results[code : code + 1], self._state[code : code + 1] == 2 if self._has_nulls else None

    def _grow(self, least: int) -> None:
        size = max(least, 2 * len(self._state), 64)
        results = np.zeros((size, 2) if self._is_wide else size, self._results.dtype)
        state = np.zeros(size, dtype=np.int8)
        results[: len(self._results)], state[: len(self._state)] = self._results, self._state
        self._results, self._state = results, state

    def _compute(self, codes: list[int]) -> None:
        for code in codes:
            word = self._function(self._values[code])
            if word is None:
                self._state[code] = 2
                self._has_nulls = True
                continue
            self._results[code] = _halves(word) if self._is_wide else word
            self._state[code] = 1


class _ArrowPool:
    """The values of one Python type as Arrow arrays by code; few arrays, of sizes that fall geometrically."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._type = pa.large_string() if kind is str else pa.large_binary()
        self._chunks: list[pa.Array] = []
        self._covered = 0

    def take(self, values: list[Value], codes: pa.Array) -> pa.Array:
        """The values at these codes."""
        if self._covered < len(values):
            new = [v if type(v) is self._kind else None for v in values[self._covered :]]
            self._chunks.append(pa.array(new, self._type))
            self._covered = len(values)
            while len(self._chunks) > 1 and 2 * len(self._chunks[-1]) >= len(self._chunks[-2]):
                self._chunks[-2:] = [pa.concat_arrays(self._chunks[-2:])]
        if len(self._chunks) == 1:
            return self._chunks[0].take(codes)
        taken = pa.chunked_array(self._chunks).take(codes)
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


def _joined(parts: Sequence[tuple[Ints, Bools | None]]) -> tuple[Ints, Bools | None]:
    if not parts:
        return np.zeros(0, dtype=np.int64), None
    codes = np.concatenate([codes for codes, _ in parts])
    if all(nulls is None for _, nulls in parts):
        return codes, None
    return codes, np.concatenate([np.zeros(len(c), dtype=np.bool_) if n is None else n for c, n in parts])


def _at(codes: Ints, indices: pa.Array, nulls: Bools | None) -> Ints:
    """The codes at Arrow indices, 0 at NULL."""
    if nulls is None:
        given: Ints = codes[indices.to_numpy()]
        return given
    if len(codes) == 0:
        return np.zeros(len(indices), dtype=np.int64)
    result: Ints = codes[indices.fill_null(0).to_numpy()]
    result[nulls] = 0
    return result


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else int(buffer.address)


def _halves(word: int) -> tuple[int, int]:
    low = word & (2**64 - 1)
    return low - 2**64 if low >= 2**63 else low, word >> 64


def _positive_zeros(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """The tuple with -0.0 as 0.0, at any depth."""

    def positive(value: Value) -> Value:
        if isinstance(value, tuple):
            return _positive_zeros(value)
        return 0.0 if isinstance(value, float) and value == 0 else value

    return tuple([positive(v) for v in values])
