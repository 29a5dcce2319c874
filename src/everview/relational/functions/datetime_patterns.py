"""Java's datetime patterns (``yyyy-MM-dd HH:mm``): writing local times by them and reading them back.

The letters are those of Spark's documentation that mean the same everywhere; others refuse the query. Reading is strict, as
Spark's is: a field must have its width and a date must exist; fields that the pattern lacks are those of 1970-01-01 00:00.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from everview.relational.functions.civil import (
    DAY_NAMES,
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
    MONTH_NAMES,
    civil_from_days,
    day_of_year,
    days_from_civil,
    is_leap,
    is_valid_date,
    weekday,
)
from everview.relational.functions.zones import Zone, zone_named

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']", re.DOTALL)


class UnknownPatternError(ValueError):
    """A pattern that is wrong or uses a letter that we do not have; the message says which."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A local time with what a pattern can show of it."""

    day: int
    time: int
    offset: int
    zone: Zone

    @property
    def civil(self) -> tuple[int, int, int]:
        """Year, month and day."""
        return civil_from_days(self.day)


def moment(instant: int, zone: Zone) -> Moment:
    """An instant as it is seen in a zone."""
    offset = zone.offset_at(instant)
    day, time = divmod(instant + offset, MICROS_PER_DAY)
    return Moment(day, time, offset, zone)


