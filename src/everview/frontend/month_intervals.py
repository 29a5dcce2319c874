"""Intervals of months on their way to Spark and back: PySpark converts none to Arrow or from it.

They cross as numbers of months, at any depth. Law: ``as_intervals(as_numbers(c, t), t)`` is ``c``.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from everview.relational.types import INT32, Array, DataType, Map, Struct, YearMonthInterval, holds


def has_months(data_type: DataType) -> bool:
    """Whether values of the type have intervals of months in them."""
    return holds(data_type, YearMonthInterval)


def with_numbers(data_type: DataType) -> DataType:
    """The type with a number in the place of every interval of months."""
    match data_type:
        case _ if not has_months(data_type):
            return data_type
        case Array(element, contains_null):
            return Array(with_numbers(element), contains_null)
        case Map(key, value, contains_null):
            return Map(with_numbers(key), with_numbers(value), contains_null)
        case Struct(names, parts):
            return Struct(names, tuple(with_numbers(p) for p in parts))
        case YearMonthInterval():
            return INT32
        case _:
            return data_type


def as_numbers(column: Column, data_type: DataType) -> Column:
    """The value of this type with every interval of months as the number of its months."""

    def months(interval: Column) -> Column:
        whole = interval.cast("interval year to month")  # others have no years, or no months, to extract
        return F.extract(F.lit("YEAR"), whole) * 12 + F.extract(F.lit("MONTH"), whole)

    return _converted(column, data_type, months)


def as_intervals(column: Column, data_type: DataType) -> Column:
    """What :func:`as_numbers` leaves of a value of this type, as the value."""
    return _converted(column, data_type, lambda c: F.make_ym_interval(F.lit(0), c))


def _converted(column: Column, data_type: DataType, convert: Callable[[Column], Column]) -> Column:
    if not has_months(data_type):
        return column
    match data_type:
        case Array(element):
            return F.transform(column, lambda e: _converted(e, element, convert))
        case Map(key, value):

            def entry(e: Column) -> Column:
                return F.struct(_converted(e["key"], key, convert), _converted(e["value"], value, convert))

            return F.map_from_entries(F.transform(F.map_entries(column), entry))
        case Struct(names, parts):
            listed = [_converted(column.getField(n), p, convert).alias(n) for n, p in zip(names, parts, strict=True)]
            return F.when(column.isNotNull(), F.struct(*listed))
        case _:
            return convert(column)
