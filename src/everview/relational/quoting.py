"""Names as Spark SQL reads them."""

from __future__ import annotations


def quote(name: str) -> str:
    """A name between backticks, whatever is in it.

    >>> quote("order")
    '`order`'
    >>> quote("a`b.c")
    '`a``b.c`'
    """
    return "`" + name.replace("`", "``") + "`"
