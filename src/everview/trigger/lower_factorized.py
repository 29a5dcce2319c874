"""From a free-top view tree to the program that maintains a factorized result, and the steps that enumerate it.

The result is spread over the views at the top of the tree. A *step* finds the entries of one view that agree with what earlier
steps have bound, and binds the view's other keys; a row of the result is a choice of one entry a step (section 7.1 of F-IVM):

    1  H@A[A]        binds A
    2  R[A, B]       by A, binds B        factor
    3  H@C[A, C]     by A, binds C        factor

The payload of a row is the product of the payloads of the *frontier*: the highest views that have all free variables below them
as keys (figure 11). Views above it need no payload but the count, which says whether a key is still there (remark 18).

Indicators change nothing of this: what they keep out of a view has no partner in an atom that is joined further up, and so is
never asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from everview.planner.block import Block
from everview.planner.materialize import materialized_nodes
from everview.planner.view_tree import Indicator, InnerView, ViewNode, ViewTree, atoms_below
from everview.trigger.lower_tree import lower_views
from everview.trigger.tree_program import TreeProgram


@dataclass(frozen=True, slots=True)
class EnumerationStep:
    """The entries of ``view`` with the values of ``bound``; each binds ``new``. Factors make up the payload of a row."""

    view: str
    bound: tuple[str, ...]
    new: tuple[str, ...]
    is_factor: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """The steps of an enumeration, and its roots, whose counts multiply to the number of rows."""

    steps: tuple[EnumerationStep, ...]
    roots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactorizedProgram:
    """What keeps the tree current, the steps of its enumeration, and its roots, whose counts multiply to the number of rows.

    ``loading`` takes in what is there at first, where that needs more views stored than the changes to come do. With heavy and
    light parts, other rows are in ``more`` branches; no row is in two.
    """

    program: TreeProgram
    loading: TreeProgram | None
    steps: tuple[EnumerationStep, ...]
    roots: tuple[str, ...]
    more: tuple[Branch, ...] = ()

    @property
    def branches(self) -> tuple[Branch, ...]:
        """All branches."""
        return Branch(self.steps, self.roots), *self.more

    @property
    def order(self) -> tuple[str, ...]:
        """The free variables as they are bound."""
        return tuple(v for step in self.steps for v in step.new)


def lower_factorized(block: Block, tree: ViewTree) -> FactorizedProgram:
    """The program of a tree that was planned with ``representation="factorized"``."""
    frontier = [node for root in tree.roots for node in _frontier(root, frozenset(tree.free))]
    names = frozenset(node.name for node in frontier)
    above = frozenset(node.name for root in tree.roots for node in _above(root, names))
    stored = materialized_nodes(tree) | names
    program = lower_views(block, tree.roots, stored, "", counted=above)
    everything = stored | _joined(tree)
    loading = None if everything == stored else lower_views(block, tree.roots, everything, "", counted=above)
    return FactorizedProgram(program, loading, tuple(_steps(tree, frontier)), tuple(root.name for root in tree.roots))


def _frontier(node: ViewNode, free: frozenset[str]) -> Iterator[ViewNode]:
    listed = {v for atom in atoms_below(node) for v in atom.variables} & free
    if set(node.keys) == listed:
        yield node
        return
    assert isinstance(node, InnerView), f"{node.name} has bound variables, which a factorized tree sums out"
    for child in node.children:
        if not isinstance(child, Indicator):
            yield from _frontier(child, free)


def _above(node: ViewNode, frontier: frozenset[str]) -> Iterator[ViewNode]:
    if isinstance(node, InnerView) and node.name not in frontier:
        yield node
        for child in node.children:
            yield from _above(child, frontier)


def _joined(tree: ViewTree) -> frozenset[str]:
    """All that some trigger looks up in, the triggers of tables that only the first load changes included."""
    views = (n for n in tree.nodes() if isinstance(n, InnerView) and len(n.children) > 1)
    return frozenset(child.name for view in views for child in view.children)


def _steps(tree: ViewTree, frontier: list[ViewNode]) -> Iterator[EnumerationStep]:
    nodes = {node.name: node for node in tree.nodes()}
    listed: dict[str, list[str]] = {}
    for variable, name in tree.enumerate_from:
        listed.setdefault(name, []).append(variable)
    known: set[str] = set()
    waiting = [node for node in frontier if node.name not in listed]

    def complete() -> Iterator[EnumerationStep]:
        for node in [n for n in waiting if set(n.keys) <= known]:
            waiting.remove(node)
            yield EnumerationStep(node.name, node.keys, (), is_factor=True)

    yield from complete()
    for name, new in listed.items():
        keys = nodes[name].keys
        bound = tuple(k for k in keys if k in known)
        assert set(keys) == set(bound) | set(new), f"{name} lists {new} before its other keys are known"
        known |= set(new)
        yield EnumerationStep(
            name, bound, tuple(k for k in keys if k in new), is_factor=any(n.name == name for n in frontier)
        )
        yield from complete()
    assert not waiting, f"{[n.name for n in waiting]} have keys that nothing lists"
