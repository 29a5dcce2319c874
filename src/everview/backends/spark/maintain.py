"""Runs the stages of programs: contents when a view is made, deltas when its inputs move.

A plan whose rows are all at the driver runs there, on the embedded kernels, without a Spark job. A delta that must join
something large looks up what it can meet (``restrict``) and then runs at the driver too. Only where nothing connects a large
input, and for contents of large relations, does the whole plan run on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.spark import stage_plans
from everview.backends.spark.bound_views import named_sources, rows_source, views_of
from everview.backends.spark.changed_terms import changed_terms, moved_stage
from everview.backends.spark.far_rows import Home, Rows, brought_near, count_rows, own_home
from everview.backends.spark.float_payloads import far_payload, near_payload
from everview.backends.spark.key_lookups import FoundAhead
from everview.backends.spark.local_engine import run_locally
from everview.backends.spark.relation_store import Layout, StoredRelation
from everview.backends.spark.restrict import BoundSource, Restriction, Source, TermSources, source_of
from everview.backends.spark.segments import empty_rows
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.stages import (
    WEIGHT,
    Answered,
    Grouped,
    Linear,
    Partitioned,
    Stage,
    StageProgram,
    TreeView,
    scanned,
)
from everview.backends.spark.term_plans import (
    consolidated,
    negated,
    on_consolidated_leaves,
    scan_name,
    sum_plan,
    weighted,
)
from everview.backends.spark.terms import Term
from everview.backends.spark.work import Work
from everview.errors import EvaluationError
from everview.relational.expressions import Column
from everview.relational.nodes import Relation, Scan, Schema, UnionAll
from everview.relational.rules.prune_columns import prune_columns
from everview.relational.schema import schema

Wrap = Callable[[Relation], Relation]


class Maintenance:
    """Runs programs over the relations of a database.

    Args:
        relations: The stored relations by name; shared with the backend, which changes it.
        engine: Spark.
        limit: Segments with more rows than this stay on disk and are Spark's.
        scratch: Makes a relation that no commit will add, for contents that are needed only on the way.
        ahead: Rows that were looked up before the stages ask for them.
    """

    def __init__(
        self,
        relations: Mapping[str, StoredRelation],
        engine: SparkEngine,
        limit: int,
        scratch: Callable[[str, Layout], StoredRelation],
        ahead: FoundAhead | None = None,
    ) -> None:
        self._relations = relations
        self._ahead = ahead
        self._scratch = scratch
        self._engine = engine
        self._limit = limit

    # Contents

    def fill(self, program: StageProgram, work: Work, zone: str) -> None:
        """Computes every stage of a new view, or of one to be made anew, from the new contents of its inputs.

        Stages find the contents of those before them in ``work.replaced``. Inputs are taken as they stand, deletes beside what
        they delete; only if an expression fails, which may be on a row that is no longer there, are they summed up first.
        """
        for stage in program.stages:
            with work.timed(stage.name, self._engine):
                try:
                    self._fill_stage(stage, work, zone, sum_up=False)
                except EvaluationError:
                    self._fill_stage(stage, work, zone, sum_up=True)

    def _fill_stage(self, stage: Stage, work: Work, zone: str, *, sum_up: bool) -> None:
        starts = tuple(t.first for t in stage.terms)
        sources = tuple(tuple(self._content_source(leaf, work) for leaf in t.inputs) for t in stage.terms)
        named = named_sources(stage.terms, sources)

        def plan(wrap: Wrap) -> Relation:
            total = sum_plan(stage.terms, starts)
            return wrap(on_consolidated_leaves(total) if sum_up else total)

        match stage:
            case Linear():
                made = plan(lambda total: stage_plans.linear_plan(stage, total))
                self._store_plan(stage.name, stage.fields, made, named, work, zone)
            case TreeView():
                if not self._store_uncut(stage, sources, work, zone, sum_up=sum_up):
                    made = plan(lambda total: stage_plans.tree_view_plan(stage, total))
                    self._store_plan(stage.name, stage.fields, made, named, work, zone)
            case Grouped():
                if not self._store_uncut(stage, sources, work, zone, sum_up=sum_up):
                    made = plan(lambda total: stage_plans.state_rows(stage_plans.payload_plan(stage, total)))
                    self._store_plan(stage.state_name, stage.state, made, named, work, zone)
                payloads = self._content_source(Scan(stage.state_name, stage.state), work)
                assert payloads is not None
                state = {stage_plans.OLD: BoundSource(payloads)}
                if stage.is_single:
                    none = {stage_plans.CHANGED: rows_source(empty_rows((*stage.state, WEIGHT)))}
                    self._check_single(self.run(stage_plans.group_counts(stage), {**state, **none}, zone))
                output = stage_plans.grouped_content(stage)
                if stage.anew is not None:
                    output = self._with_unfit(stage, stage.anew, output, state, work, zone)
                self._store_plan(stage.name, stage.fields, output, state, work, zone)
            case Partitioned():
                made = plan(lambda total: consolidated(stage_plans.partitioned_content(stage, total)))
                self._store_plan(stage.name, stage.fields, made, named, work, zone)
            case Answered():
                made = stage_plans.answered_content(stage)
                self._store_plan(stage.name, stage.fields, made, named, work, zone)
            case _:
                assert_never(stage)

    def _store_uncut(
        self, stage: Grouped | TreeView, inputs: TermSources, work: Work, zone: str, *, sum_up: bool
    ) -> bool:
        """Stores the payload of rows whose floats are not yet cut; False where there are none, or no Python in tasks."""
        if stage.uncut is None or not self._engine.lookups.are_on:
            return False
        rows = sum_plan(stage.uncut.terms, tuple(t.first for t in stage.terms))
        rows = on_consolidated_leaves(rows) if sum_up else rows
        sources = named_sources(stage.uncut.terms, inputs)
        if any(s.is_remote(self._limit) for s in sources.values()):
            frame = far_payload(self._engine, self._limit, stage, rows, sources, zone)
            made = self._engine.write(frame, self._place(stage.state_name, stage.state, work))
            work.replaced[stage.state_name] = made
        else:
            work.replaced[stage.state_name] = near_payload(stage, self.run(rows, sources, zone))
        return True

    def _with_unfit(
        self, stage: Grouped, anew: Partitioned, output: Relation, state: dict[str, BoundSource], work: Work, zone: str
    ) -> Relation:
        """The output, and with it that of groups with floats that do not fit; adds the sources that it reads to ``state``."""
        keys = self.run(stage_plans.unfit_groups(stage, (stage_plans.OLD,)), state, zone)
        if not keys.num_rows:
            return output
        terms, plan = stage_plans.anew_content(anew)
        state |= named_sources(terms, self._restricted(terms, rows_source(keys), work))
        state[stage_plans.KEYS] = rows_source(keys)
        return UnionAll((output, plan))

    def _restricted(self, terms: tuple[Term, ...], keys: BoundSource | None, work: Work) -> TermSources:
        """The new contents of what terms join, beside keys that restrict them."""

        def source(leaf: Relation) -> Source | None:
            is_key = isinstance(leaf, Scan) and leaf.table == stage_plans.KEYS
            return keys.source if is_key and keys is not None else self._content_source(leaf, work)

        return tuple(tuple(map(source, t.inputs)) for t in terms)

    def _store_plan(
        self,
        name: str,
        fields: Schema,
        plan: Relation,
        sources: Mapping[str, BoundSource],
        work: Work,
        zone: str,
    ) -> None:
        if any(s.is_remote(self._limit) for s in sources.values()):
            views = views_of(plan, sources, self._engine, self._limit)
            try:
                frame = self._engine.run(prune_columns(plan), views, zone)
                work.replaced[name] = self._engine.write(frame, self._place(name, fields, work))
            finally:
                self._engine.drop(list(views.values()))
        else:
            work.replaced[name] = self.run(plan, sources, zone)

    def refill(self, program: StageProgram, work: Work, zone: str) -> None:
        """Computes a view anew, and its delta as the difference."""
        self.fill(program, work, zone)
        with work.timed(program.root.name, self._engine):
            self._difference(program.root, work, zone)

    def _difference(self, root: Stage, work: Work, zone: str) -> None:
        """Puts what a view's new content is more and less than the old one into the work."""
        new = self._content_source(Scan(root.name, root.fields), work)
        assert new is not None
        sources = {"new": BoundSource(new), "old": BoundSource(Source(self._relations[root.name], None))}
        plans = (Scan("new", weighted(root.fields)), negated(Scan("old", weighted(root.fields))))
        home = Home(root.name, root.fields, is_far=new.is_remote(self._limit))
        delta = self._answer(consolidated(UnionAll(plans)), sources, zone, home, work)
        if count_rows(delta):
            work.changes[root.name] = delta

    def _content_source(self, leaf: Relation, work: Work) -> Source | None:
        """The new content of a stored relation."""
        if not isinstance(leaf, Scan):
            return None
        made = work.replaced.get(leaf.table)
        if isinstance(made, pa.Table):
            return Source(None, made)
        relation = work.scratch.get(leaf.table) or self._relations[leaf.table]
        if made is not None:
            return Source(relation.over(made), None)
        return source_of(relation, work.changes.get(leaf.table))

    # Deltas

    def move(self, program: StageProgram, work: Work, zone: str) -> None:
        """Pushes the changes so far through a program; the root's delta, if any, is in ``work.changes`` afterwards."""
        stored = program.stored()
        for stage in program.stages:
            if not any(isinstance(i, Scan) and i.table in work.changes for t in stage.terms for i in t.inputs):
                continue
            with work.timed(stage.name, self._engine) as done:
                delta = self._delta(stage, work, zone)
            read = (work.changes.get(i.table) for t in stage.terms for i in t.inputs if isinstance(i, Scan))
            done.rows_in += sum(count_rows(rows) for rows in read if rows is not None)
            done.rows_out += 0 if delta is None else count_rows(delta)
            if delta is not None and count_rows(delta):
                work.changes[stage.name] = delta
                if stage.name in stored:
                    work.appended[stage.name] = delta

    def _delta(self, stage: Stage, work: Work, zone: str) -> Rows | None:
        match stage:
            case Linear():
                return self._sum(stage, work, zone, own_home(stage))
            case TreeView():
                return self._changed_payload(stage, work, zone)
            case Grouped():
                return self._grouped_delta(stage, work, zone)
            case Partitioned():
                return self._partitioned_delta(stage, work, zone)
            case Answered():
                raise AssertionError("its view is computed anew")
            case _:
                assert_never(stage)

    def _grouped_delta(self, stage: Grouped, work: Work, zone: str) -> Rows | None:
        changed = self._changed_payload(stage, work, zone)
        if changed is None or not count_rows(changed):
            return None
        state = self._relations[stage.state_name]
        keys = tuple(range(stage.key_count))
        old = BoundSource(Source(state, None))
        if isinstance(changed, pa.Table):
            old = rows_source(self._restriction(zone).stored_rows(state, keys, changed))
        sources = {stage_plans.OLD: old, stage_plans.CHANGED: rows_source(changed)}
        if stage.is_single:
            self._check_single(self.run(stage_plans.group_counts(stage), sources, zone))
        work.appended[stage.state_name] = changed
        home = own_home(stage, is_far=not isinstance(changed, pa.Table))
        delta = self._answer(stage_plans.grouped_delta(stage), sources, zone, home, work)
        return delta if stage.anew is None else self._unfit_delta(stage, stage.anew, delta, sources, work, zone)

    def _unfit_delta(
        self, stage: Grouped, anew: Partitioned, delta: Rows, sources: dict[str, BoundSource], work: Work, zone: str
    ) -> Rows:
        """The delta with the rows that were computed anew before, and those that are now."""
        home = own_home(stage, is_far=not isinstance(delta, pa.Table))
        old = stage_plans.OLD
        before, after = (
            self.run(stage_plans.unfit_groups(stage, seen), sources, zone) for seen in ((old,), tuple(sources))
        )
        parts: dict[str, BoundSource] = {}
        if before.num_rows:
            held = {stage_plans.KEYS: rows_source(before), old: self._old_rows(anew, before, zone)}
            parts["gone"] = rows_source(self._answer(stage_plans.partitions_gone(anew), held, zone, home, work))
        if after.num_rows:
            terms, plan = stage_plans.anew_content(anew)
            inputs = self._restricted(terms, rows_source(after), work)
            parts["come"] = rows_source(self._run_terms(plan, terms, (0,) * len(terms), inputs, {}, zone, home, work))
        if not parts:
            return delta
        parts["fit"] = rows_source(delta)
        union = UnionAll(tuple(Scan(name, weighted(stage.fields)) for name in parts))
        return self._answer(union, parts, zone, home, work)

    def _changed_payload(self, stage: Grouped | TreeView, work: Work, zone: str) -> Rows | None:
        moved = moved_stage(stage, work.changes)
        if moved is stage:
            return self._sum(stage, work, zone, Home(stage.state_name, stage.state))
        uncut = self._sum(moved, work, zone, own_home(moved))
        assert not isinstance(uncut, StoredRelation), "near changes lead to near rows"
        return None if uncut is None else near_payload(stage, uncut)

    def _check_single(self, too_many: pa.Table) -> None:
        if too_many.num_rows:
            raise EvaluationError(
                "a scalar subquery returned more than one row.", condition="SCALAR_SUBQUERY_TOO_MANY_ROWS"
            )

    def _partitioned_delta(self, stage: Partitioned, work: Work, zone: str) -> Rows | None:
        below = Home(f"{stage.name}?", stage_plans.input_fields(stage))
        changed = self._sum(stage, work, zone, below)
        if changed is None or not count_rows(changed):
            return None
        # Few touched partitions may have most rows of the table, if so many rows have changed.
        is_far = any(isinstance(rows, StoredRelation) for rows in (changed, *work.changes.values()))
        found = None if isinstance(changed, StoredRelation) else self._top_delta(stage, changed, zone)
        if found is not None:
            return found
        keys: Rows | None = None
        if stage.partition:
            home = Home(f"{stage.name}?keys", stage_plans.key_fields(stage), is_far)
            found_in = {stage_plans.CHANGED: rows_source(changed)}
            keys = self._answer(stage_plans.partition_keys(stage), found_in, zone, home, work)
        return self._anew(stage, keys, work, zone)

    def _anew(self, stage: Partitioned, keys: Rows | None, work: Work, zone: str) -> Rows:
        """The delta of a stage that is computed anew for some keys; where it has none, entirely."""
        is_far = any(isinstance(rows, StoredRelation) for rows in (keys, *work.changes.values()))
        sources: dict[str, BoundSource] = {}
        terms, plan = stage_plans.touched_plan(stage)
        if stage.partition:
            assert keys is not None
            sources[stage_plans.KEYS] = rows_source(keys)
        sources[stage_plans.OLD] = self._old_rows(stage, keys, zone)
        inputs = self._restricted(terms, sources.get(stage_plans.KEYS), work)
        return self._run_terms(
            plan, terms, (0,) * len(terms), inputs, sources, zone, own_home(stage, is_far=is_far), work
        )

    def _old_rows(self, stage: Partitioned, keys: Rows | None, zone: str) -> BoundSource:
        """The stored output of a stage, of the partitions with these keys or of more."""
        own = self._relations[stage.name]
        by = tuple(e.index for e in stage.output_key if isinstance(e, Column))
        if stage.partition and len(by) == len(stage.output_key) and isinstance(keys, pa.Table):
            return rows_source(self._restriction(zone).stored_rows(own, by, keys))
        return BoundSource(Source(own, None))

    def _top_delta(self, stage: Partitioned, changed: pa.Table, zone: str) -> pa.Table | None:
        """The delta of a top-k without a look at its input; None if it is none, or what it has lost must be looked for."""
        own = BoundSource(Source(self._relations[stage.name], None))
        if not stage.first or own.is_remote(self._limit):
            return None
        held = own.local(self._limit)
        sources = {stage_plans.OLD: rows_source(held), stage_plans.CHANGED: rows_source(changed)}
        is_full = (pc.sum(held.column(held.num_columns - 1)).as_py() or 0) >= stage.first
        if is_full and self.run(stage_plans.top_is_open(stage), sources, zone).num_rows:
            return None
        return self.run(stage_plans.top_delta(stage), sources, zone)

    def _sum(self, stage: Stage, work: Work, zone: str, home: Home) -> Rows | None:
        """The delta of a stage's terms, in the form that the stage needs."""
        changed = changed_terms(stage, work.changes, self._relations)
        if not changed.picked:
            return None
        terms, starts, sources = changed.terms, changed.starts, changed.sources
        is_far = any(isinstance(work.changes.get(leaf.table), StoredRelation) for leaf in scanned(terms))
        plan = stage_plans.changed_plan(stage, changed.picked)
        return self._run_terms(plan, terms, starts, sources, {}, zone, replace(home, is_far=is_far), work)

    def _restriction(self, zone: str) -> Restriction:
        return Restriction(self._engine, self._limit, zone, self._ahead)

    # Running

    def _run_terms(
        self,
        plan: Relation,
        terms: tuple[Term, ...],
        starts: tuple[int, ...],
        sources: TermSources,
        others: Mapping[str, BoundSource],
        zone: str,
        home: Home,
        work: Work,
    ) -> Rows:
        # What a far change meets is not looked up, few as its keys may be: it may be everything.
        found = None if home.is_far else self._restriction(zone).rows(terms, starts, sources)
        if found is not None and not any(s.is_remote(self._limit) for s in others.values()):
            tables = {scan_name(k, j): rows for k, own in enumerate(found) for j, rows in own.items()}
            extra = {n: s.local(self._limit) for n, s in others.items()}
            return run_locally(plan, {**tables, **extra})
        named = named_sources(terms, sources)
        small = frozenset(
            scan_name(k, start)
            for k, start in enumerate(starts)
            if isinstance(terms[k].inputs[start], Scan) and not home.is_far
        )
        return self._on_spark(plan, {**named, **others}, zone, small, home, work)

    def run(self, plan: Relation, sources: Mapping[str, BoundSource], zone: str) -> pa.Table:
        """The answer of a plan over sources, at the driver: computed there if all their rows are there, else on Spark."""
        found = self._answer(plan, sources, zone, Home("", ()), Work())
        assert isinstance(found, pa.Table), "only far homes have far rows"
        return found

    def _answer(self, plan: Relation, sources: Mapping[str, BoundSource], zone: str, home: Home, work: Work) -> Rows:
        """The answer of a plan over sources: at the driver, or where it may be large, in its home."""
        if any(s.is_remote(self._limit) for s in sources.values()):
            return self._on_spark(plan, sources, zone, frozenset(), home, work)
        return run_locally(stage_plans.pruned(plan), {n: s.local(self._limit) for n, s in sources.items()})

    def _on_spark(
        self,
        plan: Relation,
        sources: Mapping[str, BoundSource],
        zone: str,
        small: frozenset[str],
        home: Home,
        work: Work,
    ) -> Rows:
        views = views_of(plan, sources, self._engine, self._limit)
        try:
            frame = self._engine.run(plan, views, zone, small)
            if not home.is_far:
                return self._engine.collect(frame, schema(plan))
            place = self._place(home.relation, home.fields, work)
            far = place.over(self._engine.write(frame, place), is_far=True)
            work.written.append(far)
            return brought_near(far, self._limit)
        finally:
            self._engine.drop(list(views.values()))

    def _place(self, name: str, fields: Schema, work: Work) -> StoredRelation:
        """The relation of this name, or one that is needed only on the way."""
        known = self._relations.get(name) or work.scratch.get(name)
        return known or work.scratch.setdefault(name, self._scratch(name, Layout(fields)))
