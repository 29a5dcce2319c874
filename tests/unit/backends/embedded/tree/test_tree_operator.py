"""A tree operator, whatever its tree, keeps the answer that the definition of the query gives, after every change."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from everview.planner.block_build import Facts, Refused, build_block
from everview.relational.nodes import Scan
from tests.unit.backends.embedded.tree.generate_blocks import (
    random_change,
    random_program,
    random_query,
    random_row,
)
from tests.unit.backends.embedded.tree.given_inputs import TreeRun


@given(st.integers(0, 2**40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_maintained_is_recomputed(seed: int) -> None:
    """For random queries, trees and streams; a transaction that fails leaves no trace."""
    check_stream(seed)


def check_stream(seed: int) -> None:
    rng = random.Random(seed)
    query = random_query(rng)
    try:
        block = build_block(
            query.aggregate,
            lambda r: Facts(updatable=not (isinstance(r, Scan) and r.table in query.static)),
        )
    except Refused:
        assume(False)
    tables = {
        t.name: [random_row(rng, t, has_odd_floats=query.has_odd_floats) for _ in range(rng.choice((0, 3, 12)))]
        for t in query.tables
    }
    run = TreeRun(query.aggregate, random_program(rng, block), tables)
    run.check()
    for _ in range(rng.randint(1, 5)):
        change = random_change(rng, query, run.tables)
        if rng.random() < 0.25:
            run.roll_back(change)
        else:
            run.commit(change)
        run.check()
