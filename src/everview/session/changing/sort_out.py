"""Assertions that sort rows out: with ``drop`` or ``quarantine`` a transaction goes on without the rows they catch.

An assertion catches single rows of one table T if its query is made of

    Q  =  scan T  |  filter Q  |  project Q  |  Q semi- or anti-join P        (T nowhere in P)

because each row of its answer then is a row of T, and whether a row is caught depends on that row and on P only. Other shapes
(aggregates, inner joins, T twice) are refused at creation. What is left out of a transaction is

    { r inserted into T, by insert or upsert : r ∈ Q(inserted rows, P after the transaction) }

Deletes stay. A row that was there already and is caught now, because P has changed, is nobody's inserted row: the transaction
is rejected, as by any other assertion.
"""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.factorized_rows import FactorizedChange
from everview.catalog import Catalog, TableDefinition, ViewDefinition, ViewOptions
from everview.errors import EvaluationError, UnsupportedOperation, UnsupportedQuery, guarded
from everview.relational.arrow import arrow_schema
from everview.relational.expressions import Column, Expression, substitute
from everview.relational.nodes import Field, Filter, Join, JoinKind, Project, Relation, Scan, Schema
from everview.relational.schema import schema
from everview.relational.traverse import inputs, tables_of
from everview.relational.types import INT64, TIMESTAMP
from everview.session.defining_views import define_view, view_definition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.core import Core

PLACE = Field("everview place", INT64, False)
QUARANTINE_COLUMNS: Schema = (Field("quarantined_version", INT64, False), Field("quarantined_at", TIMESTAMP, False))


def quarantine_name(assertion: str) -> str:
    """The table that an assertion puts rows into."""
    return f"{assertion}_quarantine"


@dataclass(frozen=True, slots=True)
class Catching:
    """An assertion that catches single rows: of which table, and the plan of the caught ones, with their places."""

    assertion: ViewDefinition
    table: TableDefinition
    plan: Relation


def catching(assertion: ViewDefinition, catalog: Catalog) -> Catching:
    """How an assertion catches rows.

    Raises:
        UnsupportedQuery: it does not catch single rows of one table.
    """
    plan, _ = _caught(assertion, assertion.plan)
    node = plan
    while not isinstance(node, Scan):
        node = inputs(node)[0]
    table = catalog.table(node.table)
    for read in catalog.inputs_of(assertion):
        if isinstance(read, TableDefinition) and read.follows is not None:
            raise _refused(assertion, "Scan", f"reads table '{read.name}', which follows a Delta table")
    found = [n for n in _scans(plan) if n.lower() == table.name.lower()]
    if len(found) > 1:
        raise _refused(assertion, "Scan", f"reads table '{table.name}' more than once")
    return Catching(assertion, table, plan)


def _scans(plan: Relation) -> list[str]:
    return [plan.table] if isinstance(plan, Scan) else [name for child in inputs(plan) for name in _scans(child)]


def _caught(assertion: ViewDefinition, node: Relation) -> tuple[Relation, tuple[Expression, ...]]:
    """The plan over whole rows of the table with their places, and what the columns of the node are of them."""
    match node:
        case Scan(table=table, fields=fields):
            whole = (*fields, PLACE)
            return Scan(table, whole), tuple(Column(i, f.type, f.nullable) for i, f in enumerate(fields))
        case Project(child=child, expressions=expressions):
            plan, columns = _caught(assertion, child)
            return plan, tuple(substitute(e, columns) for e in expressions)
        case Filter(child=child, condition=condition):
            plan, columns = _caught(assertion, child)
            return Filter(plan, substitute(condition, columns)), columns
        case Join(left=left, right=right, kind=JoinKind.SEMI | JoinKind.ANTI, condition=condition):
            plan, columns = _caught(assertion, left)
            width = len(schema(plan))
            beside = tuple(Column(width + i, f.type, f.nullable) for i, f in enumerate(schema(right)))
            return replace(node, left=plan, condition=substitute(condition, (*columns, *beside))), columns
        case _:
            raise _refused(assertion, type(node).__name__, "does not catch single rows of one table")


def _refused(assertion: ViewDefinition, operator: str, why: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"assertion '{assertion.name}' cannot have on_violation='{assertion.options.on_violation}': its query {why}.",
        operator=operator,
        hint="rows are caught by filters over one table, and [NOT] EXISTS or IN; else use on_violation='reject'.",
    )


def define_assertion(core: Core, name: str, query: str | DataFrame, options: ViewOptions) -> ViewDefinition:
    """Makes an assertion, with a table for the rows it puts aside if it does; one of an assertion before it is used."""
    if options.on_violation == "reject":
        return define_view(core, name, query, options, is_assertion=True)
    with core.locked():
        core.catalog.check_name(name)
        definition = view_definition(core, name, core.translate(query), options, is_assertion=True)
        how = catching(definition, core.catalog)
        place = quarantine_name(name) if options.on_violation == "quarantine" else None
        fields = (*(replace(f, nullable=True) for f in how.table.fields), *QUARANTINE_COLUMNS)
        made = None
        if place is not None and not (place in core.catalog and core.catalog.get(place).fields == fields):
            made = core.define_table(place, arrow_schema(fields))
        try:
            with guarded(query):
                core.add_view(definition)
        except BaseException:
            if made is not None:
                core.drop(made.name)
            raise
        return definition


