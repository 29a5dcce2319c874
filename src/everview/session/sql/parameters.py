"""Parameters of ``db.sql``: values in the places of ``:name`` and ``?``, as ``spark.sql(text, args)`` takes them.

A value is written as a literal of its own type between parentheses, never as text to be parsed, so nothing in it can be read as
SQL. Markers inside strings, quoted names and comments are no markers.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from typing import Any

from everview.backends.spark.sql_literals import literal_sql
from everview.errors import InvalidQuery, did_you_mean
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    integer_bounds,
)
from everview.session.rows.convert_values import converter_to
from everview.session.sql.tokens import Word, words_of

Arguments = Mapping[str, Any] | Sequence[Any]


def bind_parameters(text: str, args: Arguments) -> str:
    r"""The script with literals in place of its markers.

    >>> bind_parameters("SELECT ':a', :a, :b", {"a": 1, "b": "it's"})
    "SELECT ':a', ((1)), ('it\\'s')"
    >>> bind_parameters("SELECT ? + ?", [1, None])
    'SELECT ((1)) + (NULL)'

    Raises:
        InvalidQuery: a marker has no value, a value no marker, or a value is of a type that SQL has no literal of.
    """
    words = words_of(text, "script")
    pieces: list[str] = []
    used: list[str | int] = []
    at = 0
    for i, word in enumerate(words):
        marker = _marker(text, words, i, len(used), named=isinstance(args, Mapping))
        if marker is None:
            continue
        key, end = marker
        used.append(key)
        pieces += [text[at : word.start], f"({_literal(_value(key, args))})"]
        at = end
    if isinstance(args, Sequence) and len(used) < len(args):
        raise InvalidQuery(f"the script has {len(used)} markers '?', and {len(args)} values were given.")
    return "".join([*pieces, text[at:]])


def _marker(text: str, words: list[Word], i: int, count: int, *, named: bool) -> tuple[str | int, int] | None:
    """The name or number of a marker that starts with word i, and where it ends."""
    word = words[i]
    if not named:
        return (count, word.end) if word.keyword == "?" else None
    before = text[word.start - 1 : word.start]
    if word.keyword != ":" or before.isalnum() or before in ("_", ")", "]", "`", ":"):
        return None
    following = words[i + 1] if i + 1 < len(words) else None
    if following is None or following.start != word.end or not following.is_name:
        return None
    return following.text, following.end


def _value(key: str | int, args: Arguments) -> Any:
    if isinstance(args, Mapping):
        if key not in args:
            raise InvalidQuery(
                f"the parameter :{key} has no value.", hint=did_you_mean(str(key), [str(k) for k in args])
            )
        return args[str(key)]
    assert isinstance(key, int)
    if key >= len(args):
        raise InvalidQuery(f"the script has more markers '?' than the {len(args)} values given.")
    return args[key]


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"array({', '.join(_literal(v) for v in value)})"
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return f"TIMESTAMP_LTZ'{value.isoformat(sep=' ')}'"  # in the time zone of the session
    data_type = _type_of(value)
    return literal_sql(None if value is None else converter_to(data_type)(value), data_type)


def _type_of(value: Any) -> DataType:
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            low, high = integer_bounds(INT32)
            return INT32 if low <= value <= high else INT64
        case float():
            return FLOAT64
        case str():
            return STRING
        case bytes() | bytearray():
            return BINARY
        case datetime.datetime():
            return TIMESTAMP
        case datetime.date():
            return DATE
        case datetime.timedelta():
            return DAY_TIME_INTERVAL
        case decimal.Decimal() if value.is_finite():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return Decimal(max(len(digits) + max(0, int(exponent)), scale, 1), scale)
    raise InvalidQuery(
        f"a parameter of type {type(value).__name__} has no literal in SQL.",
        hint="give None, a boolean, number, string, bytes, date, datetime, timedelta or Decimal, or a list of them.",
    )
