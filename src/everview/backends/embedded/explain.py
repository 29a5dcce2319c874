"""What ``explain`` says of a view on the embedded backend.

``text`` and ``svg`` show the operators with their access paths and the view trees with what they store, ``json`` the same for
programs, ``triggers`` the trigger program, in which every search says its access path, ``code`` what runs as machine code and
what does not, ``analyze`` what each operator has done. ``text``, ``json`` and ``svg`` say what one changed row of each table
costs (``trigger.row_cost``), ``text`` first of all, in words, and then what declarations would make it cheaper.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import pyarrow as pa

from everview.backends import rejections
from everview.backends.embedded.explain_tree import as_tree, code_lines, tree_json, tree_lines
from everview.backends.embedded.graph import Graph
from everview.backends.embedded.matrix.chain_operator import MatrixChainOperator
from everview.backends.embedded.measured import measured_line
from everview.backends.embedded.operators.accumulators import accumulator_for
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.recompute import RecomputeOperator
from everview.backends.embedded.restoration import plan_view
from everview.backends.embedded.sources import ScanOperator
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.view_choices import choices_of
from everview.backends.embedded.views import MaintainedView
from everview.backends.row_spread import spread_by
from everview.catalog import ViewDefinition
from everview.planner.block_join_builder import FactsOf, Refused
from everview.planner.skew_search import NoSkewPlan
from everview.relational.expressions import columns_of
from everview.relational.nodes import Aggregate, Project, Relation
from everview.relational.traverse import tables_of
from everview.trigger.advice import advice_lines
from everview.trigger.format_program import format_program
from everview.trigger.program import Apply, Program, ProgramStatement, scans
from everview.trigger.row_cost import Cost, PlannedView, RowCost
from everview.trigger.summary import summary_lines


def _ordered(root: Operator) -> list[Operator]:
    """The operators below and with the root, inputs before users, each once."""
    seen: set[int] = set()
    order: list[Operator] = []

    def visit(operator: Operator) -> None:
        if id(operator) not in seen:
            seen.add(id(operator))
            for child in operator.inputs:
                visit(child)
            order.append(operator)

    visit(root)
    return order


def planned_view(graph: Graph, program: Program, facts_of: FactsOf) -> PlannedView:
    """A program as this engine runs it."""

    def aggregate_cost(aggregate: Aggregate) -> Cost:
        groups = KeyMap(1)
        return max(accumulator_for(call, groups, graph.dictionary).cost for call in aggregate.aggregates)

    return PlannedView(program, facts_of, graph.programs, aggregate_cost=aggregate_cost)


@dataclass(frozen=True, slots=True)
class ExplainedView:
    """What is explained: a view, its operators, what changed rows cost, and for ``text`` what to say of that first."""

    view: ViewDefinition
    root: Operator
    program: Program
    costs: tuple[RowCost, ...]
    head: Callable[[], list[str]]
    updates: int
    seconds: float


def explain_text(told: ExplainedView) -> str:
    """What changed rows cost, advice, and the operators as an indented tree; one that is used twice is referred to."""
    lines = [f"view {told.view.name}: {_means(told.root)}", *told.head(), "operators:"]
    return "\n".join([*lines, *_operator_lines(told.root, _details)]) + "\n"


def explain_analyze(told: ExplainedView) -> str:
    """The operators, each with what it has done since it was made."""
    some = "1 transaction" if told.updates == 1 else f"{told.updates:,} transactions"
    head = f"view {told.view.name}: {some} since it was made, {told.seconds:.6f} s of its own"
    return "\n".join([head, *_operator_lines(told.root, lambda o: [measured_line(o)])]) + "\n"


def _operator_lines(root: Operator, details: Callable[[Operator], list[str]]) -> list[str]:
    """The operators as an indented tree, with lines below each."""
    labels: dict[int, int] = {}
    lines: list[str] = []

    def visit(operator: Operator, depth: int) -> None:
        pad = "  " * depth
        if id(operator) in labels:
            lines.append(f"{pad}see #{labels[id(operator)]}")
            return
        labels[id(operator)] = len(labels) + 1
        kept = " (output kept)" if operator.keeps_output else ""
        lines.append(f"{pad}#{labels[id(operator)]} {operator.describe()}{kept}")
        lines.extend(f"{pad}   {line}" for line in details(operator))
        for child in operator.inputs:
            visit(child, depth + 1)

    visit(root, 1)
    return lines


def _means(root: Operator) -> str:
    """What kinds of operators maintain the view."""
    if isinstance(root, RecomputeOperator):
        return "recomputed when something below has changed"
    inner = [o for o in _ordered(root) if o.inputs]
    trees = [o for o in inner if as_tree(o) is not None]
    kinds = "push operators"
    if trees:
        kinds = "view trees" if len(trees) == len(inner) else "view trees and push operators"
    return f"maintained incrementally by {kinds}"


def _details(operator: Operator) -> list[str]:
    """What stands below the line of an operator: its tree, or why it has none."""
    tree = as_tree(operator)
    if tree is not None:
        return tree_lines(tree)
    if isinstance(operator, MatrixChainOperator):
        return operator.details()
    return [] if operator.why_no_tree is None else [f"view tree: no, {operator.why_no_tree}"]


def explain_json(told: ExplainedView) -> str:
    """The same as JSON: a list of operators, inputs by number."""
    order = _ordered(told.root)
    number = {id(o): i for i, o in enumerate(order)}
    operators = [
        {
            "operator": o.describe(),
            "inputs": [number[id(i)] for i in o.inputs],
            "columns": [f.name for f in o.fields],
            "output_kept": o.keeps_output,
            **_json_details(o),
        }
        for o in order
    ]
    found = {
        "view": told.view.name,
        "backend": "embedded",
        "strategy": told.view.options.strategy,
        "update": {cost.table: str(cost) for cost in told.costs},
        "operators": operators,
    }
    return json.dumps(found, indent=2)


def _json_details(operator: Operator) -> dict[str, Any]:
    tree = as_tree(operator)
    if tree is not None:
        return {"view_tree": tree_json(tree)}
    return {} if operator.why_no_tree is None else {"why_no_tree": operator.why_no_tree}


def explain_triggers(told: ExplainedView) -> str:
    """The trigger program, and in words where this engine does otherwise."""
    view, program, root = told.view, told.program, told.root
    tested = {}
    for collection in program.collections:
        texts = _tests_of(collection.statement, root)
        if texts:
            tested[collection.name] = (
                f"on embedded: {', '.join(texts)}: tested where rows come in, and the text is not kept"
            )
    standing_in = [o for o in _ordered(root) if isinstance(o, TreeOperator) and o.rows is not None]
    notes = [f"\non embedded: {o.describe()}: {tree_lines(o)[0]}\n" for o in standing_in]
    return format_program(view.name, program, tested) + "".join(notes)


def _tests_of(statement: ProgramStatement, root: Operator) -> list[str]:
    """The tests of text that a statement reads as columns of a table."""
    if not (isinstance(statement, Apply) and isinstance(statement.node, Project)):
        return []
    (read,) = scans(statement)
    tables = [o.source for o in _ordered(root) if isinstance(o, ScanOperator)]
    own = next((len(t.fields) for t in tables if t.table.name.lower() == read.table.lower()), len(read.fields))
    positions = [c for e in statement.node.expressions for c in columns_of(e)]
    return [read.fields[p].name for p in positions if p >= own]


def explain_code(told: ExplainedView) -> str:
    """Where each operator's work is done, and the instructions of view trees."""
    lines = [
        f"view {told.view.name}: operators run compiled kernels and whole-column NumPy, view trees run instructions "
        "in one compiled machine"
    ]
    for operator in _ordered(told.root):
        lines.append(f"  {operator.describe()}")
        tree = as_tree(operator)
        if tree is not None:
            lines.extend(f"    {line}" for line in code_lines(tree))
        lines.extend(
            f"    in Python, remembered per distinct value where it can be: {part}" for part in operator.python_parts()
        )
    return "\n".join(lines) + "\n"


