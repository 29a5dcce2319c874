"""``MERGE INTO``, read as Spark reads it.

Conditions and expressions are cut out of the text as they stand. The grammar, keywords in any case::

    merge    := MERGE INTO name [[AS] alias] USING source ON condition when+
    source   := (name | "(" query ")") [[AS] alias ["(" names ")"]]
    when     := WHEN MATCHED [AND condition] THEN (update | DELETE)
              | WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT ("*" | columns VALUES "(" expressions ")")
              | WHEN NOT MATCHED BY SOURCE [AND condition] THEN (update | DELETE)
    update   := UPDATE SET ("*" | column "=" expression ("," column "=" expression)*)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from everview.errors import InvalidQuery, UnsupportedOperation
from everview.relational.quoting import quote
from everview.session.sql.tokens import TokenCursor, alias_before


class When(Enum):
    """Which rows a clause is for."""

    MATCHED = "WHEN MATCHED"
    NOT_MATCHED = "WHEN NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "WHEN NOT MATCHED BY SOURCE"


class Action(Enum):
    """What a clause does with its rows."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN; ``values`` are columns with expressions, None for ``*``: the source's columns of the same names."""

    when: When
    condition: str | None
    action: Action
    values: tuple[tuple[str, str], ...] | None = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """``MERGE INTO table AS alias USING source``: the text of the source with its alias, which is given by itself too."""

    table: str
    alias: str
    source: str
    source_alias: str
    condition: str
    clauses: tuple[MergeClause, ...]


def parse_merge(cursor: TokenCursor) -> Merge:
    """Reads what follows MERGE.

    Raises:
        InvalidQuery: it is no such statement, or a clause could never be reached.
        UnsupportedOperation: it is to change the columns of the table.
    """
    if cursor.skip("with", "schema", "evolution"):
        raise UnsupportedOperation(
            "MERGE WITH SCHEMA EVOLUTION is not supported.", hint="ALTER TABLE … ADD COLUMN adds a column."
        )
    cursor.expect("into")
    table = cursor.name("a table name")
    alias = alias_before(cursor, "using") or table
    cursor.expect("using")
    source, source_alias = _source(cursor)
    return Merge(table, alias, source, source_alias, *parse_merge_rules(cursor))


def parse_merge_rules(cursor: TokenCursor) -> tuple[str, tuple[MergeClause, ...]]:
    """Reads the condition after ON, and the clauses."""
    cursor.expect("on")
    condition = cursor.until("a condition", "when")
    clauses: list[MergeClause] = []
    while not cursor.at_end:
        clauses.append(_clause(cursor))
    if not clauses:
        raise cursor.unexpected("WHEN")
    for when in When:
        for early in [c for c in clauses if c.when is when][:-1]:
            if early.condition is None:
                raise InvalidQuery(f"only the last {when.value} of a MERGE can be without a condition.")
    return condition, tuple(clauses)


def _source(cursor: TokenCursor) -> tuple[str, str]:
    if cursor.next_is("("):
        text, alias = f"({cursor.in_parentheses('a query')}\n)", "merge source"
    else:
        alias = cursor.name("a table, a view or a query in parentheses")
        text = quote(alias)
    alias = alias_before(cursor, "on") or alias
    columns = f"({', '.join(map(quote, cursor.names_in_parentheses()))})" if cursor.next_is("(") else ""
    return f"{text} AS {quote(alias)}{columns}", alias


def _clause(cursor: TokenCursor) -> MergeClause:
    cursor.expect("when")
    when = When.MATCHED
    if cursor.skip("not"):
        cursor.expect("matched")
        when = When.NOT_MATCHED_BY_SOURCE if cursor.skip("by", "source") else When.NOT_MATCHED
        if when is When.NOT_MATCHED:
            cursor.skip("by", "target")
    else:
        cursor.expect("matched")
    condition = cursor.until("a condition", "then") if cursor.skip("and") else None
    cursor.expect("then")
    if when is When.NOT_MATCHED:
        cursor.expect("insert")
        return MergeClause(when, condition, Action.INSERT, None if cursor.skip("*") else _inserted(cursor))
    if cursor.skip("delete"):
        return MergeClause(when, condition, Action.DELETE)
    if not cursor.next_is("update", "set"):
        raise cursor.unexpected("UPDATE SET or DELETE")
    cursor.expect("update", "set")
    if when is When.MATCHED and cursor.skip("*"):
        return MergeClause(when, condition, Action.UPDATE, None)
    assignments = [_assignment(cursor)]
    while cursor.skip(","):
        assignments.append(_assignment(cursor))
    return MergeClause(when, condition, Action.UPDATE, tuple(assignments))


def _assignment(cursor: TokenCursor) -> tuple[str, str]:
    column = _column(cursor)
    cursor.expect("=")
    return column, cursor.until("an expression", ",", "when")


def _inserted(cursor: TokenCursor) -> tuple[tuple[str, str], ...]:
    columns = _listed(cursor, _column)
    cursor.expect("values")
    values = _listed(cursor, lambda c: c.until("an expression", ",", ")"))
    if len(columns) != len(values):
        raise InvalidQuery(f"INSERT of a MERGE names {len(columns)} columns, but gives {len(values)} values.")
    return tuple(zip(columns, values, strict=True))


def _listed(cursor: TokenCursor, item: Callable[[TokenCursor], str]) -> list[str]:
    cursor.expect("(")
    items = [item(cursor)]
    while cursor.skip(","):
        items.append(item(cursor))
    cursor.expect(")")
    return items


def _column(cursor: TokenCursor) -> str:
    """A column of the target, perhaps after its alias."""
    name = cursor.name("a column name")
    return cursor.name("a column name") if cursor.skip(".") else name
