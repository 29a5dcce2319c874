"""From a hierarchy of recursive views to a trigger program: one statement a view that contains the changed atom.

    δV[keys] = Σ  δatom ⨂ V₁ ⨂ … ⨂ Vₖ        (the decomposed delta of ``planner.recursive_views``)

No view joined has the changed atom below it, so that the statements of a trigger do not read what others of it write, and may
stand in any order; the result comes last. Payloads are those of view trees, one part a monomial over the atoms below.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.planner.block import Block
from everview.planner.recursive_views import Hierarchy, RecursiveView, is_leaf
from everview.trigger.lower_tree import compute_step, restrict
from everview.trigger.tree_program import Add, LiftRows, TreeProgram, TreeStatement, TreeViewDefinition, Trigger


def lower_recursive(block: Block, hierarchy: Hierarchy, *, keeps_result: bool = True) -> TreeProgram:
    """The program that maintains a hierarchy, and its result unless that is only passed on."""
    leaves = [
        TreeViewDefinition(a.name, a.variables, restrict(block.monomials, frozenset({i})), frozenset({i}))
        for i, a in enumerate(block.query.atoms)
    ]
    inner = [_definition(block, view) for view in hierarchy.views if not is_leaf(block.query, view)]
    definitions = {view.name: view for view in (*leaves, *inner)}
    stored = frozenset(v.name for v in hierarchy.views if keeps_result or v is not hierarchy.result)
    triggers = tuple(
        Trigger(i, tuple(_statements(block, hierarchy, definitions, stored, i))) for i in range(len(block.atoms))
    )
    return TreeProgram(block, tuple(definitions.values()), stored, hierarchy.result.name, triggers)


def _definition(block: Block, view: RecursiveView) -> TreeViewDefinition:
    atoms = frozenset(view.atoms)
    checked = tuple(r for i, r in enumerate(block.residuals) if i in view.conditions)
    return TreeViewDefinition(view.name, view.keys, restrict(block.monomials, atoms), atoms, residuals=checked)


def _statements(
    block: Block,
    hierarchy: Hierarchy,
    definitions: dict[str, TreeViewDefinition],
    stored: frozenset[str],
    atom: int,
) -> Iterator[TreeStatement]:
    leaf = block.query.atoms[atom].name
    yield LiftRows(leaf)
    if leaf in stored:
        yield Add(leaf)
    changes = [change for change in hierarchy.deltas if change.atom == atom]
    for change in sorted(changes, key=lambda c: c.view is hierarchy.result):
        step = hierarchy.step(change)
        if step is None:
            continue
        residuals = (r for i, r in enumerate(block.residuals) if i in change.conditions)
        yield compute_step(step, definitions, block.monomials, residuals)
        if change.view.name in stored:
            yield Add(change.view.name)