_WIDTH, _HEIGHT, _GAP, _LINE = 460, 34, 22, 15


def explain_svg(told: ExplainedView) -> str:
    """The operators as boxes, inputs below their users."""
    view, root = told.view, told.root
    order = _ordered(root)[::-1]
    depth: dict[int, int] = {id(root): 0}
    for operator in order:  # users come before their inputs
        for child in operator.inputs:
            depth[id(child)] = max(depth.get(id(child), 0), depth[id(operator)] + 1)
    rows: dict[int, list[Operator]] = {}
    for operator in order:
        rows.setdefault(depth[id(operator)], []).append(operator)
    tall = {id(o): _HEIGHT + _LINE * len(_details(o)) for o in order}
    top, at = 50, {}
    for level in sorted(rows):
        for i, o in enumerate(rows[level]):
            at[id(o)] = (20 + i * (_WIDTH + _GAP), top)
        top += max(tall[id(o)] for o in rows[level]) + 2 * _GAP
    width = 40 + max(len(r) for r in rows.values()) * (_WIDTH + _GAP)
    costs = ", ".join(f"{cost.table} {cost}" for cost in told.costs)
    title = f'<text x="20" y="28" font-weight="bold">{escape(f"view {view.name}: one changed row of {costs}")}</text>'
    arrows = [_arrow(at[id(child)], at[id(o)], tall[id(o)]) for o in order for child in o.inputs]
    boxes = [_box(at[id(o)], tall[id(o)], [o.describe(), *_details(o)]) for o in order]
    style = 'font-family="monospace" font-size="11" fill="#222"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" {style}>'
    return "\n".join([head, title, *arrows, *boxes, "</svg>"]) + "\n"