def _tokens(pattern: str) -> list[tuple[str, str]]:
    """Pairs of kind and text: ``text`` is literal, ``[`` and ``]`` delimit what is optional, else the letter."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None:
            raise UnknownPatternError(f"a quote without its end in {pattern!r}")
        at = found.end()
        if found[2]:
            tokens.append((found[2], found[0]))
        elif found[0].startswith("'"):
            tokens.append(("text", found[1].replace("''", "'") or "'"))
        elif found[0] in "{}#":
            raise UnknownPatternError(f"the reserved character {found[0]!r}")
        else:
            tokens.append((found[0] if found[0] in "[]" else "text", found[0]))
    return tokens


def _year(m: Moment, count: int) -> str:
    year = m.civil[0]
    if count == 2:
        return f"{year % 100:02d}"
    sign = "-" if year < 0 else "+" if count >= 4 and year >= 10**count else ""
    return f"{sign}{abs(year):0{count}d}"


def _offset(m: Moment, form: str) -> str:
    """``form`` is the letter and its count, such as ``X3``."""
    letter, count = form[0], int(form[1:])
    if m.offset == 0 and (letter == "X" or form == "Z5"):
        return "Z"
    total = abs(m.offset) // MICROS_PER_SECOND
    hours, minutes, seconds = total // 3600, total // 60 % 60, total % 60
    colon = ":" if (count in (3, 5) and letter != "Z") or form == "Z5" else ""
    text = f"{'-' if m.offset < 0 else '+'}{hours:02d}"
    if letter != "Z" and count == 1 and not minutes:
        return text
    text += f"{colon}{minutes:02d}"
    return text + f"{colon}{seconds:02d}" if seconds and (count in (4, 5)) else text


def _number(of: Callable[[Moment], int], widths: int = 2) -> Callable[[Moment, int], str]:
    def write(m: Moment, count: int) -> str:
        if count > widths:
            raise UnknownPatternError("too many letters in a row")
        return f"{of(m):0{count}d}"

    return write


def _name(names: tuple[str, ...], index: Callable[[Moment], int]) -> Callable[[Moment, int], str]:
    return lambda m, count: names[index(m)] if count == 4 else names[index(m)][:3]


def _month(m: Moment, count: int) -> str:
    if count <= 2:
        return f"{m.civil[1]:0{count}d}"
    return _name(MONTH_NAMES, lambda x: x.civil[1] - 1)(m, count)


def _quarter(m: Moment, count: int) -> str:
    quarter = (m.civil[1] + 2) // 3
    return {3: f"Q{quarter}", 4: f"{('1st', '2nd', '3rd', '4th')[quarter - 1]} quarter"}.get(
        count, f"{quarter:0{count}d}"
    )


def _hour(m: Moment) -> int:
    return m.time // MICROS_PER_HOUR


_WRITERS: Final[dict[str, Callable[[Moment, int], str]]] = {
    "y": _year,
    "M": _month,
    "L": _month,
    "d": _number(lambda m: m.civil[2]),
    "D": _number(lambda m: day_of_year(m.day), 3),
    "E": _name(DAY_NAMES, lambda m: weekday(m.day)),
    "Q": _quarter,
    "q": _quarter,
    "a": lambda m, count: "AM" if _hour(m) < 12 else "PM",
    "H": _number(_hour),
    "k": _number(lambda m: _hour(m) or 24),
    "K": _number(lambda m: _hour(m) % 12),
    "h": _number(lambda m: _hour(m) % 12 or 12),
    "m": _number(lambda m: m.time % MICROS_PER_HOUR // MICROS_PER_MINUTE),
    "s": _number(lambda m: m.time % MICROS_PER_MINUTE // MICROS_PER_SECOND),
    "S": lambda m, count: f"{m.time % MICROS_PER_SECOND:06d}".ljust(9, "0")[:count],
    "X": lambda m, count: _offset(m, f"X{count}"),
    "x": lambda m, count: _offset(m, f"x{count}"),
    "Z": lambda m, count: _offset(m, f"Z{count}"),
    "V": lambda m, count: m.zone.name,
}
_LONGEST: Final = {"y": 6, "M": 4, "L": 4, "E": 4, "Q": 4, "q": 4, "a": 1, "S": 9, "X": 5, "x": 5, "V": 2, "D": 3}


def _check_token(letter: str, count: int) -> None:
    if letter not in _WRITERS or count > _LONGEST.get(letter, 2 if letter != "Z" else 5):
        raise UnknownPatternError(f"the letters {letter * count!r}")
    if (letter == "Z" and count == 4) or (letter == "V" and count != 2):
        raise UnknownPatternError(f"the letters {letter * count!r}")


def _literal(text: str) -> Callable[[Moment], str]:
    return lambda m: text


def _field(letter: str, count: int) -> Callable[[Moment], str]:
    _check_token(letter, count)
    write = _WRITERS[letter]
    return lambda m: write(m, count)


@lru_cache(maxsize=256)
def writer(pattern: str) -> Callable[[Moment], str]:
    """The function that writes a moment by the pattern.

    >>> from everview.relational.functions.zones import UTC_ZONE
    >>> writer("yyyy-MM-dd 'at' h a")(moment(0, UTC_ZONE))
    '1970-01-01 at 12 AM'
    """
    parts: list[Callable[[Moment], str]] = []
    for kind, text in _tokens(pattern):
        if kind == "text":
            parts.append(_literal(text))
        elif kind not in "[]":
            parts.append(_field(kind, len(text)))
    return lambda m: "".join([part(m) for part in parts])


_MONTH_FORMS: Final = {name[:n].lower(): i for i, name in enumerate(MONTH_NAMES, 1) for n in (3, len(name))}
_SIGNED_YEAR: Final = r"[0-9]{{{0}}}|\+[0-9]{{{1},19}}|-[0-9]{{{0},19}}"
_READERS: Final[dict[str, str]] = {
    "L": "",
    "a": "am|pm",
    "X": r"Z|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?",
    "x": r"[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?",
    "Z": r"Z|[+-][0-9]{2}:?[0-9]{2}(?::?[0-9]{2})?",
    "V": r"[A-Za-z][A-Za-z0-9/._+~-]*|[+-][0-9:]+",
}


def _reader(letter: str, count: int) -> str:
    _check_token(letter, count)
    if letter in "EQq":
        raise UnknownPatternError(f"the letter {letter!r}, which only writes")
    if letter == "y":
        if count >= 4:
            return _SIGNED_YEAR.format(count, count + 1)
        return "[0-9]{2}" if count == 2 else f"-?[0-9]{{{count},19}}"
    if letter in "ML" and count >= 3:
        return "|".join(n if count == 4 else n[:3] for n in MONTH_NAMES)
    if letter == "S":
        return f"[0-9]{{1,{count}}}"
    if letter == "D":
        return f"[0-9]{{{count},3}}"
    return _READERS.get(letter) or ("[0-9]{2}" if count == 2 else "[0-9]{1,19}")


@lru_cache(maxsize=256)
def reader(pattern: str) -> Callable[[str, Zone], int | None]:
    """The function that reads the instant a string spells by the pattern; None where it spells none.

    >>> from everview.relational.functions.zones import UTC_ZONE
    >>> reader("yyyyMMdd")("19700102", UTC_ZONE) == MICROS_PER_DAY
    True
    """
    parts: list[str] = []
    fields: list[tuple[str, int]] = []
    for kind, text in _tokens(pattern):
        if kind in "[]":
            parts.append("(?:" if kind == "[" else ")?")
        elif kind == "text":
            parts.append(re.escape(text))
        else:
            parts.append(f"({_reader(kind, len(text))})")
            fields.append((kind, len(text)))
    try:
        expression = re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
    except re.error:
        raise UnknownPatternError(f"unbalanced brackets in {pattern!r}") from None

    def read(text: str, zone: Zone) -> int | None:
        found = expression.fullmatch(text)
        if found is None:
            return None
        values: dict[str, str] = {}
        for (letter, count), value in zip(fields, found.groups(), strict=True):
            if value is not None:
                values["yy" if (letter, count) == ("y", 2) else letter] = value
        return _resolve(values, zone)

    return read


def _resolve(values: dict[str, str], zone: Zone) -> int | None:
    """The instant of the fields, or None where there is no such time."""
    day = _resolve_day(values)
    hour = _resolve_hour(values)
    minute, second = int(values.get("m", 0)), int(values.get("s", 0))
    if day is None or hour is None or minute > 59 or second > 59:
        return None
    time = hour * MICROS_PER_HOUR + minute * MICROS_PER_MINUTE + second * MICROS_PER_SECOND
    local = day * MICROS_PER_DAY + time + int(values.get("S", "")[:6].ljust(6, "0"))
    offset = next((values[letter] for letter in "XxZV" if letter in values), None)
    return (zone_named(offset.upper() if offset in ("z", "Z") else offset) if offset else zone).from_local(local)


def _resolve_day(values: dict[str, str]) -> int | None:
    year = 2000 + int(values["yy"]) if "yy" in values else int(values.get("y", 1970))
    if "D" in values and "M" not in values:
        of_year = int(values["D"])
        return days_from_civil(year, 1, 1) + of_year - 1 if 1 <= of_year <= 365 + is_leap(year) else None
    text = values.get("M") or values.get("L") or "1"
    month = _MONTH_FORMS[text.lower()] if text.isalpha() else int(text)
    date = (year, month, int(values.get("d", 1)))
    return days_from_civil(*date) if is_valid_date(*date) else None


def _resolve_hour(values: dict[str, str]) -> int | None:
    if "H" in values or "k" in values:
        hour = int(values["H"]) if "H" in values else int(values["k"]) % 24
        return hour if hour <= 23 and int(values.get("k", 1)) in range(1, 25) else None
    if "h" in values and not 1 <= int(values["h"]) <= 12:
        return None
    hour = int(values["h"]) % 12 if "h" in values else int(values.get("K", 0))
    return hour + 12 * (values.get("a", "am").lower() == "pm") if hour <= 11 else None
