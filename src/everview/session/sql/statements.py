"""The statements of ``db.sql``: text in, one small value a statement out. Nothing is resolved or run here.

Queries and expressions inside a statement are cut out of the text as they stand: Spark, not we, reads them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from everview.errors import EverviewError, InvalidQuery, UnsupportedOperation, did_you_mean
from everview.relational.quoting import quote
from everview.session.sql.alter_statement import Alteration, parse_alter
from everview.session.sql.merge_statement import Merge, parse_merge
from everview.session.sql.show_statement import Describe, Show, parse_describe, parse_show
from everview.session.sql.tokens import TokenCursor, Word, alias_before, words_of


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``CREATE TABLE name (schema)``."""

    name: str
    schema: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateView:
    """``CREATE [OR REPLACE] [MATERIALIZED] VIEW name [(columns)] AS query``."""

    name: str
    query: str
    if_not_exists: bool
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """``CREATE TABLE name AS query``: a table with the columns and the rows of a query."""

    name: str
    query: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """``TRUNCATE TABLE name``."""

    table: str


@dataclass(frozen=True, slots=True)
class CreateAssertion:
    """``CREATE ASSERTION name AS query``, or ``CHECK (NOT EXISTS (query))``: the query must stay empty."""

    name: str
    query: str


@dataclass(frozen=True, slots=True)
class Insert:
    """``INSERT INTO table [(columns)] query``; without columns, the query's columns are the table's, in order."""

    table: str
    columns: tuple[str, ...] | None
    query: str


@dataclass(frozen=True, slots=True)
class Delete:
    """``DELETE FROM table [AS alias] [WHERE condition]``."""

    table: str
    alias: str | None
    condition: str | None


@dataclass(frozen=True, slots=True)
class Update:
    """``UPDATE table [AS alias] SET column = expression, … [WHERE condition]``."""

    table: str
    alias: str | None
    assignments: tuple[tuple[str, str], ...]
    condition: str | None


@dataclass(frozen=True, slots=True)
class Drop:
    """``DROP TABLE | [MATERIALIZED] VIEW | ASSERTION [IF EXISTS] name``; ``kind`` is one of the three."""

    kind: str
    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query whose answer is wanted now."""

    text: str


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN`` of a view, by name, or of a query; ``ANALYZE`` measures a view."""

    text: str
    is_name: bool
    is_measured: bool = False


Statement = (
    CreateTable
    | CreateTableAs
    | CreateView
    | CreateAssertion
    | Insert
    | Delete
    | Update
    | Merge
    | Alteration
    | Truncate
    | Drop
    | Query
    | Explain
    | Show
    | Describe
)

_QUERY_STARTS = ("select", "with", "values", "table", "from", "(")
_OTHER_STATEMENTS = re.compile(
    "analyze|begin|cache|call|clear|comment|commit|declare|execute|grant|load|msck|optimize|"
    "refresh|repair|replace|reset|revoke|rollback|set|uncache|use|vacuum"
)
"""What Spark and Delta have beside ours."""


def split_statements(text: str) -> list[str]:
    """Cuts a script at its semicolons; those in strings, quoted names and comments do not count.

    >>> split_statements("SELECT ';' AS a; /* one; two */ SELECT `b;` FROM t;")
    ["SELECT ';' AS a", 'SELECT `b;` FROM t']
    """
    statements: list[str] = []
    current: list[Word] = []
    for word in [*words_of(text, "script"), None]:
        if word is not None and word.keyword != ";":
            current.append(word)
        elif current:
            statements.append(text[current[0].start : current[-1].end])
            current = []
    return statements


def parse_statement(text: str) -> Statement:
    """Reads one statement.

    >>> parse_statement("DELETE FROM orders WHERE id = 1")
    Delete(table='orders', alias=None, condition='id = 1')

    Raises:
        InvalidQuery: it is none of ours.
        UnsupportedOperation: it is one of Spark's that everview does not have.
    """
    cursor = TokenCursor(text, "statement")
    first = cursor.word.keyword if cursor.word is not None else ""
    if first in _QUERY_STARTS:
        return Query(text)
    parsers = {
        "create": _create,
        "insert": _insert,
        "delete": _delete,
        "update": _update,
        "merge": parse_merge,
        "alter": parse_alter,
        "truncate": _truncate,
        "drop": _drop,
        "explain": _explain,
        "show": parse_show,
        "describe": parse_describe,
        "desc": parse_describe,
    }
    if first not in parsers:
        raise _unknown_statement(text, first, [*parsers, "select", "with", "values", "table"])
    cursor.expect(first)
    return parsers[first](cursor)


def _unknown_statement(text: str, first: str, known: list[str]) -> EverviewError:
    listed = f"db.sql has {', '.join(k.upper() for k in known)}."
    if _OTHER_STATEMENTS.fullmatch(first):
        return UnsupportedOperation(f"db.sql has no {first.upper()} statement.", hint=listed)
    shown = text if len(text) <= 100 else text[:99] + "…"
    return InvalidQuery(f"{shown!r} is not a statement.", hint=did_you_mean(first, known) or listed)


