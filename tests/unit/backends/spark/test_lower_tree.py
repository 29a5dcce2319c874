"""Blocks become the stages of view trees, or stay terms with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from everview.backends.spark import float_totals
from everview.backends.spark.choose_tree import TreeOptions
from everview.backends.spark.lower import lower as lower_program
from everview.backends.spark.stages import BlockChoice, Grouped, Partitioned, StageProgram, TreeView
from everview.planner.block_join_builder import Facts
from everview.relational.expressions import Call, Cast, Column, Expression, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Relation, Scan
from everview.relational.rules import WITH_TREES, run_rules
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64, DataType, Decimal
from everview.relational.unique_keys import UniqueKey
from everview.trigger.lower_plan import lower_plan

PRICE = Decimal(15, 2)
CUSTOMER = Scan(
    "customer", (Field("c_custkey", INT64, False), Field("c_segment", INT32, False), Field("c_name", INT32))
)
ORDERS = Scan("orders", (Field("o_orderkey", INT64, False), Field("o_custkey", INT64), Field("o_date", INT32)))
LINEITEM = Scan(
    "lineitem",
    (
        Field("l_orderkey", INT64, False),
        Field("l_number", INT32, False),
        Field("l_price", PRICE),
        Field("l_rate", FLOAT64),
        Field("l_wide", Decimal(38, 2)),
        Field("l_fine", Decimal(20, 10)),
        Field("l_count", INT64),
    ),
)
KEYS = {"customer": {0}, "orders": {0}, "lineitem": {0, 1}}


def lower(name: str, plan: Relation, trees: TreeOptions | None = None) -> StageProgram:
    """The stages of a plan, through its trigger program."""
    facts_of = facts if trees is None else trees.facts_of
    return lower_program(name, lower_plan(run_rules(plan, WITH_TREES), facts_of), trees)


def facts(relation: Relation) -> Facts:
    """Primary keys as in TPC-H."""
    return Facts((UniqueKey(frozenset(KEYS[relation.table])),)) if isinstance(relation, Scan) else Facts()


def _equal(left: Expression, right: Expression) -> Expression:
    return Call("=", (left, right), BOOLEAN)


def _column(child: Relation, name: str) -> Column:
    place = [f.name for f in schema(child)].index(name)
    return columns(child)[place]


def _joined(left: Relation, right: Relation, a: str, b: str) -> Join:
    own = _column(right, b)
    shifted = Column(len(schema(left)) + own.index, own.type, own.nullable)
    return Join(left, right, JoinKind.INNER, _equal(_column(left, a), shifted))


WHOLE = _joined(_joined(CUSTOMER, ORDERS, "c_custkey", "o_custkey"), LINEITEM, "o_orderkey", "l_orderkey")


def _aggregate(
    value: str,
    child: Relation = WHOLE,
    *,
    function: str = "sum",
    keys: tuple[str, ...] = ("o_orderkey", "o_date"),
) -> Aggregate:
    argument = _column(child, value)
    results: dict[DataType, DataType] = {PRICE: Decimal(25, 2), FLOAT64: FLOAT64, INT64: INT64}
    result = results.get(argument.type, argument.type)
    names = (*keys, "value")
    return Aggregate(
        child, tuple(_column(child, k) for k in keys), (AggregateCall(function, (argument,), result),), names
    )


def _lowered(plan: Relation, strategy: str = "factorized", fixed: frozenset[str] = frozenset()) -> StageProgram:
    def known(relation: Relation) -> Facts:
        found = facts(relation)
        is_fixed = isinstance(relation, Scan) and relation.table in fixed
        return Facts(found.keys, not is_fixed)

    return lower("v", plan, TreeOptions(strategy, known, fixed))


def _choice(program: StageProgram) -> BlockChoice:
    assert isinstance(program.root, Grouped | Partitioned)
    assert program.root.choice is not None
    return program.root.choice


def _inputs(program: StageProgram) -> list[tuple[str, list[str]]]:
    return [(s.name, [i.table for t in s.terms for i in t.inputs if isinstance(i, Scan)]) for s in program.stages]


def test_changes_meet_the_narrow_view_and_not_the_base_table() -> None:
    """In a view like TPC-H 3, a change of orders looks lines up in their sums by order; lineitem itself is never read."""
    program = _lowered(_aggregate("l_price"))
    assert _inputs(program) == [("v#0", ["lineitem"]), ("v", ["customer", "orders", "v#0"])]
    leaf = program.stages[0]
    assert isinstance(leaf, TreeView)
    assert [f.name for f in leaf.fields][: leaf.key_count] == ["o_orderkey"]
    assert program.stored() == {"v#0", "v", "orders", "customer"}
    assert "lineitem" in lower("v", _aggregate("l_price")).stored()


def test_a_leaf_that_would_copy_its_table_is_none() -> None:
    """Orders and customer are told apart by their keys, which the tree needs: they are joined as they are."""
    program = _lowered(_aggregate("l_price"))
    assert not any(isinstance(s, TreeView) and s.view in ("orders", "customer") for s in program.stages)
    without_keys = lower("v", _aggregate("l_price"), TreeOptions("factorized", lambda _: Facts()))
    assert {s.view for s in without_keys.stages if isinstance(s, TreeView)} >= {"orders", "customer", "lineitem"}


def test_the_order_of_joins_is_the_planner_s() -> None:
    """A term of a tree says for each input how a change of it is joined; what is explained is what runs."""
    program = _lowered(_aggregate("l_price"))
    (term,) = program.root.terms
    tree = _choice(program).tree
    assert tree is not None
    assert tree.plan is not None
    for start, order in enumerate(term.orders):
        assert order[0] == start
        assert sorted(order) == [0, 1, 2]
    (step,) = tree.plan.delta_path("lineitem")
    names = ["customer", "orders", "lineitem"]
    assert [names[i] for i in term.orders[2]] == ["lineitem", *(x.node.name for x in step.lookups)]


def test_fixed_tables_keep_nothing_for_their_changes() -> None:
    """Fixed tables are joined once and for all, and nothing keeps the lines, which only changes of these would meet."""
    program = _lowered(_aggregate("l_price"), fixed=frozenset({"customer", "orders"}))
    assert _inputs(program) == [("v#0", ["customer", "orders"]), ("v#1", ["lineitem"]), ("v", ["v#0", "v#1"])]
    assert program.stored() == {"v", "v#0"}
    assert _lowered(_aggregate("l_price")).stored() == {"v", "v#0", "customer", "orders"}


def test_equal_leaves_of_a_self_join_are_one_stage() -> None:
    """The same sums of the same table are kept once."""
    own = _joined(LINEITEM, LINEITEM, "l_count", "l_count")
    count = AggregateCall("count", (), INT64)
    program = _lowered(Aggregate(own, (), (count,), ("n",)))
    assert _inputs(program) == [("v#0", ["lineitem"]), ("v", ["v#0", "v#0"])]


@pytest.mark.parametrize(
    ("value", "function", "reason"),
    [
        ("l_rate", "var_pop", "var_pop of double is no function of sums that are exact on Spark"),
        ("l_wide", "sum", "by their types, what sum adds could need more than 38 digits within 10,000,000 rows"),
        ("l_fine", "sum", "sum of a decimal with more than 6 digits after the point"),
        ("l_price", "min", "min(…) is no function of sums"),
        ("l_count", "try_sum", "try_sum of bigint is no function of sums that are exact on Spark"),
    ],
)
def test_what_is_not_exact_stays_on_terms(value: str, function: str, reason: str) -> None:
    """A tree whose sums would be rounded, or could fail where Spark does not, is refused with the reason."""
    program = _lowered(_aggregate(value, function=function))
    choice = _choice(program)
    assert (choice.tree, choice.reason) == (None, reason)
    assert len(program.stages) == 1


def test_floats_are_cut_into_limbs_below_the_join() -> None:
    """Five integers a float and the rows that do not fit; 'auto' stays on terms, as one product takes nine sums."""
    program = _lowered(_aggregate("l_rate"))
    leaf = program.stages[0]
    assert isinstance(leaf, TreeView)
    assert leaf.uncut is not None
    whole = float_totals.WHOLE
    assert leaf.parts == ((1, whole), float_totals.UNFIT, *((3, limb) for limb in range(5)), (2, whole))
    root = program.root
    assert isinstance(root, Grouped)
    assert root.anew is not None
    assert _choice(_lowered(_aggregate("l_rate"), "auto")).reason.startswith("strategy 'auto' has no trees of floats")


def test_what_can_fail_stays_on_terms() -> None:
    """A tree would evaluate it for rows that have no partner."""
    inverse = Call("/", (Literal(1.0, FLOAT64), Cast(_column(WHOLE, "c_segment"), FLOAT64)), FLOAT64)
    failing = Filter(WHOLE, Call(">", (inverse, Literal(0.5, FLOAT64)), BOOLEAN))
    choice = _choice(_lowered(_aggregate("l_price", failing)))
    assert choice.reason == "an expression below the join can fail, also for rows without a partner"


def test_strategies() -> None:
    """With factorized every join is a tree; without options, all are terms; one relation leaves no choice."""
    two = _joined(ORDERS, LINEITEM, "o_orderkey", "l_orderkey")
    assert _choice(_lowered(_aggregate("l_price", two))).tree is not None
    assert _choice(lower("v", _aggregate("l_price"))).reason == "the view's strategy has none"
    single = lower("v", _aggregate("l_price", LINEITEM, keys=("l_orderkey",))).root
    assert isinstance(single, Grouped)
    assert single.choice is None


def _sized(orders: int, lines: int) -> TreeOptions:
    rows = {"orders": float(orders), "lineitem": float(lines), "customer": 100.0}

    def known(relation: Relation) -> Facts:
        return replace(facts(relation), rows=rows[relation.table]) if isinstance(relation, Scan) else Facts()

    return TreeOptions("auto", known)


def test_auto_is_a_tree_where_a_changed_row_would_meet_many() -> None:
    """A customer with a few lines is joined with them; one with a hundred thousand meets the sums by order instead."""
    few = _choice(lower("v", _aggregate("l_price"), _sized(1_000, 4_000)))
    assert few.tree is None
    assert few.reason == (
        "strategy 'auto' has trees from 10,000 fewer rows on; "
        "by estimate, a changed row of customer meets 40 rows, and 10 in a tree"
    )
    assert _choice(lower("v", _aggregate("l_price"), _sized(1_000, 10_000_000))).tree is not None


def test_auto_has_nothing_to_choose_for_tables_that_never_change() -> None:
    """Such a block stays on terms, which no change will ever run."""
    fixed = frozenset({"customer", "orders", "lineitem"})
    assert _choice(_lowered(_aggregate("l_price"), "auto", fixed)).reason == "nothing changes"
