"""Joins on inequalities whose partners are only summed: ranges of an ordered view instead of slices and scans.

    δV[k] := Σ δR[k, x] * S[k, y] where x < y      -- slice by k: all partners are paired, checked and summed
                                                   -- range by k, in the order of y: O(log N), one sum over a stretch

It is legal where the join makes one variable known that nothing else reads: no key of the target, no other join, and only
predicates that cut the order of that variable (``ordered_condition``). Where dependencies leave one partner at most, a slice is
as good and needs no order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from everview.planner.block import BlockAtom, Residual
from everview.planner.block_join_builder import Facts, FactsOf
from everview.planner.bound import Bound
from everview.planner.cost import UpdateCost
from everview.planner.dependencies import closure
from everview.relational.expressions import Expression
from everview.relational.ordered_condition import has_order, ordered_condition
from everview.trigger.join_partners import MANY, is_keyed_by, mean_matches
from everview.trigger.tree_program import Access, AccessKind, Add, Compute, TreeProgram, TreeStatement

LOGARITHMIC = Bound(logs=1)


def order_accesses(program: TreeProgram, facts_of: FactsOf = lambda _: Facts()) -> TreeProgram:
    """The program with ranges where it can have them.

    Where the equalities beside an inequality fix the key of a table or aggregate in the block, few rows of another are expected
    to agree on them, and a slice of these costs less than an order (TPC-H 17: a third), unless many are there that do.
    """
    if program.block.has_rings:
        return program

    def finds_few(access: Access) -> bool:
        if not any(is_keyed_by(a.input, _read(a, access.bound), facts_of) for a in program.block.atoms):
            return False
        met = [program.block.atoms[i] for i in program.view(access.view).atoms]
        return all(mean_matches(a.input, _read(a, access.bound), facts_of) < MANY for a in met)

    def ordered(statement: TreeStatement) -> TreeStatement:
        return _ordered(program, statement, finds_few)

    triggers = tuple(replace(t, statements=tuple(ordered(s) for s in t.statements)) for t in program.triggers)
    return replace(program, triggers=triggers)


def _read(atom: BlockAtom, variables: tuple[str, ...]) -> tuple[Expression, ...]:
    return tuple(e for name, e in atom.variables if name in variables)


def _ordered(program: TreeProgram, statement: TreeStatement, finds_few: Callable[[Access], bool]) -> TreeStatement:
    if not isinstance(statement, Compute):
        return statement
    joins = tuple(
        access if access.bound and finds_few(access) else _range(program, statement, i)
        for i, access in enumerate(statement.joins)
    )
    return statement if joins == statement.joins else replace(statement, joins=joins)


def _range(program: TreeProgram, compute: Compute, at: int) -> Access:
    access, later = compute.joins[at], compute.joins[at + 1 :]
    if access.kind not in (AccessKind.SLICE, AccessKind.SCAN) or access.is_indicator or not access.residuals:
        return access
    added = [k for k in program.view(access.view).keys if k not in access.bound]
    if len(added) != 1 or access.view == program.result:
        return access
    (variable,) = added
    read = set(program.view(compute.target).keys)
    read |= {v for other in later for v in (*other.bound, *(v for r in other.residuals for v in r.variables))}
    if variable in read or variable in closure(access.bound, program.block.query.dependencies):
        return access
    if not has_order(program.block.variable(variable).type) or not all(_cuts(r, variable) for r in access.residuals):
        return access
    return replace(access, kind=AccessKind.RANGE, ordered=variable)


def _cuts(residual: Residual, variable: str) -> bool:
    if residual.variables.count(variable) != 1:
        return False
    return ordered_condition(residual.condition, residual.variables.index(variable)) is not None


def has_ranges(program: TreeProgram) -> bool:
    """Whether some change is summed by ranges."""
    computed = (s for t in program.triggers for s in t.statements if isinstance(s, Compute))
    return any(j.kind is AccessKind.RANGE for s in computed for j in s.joins)


def has_scans(program: TreeProgram) -> bool:
    """Whether some change meets all entries of a view."""
    changing = (t for t in program.triggers if program.block.query.atoms[t.atom].updatable)
    computed = (s for t in changing for s in t.statements if isinstance(s, Compute))
    return any(j.kind is AccessKind.SCAN for s in computed for j in s.joins)


def is_summed_by_ranges(program: TreeProgram, atom: int) -> bool:
    """Whether a change of an atom is summed by ranges somewhere, and meets no slice or scan that finds many."""
    trigger = next(t for t in program.triggers if t.atom == atom)
    accesses = [j for s in trigger.statements if isinstance(s, Compute) for j in s.joins]
    return any(j.kind is AccessKind.RANGE for j in accesses) and not any(
        j.kind in (AccessKind.SLICE, AccessKind.SCAN) and not finds_one(program, j) for j in accesses
    )


def finds_one(program: TreeProgram, access: Access) -> bool:
    """Whether dependencies leave one entry at most for a join to find."""
    keys = set(program.view(access.view).keys)
    return keys <= closure(access.bound, program.block.query.dependencies)


def costs_by_ranges(program: TreeProgram, costs: tuple[UpdateCost, ...]) -> tuple[UpdateCost, ...]:
    """What changed rows cost where ranges are summed, which the plan of the tree takes to be paired, and views are ordered."""
    numbers = {atom.name: i for i, atom in enumerate(program.block.atoms)}
    return tuple(_cost_by_ranges(program, cost, numbers[cost.atom]) for cost in costs)


def _cost_by_ranges(program: TreeProgram, cost: UpdateCost, atom: int) -> UpdateCost:
    if is_summed_by_ranges(program, atom):
        return replace(cost, bound=LOGARITHMIC, reason=_why_logarithmic(program, atom))
    kept = kept_in_order(program, atom)
    if not kept or cost.bound >= LOGARITHMIC:
        return cost
    return replace(cost, bound=LOGARITHMIC, reason=f"{cost.reason}; {', '.join(kept)} is kept in order")


def kept_in_order(program: TreeProgram, atom: int) -> list[str]:
    """The views that a change of an atom is added to, and of which somebody sums ranges."""
    computed = (s for t in program.triggers for s in t.statements if isinstance(s, Compute))
    ordered = {j.view for s in computed for j in s.joins if j.kind is AccessKind.RANGE}
    trigger = next(t for t in program.triggers if t.atom == atom)
    return [s.target for s in trigger.statements if isinstance(s, Add) and s.target in ordered]


def _why_logarithmic(program: TreeProgram, atom: int) -> str:
    trigger = next(t for t in program.triggers if t.atom == atom)
    accesses = [j for s in trigger.statements if isinstance(s, Compute) for j in s.joins if j.ordered is not None]
    found = ", ".join(f"{j.view} in the order of {j.ordered}" for j in accesses)
    return f"what it meets is summed by ranges: {found}"
