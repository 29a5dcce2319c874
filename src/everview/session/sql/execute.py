"""Running the statements of ``db.sql``.

Whatever is a query goes to Spark for its meaning and to the backend for its answer. INSERT, DELETE and UPDATE become a
query for the rows to take away and the rows to add, and then one transaction; so does MERGE, with a query a clause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import EverviewError, InvalidQuery, UnknownName, UnsupportedOperation, UnsupportedQuery, guarded
from everview.relational.column_names import find_column
from everview.relational.expressions import Expression
from everview.relational.nodes import Project
from everview.relational.quoting import quote
from everview.relational.schema import columns, schema
from everview.session.changing.alter_table import rename_column, rename_table
from everview.session.changing.rename_view import rename_view
from everview.session.changing.replace_view import replace_view
from everview.session.defining_views import define_view
from everview.session.explain_views import explain_query, explain_view
from everview.session.relations import Assertion, Table, View
from everview.session.results import Result
from everview.session.rows.given_rows import Mode
from everview.session.sql.add_column import add_column
from everview.session.sql.alter_statement import AddColumn, Rename, RenameColumn
from everview.session.sql.assignment import assigned, default_of, new_rows, nullable, weighted
from everview.session.sql.merge import merge
from everview.session.sql.merge_statement import Merge
from everview.session.sql.show_statement import Describe, Show, describe_relation, show_relations
from everview.session.sql.statements import (
    CreateAssertion,
    CreateTable,
    CreateTableAs,
    CreateView,
    Delete,
    Drop,
    Explain,
    Insert,
    Query,
    Statement,
    Truncate,
    Update,
    parse_statement,
    split_statements,
)

if TYPE_CHECKING:
    from everview.session.core import Core
    from everview.session.transaction import Commit

    Outcome = Result | Commit | Table | View | Assertion | str | None


def execute_script(core: Core, text: str) -> Outcome:
    """Runs statements one after another and returns what the last gave; an error has ``.statement``."""
    if not isinstance(text, str):
        raise InvalidQuery(f"db.sql runs text, and this is of type {type(text).__name__}.")
    outcome: Outcome = None
    for statement in split_statements(text):
        try:
            outcome = _execute(core, parse_statement(statement))
        except EverviewError as error:
            if error.statement is None:
                error.statement = statement
                error.add_note(f"in the statement: {statement}")
            raise
    return outcome


def _execute(core: Core, statement: Statement) -> Outcome:
    match statement:
        case CreateTable(name, columns_text, if_not_exists):
            if if_not_exists and name in core.catalog:
                return Table(core, core.catalog.table(name))
            return Table(core, core.define_table(name, columns_text))
        case CreateTableAs(name, query, if_not_exists):
            if if_not_exists and name in core.catalog:
                return Table(core, core.catalog.table(name))
            with core.locked(), guarded(query):
                rows = _answer(core, query).to_arrow()
                return Table(core, core.fill_table(core.define_table(name, rows.schema), rows))
        case CreateView(name, query, if_not_exists, or_replace):
            if if_not_exists and name in core.catalog:
                return View(core, core.catalog.view(name))
            options = ViewOptions(on_error=None)
            if or_replace:
                return View(core, replace_view(core, name, query, options))
            return View(core, define_view(core, name, query, options, is_assertion=False))
        case CreateAssertion(name, query):
            return Assertion(core, define_view(core, name, query, ViewOptions(), is_assertion=True))
        case Insert():
            return _insert(core, statement)
        case Delete():
            return _delete(core, statement)
        case Update():
            return _update(core, statement)
        case Merge():
            return merge(core, statement)
        case AddColumn(table, column, default):
            return Table(core, add_column(core, table, column, default))
        case RenameColumn(table, column, name):
            return Table(core, rename_column(core, table, column, name))
        case Rename("view", relation, name):
            return View(core, rename_view(core, relation, name))
        case Rename(_, relation, name):
            return Table(core, rename_table(core, relation, name))
        case Truncate(table):
            return Table(core, core.catalog.table(table)).truncate()
        case Drop():
            _drop(core, statement)
            return None
        case Query(text):
            return _answer(core, text)
        case Explain():
            return _explain(core, statement)
        case Show():
            with core.locked():
                return Result(show_relations(core.catalog, statement), core.to_spark)
        case Describe():
            with core.locked():
                return Result(describe_relation(core.catalog, statement), core.to_spark)
        case _:
            assert_never(statement)


def _answer(core: Core, text: str) -> Result:
    """The answer to a query; one that we cannot run is Spark's to answer over the current tables, and the result says so."""
    with core.locked(), guarded(text):
        try:
            return Result(core.backend.query(core.translate(text).plan), core.to_spark)
        except UnsupportedQuery as refused:
            answer = core.gateway.answer(text, core.backend.read)
            return Result(answer, core.to_spark, why_spark=refused.message)


