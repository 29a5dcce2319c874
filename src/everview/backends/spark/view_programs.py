"""The programs of views: made with a view, and made again, the same, when its database is opened.

Nothing of a program is on disk but a note (``catalog_file.Lowering``) of what the planner was told, and a digest of the
program's text. Where a view's program would come out otherwise today, because the database was made by another version of
everview, its relations are not what the stages of today read. Such a view is *made anew*: its stages are computed from its
inputs, while its own content and history stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace

from everview.backends import rejections
from everview.backends.spark.catalog_file import Entry, Lowering
from everview.backends.spark.choose_tree import TreeOptions
from everview.backends.spark.commit_log import Move
from everview.backends.spark.database_files import DatabaseFiles
from everview.backends.spark.lower import lower
from everview.backends.spark.maintain import Maintenance
from everview.backends.spark.payloads import is_ring_aggregate
from everview.backends.spark.program_text import program_digest
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.stages import StageProgram, view_of_relation
from everview.backends.spark.transactions import ViewWithStages, relations_of
from everview.backends.spark.work import Work
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import EvaluationError, UnsupportedOperation
from everview.planner.block_join_builder import Facts, FactsOf
from everview.relational.nodes import Aggregate, Relation, Scan
from everview.relational.rules import WITH_TREES, run_rules
from everview.relational.traverse import tables_of
from everview.relational.unique_keys import UniqueKey, unique_keys
from everview.trigger.lower_plan import lower_plan
from everview.trigger.program import Program
from everview.trigger.row_cost import Cost, PlannedView

LEAST_ROWS = 1000
"""Tables are planned for as if they had at least so many rows: an empty one is about to be filled."""


class ViewPrograms:
    """Makes programs, over the tables and views that there are when one is made.

    Args:
        tables: The tables by key; shared with the backend, which changes it.
        views: The views by key; shared likewise.
    """

    def __init__(self, tables: Mapping[str, TableDefinition], views: Mapping[str, ViewWithStages]) -> None:
        self._tables = tables
        self._views = views

    def make(
        self, view: ViewDefinition, received: Set[str], rows_of: Callable[[str], int]
    ) -> tuple[StageProgram, Lowering]:
        """The program of a new view, and the note to make it again by; ``received`` are the tables that were given rows."""
        strategy = view.options.strategy
        trees = strategy if strategy in ("auto", "factorized") else None
        names = dict.fromkeys(name.lower() for name in tables_of(view.plan))
        tables = [self._tables[n] for n in names if n in self._tables]
        fixed = tuple(t.name.lower() for t in tables if t.static and t.name.lower() in received)
        lowering = Lowering(trees, tuple((n, rows_of(n)) for n in names), fixed)
        program = self.again(view, lowering)
        return program, replace(lowering, digest=program_digest(program))

    def again(self, view: ViewDefinition, lowering: Lowering) -> StageProgram:
        """The program that the note tells of, as today's code makes it."""

        def facts_of(relation: Relation) -> Facts:
            return self._facts(relation, lowering)

        return self._lowered(view, lowering, facts_of)

    def _lowered(self, view: ViewDefinition, lowering: Lowering, facts_of: FactsOf, by: str = "") -> StageProgram:
        strategy = by or ("recompute" if view.options.refresh == "full" else view.options.strategy)
        plan = run_rules(view.plan, WITH_TREES)
        program = lower_plan(plan, facts_of, strategy, keeps_rows=self._keeps_rows)
        trees = None
        if lowering.trees is not None:
            trees = TreeOptions(lowering.trees, facts_of, frozenset(lowering.fixed))
        return lower(view.name.lower(), program, trees)

    def planned(
        self, view: ViewDefinition, lowering: Lowering, facts_of: FactsOf | None = None, *, by_deltas: bool = False
    ) -> PlannedView:
        """What changed rows meet in the stages of a view, perhaps with other facts or without computing it anew."""

        def known(relation: Relation) -> Facts:
            return self._facts(relation, lowering)

        facts = facts_of or known
        program = self._stepwise(view, self._lowered(view, lowering, facts, "auto" if by_deltas else ""), facts)
        below = {key: self._stepwise(v.definition, v.program, facts) for key, v in self._views.items()}
        return PlannedView(program, facts, below, has_order=False, aggregate_cost=_aggregate_cost)

    def _stepwise(self, view: ViewDefinition, stages: StageProgram, facts_of: FactsOf) -> Program:
        """The program that stages execute: without its view trees where they join their inputs instead."""
        if all(choice.tree is not None for choice in stages.choices.values()):
            return stages.program
        why = "the stages of this view have none"
        return lower_plan(run_rules(view.plan, WITH_TREES), facts_of, keeps_rows=self._keeps_rows, no_tree=why)

    def _keeps_rows(self, name: str) -> bool:
        table = self._tables.get(name.lower())
        return table is None or table.retain

    def _facts(self, relation: Relation, lowering: Lowering) -> Facts:
        if not isinstance(relation, Scan):
            return Facts()
        name = relation.table.lower()
        rows = float(max(LEAST_ROWS, dict(lowering.rows).get(name, 0)))
        return Facts(self._keys(relation), name not in lowering.fixed, rows)

    def _keys(self, scan: Scan) -> tuple[UniqueKey, ...]:
        table = self._tables.get(scan.table.lower())
        if table is None:
            return unique_keys(self._views[scan.table.lower()].definition.plan, self._keys)
        return table.unique_keys


