"""Columns of the embedded engine: fixed-width NumPy arrays, and batches of them with weights.

=====================================================  ======  =========================================
type                                                   kind    values
=====================================================  ======  =========================================
boolean, integers, date, timestamps, intervals         INT     int64[n]
decimal of precision up to 18                          INT     int64[n], unscaled
float, double                                          FLOAT   float64[n]
decimal of precision above 18                          WIDE    int64[n, 2]: low word, high word (two's complement)
string, binary, array, struct, map                     CODE    int64[n], codes of the engine's dictionary
=====================================================  ======  =========================================

NULL is a set bit in ``nulls`` and the value 0 beneath it, so that equal rows are equal words. A batch's weights are never 0
when it leaves an operator consolidated; between operators a row may occur more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state.memory import address_of
from everview.relational.types import (
    Array,
    Binary,
    DataType,
    DayTimeInterval,
    Decimal,
    Float32,
    Float64,
    Int64,
    Map,
    Row,
    String,
    Struct,
    Variant,
)

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]
AnyArray: TypeAlias = npt.NDArray[Any]

NARROW_PRECISION = 18
"""The most digits a decimal can have and still fit 64 bits."""


class Kind(Enum):
    """How the values of a type lie in memory."""

    INT = "int"
    FLOAT = "float"
    WIDE = "wide"
    CODE = "code"


_KINDS: dict[type[DataType], Kind] = {
    Float32: Kind.FLOAT,
    Float64: Kind.FLOAT,
    String: Kind.CODE,
    Binary: Kind.CODE,
    Array: Kind.CODE,
    Struct: Kind.CODE,
    Variant: Kind.CODE,
    Map: Kind.CODE,
}


def kind_of(data_type: DataType) -> Kind:
    """The physical kind of a type."""
    if isinstance(data_type, Decimal):
        return Kind.INT if data_type.precision <= NARROW_PRECISION else Kind.WIDE
    return _KINDS.get(type(data_type), Kind.INT)


def words_of(data_type: DataType) -> int:
    """How many 64-bit words a value of the type takes in a key."""
    return 2 if kind_of(data_type) is Kind.WIDE else 1


@dataclass(slots=True)
class Vector:
    """One column: ``values`` by the table above, ``nulls`` a mask or None where no value is NULL.

    Nobody changes a vector or a batch. That they are not frozen saves most of the time it takes to make one, and a transaction
    makes hundreds.
    """

    type: DataType
    values: AnyArray
    nulls: Bools | None = None
    place: int | None = None
    """Where the values lie in memory, if whoever made them knows: asking NumPy takes a microsecond."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def address(self) -> int:
        """Where the values lie in memory; they must be contiguous."""
        known = self.place
        if known is None:
            known = self.place = address_of(self.values)
        return known

    def take(self, rows: Ints | Bools) -> Vector:
        """The values at these positions (or under this mask)."""
        values = self.values
        if values.ndim == 1:
            taken = values[rows]
        elif rows.dtype == np.bool_:
            taken = values.compress(rows, axis=0)
        else:
            taken = values.take(rows, axis=0)  # ten times as fast as an index where rows are of several words
        return Vector(self.type, taken, None if self.nulls is None else self.nulls[rows])


_ONES: Final[Ints] = np.ones(1 << 14, dtype=np.int64)
_ONES_PLACE: Final[int] = address_of(_ONES)


def unit_weights(count: int) -> Ints:
    """The weights of so many inserts; nobody changes a batch's weights, so that all of them can be the same memory."""
    return _ONES[:count] if count <= len(_ONES) else np.ones(count, dtype=np.int64)


@dataclass(slots=True)
class Batch:
    """Rows with weights, column by column."""

    columns: tuple[Vector, ...]
    weights: Ints

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def weights_address(self) -> int:
        """Where the weights lie in memory; they must be contiguous. Any part of the ones is like their beginning."""
        return _ONES_PLACE if self.weights.base is _ONES else address_of(self.weights)

    def take(self, rows: Ints | Bools) -> Batch:
        """The rows at these positions (or under this mask)."""
        if rows.dtype == np.bool_:
            (rows,) = rows.nonzero()  # once for all columns
        return Batch(tuple(c.take(rows) for c in self.columns), self.weights[rows])

    def negated(self) -> Batch:
        """The change that undoes this one."""
        return Batch(self.columns, -self.weights)