def _create(cursor: TokenCursor) -> Statement:
    or_replace = cursor.skip("or", "replace")
    if or_replace and (cursor.next_is("table") or cursor.next_is("assertion")):
        raise UnsupportedOperation("CREATE OR REPLACE is for views only.", hint="DROP the table or assertion first.")
    if cursor.skip("assertion"):
        return _create_assertion(cursor)
    if cursor.skip("table"):
        if_not_exists = cursor.skip("if", "not", "exists")
        name = cursor.name("a table name")
        if cursor.skip("as"):
            return CreateTableAs(name, cursor.rest("a query"), if_not_exists)
        if not cursor.next_is("("):
            raise cursor.unexpected("the columns, in parentheses,")
        statement = CreateTable(name, cursor.in_parentheses("the columns"), if_not_exists)
        cursor.end()
        return statement
    cursor.skip("materialized")
    if not cursor.skip("view"):
        raise cursor.unexpected("TABLE, VIEW, MATERIALIZED VIEW or ASSERTION")
    if_not_exists = cursor.skip("if", "not", "exists")
    name = cursor.name("a view name")
    columns = cursor.names_in_parentheses() if cursor.next_is("(") else None
    cursor.expect("as")
    query = cursor.rest("a query")
    if columns is not None:
        quoted = ", ".join(quote(c) for c in columns)
        query = f"SELECT * FROM ({query}\n) AS {quote(name)}({quoted})"
    return CreateView(name, query, if_not_exists, or_replace)


def _create_assertion(cursor: TokenCursor) -> Statement:
    name = cursor.name("an assertion name")
    if cursor.skip("as"):
        return CreateAssertion(name, cursor.rest("a query"))
    cursor.expect("check", "(", "not", "exists")
    query = cursor.in_parentheses("a query")
    cursor.expect(")")
    cursor.end()
    return CreateAssertion(name, query)


def _insert(cursor: TokenCursor) -> Statement:
    if cursor.next_is("overwrite"):
        raise UnsupportedOperation("INSERT OVERWRITE is not supported.", hint="DELETE FROM the table first.")
    cursor.expect("into")
    cursor.skip("table")
    table = cursor.name("a table name")
    columns = None
    if cursor.next_is("(") and not any(cursor.next_is("(", start) for start in _QUERY_STARTS):
        columns = cursor.names_in_parentheses()
    return Insert(table, columns, cursor.rest("VALUES or a query"))


def _delete(cursor: TokenCursor) -> Statement:
    cursor.expect("from")
    table = cursor.name("a table name")
    alias = alias_before(cursor, "where")
    condition = _where(cursor)
    return Delete(table, alias, condition)


def _update(cursor: TokenCursor) -> Statement:
    table = cursor.name("a table name")
    alias = alias_before(cursor, "set")
    cursor.expect("set")
    assignments: list[tuple[str, str]] = []
    while True:
        column = cursor.name("a column name")
        if cursor.skip("."):  # alias.column
            column = cursor.name("a column name")
        cursor.expect("=")
        assignments.append((column, cursor.until("an expression", ",", "where")))
        if not cursor.skip(","):
            break
    folded = [column.lower() for column, _ in assignments]
    for column in folded:
        if folded.count(column) > 1:
            raise InvalidQuery(f"UPDATE sets column '{column}' twice.")
    return Update(table, alias, tuple(assignments), _where(cursor))


def _where(cursor: TokenCursor) -> str | None:
    if cursor.at_end:
        return None
    cursor.expect("where")
    return cursor.rest("a condition")


def _truncate(cursor: TokenCursor) -> Statement:
    cursor.expect("table")
    statement = Truncate(cursor.name("a table name"))
    cursor.end()
    return statement


def _drop(cursor: TokenCursor) -> Statement:
    cursor.skip("materialized")
    word = cursor.word
    kind = "" if word is None else word.keyword
    if kind not in ("table", "view", "assertion"):
        raise cursor.unexpected("TABLE, VIEW, MATERIALIZED VIEW or ASSERTION")
    cursor.expect(kind)
    if_exists = cursor.skip("if", "exists")
    statement = Drop(kind, cursor.name(), if_exists)
    cursor.end()
    return statement


def _explain(cursor: TokenCursor) -> Statement:
    given = cursor.word
    is_measured = cursor.skip("analyze")
    if is_measured and given is not None and cursor.at_end:
        return Explain(given.text, is_name=True)  # a view of this name
    word = cursor.word
    text = cursor.rest("a view or a query")
    is_name = word is not None and word.is_name and text == cursor.text[word.start : word.end]
    return Explain(word.text if is_name and word is not None else text, is_name, is_measured)
