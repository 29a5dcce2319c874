"""The proleptic Gregorian calendar over day numbers of any size; day 0 is 1970-01-01, a Thursday.

Python's own dates end at the years 1 and 9999; Spark's do not.
"""

from __future__ import annotations

from typing import Final

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_MINUTE: Final = 60 * MICROS_PER_SECOND
MICROS_PER_HOUR: Final = 60 * MICROS_PER_MINUTE
MICROS_PER_DAY: Final = 24 * MICROS_PER_HOUR
DAYS_PER_400_YEARS: Final = 146_097
_DAYS_TO_1970: Final = 719_468  # from 0000-03-01, where the year of the formulas below starts

MONTH_NAMES: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def is_leap(year: int) -> bool:
    """Whether February has 29 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """The number of days of a month."""
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def days_from_civil(year: int, month: int, day: int) -> int:
    """The number of a day that exists.

    >>> days_from_civil(2000, 3, 1)
    11017
    """
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * DAYS_PER_400_YEARS + day_of_era - _DAYS_TO_1970


def civil_from_days(days: int) -> tuple[int, int, int]:
    """The year, month and day of a day number.

    >>> civil_from_days(-1)
    (1969, 12, 31)
    """
    era, day_of_era = divmod(days + _DAYS_TO_1970, DAYS_PER_400_YEARS)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def is_valid_date(year: int, month: int, day: int) -> bool:
    """Whether such a day exists."""
    return 1 <= month <= 12 and 1 <= day <= days_in_month(year, month)


def plus_months(days: int, months: int) -> int:
    """The same day of another month, or that month's last.

    >>> civil_from_days(plus_months(days_from_civil(2024, 1, 31), 1))
    (2024, 2, 29)
    """
    year, month, day = civil_from_days(days)
    year, index = divmod(year * 12 + month - 1 + months, 12)
    return days_from_civil(year, index + 1, min(day, days_in_month(year, index + 1)))


def weekday(days: int) -> int:
    """The day of the week: 0 is Monday, 6 is Sunday."""
    return (days + 3) % 7


def day_of_year(days: int) -> int:
    """The day's number in its year, from 1."""
    year, _, _ = civil_from_days(days)
    return days - days_from_civil(year, 1, 1) + 1


def iso_week(days: int) -> tuple[int, int]:
    """The year and the number of the ISO week: the week belongs to the year of its Thursday."""
    thursday = days - weekday(days) + 3
    year, _, _ = civil_from_days(thursday)
    return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1