class RowCount:
    """How many rows deltas had that have been computed, and how many deltas nobody has looked at so far."""

    __slots__ = ("rows", "unread")

    def __init__(self) -> None:
        self.rows = self.unread = 0


class DeferredBatch(Batch):
    """A batch that is computed when somebody looks at it; nobody pays for a delta that nobody reads.

    ``arriving`` gives the values of the one row that it inserts, where that is all it inserts and the row is at hand: enough
    to tell whether an expression over it fails, which must be known before the transaction commits, and for those who compare
    with it. ``held`` is how many words it holds on to until it is computed.
    """

    __slots__ = ("_compute", "_made", "arriving", "counter", "held")

    _compute: Callable[[], Batch] | None
    _made: Batch | None
    arriving: Callable[[], Row] | None
    counter: RowCount | None
    """To be told of its rows when they are computed."""

    def __init__(self, compute: Callable[[], Batch], held: int, arriving: Callable[[], Row] | None = None) -> None:
        self._compute = compute
        self._made = None
        self.held = held
        self.arriving = arriving
        self.counter = None

    @property
    def is_made(self) -> bool:
        """Whether it has been computed."""
        return self._made is not None

    @property
    def made(self) -> Batch:
        """The batch itself."""
        if self._made is None:
            assert self._compute is not None, "a batch is computed once"
            self._made, self._compute = self._compute(), None
            if self.counter is not None:
                self.counter.rows += len(self._made)
                self.counter.unread -= 1
        return self._made

    @property
    def columns(self) -> tuple[Vector, ...]:  # type: ignore[override]  # what a plain batch holds, computed
        """The columns."""
        return self.made.columns

    @property
    def weights(self) -> Ints:  # type: ignore[override]
        """The weights."""
        return self.made.weights

    def __len__(self) -> int:
        return len(self.made)


def computed(batch: Batch) -> Batch:
    """The batch itself, where it is one that is computed when somebody looks at it."""
    return batch.made if isinstance(batch, DeferredBatch) else batch


def words_held(batch: Batch) -> int:
    """How many words of memory a batch holds on to, roughly: strings are codes, and nothing is computed to find out."""
    if isinstance(batch, DeferredBatch) and not batch.is_made:
        return batch.held
    return len(batch.weights) * (1 + len(batch.columns))


