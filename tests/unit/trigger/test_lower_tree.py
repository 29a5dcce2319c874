"""What every lowered program has: access paths that tell the truth, views that are stored where they are looked up."""

from __future__ import annotations

import random
from itertools import zip_longest

from hypothesis import given, settings
from hypothesis import strategies as st

from everview.planner.block import Monomial, Residual
from everview.planner.block_build import Facts, Refused, build_block
from everview.relational.nodes import Scan
from everview.trigger.lower_tree import restrict
from everview.trigger.tree_program import AccessKind, Add, AddIndicator, Compute, Lift, TreeProgram, Trigger
from tests.unit.backends.embedded.tree.generate_blocks import random_program, random_query


def random_lowered(seed: int) -> tuple[TreeProgram, TreeProgram | None] | None:
    """Some program, and the one that loads it if some tables are static."""
    rng = random.Random(seed)
    query = random_query(rng)
    try:
        block = build_block(
            query.aggregate, lambda r: Facts(updatable=not (isinstance(r, Scan) and r.table in query.static))
        )
    except Refused:
        return None
    lowered = random_program(rng, block)
    return lowered.program, lowered.loading


@given(st.integers(0, 2**40))
@settings(max_examples=200, deadline=None)
def test_programs_are_well_formed(seed: int) -> None:
    """For any tree and any set of tables that change."""
    made = random_lowered(seed)
    if made is None:
        return
    for program in made:
        if program is not None:
            check_program(program)


def check_program(program: TreeProgram) -> None:
    """Every trigger, and that no predicate is forgotten."""
    assert [t.atom for t in program.triggers] == list(range(len(program.block.atoms)))
    assert program.result in program.stored
    checked = [check_trigger(program, trigger) for trigger in program.triggers]
    if all(atom.updatable for atom in program.block.query.atoms):
        assert frozenset().union(*checked) == frozenset(program.block.residuals), "a predicate is checked nowhere"


def check_trigger(program: TreeProgram, trigger: Trigger) -> frozenset[Residual]:
    """Deltas are computed before they are used; what is joined is stored and found by the keys that are known.

    Returns the predicates that the path of the leaf checks, each once; paths of indicators follow it.
    """
    first = trigger.statements[0]
    assert isinstance(first, Lift)
    assert set(program.view(first.target).keys) == {v for v, _ in program.block.atoms[trigger.atom].variables}
    made = {first.target}
    added: set[str] = set()
    paths: list[list[Residual]] = [[]]
    for statement, following in zip_longest(trigger.statements[1:], trigger.statements[2:]):
        if isinstance(statement, Add):
            assert statement.target in made & program.stored
            added.add(statement.target)
            continue
        if isinstance(statement, AddIndicator):
            indicator, leaf = program.view(statement.target), program.view(statement.source)
            assert (indicator.indicates, indicator.atoms, leaf.name) == (trigger.atom, frozenset(), first.target)
            assert indicator.name in program.stored or (leaf.name in added and indicator.keys == leaf.keys)
            assert indicator.name not in made
            made.add(indicator.name)
            added |= {indicator.name} & program.stored
            continue
        assert isinstance(statement, Compute)
        assert statement.source in made
        if program.view(statement.source).indicates is not None:
            paths.append([])
        paths[-1] += check_compute(program, statement)
        target = program.view(statement.target)
        made.add(target.name)
        assert (following == Add(target.name)) == (target.name in program.stored)
    assert added == made & program.stored
    assert program.result in made or not program.block.query.atoms[trigger.atom].updatable
    assert all(len(set(checked)) == len(checked) for checked in paths)
    return frozenset(paths[0])


def check_compute(program: TreeProgram, compute: Compute) -> list[Residual]:
    """Every join says how it finds its matches; returns the predicates that are checked on the way."""
    known = set(program.view(compute.source).keys)
    atoms = program.view(compute.source).atoms
    checked = list(compute.residuals)
    assert all(set(r.variables) <= known for r in compute.residuals)
    for access in compute.joins:
        assert access.view in program.stored
        view = program.view(access.view)
        assert access.is_indicator or not atoms & view.atoms, "an atom is multiplied twice"
        assert set(access.bound) == known & set(view.keys)
        if access.kind is AccessKind.LOOKUP:
            assert set(access.bound) == set(view.keys)
        else:
            assert bool(access.bound) == (access.kind is AccessKind.SLICE)
            assert set(access.bound) < set(view.keys)
        known |= set(view.keys)
        atoms |= frozenset() if access.is_indicator else view.atoms
        assert access.payload == restrict(program.block.monomials, atoms)
        checked += access.residuals
        assert all(set(r.variables) <= known for r in access.residuals)
    target = program.view(compute.target)
    assert set(target.keys) <= known
    assert target.atoms == atoms
    return checked


def test_restriction_keeps_the_count_first() -> None:
    """Monomials over some atoms: equal ones once, the count always."""
    a: Monomial = frozenset({(0, 0), (1, 2)})
    b: Monomial = frozenset({(0, 0), (2, 1)})
    assert restrict((frozenset(), a, b), frozenset({0, 1})) == (frozenset(), a, frozenset({(0, 0)}))
    assert restrict((a,), frozenset({2})) == (frozenset(),)
