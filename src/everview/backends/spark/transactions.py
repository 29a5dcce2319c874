"""One transaction of the Spark backend: the tables' net changes, then every view's, before anything is written."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from everview.backends import rejections
from everview.backends.base import WEIGHT, Change, Refresh, Suspension
from everview.backends.refresh_choice import NOTHING_TO_DO, choose_refresh, views_over
from everview.backends.spark.database_files import DatabaseFiles
from everview.backends.spark.maintain import Maintenance, Work
from everview.backends.spark.relation_store import Layout
from everview.backends.spark.restrict import Restriction
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.stages import Grouped, Partitioned, Stage, StageProgram, TreeView
from everview.backends.spark.table_changes import net_rows, table_change
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import EvaluationError
from everview.relational.arrow import rows_from_arrow
from everview.relational.expressions import Column
from everview.relational.nodes import Schema

_SORTED = 10_000
"""Deltas of at most so many rows are given out in order, so that the same change looks the same."""
SHARE = 0.5
"""With refresh='auto': from which share of changed rows on computing anew is taken to be cheaper than the delta."""


@dataclass
class ViewWithStages:
    """A view or assertion in force, and what its maintenance has cost since the database was opened."""

    definition: ViewDefinition
    program: StageProgram
    created_at: int
    updates: int = 0
    seconds: float = 0.0
    """Its own: computing its stages, writing and compacting its relations."""
    jobs: int = 0
    """Spark jobs of the last transaction that touched the view: of the whole transaction."""

    def count_update(self, jobs: int) -> None:
        """A transaction that touched the view is committed."""
        self.updates, self.jobs = self.updates + 1, jobs


@dataclass(frozen=True)
class Run:
    """What a transaction works on: the files as they are, and the definitions."""

    _files: DatabaseFiles
    _engine: SparkEngine
    _limit: int
    _tables: Mapping[str, TableDefinition]
    _views: Mapping[str, ViewWithStages]

    def change_tables(self, changes: Sequence[Change], work: Work) -> frozenset[str]:
        """Puts the net change of every table into the work; returns the tables that were given rows.

        Raises:
            InvalidChange: a table cannot take its rows.
        """
        by_table: dict[str, list[Change]] = {}
        for change in changes:
            if change.given.num_rows:
                by_table.setdefault(change.table.lower(), []).append(change)
        restriction = Restriction(self._engine, self._limit, "UTC")
        for name, own in by_table.items():
            table = self._tables[name]
            if table.static and name in self._files.last.received:
                raise rejections.static_changed(table)
            delta = table_change(table, self._files.relations[name], own, restriction)
            if delta.num_rows:
                work.changes[name] = delta
                if table.retain or any(name in v.program.stored() for v in self._views.values()):
                    work.appended[name] = delta
        return frozenset(by_table)

    def move_views(self, work: Work, refreshed: dict[str, Refresh], suspended: dict[str, Suspension]) -> list[str]:
        """Pushes the changes through every view over them, in order of creation; returns the views that moved, by key.

        ``refreshed`` gets every view over a table with rows in the transaction, directly or through other views. Views that
        fail enter ``suspended``, and leave it where they do not fail any more: they are computed anew.

        Raises:
            EvaluationError: the arithmetic of a view fails that may not be suspended.
            AssertionViolated: an assertion would not be empty.
        """
        moved = []
        changed = [name for name in self._tables if name in work.changes]
        over = views_over(changed, {k: v.definition for k, v in self._views.items()})
        maintenance = Maintenance(self._files.relations, self._engine, self._limit, self._files.new_relation)
        for key in over:
            view, done = self._views[key], NOTHING_TO_DO
            if key in suspended or self._below(view, suspended) or not view.program.inputs().isdisjoint(work.changes):
                started = time.perf_counter()
                tried = self._unless_it_fails(view, work, maintenance, suspended)
                view.seconds += time.perf_counter() - started
                if tried is None:
                    continue
                moved.append(key)
                done = tried
            if not view.definition.is_assertion:
                refreshed[view.definition.name] = done
            if view.definition.is_assertion and key in work.changes:
                rows = delta_table(work.changes[key], view.definition.fields).drop_columns([WEIGHT])
                raise rejections.assertion_violated(view.definition, rows_from_arrow(rows, view.definition.fields))
        return moved

    def _below(self, view: ViewWithStages, suspended: Mapping[str, Suspension]) -> str | None:
        """A suspended view that this one reads."""
        return next((name for name in sorted(view.program.inputs()) if name in suspended), None)

    def _unless_it_fails(
        self, view: ViewWithStages, work: Work, maintenance: Maintenance, suspended: dict[str, Suspension]
    ) -> Refresh | None:
        """How a view was brought up to date; None if it fails, or reads one that does, and is suspended."""
        key, definition = view.definition.name.lower(), view.definition
        before = suspended.pop(key, None)
        since = self._files.last.version + 1 if before is None else before.version
        below = self._below(view, suspended)
        if below is not None:
            suspended[key] = rejections.waiting(definition, since, self._views[below].definition, suspended[below])
            return None
        refresh = None
        if before is not None:
            reason = f"it failed at version {since} ({before.condition}), and was computed anew from its tables"
            refresh = Refresh("full", reason)
        try:
            return self._refresh(view, work, maintenance, refresh or self._choice(view, work))
        except EvaluationError as error:
            suspended[key] = rejections.failing(definition, since, error)
            return None

    def _refresh(self, view: ViewWithStages, work: Work, maintenance: Maintenance, refresh: Refresh) -> Refresh:
        zone = view.definition.time_zone
        attempt = Work(dict(work.changes))
        try:
            if refresh.how == "full":
                maintenance.refill(view.program, attempt, zone)
            else:
                maintenance.move(view.program, attempt, zone)
        except EvaluationError as error:
            # A delta may see a pair of rows that were never there together; the whole content decides.
            if refresh.how == "full" or view.definition.options.refresh == "incremental_strict":
                raise
            attempt = Work(dict(work.changes))
            refresh = Refresh("full", f"the delta met a row that cannot be computed ({error.condition})")
            maintenance.refill(view.program, attempt, zone)
        work.changes.update(attempt.changes)
        work.appended.update(attempt.appended)
        attempt.forget_scratch()
        work.replaced.update({n: made for n, made in attempt.replaced.items() if n in self._files.relations})
        return refresh

    def _choice(self, view: ViewWithStages, work: Work) -> Refresh:
        """Whether the view takes in the change or is computed anew."""
        options = view.definition.options
        if options.strategy == "recompute":
            return Refresh("full", "the view has strategy='recompute'")
        read = view.program.inputs()
        changed = sum(rows.num_rows for name, rows in work.changes.items() if name in read)
        held = changed + sum(self._files.relations[name].row_count for name in read)
        return choose_refresh(options.refresh, changed, held, SHARE)


def relations_of(program: StageProgram) -> dict[str, Layout]:
    """The relations that a view keeps on disk: outputs that rules read again, payloads, and the view itself.

    Payloads are looked up by their groups, and sorted by them; the outputs of inner groupings are looked up by them too.
    """
    stored = program.stored()
    found: dict[str, Layout] = {}
    for stage in program.stages:
        if isinstance(stage, Grouped):
            found[stage.state_name] = Layout(stage.state, tuple(range(stage.key_count)))
        if stage.name in stored:
            found[stage.name] = Layout(stage.fields, _output_keys(stage))
    return found


def table_layout(table: TableDefinition) -> Layout:
    """A table is sorted by its primary key."""
    return Layout(table.fields, table.key_positions if table.primary_key else ())


def _output_keys(stage: Stage) -> tuple[int, ...]:
    """The output columns by which a stage's rows are grouped or partitioned, where they are columns."""
    match stage:
        case Grouped():
            places = {e.index: i for i, e in enumerate(stage.outputs) if isinstance(e, Column)}
            return tuple(places[k] for k in range(stage.key_count) if k in places)
        case TreeView():
            return tuple(range(stage.key_count))
        case Partitioned():
            return tuple(e.index for e in stage.output_key if isinstance(e, Column))
        case _:
            return ()


def delta_table(rows: pa.Table, fields: Schema) -> pa.Table:
    """The strongly minimal delta as users see it."""
    net, weights = net_rows(rows, fields)
    whole = net.append_column(pa.field(WEIGHT, pa.int64(), nullable=False), weights)
    if whole.num_rows > _SORTED or not all(_is_sortable(t) for t in whole.schema.types):
        return whole
    names = [f"c{i}" for i in range(whole.num_columns)]
    order = pc.sort_indices(pa.Table.from_arrays(whole.columns, names=names), [(n, "ascending") for n in names])
    return whole.take(order)


def _is_sortable(arrow: pa.DataType) -> bool:
    return not (pa.types.is_nested(arrow) or pa.types.is_interval(arrow) or pa.types.is_null(arrow))
