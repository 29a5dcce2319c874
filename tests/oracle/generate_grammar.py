"""What the parts of the grammar of queries share: the tables in reach, scopes, and the parts that call each other in a circle.

A query has a FROM clause, which has conditions, which have subqueries, which are queries. So that each part can be a module of
its own, they reach each other through ``Grammar.parts``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.oracle.choices import Choices
from tests.oracle.generate_expressions import Column, Scope, columns_of, value
from tests.oracle.generate_tables import Kind


@dataclass(frozen=True, slots=True)
class Named:
    """A table, common table expression or subquery: its columns by name."""

    name: str
    columns: Scope


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a part of a query is made with: choices, the tables in reach, and how deep it may still nest."""

    choices: Choices
    tables: tuple[Named, ...]
    depth: int
    parts: Parts
    is_top: bool = False

    def below(self) -> Grammar:
        """For a part of this part."""
        return replace(self, depth=max(0, self.depth - 1), is_top=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A query and its output columns."""

    sql: str
    columns: Scope


@dataclass(frozen=True, slots=True)
class Source:
    """A FROM clause and the columns it offers."""

    sql: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the grammar that others build with."""

    query: Callable[[Grammar, Sequence[Kind] | None], Query]
    """A query; its output has these kinds, if any are asked for."""
    joined: Callable[[Grammar], Source]
    """A FROM clause of tables, subqueries and joins."""
    condition: Callable[[Grammar, Scope], str]
    """A predicate with subqueries in it."""
    null_test: Callable[[Grammar, Scope], str]
    """Whether an IN is NULL, which is not what a join makes of it."""


def aliased(choices: Choices, inner: Query) -> Source:
    """The query as a part of a FROM clause."""
    alias = choices.name("q")
    return Source(f"({inner.sql}) {alias}", qualified(alias, inner.columns))


def qualified(alias: str, columns: Scope) -> Scope:
    """The columns of something that has this name."""
    return tuple(Column(f"{alias}.{c.sql}", c.kind) for c in columns)


def table_source(grammar: Grammar) -> Source:
    """One table."""
    table, alias = grammar.choices.pick(grammar.tables), grammar.choices.name("a")
    return Source(f"{table.name} {alias}", qualified(alias, table.columns))


def link(choices: Choices, left: Scope, right: Scope, operators: Sequence[str]) -> str:
    """A comparison between a column of each side, of the same kind if they have one in common.

    Half of them are of the columns ``k``, whose values are so few that every one has several partners.
    """
    keys = tuple(c for c in left if c.sql.endswith(".k"))
    if keys and any(c.sql.endswith(".k") for c in right) and choices.once_in(2):
        left, right = keys, tuple(c for c in right if c.sql.endswith(".k"))
    mine = choices.pick(left)
    partners = columns_of(right, mine.kind)
    theirs = choices.pick(partners).sql if partners else value(choices, right, mine.kind, 1)
    return f"{mine.sql} {choices.pick(operators)} {theirs}"


def plain(scope: Scope) -> Scope:
    """The columns that a subquery may name."""
    return tuple(c for c in scope if c.is_plain)


def select_list(choices: Choices, listed: Sequence[Column], tail: str, extra: Sequence[str] = ()) -> Query:
    """SELECT these expressions, each under a new name; what is ``extra`` has a name that nothing uses."""
    outputs = tuple(Column(choices.name("c"), c.kind) for c in listed)
    items = [f"{c.sql} AS {o.sql}" for c, o in zip(listed, outputs, strict=True)]
    items += [f"{sql} AS {choices.name('z')}" for sql in extra]
    return Query(f"SELECT {', '.join(items)} {tail}", outputs)
