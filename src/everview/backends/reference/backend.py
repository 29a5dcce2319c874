"""The reference backend: every view is computed anew after every transaction, in plain Python.

It is the oracle of the tests, so it is obviously correct before anything else. A state is an immutable value: ``apply``
computes the whole next state first and assigns it last, which is all there is to atomicity.
"""

from __future__ import annotations

import datetime
import json
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from everview.algebra.zset import ZSet, bag, difference, expand, size
from everview.backends import base, rejections
from everview.backends.base import Change, InMemory, Refresh, Suspension, VersionedDelta, without_sources_of
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.backends.reference.state import TableState
from everview.backends.refresh_choice import NOTHING_TO_DO, views_over
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import EvaluationError
from everview.relational.arrow import canonical_rows, public_rows, rows_to_arrow
from everview.relational.column_names import WEIGHT, find_column
from everview.relational.format import format_plan
from everview.relational.nodes import Relation, Schema
from everview.relational.schema import schema
from everview.relational.traverse import tables_of
from everview.relational.types import Row, Value

_HEALED = Refresh("full", "it was suspended, and the rows it failed on are gone")
_RECOMPUTED = Refresh("full", "the reference backend recomputes every view")


@dataclass(frozen=True, slots=True)
class _ViewState:
    """The rows of a view, and what its maintenance has cost so far; of a suspended one the last rows that it had."""

    definition: ViewDefinition
    rows: ZSet[Row]
    created_at: int
    updates: int = 0
    seconds: float = 0.0
    suspension: Suspension | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """One version of the database; keys are names in small letters, views in order of creation."""

    version: int = 0
    tables: Mapping[str, TableState] = field(default_factory=dict)
    views: Mapping[str, _ViewState] = field(default_factory=dict)
    batches: Mapping[str, int] = field(default_factory=dict)
    refreshed: Mapping[str, Refresh] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Moved:
    """What one transaction did to the views."""

    version: int
    committed_at: datetime.datetime
    deltas: Mapping[str, pa.Table]


