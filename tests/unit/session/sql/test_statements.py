from __future__ import annotations

import pytest

from everview.errors import EverviewError, InvalidQuery, UnsupportedOperation
from everview.session.sql.statements import (
    CreateAssertion,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Explain,
    Insert,
    Query,
    Statement,
    Update,
    parse_statement,
    split_statements,
)


def test_split_leaves_strings_and_comments_alone() -> None:
    """A semicolon ends a statement only where it is one."""
    text = "SELECT ';', \";\" /* ; */ FROM `a;b` -- ; \n; ;\nSELECT r'\\;' ;"
    assert split_statements(text) == ["SELECT ';', \";\" /* ; */ FROM `a;b`", "SELECT r'\\;'"]
    assert split_statements("  -- nothing\n") == []
    with pytest.raises(InvalidQuery, match="the script has a string, a quoted name or a comment without an end"):
        split_statements("SELECT 'x")


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("create table T (a int, b decimal(3, 1))", CreateTable("T", "a int, b decimal(3, 1)", False)),
        ("CREATE TABLE IF NOT EXISTS t (a int)", CreateTable("t", "a int", True)),
        ("CREATE VIEW v AS SELECT 1 AS x", CreateView("v", "SELECT 1 AS x", False)),
        ("CREATE MATERIALIZED VIEW `v` AS (SELECT 1)", CreateView("v", "(SELECT 1)", False)),
        (
            "CREATE VIEW v (a, b) AS SELECT 1, 2",
            CreateView("v", "SELECT * FROM (SELECT 1, 2\n) AS `v`(`a`, `b`)", False),
        ),
        ("CREATE ASSERTION a AS SELECT 1", CreateAssertion("a", "SELECT 1")),
        ("CREATE ASSERTION a CHECK (NOT EXISTS (SELECT (1)))", CreateAssertion("a", "SELECT (1)")),
        ("INSERT INTO t VALUES (1, 'a')", Insert("t", None, "VALUES (1, 'a')")),
        ("INSERT INTO t (b, `a`) SELECT 1, 2", Insert("t", ("b", "a"), "SELECT 1, 2")),
        ("INSERT INTO t (SELECT 1)", Insert("t", None, "(SELECT 1)")),
        (
            "INSERT INTO t WITH c AS (SELECT 1) SELECT * FROM c",
            Insert("t", None, "WITH c AS (SELECT 1) SELECT * FROM c"),
        ),
        ("DELETE FROM t", Delete("t", None, None)),
        ("DELETE FROM t x WHERE x.a IN (1, 2) OR b", Delete("t", "x", "x.a IN (1, 2) OR b")),
        ("UPDATE t SET a = 1", Update("t", None, (("a", "1"),), None)),
        (
            "UPDATE t AS x SET x.a = coalesce(a, 1), b = CASE WHEN a THEN (SELECT 1 FROM u WHERE u.k = 1) END WHERE a = 2",
            Update(
                "t",
                "x",
                (("a", "coalesce(a, 1)"), ("b", "CASE WHEN a THEN (SELECT 1 FROM u WHERE u.k = 1) END")),
                "a = 2",
            ),
        ),
        ("DROP TABLE t", Drop("table", "t", False)),
        ("DROP MATERIALIZED VIEW IF EXISTS v", Drop("view", "v", True)),
        ("DROP ASSERTION a", Drop("assertion", "a", False)),
        ("EXPLAIN v", Explain("v", True)),
        ("EXPLAIN SELECT 1", Explain("SELECT 1", False)),
        ("explain  with a AS (SELECT ';') TABLE a", Explain("with a AS (SELECT ';') TABLE a", False)),
        ("(SELECT 1) UNION ALL SELECT 2", Query("(SELECT 1) UNION ALL SELECT 2")),
        ("TABLE t", Query("TABLE t")),
    ],
)
def test_statements(text: str, statement: Statement) -> None:
    """Every statement is read into its parts, the queries inside it untouched."""
    assert parse_statement(text) == statement


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELEC 1", InvalidQuery, "'SELEC 1' is not a statement. Hint: did you mean 'select'?"),
        (
            "VACUUM t",
            UnsupportedOperation,
            "db.sql has no VACUUM statement. Hint: db.sql has CREATE, INSERT, DELETE, ",
        ),
        ("INSERT OVERWRITE t VALUES (1)", UnsupportedOperation, "INSERT OVERWRITE is not supported. Hint: DELETE FROM"),
        (
            "CREATE TABLE t",
            InvalidQuery,
            "the statement 'CREATE TABLE t' has the end where the columns, in parentheses,",
        ),
        (
            "CREATE TABLE t (a int) USING delta",
            InvalidQuery,
            "the statement 'CREATE TABLE t (a int) USING delta' has 'USING'",
        ),
        (
            "CREATE TEMP VIEW v AS SELECT 1",
            InvalidQuery,
            "the statement 'CREATE TEMP VIEW v AS SELECT 1' has 'TEMP' where",
        ),
        (
            "CREATE VIEW v SELECT 1",
            InvalidQuery,
            "the statement 'CREATE VIEW v SELECT 1' has 'SELECT' where AS should be.",
        ),
        ("INSERT INTO t", InvalidQuery, "the statement 'INSERT INTO t' has the end where VALUES or a query should be."),
        ("DELETE t", InvalidQuery, "the statement 'DELETE t' has 't' where FROM should be."),
        ("UPDATE t SET a 1", InvalidQuery, "the statement 'UPDATE t SET a 1' has '1' where '=' should be."),
        ("UPDATE t SET a = 1, A = 2", InvalidQuery, "UPDATE sets column 'a' twice."),
        (
            "UPDATE t SET a = WHERE b",
            InvalidQuery,
            "the statement 'UPDATE t SET a = WHERE b' has 'WHERE' where an expression",
        ),
        ("DROP SCHEMA s", InvalidQuery, "the statement 'DROP SCHEMA s' has 'SCHEMA' where TABLE, VIEW,"),
        ("DROP TABLE a, b", InvalidQuery, "the statement 'DROP TABLE a, b' has ',' where the end should be."),
    ],
)
def test_statements_that_are_none(text: str, error: type[EverviewError], message: str) -> None:
    """A statement that cannot be read is shown with the word where reading stopped."""
    with pytest.raises(error) as caught:
        parse_statement(text)
    assert str(caught.value).startswith(message)
