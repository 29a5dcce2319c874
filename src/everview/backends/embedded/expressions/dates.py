"""Functions of dates on columns of day numbers; NumPy's datetime64 knows the calendar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import UNBOUNDED, Cells, outside
from everview.backends.embedded.expressions.step import Builder, Compiled, Native
from everview.backends.embedded.vectors import Ints
from everview.relational.expressions import Call
from everview.relational.functions.civil import DAY_NAMES, MONTH_NAMES
from everview.relational.functions.dates import TRUNCATIONS
from everview.relational.types import DATE, INT32, INT64, YEAR_MONTH_INTERVAL, integer_bounds, is_integral

_LOW, _HIGH = integer_bounds(INT32)
_TABLE_START, _TABLE_END = -25_567, 47_847
_MANY: Final = 256
_MICROS_PER_DAY: Final = 86_400_000_000


def months_of(days: Ints) -> Ints:
    """The number of the month, 0 for January 1970."""
    return np.ascontiguousarray(days).view("M8[D]").astype("M8[M]").view(np.int64)


def first_days(months: Ints) -> Ints:
    """The first day of each month."""
    return months.view("M8[M]").astype("M8[D]").view(np.int64)


def years_of(days: Ints) -> Ints:
    """The calendar year."""
    return np.ascontiguousarray(days).view("M8[D]").astype("M8[Y]").view(np.int64) + 1970


def _first_of_year(days: Ints) -> Ints:
    return np.ascontiguousarray(days).view("M8[D]").astype("M8[Y]").astype("M8[D]").view(np.int64)


def _weekday(days: Ints) -> Ints:
    return (days + 3) % 7


def _thursday(days: Ints) -> Ints:
    return days - _weekday(days) + 3


def _week_of_year(days: Ints) -> Ints:
    thursday = _thursday(days)
    return (thursday - _first_of_year(thursday)) // 7 + 1


def _last_day(days: Ints) -> Ints:
    return first_days(months_of(days) + 1) - 1


def plus_months(days: Ints, months: Ints) -> Ints:
    """The same day of another month, or that month's last."""
    month = months_of(days)
    day = days - first_days(month)
    target = month + months
    first = first_days(target)
    return np.minimum(first + day, first_days(target + 1) - 1)


def truncated(days: Ints, unit: str) -> Ints:
    """The first day of the week, month, quarter or year."""
    match unit:
        case "week":
            return days - _weekday(days)
        case "month":
            return first_days(months_of(days))
        case "quarter":
            return first_days(months_of(days) // 3 * 3)
        case _:
            return _first_of_year(days)


class _Tabulated:
    """A function of days, looked up for the days of 1900 to 2100 where there are many."""

    def __init__(self, of: Callable[[Ints], Ints]) -> None:
        self._of = of
        self._table: Ints | None = None

    def __call__(self, days: Ints) -> Ints:
        if len(days) < _MANY or outside(days, _TABLE_START, _TABLE_END - 1) is not None:
            return self._of(days)
        if self._table is None:
            self._table = self._of(np.arange(_TABLE_START, _TABLE_END))
        result: Ints = self._table[days - _TABLE_START]
        return result


def _part(of: Callable[[Ints], Ints], bound: int = 2**31) -> Builder:
    tabulated = _Tabulated(of)

    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
        return Native(lambda a: Cells(tabulated(a.values), None, bound), bound=bound) if args[0].type == DATE else None

    return build


def _itself(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Compiled:
    return args[0].retyped(call.type)


def _name(names: tuple[str, ...], of: Callable[[Ints], Ints]) -> Builder:
    def build(call: Call, args: tuple[Compiled, ...], dictionary: Dictionary) -> Native | None:
        if args[0].type != DATE:
            return None
        codes = dictionary.encode([name[:3] for name in names])
        return Native(lambda a: Cells(codes[of(a.values)]))

    return build


def _wrapped(values: Ints) -> Ints:
    return values.astype(np.int32).astype(np.int64)


def _day_sum(operation: Callable[[Ints, Ints], Ints]) -> Builder:
    """Sums of days, which Spark lets wrap around."""

    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
        if not all(a.type == DATE or (is_integral(a.type) and a.type != INT64) for a in args):
            return None

        def kernel(a: Cells, b: Cells) -> Cells:
            values = operation(a.values, b.values)
            return Cells(values if outside(values, _LOW, _HIGH) is None else _wrapped(values), None, 2**31)

        return Native(kernel, bound=2**31)

    return build


def _subtract_dates(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if not all(a.type == DATE for a in args):
        return None
    return Native(
        lambda a, b: Cells(
            (a.values - b.values) * _MICROS_PER_DAY,
            suspects=outside(a.values - b.values, -(2**26), 2**26),  # farther apart than 183,000 years
        ),
    )


def _add_months(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    days, months = (a.type for a in args)
    if days != DATE or not (months == YEAR_MONTH_INTERVAL or is_integral(months)):
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        odd = outside(b.values, _LOW, _HIGH)
        shift = b.values if odd is None else np.clip(b.values, _LOW, _HIGH)
        values = plus_months(a.values, shift)
        wrong = outside(values, _LOW, _HIGH)
        if odd is not None:
            wrong = odd if wrong is None else wrong | odd
        return Cells(values, None, 2**31, wrong)

    return Native(kernel, can_fail=True, bound=2**31)


def _trunc(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    form = args[1].literal
    if args[0].type != DATE or form is None or form.value is None or form.value.upper() not in TRUNCATIONS:
        return None
    unit = TRUNCATIONS[form.value.upper()]
    return Native(lambda a, _form: Cells(truncated(a.values, unit), None, 2**32), bound=UNBOUNDED)


NATIVE: Final[dict[str, Builder]] = {
    "year": _part(years_of),
    "quarter": _part(lambda d: months_of(d) % 12 // 3 + 1, 4),
    "month": _part(lambda d: months_of(d) % 12 + 1, 12),
    "day": _part(lambda d: d - first_days(months_of(d)) + 1, 31),
    "dayofyear": _part(lambda d: d - _first_of_year(d) + 1, 366),
    "dayofweek": _part(lambda d: (d + 4) % 7 + 1, 7),
    "weekday": _part(_weekday, 6),
    "weekofyear": _part(_week_of_year, 53),
    "yearofweek": _part(lambda d: years_of(_thursday(d))),
    "unix_date": _itself,
    "date_from_unix_date": _itself,
    "dayname": _name(DAY_NAMES, _weekday),
    "monthname": _name(MONTH_NAMES, lambda d: months_of(d) % 12),
    "date_add": _day_sum(np.add),
    "date_sub": _day_sum(np.subtract),
    "datediff": _day_sum(np.subtract),
    "subtract_dates": _subtract_dates,
    "add_months": _add_months,
    "date_add_interval": _add_months,
    "last_day": _part(_last_day),
    "trunc": _trunc,
}