def _aggregate_cost(aggregate: Aggregate) -> Cost:
    return Cost.CONSTANT if is_ring_aggregate(aggregate) else Cost.PARTITION


def is_as_made(program: StageProgram, lowering: Lowering, relations: Iterable[str]) -> bool:
    """Whether the program is the one that a view's relations were made by, as far as was noted."""
    if lowering.digest:
        return lowering.digest == program_digest(program)
    key = program.root.name
    return {n for n in relations if view_of_relation(n) == key} == relations_of(program).keys()


def make_anew(
    view: ViewWithStages, files: DatabaseFiles, maintenance_of: Callable[[Mapping[str, StoredRelation]], Maintenance]
) -> None:
    """Computes the stages of a view whose relations another program made, and commits them in place of those.

    Raises:
        UnsupportedOperation: it reads a table whose rows are not retained.
    """
    program, key = view.program, view.definition.name.lower()
    tables = [e.definition for e in files.entries if isinstance(e.definition, TableDefinition)]
    given = program.inputs() & frozenset(files.last.received)
    lost = [t.name for t in tables if not t.retain and t.name.lower() in given]
    if lost:
        raise UnsupportedOperation(
            f"view '{view.definition.name}' was made by another version of everview, and its stages cannot be computed "
            f"anew: the rows of table '{lost[0]}' are not retained.",
            hint="open the database with the version that made it.",
        )
    made = {n: files.new_relation(n, layout) for n, layout in relations_of(program).items() if n != key}
    work, suspended = Work(), dict(files.last.suspended)
    try:
        if program.inputs().isdisjoint(suspended):
            maintenance_of({**files.relations, **made}).fill(program, work, view.definition.time_zone)
    except EvaluationError as error:
        suspended[key] = rejections.failing(view.definition, files.last.version, error)
        work.replaced.clear()
    finally:
        work.forget_scratch()
    moves = {n: Move(tuple(made[n].written(rows))) for n, rows in work.replaced.items() if n in made}
    entries = [_noted(e, program) if e.definition is view.definition else e for e in files.entries]
    files.commit("catalog", files.last.version, moves, entries=entries, added=made, suspended=suspended)


def _noted(entry: Entry, program: StageProgram) -> Entry:
    return replace(entry, lowering=replace(entry.lowering, digest=program_digest(program)))


def check_has_options(view: ViewDefinition) -> None:
    """Refuses what this version of the backend would otherwise ignore."""
    options = view.options
    refused = {
        f"strategy='{options.strategy}'": options.strategy not in ("auto", "factorized", "first_order", "recompute"),
        "lazy=True": options.lazy,
        f"representation='{options.representation}'": options.representation == "factorized",
    }
    for what, is_refused in refused.items():
        if is_refused:
            raise UnsupportedOperation(
                f"the spark backend does not have {what}, asked for by view '{view.name}'.",
                hint="leave it out: strategy='auto' maintains every view by deltas.",
            )
