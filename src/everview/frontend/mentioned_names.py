"""Which names a query's text may mean, as far as that can be told without resolving it."""

from __future__ import annotations

from typing import Final

_NAMES_BY_EXPRESSION: Final = "identifier"
"""IDENTIFIER(…) makes the name of a table from an expression, so that the text need not have it."""


def may_mention(text: str, name: str) -> bool:
    """Whether a query of this text could read a table or view of this name.

    >>> may_mention("SELECT * FROM Sales", "sales"), may_mention("SELECT * FROM sales", "items")
    (True, False)
    """
    lowered = text.lower()
    return _NAMES_BY_EXPRESSION in lowered or not name.isascii() or name.lower().replace("`", "``") in lowered
