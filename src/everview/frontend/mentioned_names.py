"""Which names a query's text may mean, as far as that can be told without resolving it."""

from __future__ import annotations

import re
from typing import Final

_NAMES_BY_EXPRESSION: Final = "identifier"
"""IDENTIFIER(…) makes the name of a table from an expression, so that the text need not have it."""
_WORD: Final = re.compile(r"\w+")
"""What Spark reads as one name where it stands without quotes; with quotes it is a word too."""


def may_mention(text: str, name: str) -> bool:
    """Whether a query of this text could read a table or view of this name.

    >>> may_mention("SELECT a FROM Sales", "sales"), may_mention("SELECT a FROM sales", "s")
    (True, False)
    """
    lowered = text.lower()
    if _NAMES_BY_EXPRESSION in lowered or not name.isascii():
        return True
    if _WORD.fullmatch(name):
        return name.lower() in _WORD.findall(lowered)
    return name.lower().replace("`", "``") in lowered
