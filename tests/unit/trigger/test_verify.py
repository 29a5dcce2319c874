"""What makes a program malformed is found: mutations of lowered programs are refused, the programs themselves pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import InternalError
from everview.planner.block_join_builder import Facts
from everview.relational.nodes import Distinct, Join, JoinKind, Project, Relation, Scan, SortKey, TopK, UnionAll
from everview.relational.rules import SPLIT_JOINS, run_rules
from everview.relational.schema import columns
from everview.trigger.lower_plan import lower_plan
from everview.trigger.program import Apply, Collection, Program, ProgramStatement, TreeBlock
from everview.trigger.tree_program import AccessKind, Add, Compute, TreeProgram, TreeStatement, Trigger
from everview.trigger.verify import verify_program
from tests.unit.backends.embedded.tree.generate_blocks import Query, random_query


def random_plan(rng: random.Random, query: Query) -> Relation:
    """Operators above, and perhaps below, the aggregate of a query."""
    aggregate = query.aggregate
    if rng.random() < 0.3:
        aggregate = replace(aggregate, child=Distinct(aggregate.child))
    every = columns(aggregate)
    match rng.choice(("nothing", "top", "union", "semi", "left")):
        case "top":
            return TopK(aggregate, (SortKey(every[0]),), 3)
        case "union":
            return UnionAll((aggregate, Distinct(aggregate)))
        case "semi":
            return Join(aggregate, Project(aggregate, every[:1], ("k",)), JoinKind.SEMI)
        case "left":
            return Join(Distinct(query.aggregate.child), aggregate, JoinKind.LEFT)
        case _:
            return aggregate


def random_lowered(rng: random.Random) -> Program:
    """Some program, verified by the lowering."""
    query = random_query(rng)
    plan = run_rules(random_plan(rng, query), SPLIT_JOINS)

    def facts(relation: Relation) -> Facts:
        return Facts(updatable=not (isinstance(relation, Scan) and relation.table in query.static))

    return lower_plan(plan, facts, rng.choice(("auto", "factorized", "first_order")))


# Whole programs

Mutation = Callable[[random.Random, Program], Program | None]
"""A program that is malformed; None where the program has nothing to mutate."""


def _exchanged(program: Program, at: int, new: Collection) -> Program:
    made = program.collections
    return replace(program, collections=(*made[:at], new, *made[at + 1 :]))


def _without_a_collection(rng: random.Random, program: Program) -> Program:
    gone = rng.randrange(len(program.collections))
    return replace(program, collections=program.collections[:gone] + program.collections[gone + 1 :])


def _backwards(rng: random.Random, program: Program) -> Program | None:
    return replace(program, collections=program.collections[::-1]) if len(program.collections) > 1 else None


def _twice(rng: random.Random, program: Program) -> Program:
    return replace(program, collections=(*program.collections, rng.choice(program.collections)))


def _unused(rng: random.Random, program: Program) -> Program:
    return replace(program, collections=(*program.collections, replace(program.collections[-1], name="#999")))


def _input_that_reaches_nothing(rng: random.Random, program: Program) -> Program:
    return replace(program, inputs=(*program.inputs, replace(program.inputs[0], name="nobody")))


def _unknown_root(rng: random.Random, program: Program) -> Program:
    return replace(program, root="#998")


def _other_columns(rng: random.Random, program: Program) -> Program | None:
    found = [i for i, c in enumerate(program.collections) if c.name != program.root and c.fields]
    if not found:
        return None
    at = rng.choice(found)
    old = program.collections[at]
    return _exchanged(program, at, replace(old, fields=tuple(replace(f, name=f"{f.name}!") for f in old.fields)))


def _without_a_rule(rng: random.Random, program: Program) -> Program | None:
    def cut(statement: ProgramStatement) -> ProgramStatement | None:
        is_cut = isinstance(statement, Apply) and statement.rules
        return replace(statement, rules=statement.rules[1:]) if is_cut else None  # type: ignore[call-arg,union-attr]

    return _with_a_statement(rng, program, cut)


def _with_a_statement(
    rng: random.Random, program: Program, change: Callable[[ProgramStatement], ProgramStatement | None]
) -> Program | None:
    at = list(range(len(program.collections)))
    rng.shuffle(at)
    for i in at:
        new = change(program.collections[i].statement)
        if new is not None:
            return _exchanged(program, i, replace(program.collections[i], statement=new))
    return None


# Trees

TreeMutation = Callable[[random.Random, TreeProgram], TreeProgram | None]


def _in_a_tree(mutation: TreeMutation) -> Mutation:
    def mutate(rng: random.Random, program: Program) -> Program | None:
        def change(statement: ProgramStatement) -> ProgramStatement | None:
            if not isinstance(statement, TreeBlock):
                return None
            new = mutation(rng, statement.lowered.program)
            return None if new is None else replace(statement, lowered=replace(statement.lowered, program=new))

        return _with_a_statement(rng, program, change)

    mutate.__name__ = mutation.__name__
    return mutate


def _with_a_tree_statement(
    rng: random.Random, program: TreeProgram, change: Callable[[TreeStatement], tuple[TreeStatement, ...] | None]
) -> TreeProgram | None:
    places = [(t, i) for t, trigger in enumerate(program.triggers) for i in range(len(trigger.statements))]
    rng.shuffle(places)
    for t, i in places:
        statements = program.triggers[t].statements
        new = change(statements[i])
        if new is not None:
            trigger = Trigger(program.triggers[t].atom, (*statements[:i], *new, *statements[i + 1 :]))
            return replace(program, triggers=(*program.triggers[:t], trigger, *program.triggers[t + 1 :]))
    return None


def _without_an_addition(rng: random.Random, program: TreeProgram) -> TreeProgram | None:
    return _with_a_tree_statement(rng, program, lambda s: () if isinstance(s, Add) else None)


def _without_a_trigger(rng: random.Random, program: TreeProgram) -> TreeProgram:
    return replace(program, triggers=program.triggers[1:])


def _leafless(rng: random.Random, program: TreeProgram) -> TreeProgram:
    first = replace(program.triggers[0], statements=program.triggers[0].statements[1:])
    return replace(program, triggers=(first, *program.triggers[1:]))


def _joined_and_not_stored(rng: random.Random, program: TreeProgram) -> TreeProgram | None:
    joined = [j.view for t in program.triggers for s in t.statements if isinstance(s, Compute) for j in s.joins]
    return replace(program, stored=program.stored - {rng.choice(joined)}) if joined else None


def _other_access(rng: random.Random, program: TreeProgram) -> TreeProgram | None:
    def change(statement: TreeStatement) -> tuple[TreeStatement, ...] | None:
        if not (isinstance(statement, Compute) and statement.joins):
            return None
        first, *rest = statement.joins
        kind = rng.choice([k for k in AccessKind if k is not first.kind])
        return (replace(statement, joins=(replace(first, kind=kind), *rest)),)

    return _with_a_tree_statement(rng, program, change)


def _unbound(rng: random.Random, program: TreeProgram) -> TreeProgram | None:
    def change(statement: TreeStatement) -> tuple[TreeStatement, ...] | None:
        if not (isinstance(statement, Compute) and statement.joins and statement.joins[0].bound):
            return None
        first, *rest = statement.joins
        return (replace(statement, joins=(replace(first, bound=first.bound[1:]), *rest)),)

    return _with_a_tree_statement(rng, program, change)


def _join_left_out(rng: random.Random, program: TreeProgram) -> TreeProgram | None:
    def change(statement: TreeStatement) -> tuple[TreeStatement, ...] | None:
        if not (isinstance(statement, Compute) and any(not j.is_indicator for j in statement.joins)):
            return None
        at = next(i for i, j in enumerate(statement.joins) if not j.is_indicator)
        return (replace(statement, joins=statement.joins[:at] + statement.joins[at + 1 :]),)

    return _with_a_tree_statement(rng, program, change)


def _predicate_left_out(rng: random.Random, program: TreeProgram) -> TreeProgram | None:
    if not program.block.residuals or not all(a.updatable for a in program.block.query.atoms):
        return None
    triggers = tuple(
        replace(t, statements=tuple(_unchecked(s) if isinstance(s, Compute) else s for s in t.statements))
        for t in program.triggers
    )
    return replace(program, triggers=triggers)


def _unchecked(statement: Compute) -> Compute:
    return replace(statement, residuals=(), joins=tuple(replace(j, residuals=()) for j in statement.joins))


MUTATIONS: tuple[Mutation, ...] = (
    _without_a_collection,
    _backwards,
    _twice,
    _unused,
    _input_that_reaches_nothing,
    _unknown_root,
    _other_columns,
    _without_a_rule,
    _in_a_tree(_without_an_addition),
    _in_a_tree(_without_a_trigger),
    _in_a_tree(_leafless),
    _in_a_tree(_joined_and_not_stored),
    _in_a_tree(_other_access),
    _in_a_tree(_unbound),
    _in_a_tree(_join_left_out),
    _in_a_tree(_predicate_left_out),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.__name__)
@given(seed=st.integers(0, 2**40))
@settings(max_examples=25, deadline=None)
def test_a_malformed_program_is_refused(mutation: Mutation, seed: int) -> None:
    """Whatever is mutated, wherever it is."""
    rng = random.Random(seed)
    program = random_lowered(rng)
    mutated = mutation(rng, program)
    if mutated is not None:
        with pytest.raises(InternalError, match="malformed"):
            verify_program(mutated)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.__name__)
def test_every_mutation_has_something_to_mutate(mutation: Mutation) -> None:
    """Some of a hundred programs, so that the test above tests something."""
    programs = [random_lowered(random.Random(seed)) for seed in range(40)]
    assert any(mutation(random.Random(0), program) is not None for program in programs)