class ReferenceBackend(InMemory):
    """Implements ``backends.base.Backend`` by recomputation.

    Args:
        history: For how many versions the deltas of views are kept.
    """

    name = "reference"

    def __init__(self, history: int = 1000) -> None:
        self._state = _State()
        self._history: deque[_Moved] = deque(maxlen=history)

    @property
    def version(self) -> int:
        """The number of transactions committed."""
        return self._state.version

    def create_table(self, table: TableDefinition) -> None:
        """Adds an empty table."""
        tables = {**self._state.tables, table.name.lower(): TableState(table, {})}
        self._state = replace(self._state, tables=tables)

    def create_view(self, view: ViewDefinition) -> None:
        """Adds a view or assertion and computes it."""
        if view.options.refresh == "incremental_strict":
            raise rejections.never_incremental(view, self.name)
        for name in tables_of(view.plan):
            table = self._state.tables.get(name.lower())
            if table is not None and not table.definition.retain and table.has_received_rows:
                raise rejections.too_late_for_view(view, table.definition)
            if name.lower() in self._state.views and not view.options.may_be_suspended:
                self._answering(name)
        created = _recomputed(_ViewState(view, {}, self.version), self._state.tables, self._state.views, self.version)
        created = replace(created, updates=0, seconds=0.0)  # being made is no update
        self._state = replace(self._state, views={**self._state.views, view.name.lower(): created})

    def drop(self, name: str) -> None:
        """Removes a table, view or assertion."""
        tables = {key: table for key, table in self._state.tables.items() if key != name.lower()}
        views = {key: view for key, view in self._state.views.items() if key != name.lower()}
        batches = without_sources_of(name, self._state.batches)
        self._state = replace(self._state, tables=tables, views=views, batches=batches)

    def alter_table(self, name: str, altered: base.AlteredTable) -> None:
        """Alters a table that nothing reads."""
        tables = dict(self._state.tables)
        table = tables.pop(name.lower())
        filling = altered.filling.value
        rows = {
            tuple(filling if i is None else row[i] for i in altered.columns): weight
            for row, weight in table.rows.items()
        }
        tables[altered.definition.name.lower()] = TableState(altered.definition, rows, table.has_received_rows)
        batches = base.sources_moved(name, altered.definition.name, self._state.batches)
        self._state = replace(self._state, tables=tables, batches=batches)

    def apply(self, changes: Sequence[Change], *, source: tuple[str, int] | None = None) -> Mapping[str, pa.Table]:
        """Commits one transaction: the next tables, then every view over what moved, in order of creation."""
        tables = _changed_tables(self._state.tables, changes)
        moved = {name for name in tables if tables[name].rows != self._state.tables[name].rows}
        views: dict[str, _ViewState] = {}
        deltas: dict[str, pa.Table] = {}
        refreshed: dict[str, Refresh] = {}
        over = views_over(moved, {key: view.definition for key, view in self._state.views.items()})
        for key, old in self._state.views.items():
            views[key] = old
            if key not in over:
                continue
            is_moved = not moved.isdisjoint(name.lower() for name in tables_of(old.definition.plan))
            if not old.definition.is_assertion:
                refreshed[old.definition.name] = _RECOMPUTED if is_moved else NOTHING_TO_DO
            if not is_moved:
                continue
            views[key] = _recomputed(old, tables, views, self.version + 1)
            if (old.suspension is None) != (views[key].suspension is None):
                moved.add(key)
            if views[key].suspension is not None:
                refreshed.pop(old.definition.name, None)
            elif old.suspension is not None:
                refreshed[old.definition.name] = _HEALED
            delta = difference(views[key].rows, old.rows)
            if delta:
                moved.add(key)
                deltas[old.definition.name] = _delta_table(delta, old.definition.fields)
        now = datetime.datetime.now(datetime.UTC)
        batches = {**self._state.batches, **dict([source] if source else [])}
        self._state = _State(self.version + 1, tables, views, batches, refreshed)
        self._history.append(_Moved(self.version, now, deltas))
        return deltas

    def last_batch(self, source: str) -> int | None:
        """The last committed batch of a source."""
        return self._state.batches.get(source)

    def refreshed(self) -> Mapping[str, Refresh]:
        """Every view over the tables that changed was recomputed, where something that it reads did change."""
        return self._state.refreshed

    def suspensions(self) -> Mapping[str, Suspension]:
        """The views that have no answer."""
        found = ((v.definition.name, v.suspension) for v in self._state.views.values())
        return {name: why for name, why in found if why is not None}

    def heal(self) -> Mapping[str, pa.Table]:
        """Nothing to do: every transaction recomputes suspended views, too."""
        return {}

    def read(self, name: str) -> pa.Table:
        """The bag of a table or view."""
        rows, fields = self._content(name)
        return rows_to_arrow(list(expand(rows)), fields)

    def iterate(self, name: str) -> Iterator[tuple[Any, ...]]:
        """The same, row by row."""
        return iter(public_rows(self.read(name)))

    def lookup(self, name: str, key: Mapping[str, Value]) -> pa.Table:
        """The rows with these values, found by looking at all."""
        rows, fields = self._content(name)
        wanted = [(find_column(f"'{name}'", fields, column), value) for column, value in key.items()]
        found = [row for row in expand(rows) if all((row[i],) == (value,) for i, value in wanted)]
        return rows_to_arrow(found, fields)

    def query(self, plan: Relation) -> pa.Table:
        """Evaluates a plan once."""
        for name in tables_of(plan):
            table = self._state.tables.get(name.lower())
            if table is not None and not table.definition.retain:
                raise rejections.not_retained(table.definition)
            if name.lower() in self._state.views:
                self._answering(name)
        return rows_to_arrow(_evaluate(plan, self._state.tables, self._state.views), schema(plan))

    def changes(self, view: str, since: int) -> Sequence[VersionedDelta]:
        """The non-empty deltas of the versions after ``since``."""
        state = self._answering(view)
        kept_since = self.changes_kept_since(view)
        if not kept_since <= since <= self.version:
            raise rejections.changes_not_kept(state.definition.name, since, kept_since, self.version)
        return [
            VersionedDelta(moved.version, moved.deltas[state.definition.name], moved.committed_at)
            for moved in self._history
            if moved.version > since and state.definition.name in moved.deltas
        ]

    def changes_kept_since(self, view: str) -> int:
        """The smallest ``since`` that ``changes`` takes."""
        return max(self._state.views[view.lower()].created_at, self.version - len(self._history))

    def explain(self, view: str, mode: str) -> str:
        """The plan, as text or JSON."""
        state = self._state.views[view.lower()]
        definition, why = state.definition, state.suspension
        plan = format_plan(definition.plan)
        match mode:
            case "text":
                return f"{plan.rstrip()}\nrecompute: O(database)\n" + ("" if why is None else f"{why}\n")
            case "json":
                inputs = sorted(tables_of(definition.plan))
                told = {"view": definition.name, "backend": self.name, "strategy": "recompute", "inputs": inputs}
                told |= {"update": "O(database)", "plan": plan.splitlines()}
                return json.dumps(told if why is None else {**told, "suspended": asdict(why)}, indent=2)
            case _:
                raise rejections.unknown_explain_mode(mode, self.name, ("text", "json"))

    def cost_lines(self, view: ViewDefinition) -> list[str]:
        """Everything is computed anew, always."""
        return ["recompute: O(database)"]

    def stats(self, view: str) -> dict[str, Any]:
        """Rows, bytes (as Arrow), recomputations and their seconds."""
        state = self._state.views[view.lower()]
        told: dict[str, Any] = {"rows": None, "bytes": {}, "updates": state.updates, "seconds": state.seconds}
        if state.suspension is not None:
            return told | {"suspended": state.suspension}
        return told | {"rows": size(state.rows), "bytes": {state.definition.name: self.read(view).nbytes}}

    def checkpoint(self) -> None:
        """Nothing to do: the reference backend lives in memory, which the session says before it asks."""

    def close(self) -> None:
        """Forgets everything."""
        self._state = _State(self.version)
        self._history.clear()

    def _content(self, name: str) -> tuple[ZSet[Row], Schema]:
        table = self._state.tables.get(name.lower())
        if table is None:
            view = self._answering(name)
            return view.rows, view.definition.fields
        if not table.definition.retain:
            raise rejections.not_retained(table.definition)
        return table.rows, table.definition.fields

    def _answering(self, name: str) -> _ViewState:
        view = self._state.views[name.lower()]
        if view.suspension is not None:
            raise rejections.suspended(view.definition, view.suspension)
        return view


