"""What becomes a view tree, what an operator, and which collections are one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.planner.block_join_builder import Facts
from everview.relational.expressions import Call, Column, Literal
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Field,
    Frame,
    FrameUnit,
    Join,
    JoinKind,
    Relation,
    Scan,
    SortKey,
    TopK,
    UnionAll,
    Window,
    WindowCall,
)
from everview.relational.rules import SPLIT_JOINS, run_rules
from everview.relational.types import BOOLEAN, INT64, Row
from everview.trigger.format_program import format_program
from everview.trigger.lower_plan import lower_plan
from everview.trigger.program import (
    Apply,
    CheckSingle,
    Place,
    Program,
    StatementKind,
    TreeBlock,
    kind_of_statement,
    rules,
)
from tests.oracle.bags import assert_same_bag
from tests.unit.backends.embedded.tree.generate_blocks import random_query, random_row

R = Scan("R", (Field("a", INT64, False), Field("b", INT64)))
S = Scan("S", (Field("a", INT64, False), Field("c", INT64)))
T = Scan("T", (Field("a", INT64, False), Field("d", INT64)))
ON_A = Call("=", (Column(0, INT64, False), Column(2, INT64, False)), BOOLEAN)
COUNT = AggregateCall("count", (), INT64)
LEAST = AggregateCall("min", (Column(1, INT64),), INT64)


def lowered(plan: Relation, strategy: str = "auto", **options: object) -> Program:
    """The program of a plan over tables of which nothing is known."""
    return lower_plan(run_rules(plan, SPLIT_JOINS), lambda _: Facts(), strategy, **options)  # type: ignore[arg-type]


def kinds(program: Program) -> list[str]:
    """What makes each collection."""
    return [
        type(c.statement.node).__name__ if isinstance(c.statement, Apply) else type(c.statement).__name__
        for c in program.collections
    ]


def by_a(child: Relation, call: AggregateCall = COUNT) -> Aggregate:
    """An aggregate by the first column."""
    return Aggregate(child, (Column(0, INT64, False),), (call,), ("a", "n"))


def test_an_aggregate_over_a_join_is_one_tree() -> None:
    """The join below it is part of the tree, and no collection."""
    program = lowered(by_a(Join(R, S, JoinKind.INNER, ON_A)))
    assert kinds(program)[-1] == "TreeBlock"
    assert "Join" not in kinds(program)


def test_a_predicate_that_stands_twice_is_checked_once() -> None:
    """Found by the soak: a tree with such a predicate was refused as malformed."""
    less = Call("<", (Column(1, INT64), Column(3, INT64)), BOOLEAN)
    condition = Call("and", (ON_A, Call("and", (less, less), BOOLEAN)), BOOLEAN)
    (tree,) = (
        c.statement
        for c in lower_plan(by_a(Join(R, S, JoinKind.INNER, condition)), lambda _: Facts()).collections
        if isinstance(c.statement, TreeBlock)
    )
    assert len(tree.lowered.program.block.residuals) == 1


def test_what_has_no_tree_says_why() -> None:
    """The reason stands at the operator, and so does the reason of who asks for no trees at all."""
    statement = lowered(by_a(R, LEAST)).collections[-1].statement
    assert isinstance(statement, Apply)
    assert statement.why_no_tree == "min(…) is no function of sums"
    assert kind_of_statement(statement) is StatementKind.ORDERED
    refused = lowered(by_a(R), no_tree="trees are out of fashion").collections[-1].statement
    assert isinstance(refused, Apply)
    assert refused.why_no_tree == "trees are out of fashion"


@pytest.mark.parametrize(
    ("strategy", "read_once", "expected"),
    [
        ("auto", False, "Join"),
        ("factorized", False, "TreeBlock"),
        ("first_order", False, "TreeBlock"),
        ("recompute", False, "Anew"),
    ],
)
def test_strategies(strategy: str, read_once: bool, expected: str) -> None:
    """A join of two is an operator, or a tree under the strategies that have trees for joins."""
    program = lowered(Join(R, S, JoinKind.INNER, ON_A), strategy, is_read_once=read_once)
    assert expected in kinds(program)


def test_a_view_of_three_relations_is_a_tree_unless_it_is_read_once() -> None:
    """A tree pays where it is maintained."""
    three = Join(Join(R, S, JoinKind.INNER, ON_A), T, JoinKind.INNER, ON_A)
    assert "TreeBlock" in kinds(lowered(three))
    assert "TreeBlock" not in kinds(lowered(three, is_read_once=True))


def test_equal_sub_plans_are_one_collection() -> None:
    """Whether they are one node of the plan or two that are equal."""
    program = lowered(UnionAll((Distinct(R), Distinct(Scan("r", R.fields)))))
    assert kinds(program) == ["Distinct", "UnionAll"]


@pytest.mark.parametrize("strategy", ["auto", "recompute"])
def test_names_are_read_whatever_their_spelling(strategy: str) -> None:
    """R and r are one table, with one input."""
    program = lowered(UnionAll((R, Distinct(Scan("r", R.fields)))), strategy)
    assert [i.name for i in program.inputs] == ["R"]


def test_a_scalar_subquery_is_checked_unless_it_surely_has_one_row() -> None:
    """An aggregate by the keys of the join has at most one row a key."""
    single = Join(R, S, JoinKind.SINGLE, ON_A)
    assert any(isinstance(c.statement, CheckSingle) for c in lowered(single).collections)
    sure = Join(R, by_a(S), JoinKind.SINGLE, ON_A)
    assert not any(isinstance(c.statement, CheckSingle) for c in lowered(sure).collections)


def test_names_of_collections_avoid_those_of_tables() -> None:
    """A table may be called like a collection."""
    program = lowered(Distinct(Scan("#1", R.fields)))
    assert [c.name for c in program.collections] == ["#2"]


def test_stored_are_the_collections_that_rules_search() -> None:
    """A join stores both sides, a semi join the left one, DISTINCT none."""
    assert lowered(Join(R, S, JoinKind.INNER, ON_A)).stored() == {"R", "S"}
    semi = lowered(Join(R, S, JoinKind.SEMI, ON_A))
    assert "R" in semi.stored()
    assert "S" not in semi.stored()
    assert lowered(Distinct(R)).stored() == frozenset()


def test_windows_and_top_k_are_ordered() -> None:
    """A window searches the group that it computes anew, a top-k the rows in order."""
    rank = WindowCall("rank", (), INT64, Frame(FrameUnit.ROWS, None, Literal(0, INT64)))
    window = Window(R, (Column(0, INT64, False),), (SortKey(Column(1, INT64)),), (rank,), ("r",))
    (rule,) = rules(lowered(window).collections[-1].statement)
    assert (rule.kind, rule.searches[0].place) == (StatementKind.ORDERED, Place.ROWS)
    (rule,) = rules(lowered(TopK(R, (SortKey(Column(1, INT64)),), 2)).collections[-1].statement)
    assert (rule.kind, rule.searches[0].place) == (StatementKind.ORDERED, Place.ORDER)


def test_text_of_a_program() -> None:
    """Definitions with their kinds, then what a change of each input does, with access paths."""
    text = format_program("v", lowered(Distinct(Join(R, S, JoinKind.SEMI, ON_A))))
    assert text == (
        "view v = #3\n"
        "#1 := project [a] of S    -- linear\n"
        "#2 := semi join on (left.a = right.a) of R, #1    -- pointwise\n"
        "#3 := distinct of #2    -- pointwise\n"
        "\n"
        "on R\n"
        "  R += δR\n"
        "  δ#2 := δR ⋉ #1    -- look-up in counts of #1 by a\n"
        "  δ#3 := new - old of distinct #2 for the rows of δ#2    -- count of the row in #2\n"
        "\n"
        "on S\n"
        "  δ#1 := π δS\n"
        "  δ#2 := new - old of R ⋉ #1 for the keys of δ#1    -- look-up in counts of #1 by a, slice of R by a\n"
        "  δ#3 := new - old of distinct #2 for the rows of δ#2    -- count of the row in #2\n"
    )


def test_a_table_that_changes_no_more_has_no_trigger() -> None:
    """A static table that has been loaded."""
    facts = {"R": Facts(), "S": Facts(updatable=False)}

    def facts_of(relation: Relation) -> Facts:
        return facts[relation.table] if isinstance(relation, Scan) else Facts()

    plan = run_rules(by_a(Join(R, S, JoinKind.INNER, ON_A)), SPLIT_JOINS)
    text = format_program("v", lower_plan(plan, facts_of))
    assert "\non R\n" in text
    assert "\non S\n" not in text


@given(st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_the_source_of_a_tree_is_what_it_computes(seed: int) -> None:
    """The plan behind a tree, over what its inputs hold, has the rows of the aggregate."""
    rng = random.Random(seed)
    query = random_query(rng)
    program = lowered(query.aggregate)
    root = program.collections[-1].statement
    if not isinstance(root, TreeBlock):
        return
    held: dict[str, list[Row]] = {
        t.name: [random_row(rng, t, has_odd_floats=False) for _ in range(rng.randint(0, 6))] for t in query.tables
    }
    for collection in program.collections[:-1]:
        assert isinstance(collection.statement, Apply)
        held[collection.name] = evaluate_plan(collection.statement.node, held)
    assert_same_bag(evaluate_plan(root.source, held), evaluate_plan(query.aggregate, held), "the source of the tree")
