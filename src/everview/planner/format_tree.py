"""Text of orders, view trees and delta trees: the same for the same input, for ``explain`` and golden files.

    V@A_RST[] = ⊕A  V@B_R ⊗ V@C_ST        *
      V@B_R[A] = ⊕B  R
        R[A, B]

A star marks what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.planner.delta_tree import DeltaStep, delta_path, indicator_paths
from everview.planner.variable_order import OrderNode, VariableOrder
from everview.planner.view_tree import Indicator, InnerView, ViewNode, ViewTree


def format_order(order: VariableOrder) -> str:
    """One line a variable with the ancestors it depends on, one line an atom."""
    lines = [line for root in order.roots for line in _order_lines(root, 0)]
    return "\n".join([*lines, *(f"{a.name}[]" for a in order.loose)])


def _order_lines(node: OrderNode, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{node.variable} {{{', '.join(node.dep)}}}"
    for child in node.children:
        yield from _order_lines(child, depth + 1)
    for atom in node.atoms:
        yield f"{'  ' * (depth + 1)}{atom.name}[{', '.join(atom.variables)}]"


def format_tree(tree: ViewTree, materialized: frozenset[str] = frozenset()) -> str:
    """One line a node, children below their view, a star at what is stored."""
    return "\n".join(line for root in tree.roots for line in _tree_lines(root, 0, materialized))


def _tree_lines(node: ViewNode, depth: int, materialized: frozenset[str]) -> Iterator[str]:
    star = "  *" if node.name in materialized else ""
    if isinstance(node, InnerView):
        definition = f" = {_sum(node.summed)}{' ⊗ '.join(c.name for c in node.children)}"
        yield f"{'  ' * depth}{format_node(node)}{definition}{star}"
        for child in node.children:
            yield from _tree_lines(child, depth + 1, materialized)
    else:
        yield f"{'  ' * depth}{format_node(node)}{star}"


def format_node(node: ViewNode) -> str:
    """A node with its keys."""
    source = f"{node.name}" if not isinstance(node, Indicator) else f"{node.name} of {node.atom.name}"
    return f"{source}[{', '.join(node.keys)}]"


def format_delta_path(steps: tuple[DeltaStep, ...]) -> str:
    """One line a step: the delta view, what is summed out, and the siblings looked up with the keys they are found by."""
    return "\n".join(_step_line(step) for step in steps)


def _step_line(step: DeltaStep) -> str:
    lookups = "".join(f" ⊗ {lookup.node.name}({', '.join(lookup.by)})" for lookup in step.lookups)
    return f"δ{format_node(step.view)} = {_sum(step.view.summed)}δ{step.child.name}{lookups}"


def format_deltas(tree: ViewTree, atom: str) -> str:
    """The delta tree of an update to an atom, its indicators included."""
    paths = (delta_path(tree, atom), *indicator_paths(tree, atom))
    return "\n".join(filter(None, (format_delta_path(p) for p in paths)))


def _sum(variables: tuple[str, ...]) -> str:
    return f"⊕{','.join(variables)} " if variables else ""
