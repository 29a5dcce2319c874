"""Plans become stages over terms."""

from __future__ import annotations

from everview.backends.spark.lower import lower as lower_program
from everview.backends.spark.stages import Grouped, Linear, Partitioned, StageProgram
from everview.planner.block_join_builder import Facts
from everview.relational.expressions import Call, Column
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Field,
    Filter,
    Join,
    JoinKind,
    Relation,
    Scan,
    SortKey,
    TopK,
)
from everview.relational.rules import SPLIT_JOINS, run_rules
from everview.relational.types import BOOLEAN, FLOAT64, INT64, STRING, DataType
from everview.trigger.lower_plan import lower_plan

R = Scan("R", (Field("a", INT64), Field("b", INT64)))
S = Scan("S", (Field("a", INT64), Field("c", FLOAT64)))
ON_A = Call("=", (Column(0, INT64), Column(2, INT64)), BOOLEAN)


def lower(name: str, plan: Relation) -> StageProgram:
    """The stages of a plan's program."""
    return lower_program(name, lower_plan(run_rules(plan, SPLIT_JOINS), lambda _: Facts()))


def _sum(child: Relation, column: int, data_type: DataType) -> Aggregate:
    call = AggregateCall("sum", (Column(column, data_type),), data_type)
    return Aggregate(child, (Column(0, INT64),), (call,), ("k", "s"))


def _shape(plan: Relation) -> list[str]:
    program = lower("v", plan)
    return [
        f"{s.name} {type(s).__name__} {[(t.sign, [i.table for i in t.inputs]) for t in s.terms]}"
        for s in program.stages
    ]  # type: ignore[union-attr]


def test_a_join_is_one_term() -> None:
    """Inner joins, filters and projections need no state of their own: the inputs are stored already."""
    program = lower("v", Filter(Join(R, S, JoinKind.INNER, ON_A), Call("isnotnull", (Column(1, INT64),), BOOLEAN)))
    assert [type(s) for s in program.stages] == [Linear]
    assert program.stored() == {"v", "r", "s"}
    assert program.inputs() == {"r", "s"}


def test_sums_are_payloads_and_those_of_floats_may_be_computed_anew() -> None:
    """A float that does not fit the sums lets its group be computed anew, which needs the input and the output."""
    assert isinstance(lower("v", _sum(R, 1, INT64)).root, Grouped)
    assert lower("v", _sum(R, 1, INT64)).stored() == {"v"}
    floats = lower("v", _sum(S, 1, FLOAT64))
    assert isinstance(floats.root, Grouped)
    assert isinstance(floats.root.anew, Partitioned)
    assert floats.stored() == {"v", "s"}


def test_semi_and_anti_joins_are_joins_with_distinct_keys() -> None:
    """L ⋉ R = L ⋈ D and L ▷ R = L - L ⋈ D, with D the distinct keys of R."""
    assert _shape(Join(R, S, JoinKind.SEMI, ON_A)) == [
        "v#0 Grouped [(1, ['s'])]",
        "v Linear [(1, ['r', 'v#0'])]",
    ]
    assert _shape(Join(R, S, JoinKind.ANTI, ON_A)) == [
        "v#0 Grouped [(1, ['s'])]",
        "v Linear [(1, ['r']), (-1, ['r', 'v#0'])]",
    ]


def test_equal_sub_plans_are_one_stage() -> None:
    """What a plan uses twice is maintained once."""
    once = Distinct(R)
    assert len(lower("v", Join(once, once, JoinKind.INNER, ON_A)).stages) == 2


def test_stages_above_one_another() -> None:
    """A top-k over groups keeps the groups' output, which it reads again when one of its rows goes."""
    program = lower("v", TopK(_sum(R, 1, INT64), (SortKey(Column(1, INT64)),), 3))
    assert [type(s).__name__ for s in program.stages] == ["Grouped", "Partitioned"]
    assert program.stored() == {"v#0", "v"}


def test_set_operations_count_both_sides() -> None:
    """EXCEPT ALL keeps a count a side for each row."""
    root = lower("v", ExceptAll(R, R)).root
    assert isinstance(root, Grouped)
    assert [f.name for f in root.payload] == ["count", "left", "right"]


def test_names_do_not_matter_for_the_key() -> None:
    """A text key groups like any other."""
    named = Scan("T", (Field("name", STRING), Field("x", INT64)))
    call = AggregateCall("count", (), INT64)
    root = lower("v", Aggregate(named, (Column(0, STRING),), (call,), ("name", "n"))).root
    assert isinstance(root, Grouped)
    assert [f.type for f in root.state] == [STRING, INT64]


def test_nested_outer_joins_take_time_in_proportion_to_their_number() -> None:
    """Each is split into parts that read its left side three times: without a memory, every level took three times as long.

    Found by the soak as a database that did not open; sixteen levels would take hours.
    """
    plan: Relation = R
    for level in range(16):
        width = 2 * level + 2
        condition = Call(
            "and",
            (
                Call("=", (Column(0, INT64), Column(width, INT64)), BOOLEAN),
                Call("<", (Column(1, INT64), Column(width + 1, INT64)), BOOLEAN),
            ),
            BOOLEAN,
        )
        plan = Join(plan, Scan(f"s{level}", R.fields), JoinKind.LEFT, condition)
    assert len(lower("v", plan).stages) < 40
