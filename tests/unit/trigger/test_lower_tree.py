"""What every lowered program has: access paths that tell the truth, views that are stored where they are looked up."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from everview.planner.block import Monomial
from everview.planner.block_build import Facts, Refused, build_block
from everview.relational.nodes import Scan
from everview.trigger.lower_tree import restrict
from everview.trigger.tree_program import TreeProgram
from everview.trigger.verify import verify_tree
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
            verify_tree(program)
            assert program.result in program.stored


def test_restriction_keeps_the_count_first() -> None:
    """Monomials over some atoms: equal ones once, the count always."""
    a: Monomial = frozenset({(0, 0), (1, 2)})
    b: Monomial = frozenset({(0, 0), (2, 1)})
    assert restrict((frozenset(), a, b), frozenset({0, 1})) == (frozenset(), a, frozenset({(0, 0)}))
    assert restrict((a,), frozenset({2})) == (frozenset(),)
