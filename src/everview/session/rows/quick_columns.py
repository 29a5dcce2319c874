"""Python values that users give, column by column, as Arrow arrays: pyarrow converts them where it does so exactly.

pyarrow takes more than a strict table may: 1.0 for an integer, bytes for text, a time without a zone as one in UTC, infinity
for a float that is too large. So a column goes this way only if the *set of Python types* in it shows that none of this can
happen, which takes one pass at the speed of C; times are looked at one by one. Contract: the array is exactly what
``convert_values`` would make of the values, or None. Then the exact code runs, and finds the row for the error message.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.relational.arrow import arrow_type, canonical_array
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    is_floating,
    is_integral,
)
from everview.session.rows.local_times import instants_of_array

REFUSALS: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What pyarrow raises for values that it does not convert."""
_INTEGERS: Final = frozenset({int, np.int8, np.int16, np.int32, np.int64})
_FLOATS: Final = frozenset({float, np.float64})
_TYPES: Final[dict[DataType, frozenset[type]]] = {
    BOOLEAN: frozenset({bool, np.bool_}),
    FLOAT32: _FLOATS,
    FLOAT64: _FLOATS | _INTEGERS,
    STRING: frozenset({str}),
    BINARY: frozenset({bytes}),
    DATE: frozenset({datetime.date}),
    TIMESTAMP: frozenset({datetime.datetime}),
    TIMESTAMP_NTZ: frozenset({datetime.datetime}),
    DAY_TIME_INTERVAL: frozenset({datetime.timedelta}),
}
_NONE: Final = frozenset({NoneType})
_LOCAL: Final = arrow_type(TIMESTAMP_NTZ)


@dataclass(frozen=True, slots=True)
class QuickColumn:
    """What pyarrow may convert for one column.

    Where the Python types do not say enough, ``accepts`` looks at the result, and ``fits`` at a single value: what fits is
    accepted, and needs nothing done to it.
    """

    data_type: DataType
    arrow: pa.DataType
    taken: frozenset[type]
    nullable: bool
    accepts: Callable[[Iterable[Any], pa.Array], bool] | None
    fits: Callable[[Any], bool] | None

    def convert(self, values: Sequence[Any]) -> pa.Array | None:
        """The values as an array, or None where the exact code must look at them."""
        if not are_among(self.taken, list(map(type, values))):
            return None
        return self._made(values, from_pandas=False)

    def convert_with_missing(self, values: Sequence[Any], missing: frozenset[type]) -> pa.Array | None:
        """The same for objects of a pandas column, where values of the types ``missing`` may stand for NULL."""
        if not are_among(self.taken | missing, list(map(type, values))):
            return None
        return self._made(values, from_pandas=True)

    def _made(self, values: Sequence[Any], from_pandas: bool) -> pa.Array | None:
        try:
            made = pa.array(values, self.arrow, from_pandas=from_pandas)
        except REFUSALS:
            return None
        if self.accepts is not None and not self.accepts(values, made):
            is_local = self.data_type == TIMESTAMP and _have_no_zones(values, made)
            return instants_of_array(pa.array(values, _LOCAL, from_pandas=from_pandas)) if is_local else None
        return canonical_array(made, self.data_type) if is_floating(self.data_type) else made


def are_among(wanted: frozenset[Any], found: list[Any]) -> bool:
    """Whether all that was found is wanted. Where it is all the same, as it mostly is, counting takes half of a set's time.

    >>> are_among(frozenset((int, str)), [int, str, int]), are_among(frozenset((int,)), [str, str]), are_among(frozenset(), [])
    (True, False, True)
    """
    is_one = bool(found) and found[0] in wanted and found.count(found[0]) == len(found)
    return is_one or wanted.issuperset(found)


def quick_column(data_type: DataType, nullable: bool) -> QuickColumn | None:
    """How pyarrow may convert a column of this type; None for nested types, whose values hide their Python types."""
    taken = _taken_by(data_type)
    if taken is None:
        return None
    accepts = _ACCEPTS.get(data_type)
    fits = _FITS.get(data_type)
    return QuickColumn(data_type, arrow_type(data_type), taken | _NONE if nullable else taken, nullable, accepts, fits)


def _taken_by(data_type: DataType) -> frozenset[type] | None:
    if isinstance(data_type, Decimal):
        return frozenset({decimal.Decimal, int})
    return _INTEGERS if is_integral(data_type) else _TYPES.get(data_type)


def _has_no_infinity(_values: Iterable[Any], made: pa.Array) -> bool:
    """A float too large for 32 bits has become infinity; one that was infinity before is left to the exact code too."""
    return not pc.any(pc.is_inf(made)).as_py()


def _have_zones(values: Iterable[Any], _made: pa.Array) -> bool:
    return all(getattr(v, "tzinfo", True) is not None for v in values)


def _have_no_zones(values: Iterable[Any], _made: pa.Array) -> bool:
    return all(getattr(v, "tzinfo", None) is None for v in values)


def _is_in_canonical_form(value: float) -> bool:
    """Whether it is neither NaN nor -0.0."""
    return value < 0.0 or value > 0.0 or (value == 0.0 and math.copysign(1.0, value) > 0.0)


def _stays_canonical(value: float) -> bool:
    """The same in 32 bits, and finite, said in round numbers."""
    return _LEAST < abs(value) < _MOST or (value == 0.0 and math.copysign(1.0, value) > 0.0)


def _has_zone(value: datetime.datetime) -> bool:
    return value.tzinfo is not None


def _has_no_zone(value: datetime.datetime) -> bool:
    return value.tzinfo is None


_LEAST, _MOST = 1e-37, 1e38
_FITS: Final[dict[DataType, Callable[[Any], bool]]] = {
    FLOAT32: _stays_canonical,
    FLOAT64: _is_in_canonical_form,
    TIMESTAMP: _has_zone,
    TIMESTAMP_NTZ: _has_no_zone,
}
_ACCEPTS: Final = {FLOAT32: _has_no_infinity, TIMESTAMP: _have_zones, TIMESTAMP_NTZ: _have_no_zones}
