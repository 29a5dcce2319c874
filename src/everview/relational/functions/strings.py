"""Building and cutting strings: case, trimming, padding, substrings, concatenation, replacement.

Positions and lengths count characters (code points), or bytes where the argument is binary. Positions start at one; Spark
takes position zero as one, and a negative one from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from everview.relational.expressions import Call
from everview.relational.functions.registry import Nulls, function
from everview.relational.types import INT32, STRING, Array, Binary, DataType, Value

_MAX_INT: Final = 2**31 - 1
Bound = Callable[..., Any]


def _first(args: tuple[DataType, ...]) -> DataType:
    return args[0]


@function("upper", STRING)
def _upper(call: Call) -> Bound:
    return str.upper


@function("lower", STRING)
def _lower(call: Call) -> Bound:
    return str.lower


@function("initcap", STRING)
def _initcap(call: Call) -> Bound:
    return lambda s: " ".join(word[:1].title() + word[1:].lower() for word in s.split(" "))


def _trimming(name: str, strip: Callable[[str, str], str]) -> None:
    @function(name, STRING)
    def _trim(call: Call) -> Bound:
        return lambda s, characters=" ": strip(s, characters) if characters else s


_trimming("trim", str.strip)
_trimming("btrim", str.strip)
_trimming("ltrim", str.lstrip)
_trimming("rtrim", str.rstrip)


def sliced(text: Value, position: int, length: int) -> Value:
    """The substring of a str or bytes, by Spark's rules for positions.

    >>> sliced("spark", -3, 2), sliced("spark", 0, 2), sliced("spark", -7, 4)
    ('ar', 'sp', 'sp')
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = start + length
    return text[max(start, 0) : max(end, 0)]


@function("substring", _first)
def _substring(call: Call) -> Bound:
    return lambda text, position, length=_MAX_INT: sliced(text, position, length)


@function("left", _first)
def _left(call: Call) -> Bound:
    return lambda text, length: text[: max(length, 0)]


@function("right", STRING)
def _right(call: Call) -> Bound:
    return lambda text, length: sliced(text, -length, _MAX_INT) if length > 0 else ""


def _joined_type(args: tuple[DataType, ...]) -> DataType:
    if not args:
        return STRING
    first = args[0]
    if isinstance(first, Array):
        return Array(first.element, any(isinstance(a, Array) and a.contains_null for a in args))
    return first


@function("concat", _joined_type)
def _concat(call: Call) -> Bound:
    if isinstance(call.type, Array):
        return lambda *parts: tuple(v for part in parts for v in part)
    if isinstance(call.type, Binary):
        return lambda *parts: b"".join(parts)
    return lambda *parts: "".join(parts)


@function("concat_ws", STRING, Nulls.OWN)
def _concat_with_separator(call: Call) -> Bound:
    def join(separator: str | None, *parts: Value) -> str | None:
        if separator is None:
            return None
        words: list[str] = []
        for part in parts:
            words.extend(w for w in (part if isinstance(part, tuple) else (part,)) if w is not None)
        return separator.join(words)

    return join


@function("length", INT32)
def _length(call: Call) -> Bound:
    return len


@function("char_length", INT32)
def _char_length(call: Call) -> Bound:
    return len


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


@function("octet_length", INT32)
def _octet_length(call: Call) -> Bound:
    return lambda value: len(_bytes(value))


@function("bit_length", INT32)
def _bit_length(call: Call) -> Bound:
    return lambda value: 8 * len(_bytes(value))


def _padding(text: Value, length: int, pad: Value) -> Value:
    missing = length - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 and pad else text[:0]


@function("lpad", _first)
def _pad_left(call: Call) -> Bound:
    return lambda text, length, pad: _padding(text, length, pad) + text[: max(length, 0)]


@function("rpad", _first)
def _pad_right(call: Call) -> Bound:
    return lambda text, length, pad: text[: max(length, 0)] + _padding(text, length, pad)


@function("repeat", STRING)
def _repeat(call: Call) -> Bound:
    return lambda s, times: s * max(times, 0)


@function("space", STRING)
def _space(call: Call) -> Bound:
    return lambda times: " " * max(times, 0)


@function("reverse", _first)
def _reverse(call: Call) -> Bound:
    return lambda value: value[::-1]


@function("replace", STRING)
def _replace(call: Call) -> Bound:
    return lambda s, search, by="": s.replace(search, by) if search else s


@function("translate", STRING)
def _translate(call: Call) -> Bound:
    def translate(s: str, matching: str, by: str) -> str:
        table: dict[int, str | None] = {}
        for i, character in enumerate(matching):
            table.setdefault(ord(character), by[i] if i < len(by) else None)
        return s.translate(table)

    return translate


@function("overlay", _first)
def _overlay(call: Call) -> Bound:
    def overlay(text: Value, by: Value, position: int, length: int = -1) -> Value:
        replaced = length if length >= 0 else len(by)
        return sliced(text, 1, position - 1) + by + sliced(text, position + replaced, _MAX_INT)

    return overlay


@function("substring_index", STRING)
def _substring_index(call: Call) -> Bound:
    def cut(s: str, delimiter: str, count: int) -> str:
        if not delimiter or count == 0:
            return ""
        if count > 0:
            at = -1
            for _ in range(count):
                at = s.find(delimiter, at + 1)
                if at < 0:
                    return s
            return s[:at]
        end = len(s) + len(delimiter) - 1
        for _ in range(-count):
            # The next match may overlap the last one: Spark steps back by one character.
            end = s.rfind(delimiter, 0, max(end, 0))
            if end < 0:
                return s
            start, end = end, end + len(delimiter) - 1
        return s[start + len(delimiter) :]

    return cut
