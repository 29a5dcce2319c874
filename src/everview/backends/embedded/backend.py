"""The embedded backend: tables, the DAG of operators, and transactions over both.

A transaction prepares the changed tables, pushes their deltas through the operators in order, checks the assertions, and
commits all or rolls all back. Nothing outside a touched operator moves.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from everview.backends import base, rejections
from everview.backends.base import Change, InMemory, Refresh, Suspension, VersionedDelta, without_sources_of
from everview.backends.embedded import large_transactions as large
from everview.backends.embedded import lookup
from everview.backends.embedded.arrow_columns import bag_table, rows_of_batch, weighted_table
from everview.backends.embedded.code_sweep import CodeSweep
from everview.backends.embedded.dependencies import below, kept
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.engine_memory import budget_of, out_of_memory, reserve_rows
from everview.backends.embedded.explain import cost_lines, explain_view
from everview.backends.embedded.graph import Graph, Programs
from everview.backends.embedded.matrix.stored_matrix import Floats
from everview.backends.embedded.operators.base import Operator, consolidated
from everview.backends.embedded.propagation import OperatorFailed, Propagation, Running
from everview.backends.embedded.restoration import add_to_graph, restore_views
from everview.backends.embedded.sources import TableInput
from everview.backends.embedded.suspended_views import Failing, SuspendedViews
from everview.backends.embedded.tables.stored_table import StoredTable, TableContent
from everview.backends.embedded.vectors import Batch, Ints
from everview.backends.embedded.view_choices import choices_of
from everview.backends.embedded.view_deltas import HISTORY_BYTES, GivenDeltas, History, ViewDeltas
from everview.backends.embedded.view_times import share_out
from everview.backends.embedded.views import (
    MaintainedView,
    Reach,
    check_assertions,
    moved_views,
    views_to_restore,
)
from everview.backends.interruptions import UNINTERRUPTED
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import EvaluationError, OutOfMemory, ViewSuspended
from everview.relational.arrow import public_rows
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.traverse import tables_of
from everview.relational.types import Value

Source = tuple[str, int] | None
Time = datetime.datetime
Journal = Callable[[Sequence[Change], Source], Time]


def _now(_changes: Sequence[Change], _source: Source) -> Time:
    return datetime.datetime.now(datetime.UTC)


class EmbeddedBackend(InMemory):
    """Implements ``backends.base.Backend`` by push operators over NumPy state.

    Args:
        history: For how many versions the deltas of views are kept.
        history_bytes: How much memory these may take.
    """

    name = "embedded"

    def __init__(self, history: int = 1000, history_bytes: int = HISTORY_BYTES) -> None:
        self._dictionary = Dictionary()
        self._views: dict[str, MaintainedView] = {}
        self._start()
        self._reach = Reach(self._views)
        self._version = 0
        self._history = History(history, history_bytes)
        self._given = GivenDeltas()
        self._sweep = CodeSweep(self._dictionary, history)
        self._batches: dict[str, int] = {}
        self._refreshed: dict[str, Refresh] = {}
        self.journal: Journal = _now
        """Called with a transaction that is about to be committed, and its source; gives its time, or raises to reject it."""
        self.piece_rows = large.PIECE_ROWS
        """A transaction with more rows is run in pieces of so many, and shown by …"""
        self.progress: large.Progress = large.unseen
        self._lost: OutOfMemory | None = None
        """Why the database cannot be used any more."""

    def _start(self) -> None:
        """With no tables and no views."""
        self._graph = Graph(self._dictionary)
        self._propagation = Propagation(self._graph, self._no_memory_for)
        self._suspended = SuspendedViews(self._graph, self._propagation, self._views, self._settle, self._views_changed)

    def limit_memory(self, limit: int) -> None:
        """Rejects from now on what would let all state take more bytes (``engine_memory``)."""
        self._propagation.budget = budget_of(self._graph, limit)

    def _settle(self) -> None:
        """Before operators come and go: those that were shared with lazy views may become lazy themselves."""
        self._catch_up()
        self._share_out()

    @property
    def version(self) -> int:
        """The number of transactions committed."""
        return self._version

    def create_table(self, table: TableDefinition) -> None:
        """Adds an empty table."""
        self._graph.tables[table.name.lower()] = TableInput(StoredTable(table, self._dictionary), self._dictionary)

    def create_view(self, view: ViewDefinition) -> None:
        """Builds the operators that the view needs and fills them from what is there."""
        choices = choices_of(view)
        self._settle()
        for name in tables_of(view.plan):
            source = self._graph.tables.get(name.lower())
            if source is not None and source.table.has_received_rows and not source.table.has_rows_to_read:
                raise rejections.too_late_for_view(view, source.table.definition)
            if name.lower() in self._views and self._views[name.lower()].has_no_listing:
                raise rejections.view_has_no_listing(self._views[name.lower()].definition, "another view reads it")
        if any(name.lower() in self._suspended.by_key for name in tables_of(view.plan)):
            self._suspended.add_new(view, self._version, None)
            return
        try:
            with self._propagation.building():
                root = add_to_graph(self._graph, view, choices)
        except EvaluationError as error:
            self._suspended.add_new(view, self._version, error)
            return
        except MemoryError as error:
            raise out_of_memory(f"{view.kind} '{view.name}'", error) from error
        if view.is_assertion:
            try:
                if rows := rows_of_batch(root.content(), view.fields, self._dictionary):
                    raise rejections.assertion_violated(view, rows)
            except BaseException:
                self._graph.drop_view(view.name)
                raise
        self._views[view.name.lower()] = MaintainedView(view, root, self._version, choices.refresh)
        self._views_changed()

    def _restore(self) -> None:
        """Makes views anew that a lack of memory has left half changed, and all lazy ones beside them."""
        torn = self._propagation.torn
        if torn is not None:
            self._suspended.paused.let_go_all()
            over = views_to_restore(self._views, torn)
            self._lost = rejections.lost_for_memory([v.definition for v in over])
            restore_views(self._graph, over, self._version, self._lost)
            self._lost = None
            self._propagation.forget()
            self._views_changed()

    def drop(self, name: str) -> None:
        """Removes a table, view or assertion."""
        key = name.lower()
        if key not in self._views or not self._views[key].is_lazy:
            self._catch_up()  # operators that it shared with lazy views become lazy themselves
        self._share_out()
        if key in self._views:
            del self._views[key]
            self._graph.drop_view(name)
            self._views_changed()
        elif key in self._suspended.by_key:
            self._suspended.drop(key)
        else:
            del self._graph.tables[key]
            self._batches = without_sources_of(name, self._batches)

    def alter_table(self, name: str, altered: base.AlteredTable) -> None:
        """Alters a table that nothing reads."""
        self._settle()
        self._graph.alter_table(name, altered)
        self._batches = base.sources_moved(name, altered.definition.name, self._batches)

    def _views_changed(self) -> None:
        if lazy := [k for k, v in self._views.items() if v.is_lazy]:
            self._suspended.paused.let_go_all()
        self._propagation.set_lazy(lazy)
        self._reach.forget()

    def apply(self, changes: Sequence[Change], *, source: Source = None) -> Mapping[str, pa.Table]:
        """Commits one transaction, or leaves everything as it was."""
        if self._lost is not None:
            raise self._lost
        rows = large.rows_in(changes)
        if rows > self.piece_rows and (told := self._apply_in_pieces(changes, source)) is not None:
            return told
        failing: Failing | None = None
        while True:
            running = Running()
            try:
                self._prepare_tables(changes, running)
                self._propagation.push(running)
                check_assertions(self._reach.by(running), running.deltas, self._dictionary)
                UNINTERRUPTED.give_way()
                committed_at = self.journal(changes, source)
                break
            except OperatorFailed as failed:
                running.rollback()
                failing = self._suspended.leave_out(failed, self._version + 1, failing or Failing())
            except BaseException:
                running.rollback()
                self._propagation.detach(())
                self._restore()
                raise
        self._propagation.commit(running)
        return self._committed(changes, rows, source, committed_at, running, failing)

    def _apply_in_pieces(self, changes: Sequence[Change], source: Source) -> ViewDeltas | None:
        """Commits a transaction piece by piece; None, with nothing changed, if it has to run whole."""
        pieces = large.pieces_of(changes, self._graph, self.piece_rows)
        if pieces is None:
            return None
        roots = [v.root for v in self._views.values()]
        transaction = large.InPieces(self._graph, self._propagation, self._prepare_tables, self._restore, roots)
        try:
            if not transaction.run(pieces, self.progress):
                return None
            with transaction.undone_by_errors():
                check_assertions(self._reach.by(transaction.whole), transaction.whole.deltas, self._dictionary)
                UNINTERRUPTED.give_way()
                committed_at = self.journal(changes, source)
        except large.UndoFailed as error:
            self._lost = rejections.lost_for_memory([v.definition for v in self._views.values()])
            raise self._lost from error
        return self._committed(changes, large.rows_in(changes), source, committed_at, transaction.whole, None)

    def _committed(
        self, changes: Sequence[Change], rows: int, source: Source, at: Time, running: Running, failing: Failing | None
    ) -> ViewDeltas:
        """Notes that a transaction is committed, and what it did to views."""
        self._version += 1
        if source is not None:
            self._batches[source[0]] = source[1]
        moved, refreshed = moved_views(self._reach.by(running), running.deltas, failing)
        if failing is not None:
            self._suspended.add(failing, running)
        if self._suspended.by_key:
            self._suspended.note([t.table.name.lower() for t in running.tables], changes)
            for key, answer in self._suspended.try_again(self._version, cheaply=True).items():
                moved[key], refreshed[self._views[key].definition.name] = answer.delta, answer.refresh
        self._refreshed = refreshed
        self._history.add(self._version, at, moved)
        told = self._given.add(ViewDeltas(moved, self._named_delta))
        if self._sweep.is_due(rows):
            graph, suspended, history = self._graph, self._suspended, self._history
            self._sweep.run((graph, suspended, history, self._propagation, self._views, self._given.held))
        return told

    # Views that fail

    def suspensions(self) -> Mapping[str, Suspension]:
        """The views that have no answer."""
        return self._suspended.reasons if self._suspended.by_key else {}

    def heal(self) -> Mapping[str, pa.Table]:
        """Tries the suspended views again whose tables have changed."""
        if moved := {key: a.delta for key, a in self._suspended.try_again(self._version, cheaply=False).items()}:
            self._history.add(self._version, datetime.datetime.now(datetime.UTC), moved)
        return self._given.add(ViewDeltas(moved, self._named_delta))

    def last_batch(self, source: str) -> int | None:
        """The last committed batch of a source."""
        return self._batches.get(source)

    @property
    def batches(self) -> dict[str, int]:
        """The last committed batch of every source."""
        return dict(self._batches)

    def stored(self, table: str) -> StoredTable:
        """What is kept of a table, for checkpoints."""
        return self._graph.tables[table.lower()].table

    def restore(self, version: int, batches: Mapping[str, int], contents: Iterable[TableContent]) -> None:
        """Fills the tables, which are new and which no view reads yet, with what they held at a version."""
        assert not self._views, "tables are restored before their views"
        for content in contents:
            self._graph.tables[content.table.lower()].table.restore(content)
        self._version = version
        self._batches = dict(batches)

    def restored(self) -> None:
        """The views over the restored tables are made."""
        for source in self._graph.tables.values():
            source.table.let_go()

    def refreshed(self) -> Mapping[str, Refresh]:
        """How the views over what the last transaction changed were brought up to date."""
        return self._refreshed

    def _prepare_tables(self, changes: Sequence[Change], running: Running) -> None:
        by_table: dict[str, list[Change]] = {}
        for change in changes:
            by_table.setdefault(change.table.lower(), []).append(change)
        for name, own in by_table.items():
            source = self._graph.tables[name]
            try:
                if self._propagation.is_limited:
                    with self._propagation.budget:
                        reserve_rows(own)
                        source.prepare(own)
                else:
                    source.prepare(own)
            except MemoryError as error:
                raise out_of_memory(f"table '{source.table.name}'", error) from error
            running.tables.append(source)

    def _no_memory_for(self, operator: Operator, error: MemoryError) -> Exception:
        over = (v.definition for v in self._views.values() if any(o is operator for o in below(v.root)))
        return out_of_memory(next((f"{v.kind} '{v.name}'" for v in over), "a suspended view"), error)

    @UNINTERRUPTED
    def _catch_up_for(self, name: str) -> None:
        if self._lost is not None:
            raise self._lost
        view = self._views.get(name.lower())
        if view is not None and view.is_lazy:
            self._catch_up()
        if self._suspended.by_key:
            if self._suspended.to_try(cheaply=False):
                self.heal()
            self._suspended.check(name)

    def _catch_up(self) -> None:
        """Brings lazy views up to date; their deltas count for the current version. Those that fail are suspended."""
        deltas: dict[int, Batch] = {}
        while self._propagation.has_waiting:
            try:
                deltas = self._propagation.catch_up()
            except OperatorFailed as failed:
                self._suspended.add(self._suspended.failed_lazily(failed, self._version))
            except BaseException:
                self._restore()
                raise
        if not deltas:
            return
        moved = {k: deltas[id(v.root)] for k, v in self._views.items() if v.is_lazy and id(v.root) in deltas}
        for key in moved:
            self._views[key].updates += 1
        self._history.add(self._version, datetime.datetime.now(datetime.UTC), moved)

    # Reads

    @UNINTERRUPTED
    def read(self, name: str) -> pa.Table:
        """The bag of a table or view."""
        self._catch_up_for(name)
        source = self._graph.tables.get(name.lower())
        if source is not None:
            return lookup.table_rows(source)
        view = self._views[name.lower()]
        return bag_table(kept(view.root).content(), view.definition.fields, self._dictionary)

    def iterate(self, name: str) -> Iterator[tuple[Any, ...]]:
        """The same, row by row: a view's from what is stored, some thousand rows at a time."""
        self._catch_up_for(name)
        view = self._views.get(name.lower())
        if view is None:
            yield from public_rows(self.read(name))
            return
        for batch in kept(view.root).iterate():
            yield from public_rows(bag_table(batch, view.definition.fields, self._dictionary))

    @UNINTERRUPTED
    def lookup(self, name: str, key: Mapping[str, Value]) -> pa.Table:
        """The rows with these values: of a view by a secondary index, made on the first look-up by these columns and kept.

        A table has no such index: its rows are hashed anew for each look-up.
        """
        self._catch_up_for(name)
        view = self._views.get(name.lower())
        if view is not None:
            found = lookup.rows_with(view.root, view.definition.fields, key, name, self._dictionary)
            return bag_table(found, view.definition.fields, self._dictionary)
        source = self._graph.tables[name.lower()]
        return bag_table(lookup.table_rows_with(source, key, name, self._dictionary), source.fields, self._dictionary)

    @UNINTERRUPTED
    def query(self, plan: Relation, programs: Programs | None = None) -> pa.Table:
        """Evaluates a plan once, with what is already maintained as its starting point, by its program if that is known."""
        self._catch_up()
        for name in tables_of(plan):
            self._catch_up_for(name)
            if name.lower() in self._graph.tables:
                lookup.check_retained(self._graph.tables[name.lower()])
        try:
            return bag_table(self._graph.evaluated(plan, programs), schema(plan), self._dictionary)
        finally:
            self._graph.collect()

    def holding(self, table: TableDefinition, rows: pa.Table) -> AbstractContextManager[None]:
        """Lets queries read these rows as a table, for as long as the context lasts."""
        return self._graph.holding(table, rows)

    def changes(self, view: str, since: int) -> Sequence[VersionedDelta]:
        """The non-empty deltas of the versions after ``since``."""
        self._catch_up_for(view)
        known = self._views[view.lower()]
        if known.has_no_listing:
            raise rejections.view_has_no_listing(known.definition, "its changes are asked for")
        kept_since = self.changes_kept_since(view)
        if not kept_since <= since <= self._version:
            raise rejections.changes_not_kept(known.definition.name, since, kept_since, self._version)
        return self._history.since(since, view.lower(), self.delta_table)

    def changes_kept_since(self, view: str) -> int:
        """The smallest ``since`` that ``changes`` takes."""
        self._catch_up_for(view)
        created = self._views[view.lower()].created_at
        return self._history.kept_since(created, self._version)

    def explain(self, view: str, mode: str) -> str:
        """How the view is maintained."""
        if view.lower() in self._suspended.by_key:
            return self._suspended.explain(view.lower(), mode)
        self._share_out()
        return explain_view(self._graph, self._views[view.lower()], mode, self.query)

    def cost_lines(self, view: ViewDefinition) -> list[str]:
        """What a changed row of each table would cost a view that is not there."""
        return cost_lines(self._graph, view, self.query)

    def _share_out(self) -> None:
        share_out(self._views, self._graph.operators)

    def stats(self, view: str) -> dict[str, Any]:
        """Rows, bytes by structure, updates, seconds, and the rows that its view trees have read or made."""
        try:
            self._catch_up_for(view)
        except ViewSuspended:
            return self._suspended.stats(view.lower())
        self._share_out()
        return self._views[view.lower()].stats()

    def matrix(self, view: str) -> tuple[Ints, Ints, Floats]:
        """The indexes and cells of a product of matrices that is kept in arrays."""
        return lookup.matrix_of(self._views[view.lower()].root)

    def numbers(self, view: str, key: Mapping[str, Value]) -> Floats | None:
        """The row of a group as it is kept, if it is nothing but numbers of rows and sums of floats."""
        self._catch_up_for(view)
        found = self._views[view.lower()]
        return lookup.numbers_of(found.root, found.definition.fields, key, view, self._dictionary)

    def checkpoint(self) -> None:
        """Nothing to do in memory."""

    def close(self) -> None:
        """Forgets everything."""
        self._views.clear()
        self._start()
        self._reach.forget()
        self._history.clear()

    def delta_table(self, view: str, delta: Batch) -> pa.Table:
        """The strongly minimal delta of a view as Arrow, with its weights."""
        definition, layout = self._suspended.described(view)
        return weighted_table(consolidated(delta, layout), definition.fields, self._dictionary)

    def _named_delta(self, view: str, delta: Batch) -> tuple[str, pa.Table]:
        return self._suspended.described(view)[0].name, self.delta_table(view, delta)
