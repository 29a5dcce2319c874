"""The database's clock: a relation of one row that ``now()``, ``current_timestamp`` and ``current_date`` read.

It is a table like others, which every backend keeps, logs and rolls back; nobody but ``db.advance`` changes it. A view that
reads it is a function of its tables again, and moves when the clock does.
"""

from __future__ import annotations

from typing import Final

from everview.relational.nodes import Field, Relation, Scan, Schema
from everview.relational.traverse import tables_of
from everview.relational.types import TIMESTAMP

CLOCK: Final = "__clock"
"""Its name; no table or view of the user's can have it."""
CLOCK_FIELDS: Final[Schema] = (Field("now", TIMESTAMP, False),)
EXPIRED: Final = "__expired_"
"""How the names of views begin that hold the rows which a table's retention has given up."""

WATERMARK: Final = "__watermark_"
"""How the names of views begin that hold the watermark of a table."""


def is_hidden(name: str) -> bool:
    """Whether a table or view is not the user's: the clock, and what retentions and watermarks keep."""
    return name == CLOCK or name.startswith((EXPIRED, WATERMARK))


def is_clock(relation: Relation) -> bool:
    """Whether a relation is the clock itself.

    >>> is_clock(Scan("__clock", CLOCK_FIELDS))
    True
    """
    return isinstance(relation, Scan) and relation.table == CLOCK


def reads_clock(plan: Relation) -> bool:
    """Whether the answer of a plan depends on the clock."""
    return CLOCK in tables_of(plan)
