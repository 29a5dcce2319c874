"""RANGE frames: the order value at which a frame begins or ends."""

from __future__ import annotations

from everview.relational.expressions import Call, Expression, Literal
from everview.relational.functions import function_named
from everview.relational.types import (
    DAY_TIME_INTERVAL,
    INT32,
    Date,
    Timestamp,
    TimestampNtz,
    YearMonthInterval,
)

_MICROS_PER_DAY = 86_400_000_000


def range_bound(value: Expression, offset: Expression, *, descending: bool, zone: str | None) -> Expression:
    """``value + offset`` in the direction of the order; a decimal sum may be wider than the value, so that it fits."""
    assert isinstance(offset, Literal), "a frame offset is a constant"
    signed = Literal(-offset.value if descending else offset.value, offset.type)
    match value.type:
        case Date() if signed.type == DAY_TIME_INTERVAL:
            return _call("date_add", value, Literal(signed.value // _MICROS_PER_DAY, INT32))
        case Date() if isinstance(signed.type, YearMonthInterval):
            return _call("date_add_interval", value, signed)
        case Date():
            return _call("date_add", value, signed)
        case Timestamp() | TimestampNtz():
            return _call("timestamp_add_interval", value, signed, zone)
        case _:
            return _call("+", value, signed)


def _call(name: str, value: Expression, offset: Expression, zone: str | None = None) -> Expression:
    return Call(name, (value, offset), function_named(name).result_type((value.type, offset.type)), zone)
