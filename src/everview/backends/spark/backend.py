"""The Spark backend: views maintained as Delta tables.

A transaction computes everything first (the tables' net changes, then every view's stages in order), writes what has to be
added as segments, and commits with one record. State in memory is a cache of what is on disk. Contract: see ``backends.base``.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.backends import rejections
from everview.backends.base import Change, Refresh, Suspension, VersionedDelta, without_sources_of
from everview.backends.embedded.numba_start import start_numba
from everview.backends.spark.catalog_file import Entry
from everview.backends.spark.commit_log import Move
from everview.backends.spark.compaction import chosen_segments, compaction_of, is_merged_by_spark
from everview.backends.spark.database_files import DatabaseFiles, Fault
from everview.backends.spark.evaluate import plan_sql
from everview.backends.spark.explain import Explaining
from everview.backends.spark.lookup_copies import COPIES, LOOKUP_BYTES
from everview.backends.spark.maintain import Maintenance
from everview.backends.spark.outside_changes import outside_change, stand_at_newest
from everview.backends.spark.reading import Reading
from everview.backends.spark.refresh_costs import COSTS, RefreshCosts, read_costs, write_costs
from everview.backends.spark.relation_store import LOCAL_ROWS, Layout, StoredRelation
from everview.backends.spark.segments import Segment, stored_fields
from everview.backends.spark.shown_names import SessionOrNone, ShownNames
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.staged_frames import StagedChange, near_rows, staged_change
from everview.backends.spark.stages import view_of_relation
from everview.backends.spark.stored_deltas import StoredDeltas
from everview.backends.spark.stored_names import StoredName, has_shown_name
from everview.backends.spark.table_changes import net_rows
from everview.backends.spark.transactions import Run, ViewWithStages, relations_of, table_layout
from everview.backends.spark.view_programs import ViewPrograms, check_has_options, is_as_made, make_anew
from everview.backends.spark.work import Work
from everview.catalog import Definition, TableDefinition, ViewDefinition
from everview.errors import CorruptDatabase, EvaluationError
from everview.relational.arrow import public_rows, rows_from_arrow
from everview.relational.nodes import Relation, Schema
from everview.relational.traverse import tables_of
from everview.relational.types import Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkBackend:
    """Implements ``backends.base.Backend`` on Spark and Delta tables.

    Args:
        path: The database's directory; None for a temporary one, which goes with ``close``.
        user_session: Gives the session to work beside, when something needs Spark.
        history: For how many versions the deltas of views can be asked for.
        local_rows: Segments with more rows than this are read by Spark, not by the driver.
        lookup_bytes: How much disk the driver may take for copies of large segments, to look rows up in; 0 leaves all
            look-ups to the executors.
        executor_bytes: How much disk each executor may take for copies of the segments that its tasks search; 0 leaves
            look-ups to joins of Spark's, for which executors need no Python.
        fault: For tests: called at each step of a commit.
        shown_in: The session in which tables and views can be queried by name; None as long as there is none.

    Raises:
        DatabaseLocked: the directory is open already, here or in another process.
        CorruptDatabase: its files are not what was written.
    """

    name = "spark"

    def __init__(
        self,
        path: str | None,
        user_session: Callable[[], SparkSession],
        history: int = 1000,
        *,
        local_rows: int = LOCAL_ROWS,
        lookup_bytes: int = LOOKUP_BYTES,
        executor_bytes: int = LOOKUP_BYTES,
        fault: Fault = lambda _step: None,
        shown_in: SessionOrNone = lambda: None,
    ) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="everview-") if path is None else None
        where = Path(self._scratch.name if self._scratch is not None else str(path))
        self._files = DatabaseFiles(where, fault, lookup_bytes)
        self._engine = SparkEngine(user_session, executor_bytes, where / COPIES)
        self._costs = read_costs(where / COSTS)
        self._history = history
        self._limit = local_rows
        self._tables: dict[str, TableDefinition] = {}
        self._views: dict[str, ViewWithStages] = {}
        self._programs = ViewPrograms(self._tables, self._views)
        self._outdated: list[str] = []
        """Views whose relations were made by another program than today's."""
        self._refreshed: dict[str, Refresh] = {}
        self._summed: dict[str, list[Segment]] = {}
        self.shown = ShownNames(shown_in)
        self._starting = threading.Thread(target=start_numba, name="everview-numba", daemon=True)
        if self.version:  # a first change is to come, which would wait for this
            self._starting.start()
            if not self._files.copies.are_on and shown_in() is not None:
                self._engine.lookups.warm_up()
        try:
            self._files.open(self._take_in)
            self._engine.lookups.forget_others(self._files.relations.values())
            for key in self._outdated:
                make_anew(self._views[key], self._files, self._maintenance)
            for definition in self.definitions:
                self._show(definition)
        except BaseException:
            self._files.close()
            raise

    # Opening

    def _take_in(self, entries: list[Entry]) -> dict[str, Layout]:
        """Makes the definitions known, and says which of their relations on disk are of use."""
        layouts: dict[str, Layout] = {}
        for entry in entries:
            match entry.definition:
                case TableDefinition() as table:
                    self._tables[table.name.lower()] = table
                    layouts[table.name.lower()] = table_layout(table)
                case ViewDefinition() as view:
                    program = self._programs.again(view, entry.lowering)
                    costs = self._costs.get(view.name.lower(), RefreshCosts())
                    self._views[view.name.lower()] = ViewWithStages(view, program, entry.created_at, costs)
                    kept = relations_of(program)
                    if not is_as_made(program, entry.lowering, self._files.last.relations):
                        self._outdated.append(view.name.lower())
                        kept = {view.name.lower(): kept[view.name.lower()]}
                    layouts.update(kept)
        return layouts

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """What the database holds, in order of creation: the session's catalog after opening."""
        return tuple(e.definition for e in self._files.entries)

    @property
    def version(self) -> int:
        """The number of transactions committed."""
        return self._files.last.version

    @property
    def path(self) -> Path:
        """Where the database is."""
        return self._files.path

    # Definitions

    def create_table(self, table: TableDefinition) -> None:
        """Adds an empty table."""
        if table.constraints:
            raise rejections.no_constraints(table, self.name)
        stored_fields(table.fields)
        relation = self._files.new_relation(table.name.lower(), table_layout(table))
        sources = {**self._files.last.sources, **stand_at_newest(table, relation, self._engine)}
        entries, added = [*self._files.entries, Entry(table, self.version)], {relation.name: relation}
        self._files.commit("catalog", self.version, {}, entries=entries, added=added, sources=sources)
        self._tables[table.name.lower()] = table
        self._show(table)

    def _show(self, definition: Definition) -> None:
        if has_shown_name(definition):
            self.shown.add(
                StoredName(definition, self._files, lambda rows, fields: self._reading().bag_frame(rows, fields))
            )

    def create_view(self, view: ViewDefinition) -> None:
        """Lowers the view to its stages and computes them from what is there."""
        check_has_options(view)
        for name in tables_of(view.plan):
            table = self._tables.get(name.lower())
            if table is not None and not table.retain and name.lower() in self._files.last.received:
                raise rejections.too_late_for_view(view, table)
        plan_sql(view.plan, lambda table: table)  # what Spark SQL cannot say is refused now, not when it is needed
        received = frozenset(self._files.last.received)
        program, lowering = self._programs.make(view, received, lambda name: self._files.relations[name].row_count)
        added = {n: self._files.new_relation(n, f) for n, f in relations_of(program).items()}
        work, suspended = Work(), dict(self._files.last.suspended)
        maintenance = self._maintenance({**self._files.relations, **added})
        for name in program.inputs():
            self._files.relations[name].check_outside()
        below = next((n for n in sorted(program.inputs()) if n in suspended), None)
        try:
            if below is None:
                maintenance.fill(program, work, view.time_zone)
            elif view.options.may_be_suspended:
                why = rejections.waiting(view, self.version, self._views[below].definition, suspended[below])
                suspended[view.name.lower()] = why
            else:
                raise rejections.suspended(self._views[below].definition, suspended[below])
        except EvaluationError as error:
            suspended[view.name.lower()] = rejections.failing(view, self.version, error)
            work.replaced.clear()
        finally:
            work.forget_scratch()
        moves = {name: Move(tuple(added[name].written(made))) for name, made in work.replaced.items() if name in added}
        if view.is_assertion and any(s.rows for s in moves[program.root.name].add):
            made = work.replaced[program.root.name]
            held = made if isinstance(made, pa.Table) else added[program.root.name].rows_of(made[0])
            raise rejections.assertion_violated(view, rows_from_arrow(net_rows(held, view.fields)[0], view.fields))
        entries = [*self._files.entries, Entry(view, self.version, lowering)]
        self._files.commit("catalog", self.version, moves, entries=entries, added=added, suspended=suspended)
        known = self._views[view.name.lower()] = ViewWithStages(view, program, self.version)
        known.costs.note("full", {}, sum(self._files.relations[n].row_count for n in program.inputs()), work.seconds)
        self._show(view)

    def drop(self, name: str) -> None:
        """Removes a table, view or assertion; its files go with the next vacuum."""
        key = name.lower()
        dropped = frozenset({key}) if (view := self._views.get(key)) is None else frozenset(relations_of(view.program))
        entries = [e for e in self._files.entries if e.definition.name.lower() != key]
        received = frozenset(self._files.last.received) - {key}
        sources = self._files.last.sources if view is not None else without_sources_of(name, self._files.last.sources)
        self._files.commit(
            "catalog", self.version, {}, entries=entries, dropped=dropped, received=received, sources=sources
        )
        self._views.pop(key, None)
        self._tables.pop(key, None)
        self.shown.remove(name)

    # Transactions

    def apply(self, changes: Sequence[Change], *, source: tuple[str, int] | None = None) -> Mapping[str, pa.Table]:
        """Commits one transaction; of a source's batch that is not above the recorded one, nothing."""
        if source is not None and (last := self.last_batch(source[0])) is not None and source[1] <= last:
            self._refreshed = {}
            return {}
        work = Work()
        refreshed: dict[str, Refresh] = {}
        suspended = dict(self._files.last.suspended)
        run = Run(self._files, self._engine, self._limit, self._tables, self._views)
        written: dict[str, Move] = {}
        read = self._looked_up_bytes()
        with self._engine.jobs() as jobs:
            try:
                touched = run.change_tables(changes, work)
                moved = run.move_views(work, refreshed, suspended)
                run.write(work, written)
                received = frozenset(self._files.last.received) | touched
                sources = {**self._files.last.sources, **dict([source] if source else [])}
                self._files.commit(
                    "apply", self.version + 1, written, sources=sources, received=received, suspended=suspended
                )
            except BaseException as error:
                run.discard(written)
                if isinstance(error, CorruptDatabase):  # or it is a user's file that is gone
                    self._files.check_outside()
                raise
            finally:
                run.settle(changes, work)
            deltas = run.deltas(moved, work, written)
            self._compact(written, run)
            for key in moved:
                self._views[key].count_update(jobs(), self._looked_up_bytes() - read)
        self._refreshed = refreshed
        self.shown.settle()
        return deltas

    def outside_change(self, table: TableDefinition, version: int, read: Callable[[pa.Table], Change]) -> Change:
        """The change that the next version of its Delta table brings to an external table; ``read`` checks its rows."""
        return outside_change(table, self._files.relations[table.name.lower()], version, read, self._limit)

    def near_rows(self, frame: DataFrame) -> pa.Table | None:
        """The rows of a DataFrame that Spark takes for small, if there are no more than the driver holds; else None."""
        return near_rows(frame, self._limit)

    def read_parquet(self, paths: list[str]) -> DataFrame:
        """The rows of Parquet files, as executors read them."""
        return self._engine.user_session.read.parquet(*paths)

    def stage(self, table: TableDefinition, frame: DataFrame, mode: str) -> Change:
        """The change that a DataFrame brings to a table, written by executors.

        Raises:
            InvalidChange: some value does not fit.
        """
        home = self._files.relations[table.name.lower()]
        if mode == "delete_keys":
            home = home.with_layout(Layout(table.key_fields))
        change = staged_change(table, frame, mode, home, self._engine, self._limit)
        if isinstance(change, StagedChange):
            self._files.staged.add(change)
        return change

    def last_batch(self, source: str) -> int | None:
        """The last committed batch of a source."""
        return self._files.last_batch(source)

    def refreshed(self) -> Mapping[str, Refresh]:
        """How the last transaction brought each view up to date."""
        return self._refreshed

    def suspensions(self) -> Mapping[str, Suspension]:
        """The views that have no answer."""
        return {self._views[key].definition.name: why for key, why in self._files.last.suspended.items()}

    def heal(self) -> Mapping[str, pa.Table]:
        """Nothing to do: every transaction tries the suspended views over what it changes."""
        return {}

    def _answering(self, name: str) -> ViewDefinition:
        """The view, if it has an answer.

        Raises:
            ViewSuspended: it has none.
        """
        view, why = self._views[name.lower()].definition, self._files.last.suspended.get(name.lower())
        if why is not None:
            raise rejections.suspended(view, why)
        return view

    def _looked_up_bytes(self) -> int:
        """What look-ups have read so far, here and in tasks."""
        return self._files.copies.bytes_read + self._engine.lookups.bytes_read

    def _compact(self, written: Mapping[str, Move], run: Run) -> None:
        """Merges segments where that is due. Spark does it for one relation at a time: the others' turn comes."""
        relations = {n: r for n in written if not (r := self._files.relations[n]).layout.follows}
        due = {n: taken for n, r in relations.items() if (taken := chosen_segments(r.segments))}
        by_spark = [n for n, taken in due.items() if is_merged_by_spark(taken, self._limit)]
        longest = max(by_spark, key=lambda n: len(due[n]), default=None)
        moves: dict[str, Move] = {}
        for name, taken in due.items():
            if name == longest or name not in by_spark:
                with run.timed(name):
                    moves[name] = self._merged(name, relations[name], taken)
        if moves:
            self._files.commit("compact", self.version, moves)

    def _merged(self, name: str, relation: StoredRelation, segments: list[Segment]) -> Move:
        table = self._tables.get(name)
        key = table.key_positions if table is not None and table.primary_key else ()
        return compaction_of(relation, segments, self._state_keys(name), self._engine, self._limit, key)

    def _state_keys(self, name: str) -> int | None:
        """For payloads, of a grouped stage or a view of a tree, the number of key columns: the other columns are summed."""
        return None if (view := self._views.get(view_of_relation(name))) is None else view.program.payload_keys(name)

    def _maintenance(self, relations: Mapping[str, StoredRelation]) -> Maintenance:
        return Maintenance(relations, self._engine, self._limit, self._files.new_relation)

    # Reads

    def read(self, name: str) -> pa.Table:
        """The bag of a table or view."""
        return self._reading().content(name.lower(), self._readable(name))

    def iterate(self, name: str) -> Iterator[tuple[Any, ...]]:
        """The same, row by row."""
        return iter(public_rows(self.read(name)))

    def lookup(self, name: str, key: Mapping[str, Value]) -> pa.Table:
        """The rows with these values: large segments are searched by Spark, the others at the driver."""
        return self._reading().lookup(name, self._readable(name), key)

    def query(self, plan: Relation) -> pa.Table:
        """Evaluates a plan once: at the driver if all its rows are there, else on Spark."""
        for name in tables_of(plan):
            self._readable(name)
        return self._reading().query(plan)

    def to_spark(self, name: str, version: int | None = None) -> DataFrame:
        """The content of a table or view, now or at a version, as a DataFrame over its files.

        Raises:
            UnsupportedOperation: that version is not kept.
        """
        fields = self._readable(name) if version is None else self._readable_at(name, version)
        frame = self._reading().frame(name.lower(), fields, version)
        self.shown.settle()
        return frame

    def changes(self, view: str, since: int) -> Sequence[VersionedDelta]:
        """The non-empty deltas of the versions after ``since``: the segments that transactions added to the view."""
        self._answering(view)
        kept_since = self.changes_kept_since(view)
        if not kept_since <= since <= self.version:
            raise rejections.changes_not_kept(
                self._views[view.lower()].definition.name, since, kept_since, self.version
            )
        relation = self._files.relations[view.lower()]
        return StoredDeltas(
            relation, self._files.records_since(since), self._engine, lambda: self._check_kept(view, since)
        )

    def changes_kept_since(self, view: str) -> int:
        """The smallest ``since`` that ``changes`` takes."""
        known = self._views[view.lower()]
        return max(known.created_at, self._files.oldest_version(), self.version - self._history)

    def _check_kept(self, view: str, since: int) -> None:
        """Raises if a vacuum has removed files since their commits were looked up."""
        oldest = self._files.oldest_version()
        if oldest > since:
            raise rejections.changes_not_kept(view, since, oldest, self.version)

    def explain(self, view: str, mode: str) -> str:
        """The stages of the view."""
        return self._explaining.explain(self._views[view.lower()], mode)

    def cost_lines(self, view: ViewDefinition) -> list[str]:
        """What a changed row of each table would cost a view that is not there."""
        return self._explaining.cost_lines(view)

    @property
    def _explaining(self) -> Explaining:
        return Explaining(self._files, self._programs, self._tables, self.query)

    def stats(self, view: str) -> dict[str, Any]:
        """Rows, bytes on disk by relation, updates, seconds; of the last transaction Spark jobs, and bytes read by look-ups."""
        known = self._views[view.lower()]
        names = relations_of(known.program)
        sizes = {n: sum(s.size for s in self._files.relations[n].segments) for n in names}
        told: dict[str, Any] = {"rows": None, "bytes": sizes, "updates": known.updates, "seconds": known.seconds}
        told["spark_jobs"], told["looked_up_bytes"] = known.jobs, known.looked_up_bytes
        why = self._files.last.suspended.get(view.lower())
        if why is not None:
            return {**told, "suspended": why}
        return {**told, "rows": self.read(view).num_rows if not known.definition.is_assertion else 0}

    def checkpoint(self) -> None:
        """Nothing to do: every transaction is on disk when it returns."""

    def location(self, name: str) -> str:
        """The Delta table of a table or view."""
        self._readable(name)
        return str(self._files.relations[name.lower()].folder.absolute())

    def vacuum(self) -> int:
        """Sums up every relation, so that its Delta table has each row once, and removes what older versions need."""
        moves = {}
        for name, relation in self._files.relations.items():
            if relation.held and not relation.layout.follows and self._summed.get(name) != relation.segments:
                moves[name] = self._merged(name, relation, relation.segments)
        self._files.commit("compact", self.version, moves)  # also without moves: the only record that stays
        self._summed = {name: list(relation.held) for name, relation in self._files.relations.items()}
        self._engine.lookups.forget_others(self._files.relations.values())
        return self._files.vacuum()

    def close(self) -> None:
        """Lets others open the directory; a temporary one goes."""
        self.shown.close()
        if self._starting.is_alive():
            self._starting.join()
        write_costs(self.path / COSTS, {key: view.costs for key, view in self._views.items()})
        self._engine.close()
        self._files.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def _reading(self) -> Reading:
        return Reading(self._files, self._engine, self._limit)

    def _readable(self, name: str) -> Schema:
        table = self._tables.get(name.lower())
        if table is None:
            return self._answering(name).fields
        if not table.retain:
            raise rejections.not_retained(table)
        return table.fields

    def _readable_at(self, name: str, version: int) -> Schema:
        """The columns of a table, or of a view that had an answer at this version."""
        record = self._files.record_at(version)
        if name.lower() in self._tables or record is None:
            return self._readable(name)
        view, why = self._views[name.lower()].definition, record.suspended.get(name.lower())
        if why is not None:
            raise rejections.suspended(view, why)
        return view.fields
