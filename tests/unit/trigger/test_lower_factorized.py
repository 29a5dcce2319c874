"""The steps of a factorized result, followed in plain Python over the contents of the views, list the join with its counts."""

from __future__ import annotations

from collections import Counter
from math import prod

from hypothesis import assume, given
from hypothesis import strategies as st

from everview.planner.block import Block, BlockAtom, Variable
from everview.planner.join_query import JoinQuery
from everview.planner.plan_tree import plan_tree
from everview.relational.expressions import TRUE
from everview.relational.nodes import Values
from everview.relational.types import INT64
from everview.trigger.lower_factorized import FactorizedProgram, lower_factorized
from tests.unit.planner.evaluate import Counts, Evaluation
from tests.unit.planner.queries import join_queries
from tests.unit.planner.test_properties import databases


def block_of(query: JoinQuery) -> Block:
    """A block of this shape, whose atoms are over nothing."""
    atoms = tuple(BlockAtom(a.name, Values((), ()), TRUE, (), ()) for a in query.atoms)
    variables = tuple(Variable(v, INT64, nullable=False) for v in query.variables)
    return Block(atoms, variables, query.free, (), (), query)


def listed(factorized: FactorizedProgram, contents: dict[str, Counts], free: tuple[str, ...]) -> Counts:
    """What the steps list."""
    found: list[tuple[dict[str, int], int]] = [({}, 1)]
    is_full = all(contents[step.view] for step in factorized.steps)
    for step in factorized.steps:
        keys = factorized.program.view(step.view).keys
        assert set(step.bound) | set(step.new) == set(keys)
        before, bound = len(found), tuple(found[0][0]) if found else ()
        entries = [(dict(zip(keys, row, strict=True)), n) for row, n in contents[step.view].items()]
        found = [
            ({**known, **entry}, count * (n if step.is_factor else 1))
            for known, count in found
            for entry, n in entries
            if all(entry[v] == known[v] for v in step.bound)
        ]
        extended = {tuple(known[v] for v in bound) for known, _ in found}
        assert len(extended) == before or not is_full, "a choice has no row below it"
    rows = [tuple(known[v] for v in free) for known, _ in found]
    assert len(set(rows)) == len(rows), "a row is listed twice"
    return Counter(dict(zip(rows, (count for _, count in found), strict=True)))


@given(st.data(), join_queries(dependencies=True, together=True))
def test_steps_list_the_join(data: st.DataObject, query: JoinQuery) -> None:
    """Each row once, with its multiplicity; and unless a view is empty, no step comes to an end without a row."""
    try:
        plan = plan_tree(query, representation="factorized")
    except ValueError:
        assume(False)
    factorized = lower_factorized(block_of(query), plan.tree)
    evaluation = Evaluation(query, data.draw(databases(query)))
    contents = {node.name: evaluation.node(node) for node in plan.tree.nodes()}
    result = evaluation.result()
    assert listed(factorized, contents, query.free) == result
    assert prod(contents[root].total() for root in factorized.roots) == result.total()
    assert sorted(factorized.order) == sorted(query.free)
    factors = [factorized.program.view(s.view).atoms for s in factorized.steps if s.is_factor]
    assert sorted(a for atoms in factors for a in atoms) == list(range(len(query.atoms)))
    assert {s.view for s in factorized.steps} <= factorized.program.stored
