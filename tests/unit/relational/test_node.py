from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import pytest

from everview.relational.expressions import FALSE, TRUE, Call, Case, Cast, Column, Expression, Literal
from everview.relational.node import Node
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Frame,
    FrameUnit,
    Generate,
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
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64, NAN, STRING, Array, Decimal

R = Scan("r", (Field("a", INT32), Field("b", STRING)))
A = Column(0, INT32)


def _plan(names: tuple[str, ...] = ("n", "m")) -> Relation:
    condition = Call("=", (A, Column(2, INT32)), BOOLEAN)
    joined = Join(R, R, JoinKind.LEFT, condition, mark=names[0])
    call = WindowCall("sum", (A,), INT64, Frame(FrameUnit.ROWS, None, Literal(0, INT32)), filter=condition)
    window = Window(joined, (A,), (SortKey(A, descending=True),), (call,), names[:1])
    grouped = Aggregate(window, (Cast(A, INT64),), (AggregateCall("count", (), INT64, distinct=True),), names)
    shown = Project(grouped, (Case(((TRUE, Column(0, INT64)),), Literal(None, INT64)), Column(1, INT64, False)), names)
    return TopK(UnionAll((shown, shown)), (), 3, 1)


def test_equality_is_structural() -> None:
    """Two nodes made of equal parts are equal and have one hash, whatever they call their columns."""
    assert _plan() == _plan()
    assert hash(_plan()) == hash(_plan())
    assert _plan(("x", "y")) == _plan()
    assert len({_plan(), _plan(("x", "y"))}) == 1


def test_names_are_not_compared_where_they_are_for_people() -> None:
    """Projections, aggregates, marks and generators by position; a scan is its table and its columns."""
    assert Project(R, (A,), ("x",)) == Project(R, (A,), ("y",))
    assert Generate(R, A, False, False, ("x",)) == Generate(R, A, False, False, ("y",))
    assert Values(((1,),), (Field("x", INT32),)) == Values(((1,),), (Field("y", INT32),))
    assert Scan("r", (Field("x", INT32),)) != Scan("r", (Field("y", INT32),))


@pytest.mark.parametrize(
    "changed",
    [
        Filter(R, FALSE),
        Filter(Scan("s", R.fields), TRUE),
        TopK(R, (), 1),
        replace(Join(R, R, JoinKind.LEFT), kind=JoinKind.RIGHT),
    ],
)
def test_different_nodes_are_unequal(changed: Relation) -> None:
    """A field, an input or the class makes the difference."""
    assert changed != Filter(R, TRUE)
    assert changed != Join(R, R, JoinKind.LEFT)
    assert changed != "a string"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Literal(0.0, FLOAT64), Literal(-0.0, FLOAT64)),
        (Literal(1, INT32), Literal(1, INT64)),
        (Literal(True, BOOLEAN), Literal(1, BOOLEAN)),
        (Literal(None, INT32), Literal(None, STRING)),
        (Literal(1, INT32), Cast(Literal(1, INT64), INT32)),
        (Column(0, INT32), Column(0, INT32, nullable=False)),
        (Cast(A, STRING), Cast(A, STRING, is_try=True)),
        (Cast(A, STRING, zone="UTC"), Cast(A, STRING, zone="CET")),
    ],
)
def test_expressions_that_python_would_take_for_equal(one: Expression, other: Expression) -> None:
    """0.0 and -0.0, True and 1, and equal constants of two types are different expressions."""
    assert one != other
    assert other != one


def test_nan_constants_are_equal() -> None:
    """Also in constant bags, or plans with a NaN would never be shared."""
    assert Literal(NAN, FLOAT64) == Literal(float("nan"), FLOAT64)
    fields = (Field("x", FLOAT64),)
    assert Values(((NAN,),), fields) == Values(((float("nan"),),), fields)


def test_decimals_are_told_apart_by_their_type() -> None:
    """1.0 and 1.00 of one type are written alike; of two types they differ."""
    assert Literal(1, Decimal(3, 1)) != Literal(1, Decimal(3, 2))


def test_nodes_cannot_be_changed() -> None:
    """Frozen and slotted: no field is set, none is added."""
    with pytest.raises(FrozenInstanceError):
        R.table = "s"  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        R.colour = "red"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Filter(R, A),
        lambda: Join(R, R, JoinKind.INNER, A),
        lambda: Project(R, (A,), ()),
        lambda: Aggregate(R, (A,), (), ("x", "y")),
        lambda: Window(R, (), (), (), ("n",)),
        lambda: UnionAll(()),
    ],
)
def test_constructors_check_what_is_local(make: type[Node]) -> None:
    """Conditions that are no boolean, a name too few, and a union of nothing are refused at once."""
    with pytest.raises(AssertionError):
        make()


def test_pickling_keeps_plans_equal() -> None:
    """Names come back, the hash is computed anew, and so is the schema."""
    plan = _plan()
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan
    assert hash(copy) == hash(plan)
    assert schema(copy) == schema(plan)
    values = Values(((None, (1, "x")),), (Field("a", INT32), Field("x", Array(STRING, False))))
    assert pickle.loads(pickle.dumps(values)) == values


def test_pickles_cross_processes() -> None:
    """Hashes of strings differ from process to process, and a loaded node is still found in a set."""
    program = (
        "import pickle, sys; plan = pickle.load(sys.stdin.buffer);"
        "from everview.relational.nodes import Scan;"
        "assert plan in {Scan(plan.table, plan.fields)}, 'the hash came from the other process'"
    )
    ran = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(R), capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()


def test_hashing_a_shared_dag_is_linear() -> None:
    """A tower of self-unions has 2ⁿ paths; two towers of their own are compared by their stored hashes first."""
    tower: Relation = R
    other: Relation = Scan("s", R.fields)
    for _ in range(200):
        tower, other = UnionAll((tower, tower)), UnionAll((other, other))
    assert tower != other
    found = {tower: "tower", other: "other"}
    assert (found[tower], found[other]) == ("tower", "other")