def _changed_tables(tables: Mapping[str, TableState], changes: Sequence[Change]) -> dict[str, TableState]:
    by_table: dict[str, list[Change]] = {}
    for change in changes:
        by_table.setdefault(change.table.lower(), []).append(change)
    return {**tables, **{name: tables[name].after(own) for name, own in by_table.items()}}


def _recomputed(
    old: _ViewState, tables: Mapping[str, TableState], views: Mapping[str, _ViewState], version: int
) -> _ViewState:
    """The view over these tables and views, once more, for this version: with its rows, or suspended."""
    started = time.perf_counter()
    definition = old.definition
    read = (views.get(name.lower()) for name in tables_of(definition.plan))
    waited_for = next((v for v in read if v is not None and v.suspension is not None), None)
    since = version if old.suspension is None else old.suspension.version
    if waited_for is not None and waited_for.suspension is not None:
        return replace(
            old, suspension=rejections.waiting(definition, since, waited_for.definition, waited_for.suspension)
        )
    try:
        rows = bag(_evaluate(definition.plan, tables, views))
    except EvaluationError as error:
        return replace(old, suspension=rejections.failing(definition, since, error))
    if definition.is_assertion and rows:
        raise rejections.assertion_violated(definition, list(rows))
    spent = time.perf_counter() - started
    return replace(old, rows=rows, updates=old.updates + 1, seconds=old.seconds + spent, suspension=None)


def _evaluate(plan: Relation, tables: Mapping[str, TableState], views: Mapping[str, _ViewState]) -> list[Row]:
    inputs: dict[str, list[Row]] = {}
    for name in tables_of(plan):
        content = tables[name.lower()].rows if name.lower() in tables else views[name.lower()].rows
        inputs[name] = list(expand(content))
    return canonical_rows(evaluate_plan(plan, inputs), schema(plan))


def _delta_table(delta: ZSet[Row], fields: Schema) -> pa.Table:
    rows = rows_to_arrow(list(delta), fields)
    weights = pa.array(list(delta.values()), pa.int64())
    return _with_weights(rows, weights)


def _with_weights(rows: pa.Table, weights: pa.Array) -> pa.Table:
    return rows.append_column(pa.field(WEIGHT, pa.int64(), nullable=False), weights)
