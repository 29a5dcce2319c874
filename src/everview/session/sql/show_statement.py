"""``SHOW TABLES``, ``SHOW VIEWS``, ``SHOW COLUMNS`` and ``DESCRIBE``: what is there, in the columns that Spark gives.

As in Spark, SHOW TABLES lists views too, and a pattern has ``*`` for any characters, ``|`` between choices and no case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.errors import UnsupportedOperation
from everview.session.sql.tokens import TokenCursor

if TYPE_CHECKING:
    from everview.catalog import Catalog, Definition


@dataclass(frozen=True, slots=True)
class Show:
    """``SHOW TABLES | VIEWS [LIKE 'pattern']``."""

    kind: str
    pattern: str = "*"


@dataclass(frozen=True, slots=True)
class Describe:
    """``DESCRIBE [TABLE] name``; ``SHOW COLUMNS IN name`` wants the names alone."""

    name: str
    only_names: bool = False


def parse_show(cursor: TokenCursor) -> Show | Describe:
    """Reads what follows SHOW."""
    if cursor.skip("columns"):
        if not cursor.skip("from"):
            cursor.expect("in")
        statement: Show | Describe = Describe(cursor.name("a table or view"), only_names=True)
    else:
        kind = next((k for k in ("tables", "views") if cursor.skip(k)), None)
        if kind is None:
            what = "" if cursor.word is None else f" {cursor.word.text.upper()}"
            raise UnsupportedOperation(f"db.sql has no SHOW{what}.", hint="it has SHOW TABLES, VIEWS and COLUMNS.")
        is_like = cursor.skip("like")
        is_given = is_like or not cursor.at_end
        statement = Show(kind, cursor.take(lambda w: w.is_string, "a pattern in quotes").text if is_given else "*")
    cursor.end()
    return statement


def parse_describe(cursor: TokenCursor) -> Describe:
    """Reads what follows DESCRIBE or DESC."""
    word = cursor.word
    cursor.skip("table")
    name = word.text if word is not None and cursor.at_end else cursor.name("a table or view")
    if not cursor.at_end:
        raise UnsupportedOperation("db.sql has DESCRIBE of a table or view only.", hint="DESCRIBE name.")
    return Describe(name)


def show_relations(catalog: Catalog, statement: Show) -> pa.Table:
    """The names that fit, in order of the alphabet."""
    choices = [re.escape(c.strip()).replace(r"\*", ".*") for c in statement.pattern.split("|")]
    fits = re.compile("|".join(choices), re.IGNORECASE | re.DOTALL)
    listed: tuple[Definition, ...] = catalog.views
    if statement.kind == "tables":
        listed = (*catalog.tables, *listed)
    names = sorted(d.name for d in listed if fits.fullmatch(d.name))
    column = "viewName" if statement.kind == "views" else "tableName"
    return pa.table(
        {
            "namespace": pa.array([""] * len(names), pa.string()),
            column: pa.array(names, pa.string()),
            "isTemporary": pa.array([False] * len(names), pa.bool_()),
        }
    )


def describe_relation(catalog: Catalog, statement: Describe) -> pa.Table:
    """The columns of a table or view: names, types and, as in Spark, comments, of which there are none."""
    fields = catalog.get(statement.name).fields
    names = pa.array([f.name for f in fields], pa.string())
    if statement.only_names:
        return pa.table({"col_name": names})
    types = pa.array([str(f.type) for f in fields], pa.string())
    return pa.table({"col_name": names, "data_type": types, "comment": pa.nulls(len(fields), pa.string())})
