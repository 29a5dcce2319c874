"""Plans as JSON and back."""

from __future__ import annotations

import json
import math
from decimal import Decimal as Number

import pytest

from everview.errors import CorruptDatabase
from everview.relational.expressions import Call, Case, Cast, Column, Literal
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Frame,
    FrameUnit,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    TopK,
    UnionAll,
    Values,
    Window,
    WindowCall,
)
from everview.relational.schema import schema
from everview.relational.serialize import plan_from_json, plan_to_json, schema_from_json, schema_to_json
from everview.relational.traverse import nodes_of
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    FLOAT64,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    YEAR_MONTH_INTERVAL,
    Array,
    Decimal,
    Struct,
)

SCAN = Scan("t", (Field("a", INT64, False), Field("b", Decimal(10, 2))))


def again(plan: Relation) -> Relation:
    """The plan after a way through text."""
    return plan_from_json(json.loads(json.dumps(plan_to_json(plan))))


def test_nodes_of_every_shape() -> None:
    """Joins, aggregates, windows, frames, sort keys and enums come back equal, names and hashes included."""
    left = Filter(SCAN, Call("<", (Column(0, INT64, False), Literal(7, INT64)), BOOLEAN))
    join = Join(left, SCAN, JoinKind.FULL, Call("<=>", (Column(0, INT64), Column(2, INT64)), BOOLEAN))
    call = AggregateCall("sum", (Column(1, Decimal(10, 2)),), Decimal(20, 2), True, Literal(True, BOOLEAN))
    groups = Aggregate(join, (Column(0, INT64),), (call,), ("key", "total"))
    frame = Frame(FrameUnit.RANGE, None, Literal(-3, INT64), "Europe/Oslo")
    lead = WindowCall("lead", (Column(0, INT64), Literal(1, INT32), Literal(None, INT64)), INT64, frame, True)
    window = Window(groups, (Column(0, INT64),), (SortKey(Column(1, Decimal(20, 2)), True, False),), (lead,), ("next",))
    top = TopK(UnionAll((window, window)), (SortKey(Column(0, INT64)),), 5, 2)
    back = again(top)
    assert back == top
    assert hash(back) == hash(top)
    assert schema(back) == schema(top)


def test_values_of_every_type() -> None:
    """Constants keep their exact value: negative zero, NaN, infinities, wide decimals, bytes, nested ones."""
    nested = Array(Struct(("x", "y"), (INT64, Array(STRING))))
    rows = (
        (-0.0, Number("-12345678901234567890.123456789"), b"\x00\xff", ((1, ("a", None)), None), None),
        (math.inf, Number("0E-9"), b"", (), None),
    )
    fields = tuple(
        Field(f"c{i}", t) for i, t in enumerate((FLOAT64, Decimal(38, 9), BINARY, nested, YEAR_MONTH_INTERVAL))
    )
    back = again(Values(rows, fields))
    assert isinstance(back, Values)
    assert repr(back.rows) == repr(rows)
    assert back.fields == fields
    nan = again(Project(SCAN, (Literal(float("nan"), FLOAT64), Literal(None, NULL)), ("n", "v")))
    assert isinstance(nan, Project)
    assert isinstance(nan.expressions[0], Literal)
    assert math.isnan(nan.expressions[0].value)


def test_expressions() -> None:
    """Casts, cases and calls with a time zone."""
    case = Case(((Literal(True, BOOLEAN), Column(0, INT64)),), Literal(None, INT64))
    cast = Cast(Call("hour", (Column(0, TIMESTAMP),), INT32, "Asia/Tokyo"), STRING, True, "UTC")
    plan = Project(SCAN, (case, cast), ("a", "b"))
    assert again(plan) == plan


def test_shared_parts_stay_shared() -> None:
    """A plan that uses a sub-plan twice is written once and read as one object."""
    twice: Relation = UnionAll((SCAN, SCAN))
    for _ in range(40):
        twice = UnionAll((twice, twice))
    back = again(twice)
    assert hash(back) == hash(twice)  # equality would walk every path
    assert sum(1 for _ in nodes_of(back)) == sum(1 for _ in nodes_of(twice)) == 42


def test_schemas() -> None:
    """The columns of a table."""
    assert schema_from_json(json.loads(json.dumps(schema_to_json(SCAN.fields)))) == SCAN.fields


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"format": 1, "parts": [], "root": {"ref": 0}},
        {"format": 1, "parts": [["Nonsense", 1]], "root": {"ref": 0}},
        {"format": 1, "parts": [["Scan", "t"]], "root": {"ref": 0}},
        {"format": 1, "parts": [["Scan", "t", {"odd": 1}]], "root": {"ref": 0}},
    ],
)
def test_what_was_not_written_by_us(written: dict[str, object]) -> None:
    """Other text is an error, never another plan."""
    with pytest.raises(CorruptDatabase, match="a stored plan cannot be read"):
        plan_from_json(written)


def test_a_format_of_later_versions() -> None:
    """It is told from text that nobody wrote."""
    with pytest.raises(
        CorruptDatabase, match="a stored plan has format 2, and this version of everview reads format 1"
    ):
        plan_from_json({"format": 2, "parts": [], "root": {"ref": 0}})
