"""The engine's dictionary: one code for each distinct string, binary, array and struct value.

Codes are positive and dense; code 0 lies beneath NULL and stands for no value. Equal values have equal codes, values of
different Python types different ones (``"a"`` and ``b"a"``, ``(1,)`` and ``(1.0,)``). Inside arrays and structs, where Spark
makes no difference between -0.0 and 0.0, the dictionary keeps 0.0. The dictionary does not know who uses a code: the engine
tells it from time to time (``keep_only``, ``code_sweep.py``), and the other codes are given to later values.

Strings and binaries are bytes in a ``StringPool``: between Arrow and codes no Python object is made for them. Arrays and
structs are Python tuples.

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

from everview.backends.embedded.dictionary_memo import CodeFunction, MemoisedFunction, value_by_value
from everview.backends.embedded.dictionary_order import OrderLabels, tuple_key
from everview.backends.embedded.state.memory import address_of, address_of_buffer
from everview.backends.embedded.state.string_pool import OWN, StringPool
from everview.backends.embedded.vectors import Bools, Bytes, Ints
from everview.relational.arrow import arrow_type, column_to_arrow, data_type_from_arrow, is_arrow_list, rows_from_arrow
from everview.relational.nodes import Field
from everview.relational.types import Binary, DataType, Value

_STRING, _BINARY = 1, 2
"""Kinds of strings in the pool; tuples have the kind OWN."""
_LARGEST_OFFSET: Final = 2**31 - 1
_FEW: Final = 16
"""Up to so many values, one look-up each is faster than Arrow's set-up."""
_REMEMBERED_DICTIONARIES: Final = 32
_REMEMBERED_STRINGS: Final = 4096
_LAYOUTS: Final[dict[Any, tuple[int, int]]] = {
    pa.string(): (_STRING, 4),
    pa.large_string(): (_STRING, 8),
    pa.binary(): (_BINARY, 4),
    pa.large_binary(): (_BINARY, 8),
}
"""The kind of an Arrow type's values, and the bytes of its offsets."""