def _box(corner: tuple[int, int], height: int, lines: list[str]) -> str:
    x, y = corner
    box = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{height}" rx="4" fill="#eef3fa" stroke="#446"/>'
    texts = "".join(
        f'<text x="{x + 8}" y="{y + 21 + i * _LINE}" xml:space="preserve">{escape(_short(line))}</text>'
        for i, line in enumerate(lines)
    )
    told = escape("\n".join(lines))
    return f"<g><title>{told}</title>{box}{texts}</g>"


def _short(text: str) -> str:
    return text if len(text) <= 68 else text[:67] + "…"


def _arrow(below: tuple[int, int], above: tuple[int, int], height: int) -> str:
    (x1, y1), (x2, y2) = below, above
    return f'<line x1="{x1 + _WIDTH // 2}" y1="{y1}" x2="{x2 + _WIDTH // 2}" y2="{y2 + height}" stroke="#889"/>'


EXPLAINERS: dict[str, Callable[[ExplainedView], str]] = {
    "text": explain_text,
    "json": explain_json,
    "svg": explain_svg,
    "triggers": explain_triggers,
    "code": explain_code,
    "analyze": explain_analyze,
}
"""The modes of ``explain``."""


def explain_view(graph: Graph, known: MaintainedView, mode: str, query: Callable[[Relation], pa.Table]) -> str:
    """How a view is maintained; ``query`` counts the rows that are there.

    Raises:
        UnsupportedOperation: there is no such mode.
    """
    explainer = EXPLAINERS.get(mode)
    if explainer is None:
        raise rejections.unknown_explain_mode(mode, "embedded", tuple(EXPLAINERS))
    view = known.definition
    program = graph.programs[view.name.lower()]
    planned = planned_view(graph, program, graph.facts_of)

    def head() -> list[str]:
        return _cost_lines(graph, view, planned, query)

    costs = planned.row_costs()
    return explainer(ExplainedView(view, known.root, program, costs, head, known.updates, known.seconds))


def cost_lines(graph: Graph, view: ViewDefinition, query: Callable[[Relation], pa.Table]) -> list[str]:
    """What a changed row of each table would cost a view that is not there, in words, and advice."""
    program = plan_view(graph, view, choices_of(view), graph.facts_of).program
    return _cost_lines(graph, view, planned_view(graph, program, graph.facts_of), query)


def _cost_lines(
    graph: Graph, view: ViewDefinition, planned: PlannedView, query: Callable[[Relation], pa.Table]
) -> list[str]:
    def replan(facts_of: FactsOf, by_deltas: bool) -> PlannedView | None:
        choices = choices_of(view)
        choices = replace(choices, strategy="auto") if by_deltas else choices
        try:
            return planned_view(graph, plan_view(graph, view, choices, facts_of).program, facts_of)
        except (Refused, NoSkewPlan):
            return None

    spread_of = spread_by(query, graph.can_be_counted)
    advice = advice_lines(planned, replan, spread_of, graph.unchanged_tables(view.plan))
    return [*summary_lines(planned.row_costs(), spread_of), *_unread_lines(graph, view, planned.program), *advice]


def _unread_lines(graph: Graph, view: ViewDefinition, program: Program) -> Iterator[str]:
    """The tables that foreign keys have made needless."""
    read = {source.name.lower() for source in program.inputs}
    named = [
        graph.tables[name.lower()].table.definition for name in tables_of(view.plan) if name.lower() in graph.tables
    ]
    for parent in (t for t in named if t.name.lower() not in read):
        referring = [t.name for t in named if any(r.parent == parent.name for r in t.references)]
        if referring:
            why = f"what refers to it in {' and '.join(referring)} finds one row, by FOREIGN KEY"
            yield f"a changed row of {parent.name} costs nothing: its rows are not read, as {why}"
