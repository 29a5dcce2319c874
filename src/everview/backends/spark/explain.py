"""How a view is maintained, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from everview.backends import rejections
from everview.backends.row_spread import MOST_COUNTED, spread_by
from everview.backends.spark.catalog_file import Lowering
from everview.backends.spark.database_files import DatabaseFiles
from everview.backends.spark.measured import StageWork
from everview.backends.spark.payloads import is_ring_aggregate
from everview.backends.spark.refresh_costs import SHARE
from everview.backends.spark.stages import (
    Answered,
    BlockChoice,
    Grouped,
    Linear,
    Partitioned,
    Stage,
    StageProgram,
    TreeView,
)
from everview.backends.spark.terms import Term
from everview.backends.spark.transactions import ViewWithStages, relations_of
from everview.backends.spark.view_programs import ViewPrograms
from everview.catalog import TableDefinition, ViewDefinition
from everview.planner.block_join_builder import Facts, FactsOf
from everview.planner.plan_tree import TreePlan
from everview.relational.format import format_plan
from everview.relational.join_condition import split_join_condition
from everview.relational.nodes import Aggregate, Join, JoinKind, Relation, Scan, TopK
from everview.relational.rules import WITH_TREES, run_rules
from everview.trigger.advice import advice_lines
from everview.trigger.format_plan import class_lines, cost_lines, update_json
from everview.trigger.format_program import format_program
from everview.trigger.format_tree_program import format_tree_program
from everview.trigger.lower_plan import lower_plan
from everview.trigger.order_accesses import has_ranges, order_accesses
from everview.trigger.program import Anew, Apply, FactorizedBlock, MatrixBlock, ProgramStatement, TreeBlock
from everview.trigger.restrict_groups import restrict_groups
from everview.trigger.row_cost import PlannedView
from everview.trigger.summary import summary_lines
from everview.trigger.tree_program import AccessKind

_LOOKUPS: Final = (
    "segments of more than local_rows rows are searched in the driver's copies of them, up to lookup_bytes on disk; "
    "before there is a copy, and beyond, by tasks, in copies on the disks of executors, all look-ups of a round in one job; "
    "DataFrames of more than local_rows rows stay with the executors, and so do the deltas that they lead to"
)


def _text(view: ViewDefinition, program: StageProgram, head: Sequence[str]) -> str:
    how = "recomputed when something below has changed" if view.options.is_recomputed else "maintained incrementally"
    lines = [f"view {view.name}: {how} by stages", *head, "", format_plan(view.plan).rstrip(), "", "stages:"]
    stored = program.stored()
    for stage in program.stages:
        told = _told(stage, stored)
        lines.append(f"  {stage.name}: {told['kind']}, {told['rule']}; keeps {told['keeps']}")
        lines += [f"    {'-' if t.sign < 0 else '+'} {_term(t)}" for t in stage.terms]
        lines += [f"    {line}" for line in _choice_lines(stage)]
    lines.append(f"update: {_update(view)}")
    return "\n".join(lines) + "\n"


def _choice_lines(stage: Stage) -> list[str]:
    """How the aggregate over a join that the stage is came to be maintained as it is."""
    choice = choice_of(stage)
    if choice is None:
        return []
    if choice.tree is None:
        return [f"no view tree: {choice.reason}"]
    assert isinstance(choice.tree.plan, TreePlan), "stages are those of trees"
    return [*class_lines(choice.tree.plan, choice.tree.program), *cost_lines(choice.tree.plan, choice.tree.program)]


def choice_of(stage: Stage) -> BlockChoice | None:
    """The choice between a view tree and terms; None for a stage that is no aggregate over a join."""
    return stage.choice if isinstance(stage, Grouped | Partitioned) else None


def _update(view: ViewDefinition) -> str:
    if view.options.is_recomputed:
        return "every stage computed anew from its inputs"
    incremental = f"incremental; {_LOOKUPS}"
    match view.options.refresh:
        case "auto":
            return (
                f"{incremental}; computed anew where that is cheaper, by what refreshes have cost, stage by stage (before any "
                f"was measured: by a transaction that changes more than {SHARE:.0%} of the rows it reads)"
            )
        case "incremental_strict":
            return f"{incremental}; a transaction that would need a recomputation is rejected"
        case _:
            return incremental


def _json(view: ViewDefinition, program: StageProgram, _head: Sequence[str]) -> str:
    stored = program.stored()
    told = {
        "view": view.name,
        "backend": "spark",
        "strategy": _strategy(view, program),
        "update": _update(view),
        "inputs": sorted(program.inputs()),
        "stages": [
            {"name": s.name, **_told(s, stored), "terms": [_term(t) for t in s.terms], **_choice_json(s)}
            for s in program.stages
        ],
        "plan": format_plan(view.plan).splitlines(),
    }
    return json.dumps(told, indent=2)


def _strategy(view: ViewDefinition, program: StageProgram) -> str:
    if view.options.is_recomputed:
        return "recompute"
    return "factorized" if any(isinstance(s, TreeView) for s in program.stages) else "first_order"


def _choice_json(stage: Stage) -> dict[str, Any]:
    choice = choice_of(stage)
    if choice is None:
        return {}
    if choice.tree is None:
        return {"no_tree": choice.reason}
    plan = choice.tree.plan
    assert isinstance(plan, TreePlan), "stages are those of trees"
    classes = {"class": plan.query_class.name, "class_under_dependencies": plan.reduct_class.name}
    updates = {cost.atom: update_json(cost) for cost in plan.costs}
    return {"tree": {**classes, "order": plan.order.text, "updates": updates}}


def _told(stage: Stage, stored: frozenset[str]) -> dict[str, Any]:
    output = ["its output"] if stage.name in stored else []
    match stage:
        case Linear():
            kind, rule, keeps = "linear", "each input's change joined with the others", output
        case TreeView():
            kind, rule = f"view {stage.view} of a tree", "each input's change joined with the others, and summed"
            keeps = ["a payload a key"] if stage.name in stored else []
        case Grouped():
            rule = "payloads of the touched groups, old and new"
            if stage.anew is not None:
                rule += " (anew where a float is NaN, infinite, or beyond what is summed exactly)"
            kind, keeps = "grouped", ["a payload a group", *output]
        case Partitioned():
            rule = "touched partitions computed anew" if stage.partition else "computed anew from its stored input"
            if stage.first:
                rule += " if one of its rows has left or moved back, else from the change alone"
            kind, keeps = "partitioned", output
        case Answered():
            kind, rule, keeps = "answered by Spark", "the query run over all rows, in a Spark job", output
    return {"kind": kind, "rule": rule, "keeps": " and ".join(keeps) or "nothing"}


def _term(term: Term) -> str:
    return " ⋈ ".join(leaf.table if isinstance(leaf, Scan) else "values" for leaf in term.inputs)


def _triggers(view: ViewDefinition, program: StageProgram, _head: Sequence[str]) -> str:
    """The trigger program, and in words where Spark does otherwise."""
    notes = {}
    for collection in program.program.collections:
        statement = collection.statement
        told = [_otherwise(statement, program.choices.get(collection.name)), _unordered(statement)]
        if any(told):
            notes[collection.name] = f"on Spark: {'; '.join(filter(None, told))}"
    text = format_program(view.name, program.program, notes) + f"\non Spark: {_LINEAR}\n"
    return f"{text}on Spark: {ALL_ROWS}\n" if _has_few_rows(view) else text


ALL_ROWS: Final = "groups that no row of a filtered table reads are kept, too, and filtered tables are not joined first"


def _has_few_rows(view: ViewDefinition) -> bool:
    """Whether the embedded backend would keep less of a view, because filters leave few rows of some tables."""
    if view.options.strategy != "auto":
        return False
    plan = run_rules(view.plan, WITH_TREES)
    kept = lower_plan(plan, _unknown)
    least = lower_plan(restrict_groups(plan, _unknown), _unknown, few_first=True)
    return format_program(view.name, kept, {}) != format_program(view.name, least, {})


def _unknown(_: Relation) -> Facts:
    return Facts()


_LINEAR: Final = "linear collections are stored nowhere; what reads them joins the tables, views and collections below"


def _otherwise(statement: ProgramStatement, choice: BlockChoice | None) -> str | None:
    """What Spark does instead of what a statement says."""
    match statement:
        case TreeBlock(source=Aggregate(), lowered=lowered) if choice is not None and choice.tree is not None:
            if format_tree_program(choice.tree.program) == format_tree_program(lowered.program):
                return None
            assert isinstance(choice.tree.plan, TreePlan), "stages are those of trees"
            views = "; ".join(line.strip() for line in class_lines(choice.tree.plan, choice.tree.program)[1:])
            has_indicators = any(v.indicates is not None for v in lowered.program.views)
            wide = "views that may outgrow every relation below them are not kept"
            why = "no stage keeps an indicator" if has_indicators else wide
            return f"another view tree, as {why}; {views}"
        case TreeBlock(source=Aggregate() as node):
            why = "" if choice is None else f": {choice.reason}"
            joins = "the change of an input is joined with the other inputs, which are stored"
            return f"no view tree{why}; {joins}, and {_groups(node)}"
        case TreeBlock() | FactorizedBlock() | MatrixBlock():
            return "no view tree; the change of an input is joined with the other inputs, which are stored"
        case Apply(node=Aggregate() as node):
            return _groups(node)
        case Apply(node=Join(kind=JoinKind.SEMI | JoinKind.ANTI) as node) if split_join_condition(node).residual:
            return "a join with the distinct values that the left side compares, stored with the number of their pairs"
        case Apply(node=Join(kind=JoinKind.SEMI | JoinKind.ANTI)):
            return "a join with the distinct keys of the right side, which are stored with their counts"
        case Apply(node=TopK()):
            return "computed anew from its stored input where the change alone does not tell the first rows"
        case Anew():
            return "every stage computed anew from its inputs"
        case _:
            return None


def _unordered(statement: ProgramStatement) -> str | None:
    """What Spark does where another engine searches in an order."""
    match statement:
        case TreeBlock(lowered=lowered) if has_ranges(order_accesses(lowered.program)):
            return "no view is kept in order; rows that an inequality joins are paired, and then summed"
        case Apply(node=Join() as node, rules=rules) if any(
            s.kind is AccessKind.RANGE for rule in rules for s in rule.searches
        ):
            met = "those with equal keys" if split_join_condition(node).equalities else "all"
            return f"nothing is kept in order; a changed row is compared with {met} of the other side"
        case _:
            return None


def _groups(node: Aggregate) -> str:
    is_kept = is_ring_aggregate(node)
    return "a payload is kept for each group" if is_kept else "the touched groups are computed anew"


def _analyze(view: ViewDefinition, program: StageProgram, head: Sequence[str]) -> str:
    """The stages with what they have done, which is told by ``head``, a line a stage."""
    stored = program.stored()
    lines = [f"view {view.name}: since the database was opened", "stages:"]
    for stage, done in zip(program.stages, head, strict=True):
        lines += [f"  {stage.name}: {_told(stage, stored)['kind']}", f"    {done}"]
    return "\n".join(lines) + "\n"


EXPLAINERS: Final[dict[str, Callable[[ViewDefinition, StageProgram, Sequence[str]], str]]] = {
    "text": _text,
    "json": _json,
    "triggers": _triggers,
    "analyze": _analyze,
}
"""The modes that this backend has; ``text`` and ``analyze`` are given lines."""


@dataclass(frozen=True, slots=True)
class Explaining:
    """Explains views; ``query`` counts the rows that are there."""

    files: DatabaseFiles
    programs: ViewPrograms
    tables: Mapping[str, TableDefinition]
    query: Callable[[Relation], pa.Table]

    def explain(self, known: ViewWithStages, mode: str) -> str:
        """How a view is maintained.

        Raises:
            UnsupportedOperation: there is no such mode.
            ViewSuspended: it has no answer, and the mode would tell of one.
        """
        explainer = EXPLAINERS.get(mode)
        if explainer is None:
            raise rejections.unknown_explain_mode(mode, "spark", tuple(EXPLAINERS))
        why = self.files.last.suspended.get(known.definition.name.lower())
        if why is not None and mode != "text":
            raise rejections.suspended(known.definition, why)
        measured = known.measured() if mode == "text" else ""
        if why is not None:
            return f"{why}\n{explainer(known.definition, known.program, ())}{measured}"
        lines: list[str] = []
        if mode == "text":
            view = known.definition
            lines = self._cost_lines(view, next(e.lowering for e in self.files.entries if e.definition is view))
        elif mode == "analyze":
            lines = self._done(known)
        return explainer(known.definition, known.program, lines) + measured

    def cost_lines(self, view: ViewDefinition) -> list[str]:
        """What a changed row of each table would cost a view that is not there, in words, and advice."""
        received = frozenset(self.files.last.received)
        _, lowering = self.programs.make(view, received, lambda name: self.files.relations[name].row_count)
        return self._cost_lines(view, lowering)

    def _cost_lines(self, view: ViewDefinition, lowering: Lowering) -> list[str]:
        planned = self.programs.planned(view, lowering)
        spread_of = spread_by(self.query, self._can_be_counted)

        def replan(facts_of: FactsOf, by_deltas: bool) -> PlannedView:
            return self.programs.planned(view, lowering, facts_of, by_deltas=by_deltas)

        return [*summary_lines(planned.row_costs(), spread_of), *advice_lines(planned, replan, spread_of, ())]

    def _can_be_counted(self, name: str) -> bool:
        table, stored = self.tables.get(name.lower()), self.files.relations.get(name.lower())
        is_kept = (table is None or table.retain) and name.lower() not in self.files.last.suspended
        return is_kept and stored is not None and stored.row_count <= MOST_COUNTED

    def _done(self, known: ViewWithStages) -> list[str]:
        """What each stage has done."""
        own = {n: sum(s.size for s in self.files.relations[n].segments) for n in relations_of(known.program)}
        told = []
        for stage in known.program.stages:
            size = own.get(stage.name, 0) + (own.get(stage.state_name, 0) if isinstance(stage, Grouped) else 0)
            told.append(known.done.get(stage.name, StageWork()).text(size))
        return told