@dataclass(frozen=True, slots=True)
class KeyLayout:
    """How the columns of a row lie side by side in a key: an int64 matrix [n, width], C-contiguous.

    A NULL is the smallest int64 in the column's last word, a value that no other type takes; only nullable bigints and
    day-time intervals use their whole range, and get a word of their own that says NULL. A float's word is its bit
    pattern with -0.0 as 0.0 (which leaves the pattern of -0.0 to NULL) and one NaN. Equal rows are thus equal keys, and
    the words of a column can be picked out of a key, which is what secondary indexes do.
    """

    types: tuple[DataType, ...]
    nullable: tuple[bool, ...]
    width: int = field(init=False, compare=False)
    """All words of a key; at least one, so that the empty key is a key too."""
    _places: tuple[_Place, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places, start = [], 0
        for data_type, nullable in zip(self.types, self.nullable, strict=True):
            flagged = nullable and isinstance(data_type, _WHOLE_RANGE)
            places.append(_Place(data_type, kind_of(data_type), start, nullable, flagged))
            start += words_of(data_type) + flagged
        object.__setattr__(self, "_places", tuple(places))
        object.__setattr__(self, "width", max(1, start))

    def words(self, columns: Sequence[int]) -> tuple[int, ...]:
        """The positions of these columns' words in a key."""
        return tuple(w for c in columns for w in self._places[c].words)

    def part(self, columns: Sequence[int]) -> KeyLayout:
        """The layout of these columns alone."""
        return KeyLayout(tuple(self.types[c] for c in columns), tuple(self.nullable[c] for c in columns))

    def pack(self, columns: Sequence[Vector], count: int) -> Ints:
        """The key matrix of ``count`` rows."""
        keys = np.zeros((count, self.width), dtype=np.int64)
        for place, column in zip(self._places, columns, strict=True):
            at = place.start
            if place.kind is Kind.WIDE:
                keys[:, at : at + 2] = column.values
                at += 1
            elif place.kind is Kind.FLOAT:
                keys[:, at] = canonical_floats(column.values).view(np.int64)
            else:
                keys[:, at] = column.values
            if column.nulls is None:
                continue
            if place.flagged:
                keys[:, at + 1] = column.nulls
            elif place.nullable:
                keys[column.nulls, at] = NULL_WORD
            else:
                assert not column.nulls.any(), "NULL in a column that cannot be NULL"
        return keys

    def unpack(self, keys: Ints) -> tuple[Vector, ...]:
        """The columns of a key matrix."""
        return self.pick(keys, range(len(self._places)))

    def pick(self, keys: Ints, columns: Sequence[int]) -> tuple[Vector, ...]:
        """Some columns of a key matrix."""
        out = []
        for place in (self._places[c] for c in columns):
            at = place.start
            if place.kind is Kind.WIDE:
                values: AnyArray = keys[:, at : at + 2].copy()
                at += 1
            elif place.kind is Kind.FLOAT:
                values = keys[:, at].copy().view(np.float64)
            else:
                values = keys[:, at].copy()
            nulls = None
            if place.nullable:
                nulls = keys[:, at + 1] != 0 if place.flagged else keys[:, at] == NULL_WORD
                if np.count_nonzero(nulls):  # several times as fast as ``any``
                    values[nulls] = 0
                else:
                    nulls = None
            out.append(Vector(place.type, values, nulls))
        return tuple(out)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a column lies in a key; ``flagged`` if a word of its own says NULL."""

    type: DataType
    kind: Kind
    start: int
    nullable: bool
    flagged: bool

    @property
    def words(self) -> range:
        return range(self.start, self.start + words_of(self.type) + self.flagged)


_WHOLE_RANGE = (Int64, DayTimeInterval)
NULL_WORD = np.iinfo(np.int64).min


def canonical_floats(values: AnyArray) -> npt.NDArray[np.float64]:
    """The floats with -0.0 as 0.0 and every NaN as the one with NumPy's bit pattern: equal floats, equal bits."""
    canonical = values + 0.0
    canonical[np.isnan(canonical)] = np.nan
    return canonical


def concatenate(batches: Sequence[Batch]) -> Batch:
    """The rows of all batches, which have equal types."""
    if len(batches) == 1:
        return batches[0]
    columns = tuple(_concatenate_columns(parts) for parts in zip(*(b.columns for b in batches), strict=True))
    return Batch(columns, np.concatenate([b.weights for b in batches]))


def _concatenate_columns(parts: Sequence[Vector]) -> Vector:
    values = np.concatenate([p.values for p in parts])
    if all(p.nulls is None for p in parts):
        return Vector(parts[0].type, values)
    masks = [np.zeros(len(p), dtype=np.bool_) if p.nulls is None else p.nulls for p in parts]
    return Vector(parts[0].type, values, np.concatenate(masks))


def empty_batch(types: Sequence[DataType]) -> Batch:
    """A batch without rows."""
    return Batch(tuple(Vector(t, empty_values(t, 0)) for t in types), np.zeros(0, dtype=np.int64))


def empty_values(data_type: DataType, count: int) -> AnyArray:
    """An array of zeros of the type's kind."""
    match kind_of(data_type):
        case Kind.WIDE:
            return np.zeros((count, 2), dtype=np.int64)
        case Kind.FLOAT:
            return np.zeros(count, dtype=np.float64)
        case _:
            return np.zeros(count, dtype=np.int64)
