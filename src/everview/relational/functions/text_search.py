"""Finding text in text, and the first or n-th part between delimiters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everview.relational.expressions import Call
from everview.relational.functions.registry import Nulls, function
from everview.relational.types import BOOLEAN, INT32, STRING, Array

Bound = Callable[..., Any]


@function("startswith", BOOLEAN)
def _starts_with(call: Call) -> Bound:
    return lambda text, prefix: text.startswith(prefix)


@function("endswith", BOOLEAN)
def _ends_with(call: Call) -> Bound:
    return lambda text, suffix: text.endswith(suffix)


@function("contains", BOOLEAN)
def _contains(call: Call) -> Bound:
    return lambda text, part: part in text


@function("instr", INT32)
def _instr(call: Call) -> Bound:
    return lambda text, part: text.find(part) + 1


@function("locate", INT32, Nulls.OWN)
def _locate(call: Call) -> Bound:
    def locate(part: str | None, text: str | None, start: int | None = 1) -> int | None:
        if start is None:
            return 0
        if part is None or text is None:
            return None
        if start < 1:
            return 0
        return text.find(part, start - 1) + 1 if part else 1

    return locate


@function("split_sql", Array(STRING, contains_null=False))
def _split_sql(call: Call) -> Bound:
    """The parts between occurrences of a delimiter that is no pattern; SPLIT_PART is an element of it."""
    return lambda text, delimiter: tuple(text.split(delimiter)) if delimiter else (text,)


@function("find_in_set", INT32)
def _find_in_set(call: Call) -> Bound:
    def find(word: str, words: str) -> int:
        parts = words.split(",")
        return parts.index(word) + 1 if "," not in word and word in parts else 0

    return find


@function("levenshtein", INT32)
def _levenshtein(call: Call) -> Bound:
    def distance(a: str, b: str) -> int:
        row = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            previous, row[0] = row[0], i
            for j, y in enumerate(b, 1):
                previous, row[j] = row[j], min(previous + (x != y), row[j] + 1, row[j - 1] + 1)
        return row[-1]

    return distance
