from __future__ import annotations

import pytest

from everview.errors import EvaluationError, UnsupportedQuery
from everview.relational.functions.civil import civil_from_days, days_from_civil
from everview.relational.functions.zones import zone_named
from everview.relational.types import (
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT32,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
)
from tests.unit.relational.functions.evaluation import call, cast

_NEW_YORK = "America/New_York"
_HOUR = 3_600_000_000


def _instant(text: str, zone: str = "UTC") -> int:
    return int(cast(text, STRING, TIMESTAMP, zone=zone))


@pytest.mark.parametrize("day", [-719_528, -1, 0, 59, 11_016, 2_932_896, 10_000_000, -10_000_000])
def test_civil_calendar_is_a_bijection(day: int) -> None:
    """A day number becomes a date and comes back, beyond Python's years too."""
    assert days_from_civil(*civil_from_days(day)) == day


def test_month_arithmetic_stops_at_the_end_of_the_month() -> None:
    """January 31 plus one month is the last of February."""
    january = days_from_civil(2024, 1, 31)
    assert call("add_months", (january, DATE), (1, INT32)) == days_from_civil(2024, 2, 29)
    assert call("date_add_interval", (january, DATE), (13, YEAR_MONTH_INTERVAL)) == days_from_civil(2025, 2, 28)


def test_local_time_in_a_gap_moves_forward() -> None:
    """02:30 on the day the clocks go forward is 03:30."""
    assert _instant("2024-03-10 02:30:00", _NEW_YORK) == _instant("2024-03-10 03:30:00", _NEW_YORK)


def test_local_time_in_an_overlap_is_the_earlier() -> None:
    """01:30 on the day the clocks go back is the summer time one."""
    assert _instant("2024-11-03 01:30:00", _NEW_YORK) == _instant("2024-11-03 05:30:00")


def test_a_day_across_a_clock_change_keeps_the_local_time() -> None:
    """One day moves the calendar, 24 hours of a plain interval too, an hour the clock."""
    before = _instant("2024-03-09 12:00:00", _NEW_YORK)
    after = call("timestamp_add_interval", (before, TIMESTAMP), (24 * _HOUR, DAY_TIME_INTERVAL), zone=_NEW_YORK)
    assert after == before + 23 * _HOUR
    assert (
        call("timestamp_add_interval", (before, TIMESTAMP), (_HOUR, DAY_TIME_INTERVAL), zone=_NEW_YORK)
        == before + _HOUR
    )


def test_zone_rules_hold_beyond_pythons_years() -> None:
    """Summer time repeats every 400 years, and before the first rule there is local mean time."""
    zone = zone_named(_NEW_YORK)
    assert zone.offset_at(days_from_civil(20_024, 7, 1) * 24 * _HOUR) == -4 * _HOUR
    assert zone.offset_at(days_from_civil(-500, 7, 1) * 24 * _HOUR) == -(4 * 3600 + 56 * 60 + 2) * 1_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024", "2024-01-01"),
        (" 2024-2-9 ", "2024-02-09"),
        ("2024-02-29T anything", "2024-02-29"),
        ("+12024-01-01", "+12024-01-01"),
    ],
)
def test_dates_are_read_in_sparks_forms(text: str, expected: str) -> None:
    """The year alone, one-digit months, and anything after a blank or T."""
    assert cast(cast(text, STRING, DATE), DATE, STRING) == expected


@pytest.mark.parametrize("text", ["", "2024-02-30", "24-01-01", "2024/01/01", "2024-01-01x"])
def test_other_text_is_no_date(text: str) -> None:
    """What is no date raises, and is NULL under TRY_CAST."""
    assert cast(text, STRING, DATE, is_try=True) is None
    with pytest.raises(EvaluationError) as error:
        cast(text, STRING, DATE)
    assert error.value.condition == "CAST_INVALID_INPUT"


def test_timestamps_are_written_without_trailing_zeros() -> None:
    """Whole seconds have no fraction."""
    assert cast(1_500_000, TIMESTAMP_NTZ, STRING) == "1970-01-01 00:00:01.5"
    assert cast(0, TIMESTAMP, STRING, zone=_NEW_YORK) == "1969-12-31 19:00:00"


def test_patterns_write_and_read_back() -> None:
    """A pattern reads what it wrote."""
    instant = _instant("2024-02-29 13:04:05.678")
    pattern = ("yyyy-MM-dd hh:mm:ss.SSS a", STRING)
    text = call("date_format", (instant, TIMESTAMP), pattern, zone="UTC")
    assert text == "2024-02-29 01:04:05.678 PM"
    assert call("to_timestamp", (text, STRING), pattern, zone="UTC") == instant


@pytest.mark.parametrize("pattern", ["YYYY", "e", "yyyy-MM-dd z", "MMMMM"])
def test_unknown_pattern_letters_are_refused_when_bound(pattern: str) -> None:
    """Letters that we do not have refuse the query."""
    with pytest.raises(UnsupportedQuery):
        call("date_format", (0, TIMESTAMP), (pattern, STRING))


def test_months_between() -> None:
    """Ends of months are whole months apart; else days count as 31sts."""
    end, start = _instant("1997-02-28 10:30:00"), _instant("1996-10-30 00:00:00")
    assert call("months_between", (end, TIMESTAMP), (start, TIMESTAMP), zone="UTC") == 3.94959677
    assert call("timestamp_seconds", (float("nan"), FLOAT64)) is None