def sort_out(core: Core, changes: list[Change]) -> tuple[list[Change], dict[str, pa.Table]]:
    """The changes without the rows that assertions catch, with those for quarantine; and what was caught, by assertion.

    Raises:
        EvaluationError: an assertion fails on the rows.
        UnsupportedOperation: the transaction changes what the assertion compares with in a way that cannot be looked ahead.
    """
    caught: dict[str, pa.Table] = {}
    for assertion in core.catalog.assertions:
        if assertion.options.on_violation == "reject":
            continue
        how = catching(assertion, core.catalog)
        own = [i for i, c in enumerate(changes) if c.table.lower() == how.table.name.lower()]
        if not any(changes[i].kind is not ChangeKind.DELETE_KEYS for i in own):
            continue
        changes, rows = _without_caught(core, how, changes, own)
        if not rows.num_rows:
            continue
        caught[assertion.name] = rows
        if assertion.options.on_violation == "quarantine":
            changes.append(_quarantined(core, assertion, rows))
    return changes, caught


def _without_caught(
    core: Core, how: Catching, changes: Sequence[Change], own: Sequence[int]
) -> tuple[list[Change], pa.Table]:
    given: list[pa.Table] = []
    for i in own:
        change = changes[i]
        if isinstance(change, FactorizedChange):
            raise UnsupportedOperation(
                f"a product cannot be inserted into table '{how.table.name}': assertion '{how.assertion.name}' looks at rows.",
                hint="insert the rows, not a Product.",
            )
        if change.kind is not ChangeKind.DELETE_KEYS:
            rows = change.rows
            places = (
                np.arange(rows.num_rows) if change.weights is None else np.flatnonzero(change.weights.to_numpy() > 0)
            )
            numbered = rows.take(pa.array(places)).append_column(PLACE.name, pa.array(places + (i << 40)))
            given.append(numbered.cast(arrow_schema((*how.table.fields, PLACE))))
    found = _evaluate(core, how, pa.concat_tables(given), changes).column(PLACE.name).to_numpy()
    kept, left_out = list(changes), [arrow_schema(how.table.fields).empty_table()]
    for i in own:
        places = np.unique(found[found >> 40 == i] & ((1 << 40) - 1))
        if len(places):
            change = changes[i]
            stays = np.ones(change.rows.num_rows, dtype=np.bool_)
            stays[places] = False
            left_out.append(change.rows.take(pa.array(places)).cast(arrow_schema(how.table.fields)))
            weights = None if change.weights is None else change.weights.filter(pa.array(stays))
            kept[i] = Change(change.table, change.kind, change.rows.filter(pa.array(stays)), weights)
    return kept, pa.concat_tables(left_out)


def _evaluate(core: Core, how: Catching, rows: pa.Table, changes: Sequence[Change]) -> pa.Table:
    """The caught ones of these rows, found by an engine of its own that holds nothing else."""
    engine: Any = importlib.import_module("everview.backends.embedded.backend").EmbeddedBackend(0)
    scanned = TableDefinition(how.table.name, (*how.table.fields, PLACE))
    engine.create_table(scanned)
    engine.apply([Change(scanned.name, ChangeKind.WEIGHTED, rows)])
    for name in tables_of(how.plan):
        if name.lower() == how.table.name.lower():
            continue
        definition = core.catalog.get(name)
        beside = [c for c in changes if c.table.lower() == name.lower()]
        if isinstance(definition, ViewDefinition):
            below = {d.name.lower() for d in core.catalog.inputs_of(definition)}
            if any(c.table.lower() in below for c in changes):
                raise UnsupportedOperation(
                    f"assertion '{how.assertion.name}' compares rows of table '{how.table.name}' with view '{name}', "
                    "which the same transaction changes.",
                    hint="change its tables in a transaction before.",
                )
        key = definition.primary_key if isinstance(definition, TableDefinition) else ()
        engine.create_table(TableDefinition(definition.name, definition.fields, key))
        content = core.backend.read(name)
        engine.apply([Change(definition.name, ChangeKind.WEIGHTED, content)])
        if beside:
            engine.apply(beside)
    try:
        answer: pa.Table = engine.query(how.plan)
        return answer
    except EvaluationError as error:
        message = f"assertion '{how.assertion.name}' cannot be computed: {error.message}"
        raise EvaluationError(message, condition=error.condition, hint=error.hint) from error


def _quarantined(core: Core, assertion: ViewDefinition, rows: pa.Table) -> Change:
    table = core.catalog.table(quarantine_name(assertion.name))
    version = pa.repeat(pa.scalar(core.backend.version + 1, pa.int64()), rows.num_rows)
    now = pa.scalar(datetime.datetime.now(datetime.UTC), pa.timestamp("us", "UTC"))
    whole = [*rows.columns, version, pa.repeat(now, rows.num_rows)]
    return Change(table.name, ChangeKind.WEIGHTED, pa.Table.from_arrays(whole, schema=arrow_schema(table.fields)))