class Dictionary:
    """Values by code and codes by value."""

    def __init__(self) -> None:
        self._pool = StringPool(2)
        self._recent: dict[str | bytes, int] = {}
        self._tuples: dict[int, tuple[Value, ...]] = {}
        self._tuple_codes: dict[str, int] = {}
        self._tuple_bytes = 0
        self._orders: dict[int, OrderLabels] = {}
        self._seen_dictionaries: dict[Hashable, tuple[pa.Array, Ints]] = {}
        self._memos: weakref.WeakValueDictionary[Hashable, MemoisedFunction] = weakref.WeakValueDictionary()
        self.order_epoch = 0
        """Grows when labels change: keys that ``order_keys`` returned under another epoch are void."""

    def __len__(self) -> int:
        """The greatest code."""
        return len(self._pool)

    @property
    def count(self) -> int:
        """The number of values."""
        return self._pool.count + len(self._tuples)

    @property
    def string_bytes(self) -> int:
        """The bytes of strings and binaries alone."""
        return self._pool.used

    @property
    def nbytes(self) -> int:
        """About how much memory the values and their codes take."""
        tables = sys.getsizeof(self._tuples) + sys.getsizeof(self._tuple_codes)
        return self._pool.nbytes + self._tuple_bytes + tables

    @property
    def heap(self) -> Bytes:
        """The bytes of all strings and binaries, for kernels; replaced when it grows."""
        return self._pool.heap

    @property
    def spans(self) -> Ints:
        """Per code two words: where its bytes begin and where they end; replaced when it grows."""
        return self._pool.spans

    def code_of(self, value: Value) -> int:
        """The code of one value, made if it is new; 0 for None."""
        if value is None:
            return 0
        if isinstance(value, tuple):
            return self._code_of_tuple(value)
        assert isinstance(value, str | bytes), value
        code = self._recent.get(value)  # "a" and b"a" are different keys
        if code is None:
            is_text = isinstance(value, str)
            data = pa.py_buffer(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)
            ends = np.array([0, data.size], dtype=np.int64)
            kind = _STRING if is_text else _BINARY
            code = int(self._pool.encode(kind, address_of(ends), 8, address_of_buffer(data), 0, 0, 1)[0][0])
            if len(self._recent) >= _REMEMBERED_STRINGS:
                self._recent.clear()
            self._recent[value] = code
        return code

    def _code_of_tuple(self, value: tuple[Value, ...]) -> int:
        value = _positive_zeros(value)
        key = repr(value)  # equal for equal values of one type, and unlike == it tells 1, 1.0, True and 1.00 apart
        code = self._tuple_codes.get(key)
        if code is None:
            code = self._tuple_codes[key] = self._pool.reserve_code()
            self._tuples[code] = value
            self._tuple_bytes += sys.getsizeof(value) + sys.getsizeof(key)
        return code

    def value_of(self, code: int) -> Value:
        """The value of one code; None for 0."""
        if code == 0:
            return None
        kind = self._pool.kind_of(code)
        if kind == OWN:
            return self._tuples[code]
        data = self._pool.bytes_of(code)
        return data.decode("utf-8", "surrogatepass") if kind == _STRING else data

    def encode(self, values: Iterable[Value]) -> Ints:
        """The codes of values; 0 for None."""
        given = list(values)
        if len(given) > _FEW and all(type(v) is str or v is None for v in given):
            try:
                return self.encode_arrow(pa.array(given, pa.large_string()))[0]
            except UnicodeEncodeError:  # a lone surrogate, which Arrow refuses
                pass
        return np.array([self.code_of(v) for v in given], dtype=np.int64)

    def encode_text(self, offsets: Ints, data: Bytes) -> Ints:
        """The codes of UTF-8 strings that lie side by side; there is one more offset than strings."""
        return self._pool.encode(_STRING, address_of(offsets), 8, address_of(data), 0, 0, len(offsets) - 1)[0]

    def decode(self, codes: Ints) -> list[Value]:
        """The values of codes; None for 0."""
        return [self.value_of(c) for c in codes.tolist()]

    def encode_arrow(self, array: pa.Array | pa.ChunkedArray) -> tuple[Ints, Bools | None]:
        """The codes of an Arrow column and the mask of its NULLs (None where there are none).

        Of a dictionary-encoded column, only a dictionary that was not seen before is read. Lists and structs take a step of
        Python a row, other columns none.
        """
        if isinstance(array, pa.ChunkedArray):
            if array.num_chunks != 1:
                return _joined([self.encode_arrow(chunk) for chunk in array.chunks])
            array = array.chunk(0)
        layout = _LAYOUTS.get(array.type)
        if layout is not None:
            return self._encode_strings(array, *layout)
        if pa.types.is_dictionary(array.type):
            return self._encode_dictionary(array)
        if _is_nested(array.type):
            nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
            field = Field("value", data_type_from_arrow(array.type), True)
            rows = rows_from_arrow(pa.table([array], names=["value"]), (field,))
            return self.encode([value for (value,) in rows]), nulls
        wide = pa.large_string() if pa.types.is_string_view(array.type) else pa.large_binary()
        return self.encode_arrow(array.cast(wide))

    def _encode_strings(self, array: pa.Array, kind: int, width: int) -> tuple[Ints, Bools | None]:
        count = len(array)
        if not count:
            return np.zeros(0, dtype=np.int64), None
        validity, offsets, data = array.buffers()
        has_nulls = validity is not None and array.null_count > 0
        codes, nulls = self._pool.encode(
            kind,
            address_of_buffer(offsets),
            width,
            address_of_buffer(data),
            address_of_buffer(validity) if has_nulls else 0,
            array.offset,
            count,
        )
        return codes, nulls if has_nulls else None

    def _encode_dictionary(self, array: pa.DictionaryArray) -> tuple[Ints, Bools | None]:
        dictionary = array.dictionary
        key = (str(dictionary.type), dictionary.offset, len(dictionary), *map(_address, dictionary.buffers()))
        known = self._seen_dictionaries.get(key)
        if known is None and len(array) < len(dictionary):
            return self.encode_arrow(array.dictionary_decode())  # a short slice does not pay for the whole dictionary
        if known is None:
            known = dictionary, self.encode_arrow(dictionary)[0]
            while len(self._seen_dictionaries) >= _REMEMBERED_DICTIONARIES:
                self._seen_dictionaries.pop(next(iter(self._seen_dictionaries)))
            self._seen_dictionaries[key] = known  # keeps the array too: its buffers' addresses are the key
        nulls = array.indices.is_null().to_numpy(zero_copy_only=False) if array.indices.null_count else None
        codes = _at(known[1], array.indices, nulls)
        if dictionary.null_count:
            nulls = codes == 0
        return codes, nulls

    def decode_arrow(self, codes: Ints, nulls: Bools | None, data_type: DataType) -> pa.Array:
        """The values as an Arrow array of their type; NULL under the mask."""
        arrow = arrow_type(data_type)
        if _is_nested(arrow):
            distinct, inverse = np.unique(codes, return_inverse=True)
            return column_to_arrow(self.decode(distinct), data_type).take(pa.array(inverse))
        offsets, data = self._pool.decode(np.ascontiguousarray(codes))
        valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
        kind, width = _LAYOUTS.get(arrow, (_STRING, 0))
        if width == 4 and len(data) <= _LARGEST_OFFSET:
            offsets = offsets.astype(np.int32)
            return pa.Array.from_buffers(arrow, len(codes), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
        large = pa.large_binary() if kind == _BINARY or pa.types.is_binary_view(arrow) else pa.large_string()
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(large, len(codes), buffers).cast(arrow)

    def order_keys(self, codes: Ints) -> Ints:
        """An integer for each code, such that integers of values of one type compare as Spark compares the values.

        The integers hold as long as ``order_epoch`` stays what it was before the call: read it after the call, and
        when it has changed, ask again for the keys that you keep. It changes when a gap between labels is exhausted.
        """
        distinct, inverse = np.unique(codes, return_inverse=True)
        present = distinct[1:] if len(distinct) and distinct[0] == 0 else distinct
        if not len(present):
            return np.zeros(len(codes), dtype=np.int64)
        kinds = self._pool.kinds_of(present)
        kind = int(kinds[0])
        assert bool((kinds == kind).all()), "values of different types have no order"
        order = self._orders.setdefault(kind, OrderLabels())
        key = tuple_key if kind == OWN else None
        self.order_epoch += order.insert(present, self.decode, key)
        labels: Ints = order.labels[distinct][inverse]
        return labels

    def code_of_label(self, label: int, text: DataType) -> int:
        """The code of the string or binary to which ``order_keys`` has given a label, in the present epoch."""
        return self._orders[_BINARY if isinstance(text, Binary) else _STRING].code_of(label)

    def memo(
        self,
        function: Callable[[Value], Any],
        dtype: npt.DTypeLike = np.int64,
        *,
        wide: bool = False,
        key: Hashable = None,
        bulk: CodeFunction | None = None,
    ) -> MemoisedFunction:
        """A function of a value (None for code 0) as an array look-up by code.

        Args:
            function: From a value to a word: an integer, float or boolean, or None for NULL. It may raise EvaluationError.
            dtype: The type of the words.
            wide: Whether a word is an integer of 128 bits.
            key: Equal keys mean equal functions, which then share one memo for as long as anyone holds it.
            bulk: The same function of whole columns of distinct codes, if there is a faster way to compute it.
        """
        known = self._memos.get(key) if key is not None else None
        if known is None:
            word_type = np.dtype(dtype)
            compute = bulk or value_by_value(function, self.decode, word_type, wide=wide)
            known = MemoisedFunction(compute, word_type, wide=wide)
            if key is not None:
                self._memos[key] = known
        return known

    def keep_only(self, is_used: Bools) -> None:
        """Takes back the codes that are not under the mask, which has a place for each up to the greatest.

        What was computed by code is forgotten, also for codes that stay: a result may be a code that nobody else uses.

        Raises:
            MemoryError: nothing has been taken back.
        """
        self._recent.clear()
        self._seen_dictionaries.clear()
        for memo in list(self._memos.values()):
            memo.forget()
        gone = self._pool.keep_only(is_used)
        for code in gone.tolist() if self._tuples else ():
            value = self._tuples.pop(code, None)
            if value is not None:
                key = repr(value)
                del self._tuple_codes[key]
                self._tuple_bytes -= sys.getsizeof(value) + sys.getsizeof(key)
        for order in self._orders.values():
            order.forget(gone)


def _is_nested(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_struct(arrow) or pa.types.is_map(arrow) or is_arrow_list(arrow))


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


def _positive_zeros(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """The tuple with -0.0 as 0.0, at any depth."""

    def positive(value: Value) -> Value:
        if isinstance(value, tuple):
            return _positive_zeros(value)
        return 0.0 if isinstance(value, float) and value == 0 else value

    return tuple([positive(v) for v in values])
