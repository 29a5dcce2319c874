r"""Java's regular expressions as Python's.

The two agree on most syntax. What differs and has an equal is rewritten: line terminators in ``.`` and ``$``, ``\z``,
``\Q…\E``, POSIX classes, named groups. Classes inside classes, ``&&``, Unicode properties, ``\G`` and flags after the
start have no equal and are refused. ``\d``, ``\w``, ``\s`` and ``(?i)`` mean ASCII, as they do in Java.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_TERMINATORS: Final = r"\n\r\x85\u2028\u2029"
_ESCAPES_OUTSIDE: Final = {
    "z": r"\Z",
    "Z": r"(?:(?=\r\n\Z)|(?=(?<!\r)\n\Z)|(?=[\r\x85\u2028\u2029]\Z)|\Z)",
    "R": rf"(?:\r\n|[\x0b\x0c{_TERMINATORS}])",
}
_CLASSES: Final = {"h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000", "v": rf"\x0b\x0c{_TERMINATORS}"}
_CHARACTERS: Final = {"e": r"\x1b", "a": r"\x07", "f": r"\x0c", "n": r"\n", "r": r"\r", "t": r"\t"}
_SAME: Final = frozenset("dDwWsS")
_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
_LEADING_FLAGS: Final = re.compile(r"\(\?([is]+)\)")
_GROUPS: Final = re.compile(r"\?(?::|=|!|<=|<!|>)")
_NAMED_GROUP: Final = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_QUANTIFIER: Final = re.compile(r"\{\d+(?:,\d*)?\}")


class UntranslatablePatternError(ValueError):
    """A Java pattern that is wrong or has no Python equal; the message says what stands in the way."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    r"""The Python pattern that matches what Java's would.

    >>> bool(compiled("^a.c$").search("abc\r"))
    True
    """
    try:
        return re.compile(_Translation(pattern).run())
    except (re.error, OverflowError, RecursionError) as error:
        raise UntranslatablePatternError(str(error)) from None


class _Translation:
    """One pass over a pattern: ``at`` is the next character to read, ``out`` what has been written."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []
        self.dot_matches_all = False

    def run(self) -> str:
        flags = "a"
        while leading := _LEADING_FLAGS.match(self.pattern, self.at):
            flags += leading[1]
            self.at = leading.end()
        self.dot_matches_all = "s" in flags
        while self.at < len(self.pattern):
            self.out.append(self._next())
        return f"(?{''.join(sorted(set(flags)))})" + "".join(self.out)

    def _next(self) -> str:
        character = self.pattern[self.at]
        self.at += 1
        match character:
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case ".":
                return "." if self.dot_matches_all else f"[^{_TERMINATORS}]"
            case "$":
                return _ESCAPES_OUTSIDE["Z"]
            case "(":
                return self._group()
            case "{":
                quantifier = _QUANTIFIER.match(self.pattern, self.at - 1)
                if quantifier is None:
                    raise UntranslatablePatternError("'{' that starts no repetition")
                self.at = quantifier.end()
                return quantifier[0]
            case _:
                return character

    def _group(self) -> str:
        if not self.pattern.startswith("?", self.at):
            return "("
        if plain := _GROUPS.match(self.pattern, self.at):
            self.at = plain.end()
            return "(" + plain[0]
        if named := _NAMED_GROUP.match(self.pattern, self.at):
            self.at = named.end()
            return f"(?P<{named[1]}>"
        raise UntranslatablePatternError(f"the group '({self.pattern[self.at : self.at + 4]}'")

    def _take(self) -> str:
        if self.at >= len(self.pattern):
            raise UntranslatablePatternError("a backslash at the end")
        self.at += 1
        return self.pattern[self.at - 1]

    def _escape(self) -> str:
        character = self._take()
        if character == "Q":
            return self._quoted()
        if character in _ESCAPES_OUTSIDE:
            return _ESCAPES_OUTSIDE[character]
        if character in "bBA" or character in "123456789":
            return "\\" + character
        if character == "k":
            name = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>").match(self.pattern, self.at)
            if name is None:
                raise UntranslatablePatternError(r"'\k' without a group name")
            self.at = name.end()
            return f"(?P={name[1]})"
        return self._shared_escape(character, inside=False)

    def _quoted(self) -> str:
        end = self.pattern.find("\\E", self.at)
        text = self.pattern[self.at :] if end < 0 else self.pattern[self.at : end]
        self.at = len(self.pattern) if end < 0 else end + 2
        return re.escape(text)

    def _shared_escape(self, character: str, inside: bool) -> str:
        """An escape that means the same inside and outside of a class."""
        if character in _SAME:
            return "\\" + character
        if character in _CLASSES:
            return _CLASSES[character] if inside else f"[{_CLASSES[character]}]"
        if character in _CHARACTERS:
            return _CHARACTERS[character]
        if character in "pP":
            return self._property(character == "P", inside)
        if character in "xu0c":
            return re.escape(self._code_point(character))
        if character.isascii() and character.isalpha():
            raise UntranslatablePatternError(f"the escape '\\{character}'")
        return re.escape(character)

    def _property(self, is_negated: bool, inside: bool) -> str:
        name = re.compile(r"\{(?:Is)?(\w+)\}").match(self.pattern, self.at)
        if name is None or name[1] not in _POSIX or (is_negated and inside):
            raise UntranslatablePatternError("a Unicode property")
        self.at = name.end()
        members = _POSIX[name[1]]
        return members if inside else f"[{'^' if is_negated else ''}{members}]"

    def _code_point(self, kind: str) -> str:
        forms = {
            "x": r"\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2})",
            "u": r"([0-9a-fA-F]{4})",
            "0": r"([0-3][0-7]{2}|[0-7]{1,2})",
            "c": r"([A-Z\[\]^_?@])",
        }
        found = re.compile(forms[kind]).match(self.pattern, self.at)
        if found is None:
            raise UntranslatablePatternError(f"the escape '\\{kind}'")
        self.at = found.end()
        digits = next(g for g in found.groups() if g)
        if kind == "c":
            return chr(ord(digits) ^ 64)
        return chr(int(digits, 8 if kind == "0" else 16))

    def _class(self) -> str:
        parts = ["["]
        if self.pattern.startswith("^", self.at):
            parts.append("^")
            self.at += 1
        is_first = True
        while True:
            if self.at >= len(self.pattern):
                raise UntranslatablePatternError("a character class without its ']'")
            character = self._take()
            if character == "]" and not is_first:
                return "".join(parts) + "]"
            if character == "[" or (character == "&" and self.pattern.startswith("&", self.at)):
                raise UntranslatablePatternError("a character class inside a character class")
            if character == "\\":
                escaped = self._take()
                if escaped == "Q":
                    parts.append(self._quoted())
                else:
                    parts.append(self._shared_escape(escaped, inside=True))
            else:
                parts.append(re.escape(character) if character in "]~|&" else character)
            is_first = False
