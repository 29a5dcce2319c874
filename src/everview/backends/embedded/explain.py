"""What ``explain`` says of a view on the embedded backend.

``text`` and ``svg`` show the operators with their access paths and the view trees with what they store, ``json`` the same for
programs, ``triggers`` the trigger program, in which every search says its access path, ``code`` what runs as machine code and
what does not. ``text``, ``json`` and ``svg`` say what one changed row of each table costs: the most expensive step on its way,
where a step that yields several rows is O(matches).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any

from everview.backends import rejections
from everview.backends.embedded.explain_tree import (
    as_tree,
    code_lines,
    is_constant,
    tree_json,
    tree_lines,
)
from everview.backends.embedded.matrix.chain_operator import MatrixChainOperator
from everview.backends.embedded.operators.base import Cost, Operator
from everview.backends.embedded.operators.recompute import RecomputeOperator
from everview.backends.embedded.sources import ScanOperator
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.catalog import ViewDefinition
from everview.relational.expressions import columns_of
from everview.relational.nodes import Project
from everview.trigger.format_program import format_program
from everview.trigger.order_accesses import kept_in_order
from everview.trigger.program import Apply, Program, ProgramStatement, scans


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


def _touched(order: list[Operator], table: str) -> list[tuple[Operator, Cost]]:
    """What a change of the table sets in motion, with the cost of each step."""
    moving: set[int] = set()
    steps: list[tuple[Operator, Cost]] = []
    for operator in order:
        if isinstance(operator, ScanOperator):
            if operator.source.table.name == table:
                moving.add(id(operator))
                steps.append((operator, Cost.CONSTANT))
            continue
        costs = [_cost(operator, i) for i, child in enumerate(operator.inputs) if id(child) in moving]
        if costs:
            moving.add(id(operator))
            steps.append((operator, max(costs)))
    return steps


def _cost(operator: Operator, side: int) -> Cost:
    """What one row of an input costs; a slice that dependencies leave one match of is O(1), but for an order that is kept."""
    tree = as_tree(operator)
    if tree is not None and is_constant(tree, side):
        return Cost.LOGARITHMIC if kept_in_order(tree.program, side) else Cost.CONSTANT
    return operator.update_cost(side)


def update_costs(root: Operator) -> dict[str, Cost]:
    """The cost of one changed row, by table; a static one that is loaded does not change."""
    order = _ordered(root)
    scanned = (o.source.table for o in order if isinstance(o, ScanOperator))
    tables = dict.fromkeys(t.name for t in scanned if not (t.definition.static and t.has_received_rows))
    return {table: max(cost for _, cost in _touched(order, table)) for table in tables}


def explain_text(view: ViewDefinition, root: Operator) -> str:
    """The operators as an indented tree; one that is used twice is printed once and referred to afterwards."""
    labels: dict[int, int] = {}
    lines = [f"view {view.name}: {_means(root)}"]

    def visit(operator: Operator, depth: int) -> None:
        pad = "  " * depth
        if id(operator) in labels:
            lines.append(f"{pad}see #{labels[id(operator)]}")
            return
        labels[id(operator)] = len(labels) + 1
        kept = " (output kept)" if operator.keeps_output else ""
        lines.append(f"{pad}#{labels[id(operator)]} {operator.describe()}{kept}")
        lines.extend(f"{pad}   {line}" for line in _details(operator))
        for child in operator.inputs:
            visit(child, depth + 1)

    visit(root, 1)
    lines.append("one changed row costs:")
    lines.extend(f"  {table}: {cost}" for table, cost in update_costs(root).items())
    return "\n".join(lines) + "\n"


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


def explain_json(view: ViewDefinition, root: Operator) -> str:
    """The same as JSON: a list of operators, inputs by number."""
    order = _ordered(root)
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
    costs = {table: str(cost) for table, cost in update_costs(root).items()}
    told = {
        "view": view.name,
        "backend": "embedded",
        "strategy": view.options.strategy,
        "update": costs,
        "operators": operators,
    }
    return json.dumps(told, indent=2)


def _json_details(operator: Operator) -> dict[str, Any]:
    tree = as_tree(operator)
    if tree is not None:
        return {"view_tree": tree_json(tree)}
    return {} if operator.why_no_tree is None else {"why_no_tree": operator.why_no_tree}


def explain_triggers(view: ViewDefinition, program: Program, root: Operator) -> str:
    """The trigger program, and in words where this engine does otherwise."""
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


def explain_code(view: ViewDefinition, root: Operator) -> str:
    """Where each operator's work is done, and the instructions of view trees."""
    lines = [
        f"view {view.name}: operators run compiled kernels and whole-column NumPy, view trees run instructions "
        "in one compiled machine"
    ]
    for operator in _ordered(root):
        lines.append(f"  {operator.describe()}")
        tree = as_tree(operator)
        if tree is not None:
            lines.extend(f"    {line}" for line in code_lines(tree))
        lines.extend(
            f"    in Python, remembered per distinct value where it can be: {part}" for part in operator.python_parts()
        )
    return "\n".join(lines) + "\n"


_WIDTH, _HEIGHT, _GAP, _LINE = 460, 34, 22, 15


def explain_svg(view: ViewDefinition, root: Operator) -> str:
    """The operators as boxes, inputs below their users."""
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
    costs = ", ".join(f"{table} {cost}" for table, cost in update_costs(root).items())
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


EXPLAINERS: dict[str, Callable[[ViewDefinition, Operator], str]] = {
    "text": explain_text,
    "json": explain_json,
    "svg": explain_svg,
    "code": explain_code,
}
"""The modes of ``explain`` that tell of operators."""


def explain_view(view: ViewDefinition, program: Program, root: Operator, mode: str) -> str:
    """How a view is maintained.

    Raises:
        UnsupportedOperation: there is no such mode.
    """
    if mode == "triggers":
        return explain_triggers(view, program, root)
    explainer = EXPLAINERS.get(mode)
    if explainer is None:
        raise rejections.unknown_explain_mode(mode, "embedded", (*EXPLAINERS, "triggers"))
    return explainer(view, root)
