"""One derivation of paths: the joins that ``explain`` reports are the joins that the machine executes, in that order."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.tree.instruction import decoded
from everview.backends.embedded.tree.instructions import FindEntries, ScanEntries, SliceEntries
from everview.backends.embedded.tree.tree_state import TreeState
from everview.planner.block_build import Facts, Refused
from everview.planner.plan_tree import TreePlan
from everview.planner.view_tree import Indicator
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Aggregate, AggregateCall, Field, Join, JoinKind, Relation, Scan
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN, INT64
from everview.relational.unique_keys import UniqueKey
from everview.trigger.plan_block import BlockOptions, plan_block
from everview.trigger.tree_program import Compute, TreeProgram, Trigger
from tests.unit.backends.embedded.tree.generate_blocks import random_query
from tests.unit.backends.embedded.tree.given_inputs import GivenOperator

_JOINS = (FindEntries, SliceEntries, ScanEntries)


def reported(plan: TreePlan, program: TreeProgram, atom: str) -> list[str]:
    """The views that an update of the atom meets, by the planner's delta tree, from which costs and their reasons come."""
    leaves = {n.atom.name: n.name for n in plan.tree.nodes() if not isinstance(n, Indicator) and hasattr(n, "atom")}
    paths = (plan.delta_path(atom), *plan.indicator_paths(atom))
    nodes = [lookup.node for path in paths for step in path for lookup in step.lookups]
    return [leaves[n.atom.name] if isinstance(n, Indicator) and n.name not in program.stored else n.name for n in nodes]


def explained(trigger: Trigger) -> list[str]:
    """The views that the text of the trigger names, in its order."""
    return [join.view for s in trigger.statements if isinstance(s, Compute) for join in s.joins]


def executed(state: TreeState, atom: int) -> list[str]:
    """The views that the instructions of the atom's machine search, in the order in which they run."""
    names = list(state.maps)
    return [names[one.map] for one in decoded(state.machines[atom].trigger.code) if isinstance(one, _JOINS)]


@given(st.integers(0, 2**40))
@settings(max_examples=150)
def test_what_is_reported_is_what_is_explained_and_executed(seed: int) -> None:
    """For random joins with and without keys, of tables of all sizes, of which some are static."""
    rng = random.Random(seed)
    query = random_query(rng)
    keys = {
        t.name: (UniqueKey(frozenset(range(rng.randint(1, len(t.variables))))),)
        for t in query.tables
        if rng.random() < 0.5
    }

    sizes = {t.name: rng.choice((10.0, 1e3, 1e6)) for t in query.tables}

    def facts(relation: Relation) -> Facts:
        name = relation.table if isinstance(relation, Scan) else ""
        return Facts(keys=keys.get(name, ()), updatable=name not in query.static, rows=sizes.get(name, 1e3))

    try:
        lowered = plan_block(query.aggregate, facts, BlockOptions("factorized"))
    except Refused:
        return
    assert_one_derivation(lowered.plan, lowered.program)


def assert_one_derivation(plan: TreePlan | None, program: TreeProgram) -> None:
    """The three orders are one; of tables that never change only the beginning of a path is kept."""
    assert plan is not None
    inputs = [GivenOperator(schema(atom.input), ()) for atom in program.block.atoms]
    state = TreeState(program, inputs, Dictionary())
    for trigger, atom in zip(program.triggers, program.block.query.atoms, strict=True):
        ran = executed(state, trigger.atom)
        assert ran == explained(trigger)
        told = reported(plan, program, atom.name)
        if len(plan.tree.roots) == 1 and {n.name for n in plan.tree.roots} == {program.result}:
            assert ran == (told if atom.updatable else told[: len(ran)])
        else:  # one more view joins what the tree leaves apart
            assert ran[: len(told)] == (told if atom.updatable else told[: len(ran)])


def test_a_dependency_decides_the_order() -> None:
    """R[k, j] S[k, a] T[j, b] with j → b: T finds one row, so it comes first; it was explained so, and run the other way."""
    fields = {name: tuple(Field(c, INT64, False) for c in columns) for name, columns in _COLUMNS.items()}
    r, s, t = (Scan(name, fields[name]) for name in "RST")
    first = Join(r, s, JoinKind.INNER, Call("=", (Column(0, INT64), Column(2, INT64)), BOOLEAN))
    joined = Join(first, t, JoinKind.INNER, Call("=", (Column(1, INT64), Column(4, INT64)), BOOLEAN))
    keys = (Column(0, INT64), Column(1, INT64), Column(3, INT64), Column(5, INT64))
    aggregate = Aggregate(joined, keys, (AggregateCall("count", (), INT64),), ("k", "j", "a", "b", "n"))
    lowered = plan_block(
        aggregate,
        lambda q: Facts(keys=(UniqueKey(frozenset({0})),) if isinstance(q, Scan) and q.table == "T" else ()),
        BlockOptions("factorized"),
    )
    assert_one_derivation(lowered.plan, lowered.program)
    assert explained(lowered.program.triggers[0])[0] == "T"


_COLUMNS = {"R": ("k", "j"), "S": ("k", "a"), "T": ("j", "b")}
