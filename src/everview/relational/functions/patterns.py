"""LIKE and the functions of regular expressions.

A constant pattern is translated when the call is bound, so one that we cannot translate refuses the query; a pattern that
comes from a column is translated when it is first seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from everview.errors import EvaluationError
from everview.relational.expressions import Call, Literal
from everview.relational.functions.failures import unsupported
from everview.relational.functions.java_regex import UntranslatablePatternError, compiled
from everview.relational.functions.registry import function
from everview.relational.types import BOOLEAN, INT32, STRING, Array

Bound = Callable[..., Any]
Matcher = Callable[[str], bool]


@lru_cache(maxsize=1024)
def like_matcher(pattern: str, escape: str = "\\") -> Matcher:
    """The test that ``LIKE pattern ESCAPE escape`` makes.

    >>> like_matcher("a_c%")("abcd")
    True
    """
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None or following not in ("_", "%", escape):
                raise EvaluationError(
                    f"the pattern {pattern!r} escapes neither '_', '%' nor {escape!r}.", condition="INVALID_FORMAT"
                )
            parts.append(re.escape(following))
        elif character == "_":
            parts.append(".")
        elif character == "%":
            parts.append(".*")
        else:
            parts.append(re.escape(character))
    if all(part not in (".", ".*") for part in parts[:-1]) and parts and parts[-1] == ".*":
        prefix = "".join(re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in parts[:-1])
        return lambda text: text.startswith(prefix)
    whole = re.compile("".join(parts), re.DOTALL)
    return lambda text: whole.fullmatch(text) is not None


def _constant(call: Call, position: int) -> str | None:
    """The argument when it is a constant string."""
    if position >= len(call.args):
        return None
    argument = call.args[position]
    return argument.value if isinstance(argument, Literal) else None


@function("like", BOOLEAN)
def _like(call: Call) -> Bound:
    return lambda text, pattern, escape="\\": like_matcher(pattern, escape)(text)


@function("ilike", BOOLEAN)
def _ilike(call: Call) -> Bound:
    return lambda text, pattern, escape="\\": like_matcher(pattern.lower(), escape)(text.lower())


def _check(call: Call) -> None:
    """Refuses a constant pattern that has no translation."""
    pattern = _constant(call, 1)
    if pattern is None:
        return
    try:
        compiled(pattern)
    except UntranslatablePatternError as reason:
        raise unsupported(
            f"the pattern {pattern!r} of {call.function} uses {reason}, which is not supported.", call.function
        ) from None


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return compiled(text)
    except UntranslatablePatternError as reason:
        raise EvaluationError(
            f"the pattern {text!r} uses {reason}, which is wrong or not supported.", condition="INVALID_PARAMETER_VALUE"
        ) from None


@function("rlike", BOOLEAN)
def _rlike(call: Call) -> Bound:
    _check(call)
    return lambda text, pattern: _pattern(pattern).search(text) is not None


@lru_cache(maxsize=1024)
def _replacement(template: str, groups: int, names: tuple[str, ...]) -> Callable[[re.Match[str]], str]:
    """A Java replacement: ``$1`` and ``${name}`` are groups, a backslash makes the next character plain."""
    parts: list[str | int] = []
    at = 0
    while at < len(template):
        character = template[at]
        at += 1
        if character == "\\" and at < len(template):
            parts.append(template[at])
            at += 1
        elif character == "$":
            group, at = _group_reference(template, at, groups, names)
            parts.append(group)
        elif character == "\\":
            raise _bad_replacement(template)
        else:
            parts.append(character)
    return lambda match: "".join(p if isinstance(p, str) else match[p] or "" for p in parts)


def _group_reference(template: str, at: int, groups: int, names: tuple[str, ...]) -> tuple[int, int]:
    if named := re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(template, at):
        if named[1] not in names:
            raise _bad_replacement(template)
        return names.index(named[1]), named.end()
    if at >= len(template) or template[at] not in "0123456789" or int(template[at]) > groups:
        raise _bad_replacement(template)
    number = int(template[at])
    at += 1
    while at < len(template) and template[at] in "0123456789" and 10 * number + int(template[at]) <= groups:
        number = 10 * number + int(template[at])
        at += 1
    return number, at


def _bad_replacement(template: str) -> EvaluationError:
    return EvaluationError(
        f"the replacement {template!r} refers to a group that does not exist.", condition="INVALID_REGEXP_REPLACE"
    )


@function("regexp_replace", STRING)
def _regexp_replace(call: Call) -> Bound:
    _check(call)

    def replace(text: str, pattern: str, by: str, position: int = 1) -> str:
        if position - 1 >= len(text) and position != 1:
            return text
        expression = _pattern(pattern)
        names = [""] * (expression.groups + 1)
        for name, index in expression.groupindex.items():
            names[index] = name
        # Java searches a region of its own: what stands before it is invisible to ^ and to look-behind.
        before, region = text[: position - 1], text[position - 1 :]
        if expression.search(region) is None:
            return text  # and a wrong replacement goes unseen
        return before + expression.sub(_replacement(by, expression.groups, tuple(names)), region)

    return replace


def _check_group(call: Call, expression: re.Pattern[str], group: int) -> None:
    if not 0 <= group <= expression.groups:
        raise EvaluationError(
            f"{call.function} asks for group {group}, but the pattern has {expression.groups}.",
            condition="INVALID_PARAMETER_VALUE",
        )


@function("regexp_extract", STRING)
def _regexp_extract(call: Call) -> Bound:
    _check(call)

    def extract(text: str, pattern: str, group: int = 1) -> str:
        expression = _pattern(pattern)
        found = expression.search(text)
        if found is None:
            return ""
        _check_group(call, expression, group)
        return found[group] or ""

    return extract


@function("regexp_extract_all", Array(STRING))
def _regexp_extract_all(call: Call) -> Bound:
    _check(call)

    def extract(text: str, pattern: str, group: int = 1) -> tuple[str, ...]:
        expression = _pattern(pattern)
        matches = list(expression.finditer(text))
        if matches:
            _check_group(call, expression, group)
        return tuple(found[group] or "" for found in matches)

    return extract


@function("regexp_instr", INT32)
def _regexp_instr(call: Call) -> Bound:
    _check(call)

    def position(text: str, pattern: str, _group: int = 0) -> int:
        found = _pattern(pattern).search(text)
        return found.start() + 1 if found else 0

    return position


@function("split", Array(STRING, contains_null=False))
def _split(call: Call) -> Bound:
    _check(call)

    def split(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
        if not pattern and text:
            return (*text[: limit - 1], text[limit - 1 :]) if 0 < limit < len(text) else tuple(text)
        parts: list[str] = []
        start = 0
        for found in _pattern(pattern).finditer(text):
            if 0 < limit <= len(parts) + 1:
                break
            if found.end() == 0:
                continue  # Java drops an empty match at the beginning
            parts.append(text[start : found.start()])
            start = found.end()
        parts.append(text[start:])
        return tuple(parts)

    return split
