"""A cursor over the tokens of a piece of Spark SQL, for the small grammars that everview reads itself.

The tokens are those of sqlglot's Spark dialect, so strings, quoted names and comments are never mistaken for anything
else. Queries inside a statement are cut out of the text as they stand and left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import sqlglot
from sqlglot.errors import TokenError

from everview.errors import InvalidQuery


@dataclass(frozen=True, slots=True)
class Word:
    """A token: its text (of a quoted name or string: what is inside), its place, and how it was written."""

    text: str
    start: int
    end: int
    is_quoted_name: bool = False
    is_string: bool = False

    @property
    def keyword(self) -> str:
        """The keyword or sign in small letters; a quoted name or a string is never one."""
        return "" if self.is_quoted_name or self.is_string else self.text.lower()

    def shifted(self, by: int) -> Word:
        """The same word further on in the text."""
        return replace(self, start=self.start + by, end=self.end + by)

    @property
    def is_name(self) -> bool:
        """Whether it can name a table or column."""
        return self.is_quoted_name or (not self.is_string and (self.text[:1].isalpha() or self.text[:1] == "_"))


def words_of(text: str, what: str) -> list[Word]:
    """The tokens of a text; ``what`` names it in the message when a quote has no end.

    >>> [w.text for w in words_of("a int primary key -- the key", "schema")]
    ['a', 'int', 'primary', 'key']
    """
    try:
        tokens = sqlglot.tokenize(text, read="spark")
    except TokenError as error:
        raise InvalidQuery(
            f"the {what} has a string, a quoted name or a comment without an end.", hint="look for an odd quote."
        ) from error
    words: list[Word] = []
    previous = 0
    for token in tokens:
        start, end = token.start, token.end + 1
        before, previous = previous, end
        if token.token_type.name == "STRING" and token.text == text[before:end].strip():
            # After some first words, such as EXPLAIN, sqlglot gives all the rest as one "string".
            words += [w.shifted(before) for w in words_of(text[before:end], what)]
        elif text[start] == "`":
            words.append(Word(token.text, start, end, is_quoted_name=True))
        elif text[end - 1] in "'\"":  # r'…' and x'…' too
            words.append(Word(token.text, start, end, is_string=True))
        elif set(token.text) == {">"}:  # ">>" closes two brackets, as in array<array<int>>
            words += [Word(">", i, i + 1) for i in range(start, end)]
        else:  # sqlglot joins some keywords, such as PRIMARY KEY
            words += _split_at_spaces(text, start, end)
    return words


def _split_at_spaces(text: str, start: int, end: int) -> list[Word]:
    words: list[Word] = []
    for part in text[start:end].split():
        begin = text.index(part, words[-1].end if words else start)
        words.append(Word(part, begin, begin + len(part)))
    return words


class TokenCursor:
    """A position among the words of a text, with what a recursive-descent parser asks of it."""

    def __init__(self, text: str, what: str, words: list[Word] | None = None) -> None:
        self.text = text
        self._what = what
        self._words = words_of(text, what) if words is None else words
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether no word is left."""
        return self._at >= len(self._words)

    @property
    def word(self) -> Word | None:
        """The next word, None at the end."""
        return None if self.at_end else self._words[self._at]

    def next_is(self, *keywords: str) -> bool:
        """Whether these keywords or signs come next."""
        following = self._words[self._at : self._at + len(keywords)]
        return [w.keyword for w in following] == list(keywords)

    def skip(self, *keywords: str) -> bool:
        """Steps over these keywords if they come next, and says whether they did."""
        found = self.next_is(*keywords)
        self._at += len(keywords) if found else 0
        return found

    def expect(self, *keywords: str) -> None:
        """Steps over these keywords, which must come next."""
        for keyword in keywords:
            if not self.skip(keyword):
                raise self.unexpected(keyword.upper() if keyword.isalpha() else f"'{keyword}'")

    def take(self, fits: Callable[[Word], bool], wanted: str) -> Word:
        """The next word, which must fit."""
        word = self.word
        if word is None or not fits(word):
            raise self.unexpected(wanted)
        self._at += 1
        return word

    def name(self, wanted: str = "a name") -> str:
        """The next word as a name."""
        return self.take(lambda w: w.is_name, wanted).text

    def names_in_parentheses(self) -> tuple[str, ...]:
        """A list such as ``(a, b)``."""
        self.expect("(")
        names = [self.name()]
        while self.skip(","):
            names.append(self.name())
        self.expect(")")
        return tuple(names)

    def rest(self, wanted: str) -> str:
        """The text from here to the end, as it was written."""
        return self.until(wanted)

    def until(self, wanted: str, *stops: str) -> str:
        """The text up to the first of these keywords outside all parentheses and CASE … END, or to the end; not empty."""
        first = self.word
        depth = cases = 0
        last: Word | None = None
        while (word := self.word) is not None and not (depth == cases == 0 and word.keyword in stops):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(word.keyword, 0)
            is_field = last is not None and last.keyword == "."
            cases += 1 if word.keyword == "case" and not is_field else 0
            cases -= 1 if word.keyword == "end" and not is_field and cases else 0
            last = word
            self._at += 1
        if first is None or last is None:
            raise self.unexpected(wanted)
        return self.text[first.start : last.end]

    def in_parentheses(self, wanted: str) -> str:
        """The text between an opening parenthesis, which comes next, and the one that closes it."""
        self.expect("(")
        depth, first, last = 1, self.word, None
        while (word := self.word) is not None:
            depth += {"(": 1, ")": -1}.get(word.keyword, 0)
            self._at += 1
            if depth == 0:
                if first is None or last is None:
                    break
                return self.text[first.start : last.end]
            last = word
        raise self.unexpected(wanted)

    def end(self) -> None:
        """Raises unless nothing is left."""
        if not self.at_end:
            raise self.unexpected("the end")

    def unexpected(self, wanted: str) -> InvalidQuery:
        """The error for a word that does not belong here."""
        found = "the end" if self.word is None else f"'{self.text[self.word.start : self.word.end]}'"
        shown = self.text if len(self.text) <= 100 else self.text[:99] + "…"
        return InvalidQuery(f"the {self._what} {shown!r} has {found} where {wanted} should be.")


def alias_before(cursor: TokenCursor, keyword: str) -> str | None:
    """The alias of a table, with AS or without, if there is one before this keyword or the end."""
    if cursor.skip("as"):
        return cursor.name("an alias")
    return None if cursor.at_end or cursor.next_is(keyword) else cursor.name("an alias")
