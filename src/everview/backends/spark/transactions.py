"""One transaction of the Spark backend: the tables' net changes, then every view's, before anything is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from everview.backends import rejections
from everview.backends.base import Change, ChangeKind, Refresh, Suspension
from everview.backends.refresh_choice import NOTHING_TO_DO, choose_refresh, views_over
from everview.backends.spark.changed_terms import first_look_ups
from everview.backends.spark.commit_log import Move
from everview.backends.spark.database_files import DatabaseFiles
from everview.backends.spark.far_rows import Rows, count_rows, remove_files
from everview.backends.spark.far_table_changes import FarTableChange
from everview.backends.spark.key_lookups import FoundAhead, Lookups, Wanted
from everview.backends.spark.maintain import Maintenance
from everview.backends.spark.measured import StageWork, add_work
from everview.backends.spark.outside_changes import OutsideChange, net_change
from everview.backends.spark.refresh_costs import RefreshCosts, rows_below
from everview.backends.spark.relation_store import Layout
from everview.backends.spark.restrict import Restriction
from everview.backends.spark.segments import by_position
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.staged_frames import StagedChange
from everview.backends.spark.stages import Grouped, Partitioned, Stage, StageProgram, TreeView, view_of_relation
from everview.backends.spark.stored_deltas import ReadDeltas, moved_rows
from everview.backends.spark.table_changes import delta_table, table_change
from everview.backends.spark.work import Work
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import EvaluationError
from everview.relational.arrow import rows_from_arrow
from everview.relational.column_names import WEIGHT
from everview.relational.expressions import Column


@dataclass
class ViewWithStages:
    """A view or assertion in force, and what its maintenance has cost since the database was opened."""

    definition: ViewDefinition
    program: StageProgram
    created_at: int
    costs: RefreshCosts = field(default_factory=RefreshCosts)
    updates: int = 0
    seconds: float = 0.0
    """Its own: computing its stages, writing and compacting its relations."""
    jobs: int = 0
    """Spark jobs of the last transaction that touched the view: of the whole transaction."""
    looked_up_bytes: int = 0
    """What its look-ups have read of large segments and of their copies, at the driver and in tasks."""
    done: dict[str, StageWork] = field(default_factory=dict)
    """What its stages have done, by name; what computes all of them anew is booked on the last one."""

    def measured(self) -> str:
        """What refreshes have cost, if they are chosen by that."""
        return f"\n{self.costs.told()}" if self.definition.options.refresh == "auto" else ""

    def count_update(self, jobs: int, looked_up_bytes: int) -> None:
        """A transaction that touched the view is committed."""
        self.updates, self.jobs, self.looked_up_bytes = self.updates + 1, jobs, looked_up_bytes


@dataclass(frozen=True)
class Run:
    """What a transaction works on: the files as they are, and the definitions."""

    _files: DatabaseFiles
    _engine: SparkEngine
    _limit: int
    _tables: Mapping[str, TableDefinition]
    _views: Mapping[str, ViewWithStages]
    _ahead: FoundAhead = field(default_factory=FoundAhead)

    def change_tables(self, changes: Sequence[Change], work: Work) -> frozenset[str]:
        """Puts the net change of every table into the work; returns the tables that were given rows.

        Raises:
            InvalidChange: a table cannot take its rows.
        """
        by_table: dict[str, list[Change]] = {}
        for change in changes:
            if change.row_count or isinstance(change, OutsideChange):
                by_table.setdefault(change.table.lower(), []).append(change)
        restriction = Restriction(self._engine, self._limit, "UTC")
        for name in by_table:
            if self._tables[name].static and name in self._files.last.received:
                raise rejections.static_changed(self._tables[name])
        judged: list[Lookups[Rows | None]] = [
            self._net(self._tables[name], own, work, restriction) for name, own in by_table.items()
        ]
        # Only where tasks are asked, and not the driver's copies, does asking early save a job.
        saves_a_job = self._engine.lookups.are_on and not self._files.copies.are_on
        ahead = self._ahead.ask(self._views_will_ask(by_table)) if saves_a_job else []
        for name, delta in zip(by_table, restriction.answer([*judged, *ahead]), strict=False):
            table = self._tables[name]
            assert delta is not None
            if count_rows(delta):
                work.changes[name] = delta
                if name in work.outside:
                    continue
                if table.retain or any(name in v.program.stored() for v in self._views.values()):
                    work.appended[name] = delta
        return frozenset(by_table)

    def _views_will_ask(self, by_table: Mapping[str, list[Change]]) -> Iterator[Wanted]:
        """What views look up first, if the tables' changes are as they were given; they may still turn out to be wrong."""
        given = {name: rows for name, own in by_table.items() if (rows := _as_given(own)) is not None}
        expected, suspended = Work(dict(given)), self._files.last.suspended
        for key in views_over(list(given), {k: v.definition for k, v in self._views.items()}):
            view = self._views[key]
            has_answer = key not in suspended and not self._below(view, suspended)
            if has_answer and self._choice(view, expected).how != "full":
                restriction = Restriction(self._engine, self._limit, view.definition.time_zone)
                yield from first_look_ups(view.program, given, self._files.relations, restriction, self._limit)

    def _net(
        self, table: TableDefinition, changes: list[Change], work: Work, restriction: Restriction
    ) -> Lookups[Rows]:
        """The net change of a table; rows of different tables are looked up together."""
        relation = self._files.relations[table.name.lower()]
        if isinstance(changes[0], OutsideChange):
            (change,) = changes
            work.outside[table.name.lower()] = changes[0].move
            if table.primary_key and changes[0].far is None and change.row_count:
                return (yield from table_change(table, relation, changes, restriction))
            return net_change(changes[0], table, relation, self._engine, self._limit, work.written)
        if any(isinstance(c, StagedChange) for c in changes):
            return FarTableChange(table, relation, self._engine, work.written).net(changes, restriction)
        return (yield from table_change(table, relation, changes, restriction))

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
        relations, new = self._files.relations, self._files.new_relation
        maintenance = Maintenance(relations, self._engine, self._limit, new, self._ahead)
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
                rows = delta_table(_some(work.changes[key]), view.definition.fields).drop_columns([WEIGHT])
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
        attempt = Work(dict(work.changes), written=work.written)
        try:
            if refresh.how == "full":
                self._refill(view, attempt, maintenance)
            else:
                maintenance.move(view.program, attempt, zone)
        except EvaluationError as error:
            # A delta may see a pair of rows that were never there together; the whole content decides.
            if refresh.how == "full" or view.definition.options.refresh == "incremental_strict":
                raise
            attempt = Work(dict(work.changes), written=work.written)
            refresh = Refresh("full", f"the delta met a row that cannot be computed ({error.condition})")
            self._refill(view, attempt, maintenance)
        add_work(view.done, attempt.done)
        changed, held = self._changed(view, work)
        view.costs.note(refresh.how, rows_below(view.program, changed), held, attempt.seconds)
        work.changes.update(attempt.changes)
        work.appended.update(attempt.appended)
        attempt.forget_scratch()
        work.replaced.update({n: made for n, made in attempt.replaced.items() if n in self._files.relations})
        return refresh

    def _refill(self, view: ViewWithStages, attempt: Work, maintenance: Maintenance) -> None:
        root = view.program.root.name
        read = [count_rows(rows) for name, rows in attempt.changes.items() if name in view.program.inputs()]
        maintenance.refill(view.program, attempt, view.definition.time_zone)
        done = attempt.done.setdefault(root, StageWork())
        done.rows_in = sum(read)
        done.rows_out = count_rows(attempt.changes[root]) if root in attempt.changes else 0

    def _choice(self, view: ViewWithStages, work: Work) -> Refresh:
        """Whether the view takes in the change or is computed anew."""
        options = view.definition.options
        if options.strategy == "recompute":
            return Refresh("full", "the view has strategy='recompute'")
        changed, held = self._changed(view, work)
        if options.refresh == "auto":
            return view.costs.choose(rows_below(view.program, changed), sum(changed.values()), held)
        return choose_refresh(options.refresh, 0, held)

    def _changed(self, view: ViewWithStages, work: Work) -> tuple[dict[str, int], int]:
        """How many rows of what a view reads have changed, by name, and how many there are then, before they are summed up."""
        read = view.program.inputs()
        changed = {name: count_rows(rows) for name, rows in work.changes.items() if name in read}
        return changed, sum(changed.values()) + sum(self._files.relations[name].row_count for name in read)

    # Writing

    def write(self, work: Work, moves: dict[str, Move]) -> None:
        """Writes what is to be added; ``moves`` gets it piece by piece, so that what fails can be removed."""
        relations = self._files.relations
        moves.update(work.outside)
        for name, rows in work.appended.items():
            with self.timed(name):
                is_far = not isinstance(rows, pa.Table)
                moves[name] = Move(tuple(rows.segments) if is_far else (relations[name].write(rows),))
        for name, made in work.replaced.items():
            with self.timed(name):
                moves[name] = Move(tuple(relations[name].written(made)), tuple(relations[name].segments))

    @contextmanager
    def timed(self, relation: str) -> Iterator[None]:
        """Puts the time of some work on a relation on the account of the view that keeps it; a table's is no view's."""
        started = time.perf_counter()
        yield
        if (view := self._views.get(view_of_relation(relation))) is not None:
            view.seconds += time.perf_counter() - started

    def discard(self, written: Mapping[str, Move]) -> None:
        """Removes what a failed transaction wrote, unless its record is on disk after all."""
        if self._files.last.moves == dict(written):
            return
        for name, move in written.items():
            for segment in move.add:
                self._files.relations[name].drop_unused(segment)

    def settle(self, changes: Sequence[Change], work: Work) -> None:
        """After a transaction: files that its commit added stay, others that executors wrote for it go."""
        record = self._files.last
        relations = self._files.relations
        added = {relations[n].folder / s.path for n, move in record.moves.items() for s in move.add if n in relations}
        for change in changes:
            if isinstance(change, StagedChange) and not added.isdisjoint(change.paths):
                change.keep()
        remove_files(work.written, added)

    def deltas(self, moved: Sequence[str], work: Work, written: Mapping[str, Move]) -> Mapping[str, pa.Table]:
        """What each view that moved has gained and lost; of far rows, read from its files when it is looked at."""

        def delta_of(key: str, rows: Rows) -> tuple[int, Callable[[], pa.Table]]:
            fields = self._views[key].definition.fields
            if isinstance(rows, pa.Table):
                near = delta_table(rows, fields)
                return near.num_rows, lambda: near
            relation, move = self._files.relations[key], written[key]
            return rows.row_count, lambda: delta_table(moved_rows(relation, move), fields)

        found = {self._views[k].definition.name: delta_of(k, work.changes[k]) for k in moved if k in work.changes}
        return ReadDeltas(found)


def _as_given(changes: Sequence[Change]) -> pa.Table | None:
    """The weighted rows that changes bring, as far as they are at the driver and say so themselves; None if there are none."""
    parts = []
    for change in changes:
        if isinstance(change, StagedChange | OutsideChange):
            return None
        if change.kind is not ChangeKind.DELETE_KEYS:
            weights = (
                change.weights if change.weights is not None else pa.repeat(pa.scalar(1, pa.int64()), change.row_count)
            )
            parts.append(by_position(change.rows.append_column(WEIGHT, weights)))
    return pa.concat_tables(parts) if parts else None


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
    """A table is sorted by its primary key; an external one is as its Delta table is."""
    follows = None if table.follows is None else table.follows.uri
    return Layout(table.fields, table.key_positions if table.primary_key else (), follows)


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


def _some(rows: Rows) -> pa.Table:
    """The rows, or of far ones those of a segment: an example."""
    return rows if isinstance(rows, pa.Table) else rows.rows_of(rows.segments[0], keep=False)
