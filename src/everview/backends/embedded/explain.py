"""What ``explain`` says of a view on the embedded backend: its operators, their access paths, and who shares them."""

from __future__ import annotations

import json
from typing import Any

from everview.backends.embedded.operators.base import Operator
from everview.catalog import ViewDefinition


def explain_text(view: ViewDefinition, root: Operator) -> str:
    """The operators as an indented tree; one that is used twice is printed once and referred to afterwards."""
    labels: dict[int, int] = {}
    lines = [f"view {view.name}: maintained incrementally by push operators"]

    def visit(operator: Operator, depth: int) -> None:
        pad = "  " * depth
        if id(operator) in labels:
            lines.append(f"{pad}see #{labels[id(operator)]}")
            return
        labels[id(operator)] = len(labels) + 1
        kept = "" if operator.arrangement is None else " (output kept)"
        lines.append(f"{pad}#{labels[id(operator)]} {operator.describe()}{kept}")
        for child in operator.inputs:
            visit(child, depth + 1)

    visit(root, 1)
    return "\n".join(lines) + "\n"


def explain_json(view: ViewDefinition, root: Operator) -> str:
    """The same as JSON: a list of operators, inputs by number."""
    numbers: dict[int, int] = {}
    operators: list[dict[str, Any]] = []

    def visit(operator: Operator) -> int:
        if id(operator) not in numbers:
            inputs = [visit(i) for i in operator.inputs]
            numbers[id(operator)] = len(operators)
            columns = [f.name for f in operator.fields]
            operators.append({"operator": operator.describe(), "inputs": inputs, "columns": columns})
        return numbers[id(operator)]

    visit(root)
    return json.dumps({"view": view.name, "backend": "embedded", "operators": operators}, indent=2)
