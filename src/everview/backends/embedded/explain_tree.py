"""What ``explain`` says of an operator that is a view tree: its class, order, views, costs and why, triggers and code."""

from __future__ import annotations

from typing import Any, TypeAlias

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.sources import ScanOperator
from everview.backends.embedded.tree.disassemble import leaf_lines, trigger_lines
from everview.backends.embedded.tree.factorized_operator import FactorizedOperator
from everview.backends.embedded.tree.join_tree_operator import JoinTreeOperator
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.planner.plan_recursive import RecursivePlan
from everview.relational.schema import schema
from everview.relational.sql_text import sql_text
from everview.trigger.format_plan import class_lines, cost_lines, recursive_lines, update_json
from everview.trigger.format_skew import skew_json, skew_lines
from everview.trigger.format_tree_program import format_monomial, format_view
from everview.trigger.order_accesses import costs_by_ranges
from everview.trigger.tree_program import TreeProgram

Tree: TypeAlias = TreeOperator | JoinTreeOperator | FactorizedOperator


def as_tree(operator: Operator) -> Tree | None:
    """The operator, if it is a view tree."""
    return operator if isinstance(operator, TreeOperator | JoinTreeOperator | FactorizedOperator) else None


def tree_lines(tree: Tree) -> list[str]:
    """Class, variable order, views (a star: stored) and costs; without a plan, the flat tree of first-order maintenance."""
    plan, program = tree.plan, tree.program
    if isinstance(tree, TreeOperator) and tree.rows is not None:
        return [
            "for now summed row by row: NaN, infinity, or numbers too large for a view tree take part, one could overflow, "
            "or an expression fails"
        ]
    skew = None if isinstance(tree, JoinTreeOperator) else tree.skew
    if skew is not None:
        return [*skew_lines(skew), *_watched(program), *partition_lines(tree), *_note(tree)]
    if plan is None:
        flat = ["first-order: the result directly over the relations", "views, * stored:", *_flat(program)]
        return [*flat, *_shared(tree)]
    if isinstance(plan, RecursivePlan):
        described = recursive_lines(plan, program, sum(tree.nbytes().values()))
    else:
        described = class_lines(plan, program, _subject(tree))
    return [*described, *_shared(tree), *_watched(program), *cost_lines(plan, program), *_note(tree)]


def _note(tree: Tree) -> list[str]:
    """Why this way was taken, where another was possible."""
    return [tree.note] if isinstance(tree, TreeOperator) and tree.note is not None else []


def partition_lines(tree: Tree) -> list[str]:
    """What the parts hold now: the threshold base, the thresholds, and how many keys are heavy."""
    partitions = tree.state.partitions
    if partitions is None:
        return []
    lines = [f"now N = {partitions.base} for {partitions.size} keys"]
    for partition in tree.program.partitions:
        heavy, all_keys = len(tree.state.maps[partition.heavy]), len(tree.state.maps[partition.degrees])
        name = tree.program.block.atoms[partition.atom].name
        theta = partitions.threshold(partition)
        lines.append(
            f"  {name} by {', '.join(partition.variables)}: θ = {theta:.4g}, {heavy} of {all_keys} keys are heavy"
        )
    return lines


def _subject(tree: Tree) -> str:
    """What the class is a class of: the view's query, or a part of it over what other operators compute."""
    computed = [
        atom.name
        for atom, operator in zip(tree.program.block.atoms, tree.inputs, strict=True)
        if not isinstance(operator, ScanOperator)
    ]
    return f"query over the output{'s' if len(computed) > 1 else ''} {', '.join(computed)}" if computed else "query"


def _shared(tree: Tree) -> list[str]:
    """Which stored views other trees have, too, and who writes them."""
    told: dict[str, list[str]] = {}
    for name, shared in tree.sharing().items():
        told.setdefault(shared.text, []).append(name)
    lines = [f"  {', '.join(names)} {text}" for text, names in told.items()]
    return ["stored once for several views:", *lines] if lines else []


def _watched(program: TreeProgram) -> list[str]:
    """The numbers that could overflow by their types, and do not by what the tables hold; what may fail otherwise."""
    block = program.block
    lines = []
    for watch in block.watches:
        names = [f"{block.atoms[a].name}.{schema(block.atoms[a].input)[c].name}" for a, c in watch.places]
        lines.append(f"  {sql_text(watch.number, tuple(names))}")
    told = ["watched, and summed row by row where one could overflow by the values held:", *lines] if lines else []
    failing = []
    for failure in block.failures:
        atom = block.atoms[failure.atom]
        columns = tuple(f"{atom.name}.{f.name}" for f in schema(atom.input))
        failing += [f"  {sql_text(e, columns)}" for e in failure.expressions]
    if failing:
        told += ["failures counted, and computed row by row where one survives the join:", *failing]
    return told


def _flat(program: TreeProgram) -> list[str]:
    return [f"  {format_view(v)}{'  *' if v.name in program.stored else ''}" for v in reversed(program.views)]


def tree_json(tree: Tree) -> dict[str, Any]:
    """The same for programs."""
    plan, program = tree.plan, tree.program
    views = [
        {
            "name": v.name,
            "keys": list(v.keys),
            "payload": [format_monomial(program.block, m) for m in v.payload],
            "stored": v.name in program.stored,
        }
        for v in program.views
    ]
    told: dict[str, Any] = {"views": views, "result": program.result}
    if isinstance(tree, TreeOperator) and tree.rows is not None:
        told["row_by_row"] = True
    shared = {name: {"with": list(s.others), "written_here": s.is_owned} for name, s in tree.sharing().items()}
    if shared:
        told["shared"] = shared
    if not isinstance(tree, JoinTreeOperator) and tree.skew is not None:
        return {"kind": "skew", **told, **skew_json(tree.skew)}
    if plan is None:
        return {"kind": "first_order", **told}
    updates = {cost.atom: update_json(cost) for cost in costs_by_ranges(program, plan.costs)}
    if isinstance(tree, TreeOperator) and tree.note is not None:
        told["note"] = tree.note
    if isinstance(plan, RecursivePlan):
        return {"kind": "recursive", "depth": plan.depth, "wide": list(plan.wide), **told, "updates": updates}
    classes = {"class": plan.query_class.name, "class_under_dependencies": plan.reduct_class.name}
    if plan.query.across_atoms:
        told["predicates_over_several_relations"] = [sorted(variables) for variables in plan.query.across_atoms]
    return {"kind": plan.representation, **classes, "order": plan.order.text, **told, "updates": updates}


def code_lines(tree: Tree) -> list[str]:
    """The instructions of every trigger, those of its leaf first."""
    program, state = tree.program, tree.state
    stored = [v.name for v in program.views if v.name in program.stored]
    lines = []
    if tree.group is not None:
        lines.append("in step with other trees: what follows is this tree's part, less what they compute for it")
    for atom, machine, operator in zip(program.block.atoms, state.machines, tree.inputs, strict=True):
        lines.append(f"on {atom.name}:")
        leaf = machine.leaf
        if leaf is None:
            lines.append("  leaf: filtered, projected and lifted by whole-column kernels")
        else:
            lines.append("  leaf, for batches without NULL:")
            lines += [f"    {line}" for line in leaf_lines(leaf, [f.name for f in operator.fields])]
        lines.append("  trigger:")
        lines += [f"    {line}" for line in trigger_lines(machine.trigger, stored)]
    return lines
