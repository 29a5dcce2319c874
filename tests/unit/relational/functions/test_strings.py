from __future__ import annotations

import pytest

from everview.errors import EvaluationError, UnsupportedQuery
from everview.relational.types import INT32, STRING
from tests.unit.relational.functions.evaluation import call


@pytest.mark.parametrize(
    ("position", "length", "expected"),
    [(1, 2, "sp"), (0, 2, "sp"), (-3, 2, "ar"), (-7, 4, "sp"), (6, 1, ""), (2, -1, ""), (2, 2**31 - 1, "park")],
)
def test_substring_positions(position: int, length: int, expected: str) -> None:
    """Zero means one, negative counts from the end, and a start before the string uses up length."""
    assert call("substring", ("spark", STRING), (position, INT32), (length, INT32)) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "www"), (2, "www.apache"), (-1, "org"), (-2, "apache.org"), (0, ""), (9, "www.apache.org")],
)
def test_substring_index(count: int, expected: str) -> None:
    """Up to the n-th delimiter, from the left or from the right."""
    assert call("substring_index", ("www.apache.org", STRING), (".", STRING), (count, INT32)) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"), [("a%", True), ("%b_c%", True), (r"a\%b\_c", True), ("a_b", False), ("", False)]
)
def test_like(pattern: str, expected: bool) -> None:
    """``%`` and ``_`` are wild unless they are escaped."""
    assert call("like", ("a%b_c", STRING), (pattern, STRING)) is expected


def test_like_with_a_stray_escape_raises() -> None:
    """An escape before an ordinary character is an error, as in Spark."""
    with pytest.raises(EvaluationError) as error:
        call("like", ("abc", STRING), (r"a\bc", STRING))
    assert error.value.condition == "INVALID_FORMAT"


def test_java_patterns_keep_their_meaning() -> None:
    r"""``.`` stops at every line terminator of Java, ``$`` stands before the last one, ``\d`` is ASCII."""
    assert call("rlike", ("a\rb", STRING), ("a.b", STRING)) is False
    assert call("rlike", ("abc\r\n", STRING), ("c$", STRING)) is True
    assert call("rlike", ("٣", STRING), (r"\d", STRING)) is False
    assert call("regexp_replace", ("a1", STRING), (r"(\w)(\d)", STRING), ("$2$1", STRING)) == "1a"


@pytest.mark.parametrize("pattern", ["[a-z&&[^b]]", r"\p{L}", r"\G", "a(?m)^b", "x{,3}"])
def test_untranslatable_pattern_is_refused_when_bound(pattern: str) -> None:
    """A constant pattern without a Python equal refuses the query."""
    with pytest.raises(UnsupportedQuery):
        call("rlike", ("abc", STRING), (pattern, STRING))


@pytest.mark.parametrize(
    ("text", "pattern", "limit", "expected"),
    [
        ("a,b,,", ",", -1, ("a", "b", "", "")),
        ("a,b,c", ",", 2, ("a", "b,c")),
        ("abc", "", -1, ("a", "b", "c")),
        ("abc", "", 2, ("a", "bc")),
        ("abc", "(?=b)", -1, ("a", "bc")),
        ("", ",", -1, ("",)),
    ],
)
def test_split(text: str, pattern: str, limit: int, expected: tuple[str, ...]) -> None:
    """Trailing empty parts stay, and the last part keeps what the limit leaves."""
    assert call("split", (text, STRING), (pattern, STRING), (limit, INT32)) == expected