def _drop(core: Core, statement: Drop) -> None:
    if statement.name not in core.catalog:
        if statement.if_exists:
            return
        raise UnknownName(f"there is no {statement.kind} '{statement.name}'.", hint=core.catalog.near(statement.name))
    found = core.catalog.get(statement.name)
    kind = "table" if isinstance(found, TableDefinition) else found.kind
    if kind != statement.kind:
        raise UnknownName(f"'{found.name}' is a {kind}.", hint=f"use DROP {kind.upper()}.")
    core.drop(found.name)


def _explain(core: Core, statement: Explain) -> str:
    text = statement.text
    if statement.is_name:
        definition = core.catalog.get(text)
        if isinstance(definition, ViewDefinition):
            with core.locked(), guarded(definition.query):
                return explain_view(core.backend, definition, "analyze" if statement.is_measured else "text")
        text = f"SELECT * FROM {quote(definition.name)}"
    if statement.is_measured:
        raise UnsupportedOperation(
            "EXPLAIN ANALYZE measures a view: what its operators have done since it was made.",
            hint="name a view, or leave ANALYZE out to see how a query would be answered.",
        )
    with core.locked(), guarded(text):
        query = core.translate(text)
        return explain_query(core.backend, ViewDefinition("query", query.plan, text, query.settings.time_zone))


def _insert(core: Core, statement: Insert) -> Commit:
    table = core.catalog.table(statement.table)
    positions = _insert_positions(table, statement.columns)
    with core.locked():
        translated = core.translate(statement.query)
        plan = translated.plan
        given = schema(plan)
        if len(given) != len(positions):
            raise InvalidQuery(
                f"INSERT INTO '{table.name}' needs {len(positions)} columns, but the query gives {len(given)}."
            )
        sources = dict(zip(positions, columns(plan), strict=True))
        values = [
            assigned(table, field, sources[i], translated.settings.time_zone)
            if i in sources
            else default_of(table, field)
            for i, field in enumerate(table.fields)
        ]
        rows = new_rows(core, table, Project(plan, tuple(values), tuple(f.name for f in table.fields)))
        commit = core.commit([core.read_change(table.name, rows, Mode.INSERT)])
    core.subscriptions.deliver()
    return commit


def _insert_positions(table: TableDefinition, names: tuple[str, ...] | None) -> list[int]:
    if names is None:
        return list(range(len(table.fields)))
    positions = [find_column(f"table '{table.name}'", table.fields, n) for n in names]
    if len(set(positions)) < len(positions):
        raise InvalidQuery(f"INSERT INTO '{table.name}' names a column twice: {', '.join(names)}.")
    return positions


def _delete(core: Core, statement: Delete) -> Commit:
    table = core.catalog.table(statement.table)
    with core.locked():
        plan = core.translate(_select(table, statement.alias, "", statement.condition)).plan
        rows = new_rows(core, table, plan)
        commit = core.commit([core.read_change(table.name, rows, Mode.DELETE)])
    core.subscriptions.deliver()
    return commit


def _update(core: Core, statement: Update) -> Commit:
    table = core.catalog.table(statement.table)
    targets = [find_column(f"table '{table.name}'", table.fields, name) for name, _ in statement.assignments]
    new = "".join(f", ({text}\n) AS `new value {i}`" for i, (_, text) in enumerate(statement.assignments))
    with core.locked():
        translated = core.translate(_select(table, statement.alias, new, statement.condition))
        found = columns(translated.plan)
        width = len(table.fields)
        values: list[Expression] = list(found[:width])
        for target, source in zip(targets, found[width:], strict=True):
            values[target] = assigned(table, table.fields[target], source, translated.settings.time_zone)
        names = tuple(f.name for f in table.fields)
        both = Project(translated.plan, (*found[:width], *values), (*names, *names))
        rows = new_rows(core, table, both)
        old, updated = rows.select(list(range(width))), rows.select(list(range(width, 2 * width)))
        changes = pa.concat_tables([weighted(old, -1), weighted(updated.cast(nullable(old.schema)), 1)])
        commit = core.commit([core.read_change(table.name, changes, Mode.APPLY)])
    core.subscriptions.deliver()
    return commit


def _select(table: TableDefinition, alias: str | None, more: str, condition: str | None) -> str:
    named = quote(alias or table.name)
    where = "" if condition is None else f" WHERE ({condition}\n)"
    return f"SELECT {named}.*{more} FROM {quote(table.name)} AS {named}{where}"
