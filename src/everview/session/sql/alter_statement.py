"""``ALTER TABLE`` and ``ALTER VIEW``, read as Spark writes them.

The grammar, keywords in any case::

    alter := ALTER TABLE name (ADD [COLUMN] column type [NOT NULL] [DEFAULT expression]
                              | RENAME TO name | RENAME COLUMN name TO name)
           | ALTER VIEW name RENAME TO name
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.errors import UnsupportedOperation
from everview.session.sql.tokens import TokenCursor

_HINT = "there are ADD COLUMN, RENAME TO and RENAME COLUMN for tables, and RENAME TO for views."


@dataclass(frozen=True, slots=True)
class AddColumn:
    """``ALTER TABLE table ADD COLUMN column [DEFAULT default]``; ``column`` is as a schema writes it."""

    table: str
    column: str
    default: str | None


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """``ALTER TABLE table RENAME COLUMN column TO name``."""

    table: str
    column: str
    name: str


@dataclass(frozen=True, slots=True)
class Rename:
    """``ALTER TABLE | VIEW relation RENAME TO name``."""

    kind: str
    relation: str
    name: str


Alteration = AddColumn | RenameColumn | Rename


def parse_alter(cursor: TokenCursor) -> Alteration:
    """Reads what follows ALTER.

    Raises:
        InvalidQuery: it cannot be read.
        UnsupportedOperation: it is another of Spark's alterations.
    """
    cursor.skip("materialized")
    kind = "view" if cursor.skip("view") else "table"
    if kind == "table":
        cursor.expect("table")
    relation = cursor.name(f"a {kind} name")
    if cursor.skip("rename", "to"):
        renamed = Rename(kind, relation, cursor.name("the new name"))
        cursor.end()
        return renamed
    if kind == "table" and cursor.skip("rename", "column"):
        column = cursor.name("a column name")
        cursor.expect("to")
        moved = RenameColumn(relation, column, cursor.name("the new name"))
        cursor.end()
        return moved
    if kind == "table" and cursor.skip("add"):
        if cursor.next_is("columns") or cursor.next_is("column", "(") or cursor.next_is("("):
            raise UnsupportedOperation("ALTER TABLE adds one column at a time.", hint="write ADD COLUMN for each.")
        if any(cursor.next_is(word) for word in ("constraint", "partition")):
            raise UnsupportedOperation("ALTER TABLE adds columns only.", hint=_HINT)
        cursor.skip("column")
        column = cursor.until("a column", "default")
        return AddColumn(relation, column, cursor.rest("a value") if cursor.skip("default") else None)
    word = cursor.word
    asked = "" if word is None else f" {word.text.upper()}"
    raise UnsupportedOperation(f"ALTER {kind.upper()}{asked} is not supported.", hint=_HINT)
