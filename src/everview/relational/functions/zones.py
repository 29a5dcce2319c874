"""Time zones: from instants to local times and back, as java.time does it.

A local time that a clock change skips moves forward by the length of the gap; one that occurs twice means the earlier
instant, unless a preferred offset says otherwise. Beyond the years that Python can handle, the rules of the time zone
repeat every 400 years, as the calendar does, and before the first transition the offset is constant.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from everview.errors import EvaluationError
from everview.relational.expressions import Call, Cast
from everview.relational.functions.civil import DAYS_PER_400_YEARS, MICROS_PER_DAY, MICROS_PER_SECOND

_EPOCH: Final = datetime(1970, 1, 1)
_CYCLE: Final = DAYS_PER_400_YEARS * MICROS_PER_DAY
_FIRST: Final = (datetime(2, 1, 1) - _EPOCH) // timedelta(microseconds=1)
_LAST: Final = (datetime(9998, 1, 1) - _EPOCH) // timedelta(microseconds=1)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2}))?(?::?(\d{2}))?")
_SHORT_IDS: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00",
    "MST": "-07:00",
    "HST": "-10:00",
}


class Zone(ABC):
    """A time zone over microseconds since 1970."""

    name: str

    @abstractmethod
    def offset_at(self, instant: int) -> int:
        """What to add to an instant to get the local time, in microseconds."""

    @abstractmethod
    def offsets_of(self, local: int) -> tuple[int, int]:
        """The offsets before and after the clock change around a local time; equal when there is none."""

    def to_local(self, instant: int) -> int:
        """The local time of an instant."""
        return instant + self.offset_at(instant)

    def from_local(self, local: int, preferred_offset: int | None = None) -> int:
        """The instant of a local time."""
        before, after = self.offsets_of(local)
        if preferred_offset == after < before:
            return local - after
        return local - before

    def start_of_day(self, day: int) -> int:
        """The first instant of a day."""
        midnight = day * MICROS_PER_DAY
        before, after = self.offsets_of(midnight)
        if before >= after:
            return midnight - before
        # In a gap the day starts with the clock change: the instant from which the later offset holds.
        low, high = midnight - after, midnight - before
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.offset_at(middle) == after else (middle + 1, high)
        return low


class _FixedZone(Zone):
    def __init__(self, name: str, offset: int) -> None:
        self.name = name
        self.offset = offset

    def offset_at(self, instant: int) -> int:
        return self.offset

    def offsets_of(self, local: int) -> tuple[int, int]:
        return self.offset, self.offset


class _RegionZone(Zone):
    def __init__(self, name: str, region: ZoneInfo) -> None:
        self.name = name
        self.region = region

    def offset_at(self, instant: int) -> int:
        moment = (_EPOCH + timedelta(microseconds=_near(instant))).replace(tzinfo=UTC)
        return _micros(moment.astimezone(self.region).utcoffset())

    def offsets_of(self, local: int) -> tuple[int, int]:
        moment = (_EPOCH + timedelta(microseconds=_near(local))).replace(tzinfo=self.region)
        return _micros(moment.utcoffset()), _micros(moment.replace(fold=1).utcoffset())


def _near(micros: int) -> int:
    """A time with the same rules, within Python's years."""
    if micros < _FIRST:
        return _FIRST
    return micros if micros < _LAST else micros - ((micros - _LAST) // _CYCLE + 1) * _CYCLE


def _micros(offset: timedelta | None) -> int:
    assert offset is not None
    return (offset.days * 86_400 + offset.seconds) * MICROS_PER_SECOND


UTC_ZONE: Final[Zone] = _FixedZone("UTC", 0)


@lru_cache(maxsize=256)
def zone_named(name: str) -> Zone:
    """The zone of an id such as ``Europe/Paris``, ``+02:00``, ``UTC+2`` or ``PST``.

    >>> zone_named("+02:30").offset_at(0) // MICROS_PER_SECOND
    9000
    """
    wanted = _SHORT_IDS.get(name, name)
    if wanted in ("Z", "UTC", "GMT", "UT"):
        return UTC_ZONE
    if offset := _OFFSET.fullmatch(wanted):
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        if hours <= 18 and minutes < 60 and seconds < 60:
            total = (hours * 60 + minutes) * 60 + seconds
            return _FixedZone(name, (total if offset[1] == "+" else -total) * MICROS_PER_SECOND)
    try:
        return _RegionZone(name, ZoneInfo(wanted))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"{name!r} is not a time zone.", condition="INVALID_TIMEZONE") from None


def zone_of(expression: Call | Cast) -> Zone:
    """The session time zone that a call or cast was resolved with."""
    return zone_named(expression.zone or "UTC")
