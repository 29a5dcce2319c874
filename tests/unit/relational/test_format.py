from __future__ import annotations

from decimal import Decimal as PythonDecimal

import pytest

from everview.relational.expressions import TRUE, Call, Case, Cast, Column, Expression, Literal
from everview.relational.format import format_expression, format_plan
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Field,
    Filter,
    Frame,
    FrameUnit,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
    WindowCall,
)
from everview.relational.types import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
)

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
S = Scan("s", (Field("b", INT32), Field("xs", Array(INT32))))
A, B = Column(0, INT32), Column(1, INT32)
POSITIVE = Call(">", (A, Literal(0, INT32)), BOOLEAN)
RECENT = Frame(FrameUnit.RANGE, Literal(-2, INT32), Literal(0, INT32))
WHOLE = Frame(FrameUnit.ROWS, None, None)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (A, "a"),
        (Column(7, INT32), "$7"),
        (Call("+", (A, Call("*", (B, Literal(2, INT32)), INT32)), INT32), "(a + (b * 2))"),
        (Call("-", (A,), INT32), "-(a)"),
        (Call("not", (POSITIVE,), BOOLEAN), "not((a > 0))"),
        (Cast(A, INT64), "cast(a as bigint)"),
        (Cast(A, INT64, is_try=True), "try_cast(a as bigint)"),
        (Case(((POSITIVE, A), (TRUE, B)), Literal(None, INT32)), "case when (a > 0) then a when true then b else null:int end"),
        (Literal(None, NULL), "null"),
        (Literal("it's", STRING), "'it''s'"),
        (Literal(False, BOOLEAN), "false"),
        (Literal(PythonDecimal("1.50"), Decimal(3, 2)), "1.50"),
        (Literal(2.0, FLOAT64), "2.0"),
        (Literal(19_783, DATE), "date '2024-03-01'"),
        (Literal(1_000_000, TIMESTAMP), "timestamp '1970-01-01 00:00:01'"),
        (Literal(-1, TIMESTAMP_NTZ), "timestamp '1969-12-31 23:59:59.999999'"),
    ],
)  # fmt: skip
def test_expressions(expression: Expression, text: str) -> None:
    """Expressions read like SQL, over the names of the input's columns."""
    assert format_expression(expression, ("a", "b")) == text


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (R, "scan r [a, b]"),
        (Values(((1, 2), (3, 4)), R.fields), "values 2 rows [a, b]"),
        (Filter(R, POSITIVE), "filter (a > 0)"),
        (Project(R, (A, B, POSITIVE), ("a", "c", "p")), "project [a, b as c, (a > 0) as p]"),
        (Join(R, S, JoinKind.INNER), "cross join"),
        (Join(R, S, JoinKind.SEMI), "semi join on true"),
        (
            Join(R, S, JoinKind.LEFT, Call("=", (B, Column(2, INT32)), BOOLEAN)),
            "left join on (left.b = right.b)",
        ),
        (Join(R, S, JoinKind.MARK, POSITIVE, "found"), "mark join on (a > 0) as found"),
        (
            Aggregate(
                R,
                (B,),
                (AggregateCall("count", (), INT64), AggregateCall("sum", (A,), INT64, distinct=True, filter=POSITIVE)),
                ("b", "n", "t"),
            ),
            "aggregate by [b] [count(*) as n, sum(distinct a) where (a > 0) as t]",
        ),
        (Distinct(R), "distinct"),
        (UnionAll((R, R)), "union all"),
        (ExceptAll(R, R), "except all"),
        (IntersectAll(R, R), "intersect all"),
        (UnionMax(R, R), "union max"),
        (
            Window(R, (A,), (SortKey(B),), (WindowCall("sum", (A,), INT64, RECENT),), ("t",)),
            "window partition by [a] order by [b] [sum(a) range -2..0 as t]",
        ),
        (
            Window(R, (), (), (WindowCall("max", (A,), INT32, WHOLE),), ("m",)),
            "window partition by [] order by [] [max(a) rows start..end as m]",
        ),
        (TopK(R, (SortKey(A),), 3, 2), "top by [a] limit 3 offset 2"),
        (TopK(R, (SortKey(A, descending=True, nulls_first=False),), None), "top by [a desc]"),
        (TopK(R, (SortKey(A, nulls_first=False),), 1), "top by [a nulls last] limit 1"),
        (TopK(R, (SortKey(A, descending=True),), 1), "top by [a desc nulls first] limit 1"),
        (Generate(S, Column(1, Array(INT32)), False, False, ("x",)), "explode xs as [x]"),
        (Generate(S, Column(1, Array(INT32)), True, True, ("i", "x")), "outer posexplode xs as [i, x]"),
    ],
)
def test_nodes(plan: Relation, text: str) -> None:
    """Each node is one line, its inputs indented below it."""
    assert format_plan(plan).splitlines()[0] == text


def test_filters_of_window_functions_are_shown() -> None:
    """``sum(a) FILTER (WHERE a > 0)`` is not ``sum(a)``, and does not look like it."""
    plain, filtered = (
        Window(R, (), (), (WindowCall("sum", (A,), INT64, WHOLE, filter=condition),), ("t",))
        for condition in (None, POSITIVE)
    )
    assert format_plan(plain) != format_plan(filtered)


def test_ignored_nulls_are_shown() -> None:
    """``first_value(a) IGNORE NULLS`` does not look like ``first_value(a)``."""
    plain, ignoring = (
        Window(R, (), (), (WindowCall("first_value", (A,), INT32, WHOLE, ignore_nulls=ignored),), ("f",))
        for ignored in (False, True)
    )
    assert format_plan(plain) != format_plan(ignoring)


def test_plan_is_an_indented_tree() -> None:
    """Two spaces a level, inputs left to right."""
    plan = Join(Filter(R, POSITIVE), S, JoinKind.ANTI)
    assert format_plan(plan) == "anti join on true\n  filter (a > 0)\n    scan r [a, b]\n  scan s [b, xs]"


def test_shared_nodes_are_printed_once() -> None:
    """Where they are met first, with a label that later uses refer to; scans are short enough to repeat."""
    inner = Distinct(R)
    outer = Filter(inner, POSITIVE)
    plan = UnionAll((outer, outer, inner))
    assert format_plan(plan).splitlines() == [
        "union all",
        "  #1: filter (a > 0)",
        "    #2: distinct",
        "      scan r [a, b]",
        "  see #1",
        "  see #2",
    ]


def test_equal_plans_print_alike() -> None:
    """The text is a function of the plan: made twice, it is the same."""

    def make() -> Relation:
        shared = Distinct(R)
        return UnionAll((shared, Filter(shared, POSITIVE)))

    assert format_plan(make()) == format_plan(make())
