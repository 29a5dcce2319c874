"""One set of parts, and one auxiliary view, for all occurrences of a table in a triangle (appendix B of IVM^ε).

    Q = Σ R(a, b) * R(b, c) * R(c, a)

The query stays the same when its variables are rotated, a → b → c → a: the occurrences of R then change places. So R is stored
once, in parts, and so is the view over two occurrences that each of the three auxiliary views would be. A change δR makes

    δQ  =  3 Σ δR * R * R  +  3 Σ δR * δR * R  +  Σ δR * δR * δR

where the first sum is that of one occurrence, and the others are over rows of the change itself. For one row, they are there
only if it is a loop, (a, a). The same holds for any payload that the rotation leaves as it is. A sum of one edge's numbers is
the same for each of the three edges, so the other two are summed with it, and so is what becomes of products by rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.planner.block import Block, Monomial
from everview.planner.skew_plan import AuxiliaryView, HeavyKeys, PartJoin, Rotation, SkewPlan
from everview.relational.expressions import conjuncts


def share_parts(block: Block, plan: SkewPlan) -> tuple[Block, SkewPlan]:
    """The block and the plan with one set of parts for all atoms, where these are one table and a rotation moves them on."""
    variables = _rotated_variables(block)
    keys = None if variables is None else _rotated_keys(plan, variables)
    if variables is None or keys is None or not plan.is_partitioned:
        return block, plan
    views = _views_for(plan)
    if any(isinstance(part, HeavyKeys) for view in views for part in view.parts):
        return block, plan
    lifts = tuple(dict.fromkeys(lift for atom in block.atoms for lift in atom.lifts))
    atoms = tuple(replace(a, lifts=(*a.lifts, *(x for x in lifts if x not in a.lifts))) for a in block.atoms)
    rotation = Rotation(variables, tuple(tuple(atom.lifts.index(lift) for lift in lifts) for atom in atoms), keys)
    block = replace(block, atoms=atoms, further=_turned_sums(block, rotation))
    return block, replace(plan, views=views, cases=(plan.cases[0], (), ()), rotation=rotation)


def _rotated_variables(block: Block) -> tuple[tuple[str, ...], ...] | None:
    """What the variables of the first atom are in each of three; None if these are not three times the same."""
    first, *others = block.atoms
    if len(others) != 2 or block.keys or block.residuals or len({a.updatable for a in block.query.atoms}) > 1:
        return None
    found = [tuple(v for v, _ in first.variables)]
    for other in others:
        named = {value: name for name, value in other.variables}
        is_same = set(conjuncts(other.condition)) == set(conjuncts(first.condition))
        if other.input != first.input or not is_same or named.keys() != {value for _, value in first.variables}:
            return None
        found.append(tuple(named[value] for _, value in first.variables))
    kinds = {tuple((block.variable(v).type, block.variable(v).nullable) for v in own) for own in found}
    return tuple(found) if _turns(found) and len(kinds) == 1 else None  # keys lie in memory in the same way


def _turns(variables: Sequence[tuple[str, ...]]) -> bool:
    """Whether each variable has one image: that of the first atom is the second's, whose image is the third's, and so on."""
    images: dict[str, str] = {}
    for row in zip(*variables, strict=True):
        for old, new in zip(row, (*row[1:], row[0]), strict=True):
            if images.setdefault(old, new) != new:
                return False
    return len(set(images.values())) == len(images)


def _turned_sums(block: Block, rotation: Rotation) -> tuple[Monomial, ...]:
    """What becomes of the products that are summed when all atoms move to the next one's place, and is not summed yet."""
    found = dict.fromkeys(rotation.turned(m, by) for m in block.monomials for by in (1, 2))
    return tuple(m for m in found if m not in block.monomials)


def _rotated_keys(plan: SkewPlan, variables: tuple[tuple[str, ...], ...]) -> tuple[tuple[int, ...], ...] | None:
    """Which key of the first atom each key is that an atom is partitioned on; None if they are not partitioned alike."""
    found = [
        [(frozenset(own.index(v) for v in key.variables), key.epsilon) for key in keys]
        for own, keys in zip(variables, plan.partitions, strict=True)
    ]
    if any(set(keys) != set(found[0]) for keys in found):
        return None
    return tuple(tuple(found[0].index(key) for key in keys) for keys in found)


def _views_for(plan: SkewPlan) -> tuple[AuxiliaryView, ...]:
    """The views that changes of the first atom meet, and those that keep them."""
    needed: set[str] = set()
    joins: list[PartJoin] = [case.join for case in plan.cases[0]]
    while joins:
        for step in joins.pop().steps:
            if isinstance(step, AuxiliaryView) and step.name not in needed:
                needed.add(step.name)
                joins += step.upkeep
    return tuple(view for view in plan.views if view.name in needed)
