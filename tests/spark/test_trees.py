"""View trees on the Spark backend: the law for every strategy, over joins of two to four tables.

Most plans are written down here, so that nothing needs the JVM.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal as Number
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.backends.base import Change, ChangeKind
from everview.backends.spark import view_programs
from everview.backends.spark.backend import SparkBackend
from everview.backends.spark.choose_tree import TreeOptions
from everview.backends.spark.lower import lower
from everview.backends.spark.stages import Grouped
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import UnsupportedOperation
from everview.planner.block_join_builder import Facts
from everview.relational.arrow import rows_to_arrow
from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal, conjunction
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Relation, Scan, UnionAll
from everview.relational.rules import WITH_TREES, run_rules
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, INT32, INT64, STRING, Decimal
from everview.trigger.lower_plan import lower_plan
from tests.corpus.data import TPCH_KEYS, Query, queries
from tests.oracle.generate_tables import TableData
from tests.spark.replay import Replay, open_on_disk, refuse_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

R = Scan("r", (Field("a", INT32), Field("b", INT64), Field("p", Decimal(12, 2))))
S = Scan("s", (Field("b", INT64), Field("c", STRING), Field("q", Decimal(10, 3)), Field("f", BOOLEAN)))
T = Scan("t", (Field("c", STRING), Field("d", INT32), Field("z", INT64)))
U = Scan("u", (Field("d", INT32), Field("g", INT64, nullable=False)))
STRATEGIES = ("factorized", "auto", "first_order", "recompute")


def _join(left: Relation, right: Relation, on: dict[str, str], *also: Expression, null_safe: bool = False) -> Join:
    """An inner join on columns named alike; names are of the first column that has them."""
    names = [f.name for f in schema(left)]
    width, both = len(names), columns(left)
    parts = []
    for mine, theirs in on.items():
        place = [f.name for f in schema(right)].index(theirs)
        other = schema(right)[place]
        pair = (both[names.index(mine)], Column(width + place, other.type, other.nullable))
        parts.append(Call("<=>" if null_safe else "=", pair, BOOLEAN))
    return Join(left, right, JoinKind.INNER, conjunction((*parts, *also)))


def _sum(value: Expression, where: Expression | None = None) -> AggregateCall:
    result = Decimal(min(38, value.type.precision + 10), value.type.scale) if isinstance(value.type, Decimal) else INT64
    return AggregateCall("sum", (value,), result, filter=where)


COUNT = AggregateCall("count", (), INT64)


def _group(child: Relation, keys: tuple[Expression, ...], *calls: AggregateCall) -> Aggregate:
    return Aggregate(child, keys, calls, tuple(f"c{i}" for i in range(len(keys) + len(calls))))


RS = _join(R, S, {"b": "b"})
RST = _join(RS, T, {"c": "c"})
RSTU = _join(RST, U, {"d": "d"})
A, B, P = columns(R)
Q, F = columns(RS)[5], columns(RS)[6]
D, Z = columns(RST)[8], columns(RST)[9]
G = columns(RSTU)[11]
PQ = Call("*", (P, Q), Decimal(23, 5))
IS_MANY = Call(">", (A, Literal(1, INT32)), BOOLEAN)
IS_MORE = Call(">", (D, Literal(0, INT32)), BOOLEAN)
ZERO = Literal(Number("0.00"), Decimal(12, 2))
_AVERAGE = AggregateCall("avg", (P,), Decimal(16, 6))
_MEAN = AggregateCall("avg", (Cast(A, INT64),), schema(R)[0].type)

PLANS: dict[str, Relation] = {
    "two": _group(RS, (A,), _sum(PQ), COUNT),
    "three": _group(RST, (D,), _sum(PQ), _AVERAGE, AggregateCall("count", (P,), INT64), COUNT),
    "four": _group(RSTU, (G,), _sum(P), _sum(Z), COUNT),
    "no_keys": _group(RST, (), _sum(P), COUNT),
    "key_twice": _group(RST, (D, A, D), COUNT),
    "filtered_sum": _group(RST, (), _sum(P, conjunction((IS_MANY, IS_MORE))), COUNT),
    "case_over_two": _group(RST, (A,), _sum(Case(((IS_MORE, P),), ZERO)), _sum(Literal(2, INT32))),
    "condition": _group(Filter(RST, conjunction((IS_MANY, IS_MORE))), (B,), COUNT, _sum(Z)),
    "residual": _group(Filter(RST, Call("<", (P, Q), BOOLEAN)), (D,), COUNT, _sum(P)),
    "null_safe": _group(_join(RS, T, {"c": "c"}, null_safe=True), (D,), COUNT, _sum(P)),
    "truths": _group(RST, (D,), AggregateCall("min", (F,), BOOLEAN), AggregateCall("max", (F,), BOOLEAN)),
    "cycle": _group(_join(RS, T, {"c": "c", "a": "d"}), (), COUNT, _sum(P)),
    "cross": _group(Join(R, T, JoinKind.INNER), (), COUNT, _sum(P), _sum(Column(5, INT64))),
    "cross_and_join": _group(Join(RS, U, JoinKind.INNER), (A,), COUNT, _sum(P)),
    "self_join": _group(_join(_join(R, R, {"b": "b"}), R, {"b": "b"}), (A,), _sum(P), _sum(Column(5, Decimal(12, 2)))),
    "self_join_of_other_columns": _group(_join(_join(R, R, {"a": "a"}), R, {"b": "b"}), (), COUNT, _sum(P)),
    "union_below": _group(_join(_join(UnionAll((R, R)), S, {"b": "b"}), T, {"c": "c"}), (D,), _sum(P), COUNT),
    "aggregate_below": _group(_join(_group(RS, (B,), _sum(P)), RST, {"c0": "b"}), (Column(10, INT32),), COUNT),
}


def _value(rng: random.Random, field: Field) -> Any:
    if field.nullable and rng.random() < 0.15:
        return None
    match field.type:
        case Decimal(scale=scale):
            return Number(rng.randrange(-400, 900)).scaleb(-scale)
        case t if t == STRING:
            return rng.choice("uvw")
        case t if t == BOOLEAN:
            return rng.random() < 0.7
        case _:
            return rng.randrange(-1, 4)


def _tables(seed: str, most: int) -> dict[str, TableData]:
    rng = random.Random(seed)
    made = {}
    for scan in (R, S, T, U):
        rows = tuple(tuple(_value(rng, f) for f in scan.fields) for _ in range(rng.randrange(most)))
        made[scan.table] = TableData(scan.table, scan.fields, rows)
    return made


def _at_the_driver(path: Path) -> SparkBackend:
    return SparkBackend(str(path), refuse_spark)


def _follow(replay: Replay, strategy: str, batches: int, restarts: tuple[int, ...]) -> None:
    """The view is made after the first transaction, and checked after every other, vacuums and restarts; then all go."""
    transactions = replay.transactions(batches)
    replay.apply(next(transactions, {}))
    replay.create_view(strategy)
    replay.check()
    for number, changes in enumerate(transactions):
        replay.apply(changes)
        replay.check()
        if number in restarts:
            replay.backend.vacuum()
            replay.restart()
            replay.check()
    replay.apply(replay.delete_everything())
    replay.check()


def _marked() -> list[object]:
    quick = {
        ("factorized", name) for name in ("four", "filtered_sum", "residual", "self_join", "cross_and_join", "truths")
    }
    quick |= {("auto", "three"), ("first_order", "three")}
    every = [(strategy, name) for strategy in STRATEGIES for name in PLANS]
    return [pytest.param(*case, marks=() if case in quick else (pytest.mark.slow,)) for case in every]


@pytest.mark.parametrize(("strategy", "name"), _marked())
def test_law(strategy: str, name: str, tmp_path: Path) -> None:
    """After every transaction over all tables, and every restart, a view equals the recomputed query."""
    with closing(Replay(PLANS[name], tmp_path, name, _at_the_driver, _tables(name, 25))) as replay:
        _follow(replay, strategy, 7, (1, 4))


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_law_on_spark(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """The same with trees whose rows are all on disk, for Spark to read."""
    with closing(
        Replay(PLANS[name], tmp_path, name, lambda path: open_on_disk(path, spark), _tables(name, 25))
    ) as replay:
        _follow(replay, "factorized", 3, (0,))
        assert replay.backend.stats("v")["spark_jobs"] > 0


@pytest.mark.parametrize("name", PLANS)
def test_the_plans_are_trees(name: str) -> None:
    """What the law is tried on is what it is meant for: with ``factorized``, every block of the plans above is a tree."""
    program = lower_plan(run_rules(PLANS[name], WITH_TREES), lambda _: Facts(), "factorized")
    stages = lower("v", program, TreeOptions("factorized", lambda _: Facts()))
    choices = [s.choice for s in stages.stages if isinstance(s, Grouped) and s.choice is not None]
    assert choices
    assert [c.reason for c in choices] == [""] * len(choices)


@pytest.mark.parametrize("name", ["q03", "q05", "q10"])
def test_tpch(name: str, corpus_plan: Callable[[Query], Relation], tmp_path: Path) -> None:
    """TPC-H 3, 5 and 10 with their primary keys: maintained by trees, and right."""
    (query,) = (q for q in queries("tpch") if q.name == name)
    with closing(Replay(corpus_plan(query), tmp_path, name, _at_the_driver, keys=TPCH_KEYS)) as replay:
        _follow(replay, "factorized", 4, (1,))
        told = replay.backend.explain("v", "text")
        assert "view lineitem of a tree" in told
        assert "no view tree" not in told


def test_a_view_of_another_program_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view whose stages would come out otherwise today gets today's on opening, and keeps its content and its history."""
    with closing(Replay(PLANS["three"], tmp_path, "three", _at_the_driver, _tables("three", 25))) as replay:
        transactions = replay.transactions(6)
        replay.apply(next(transactions))
        replay.create_view("factorized")
        replay.apply(next(transactions))
        before, version = relation_names(replay.backend), replay.backend.version
        with monkeypatch.context() as patch:
            patch.setattr(view_programs, "lower", lambda name, plan, _trees: lower(name, plan))
            replay.restart()
            assert relation_names(replay.backend) != before
            replay.check()
            assert len(replay.backend.changes("v", version - 1)) == 1
            replay.apply(next(transactions))
            replay.check()
            replay.restart()
            replay.check()
        replay.restart()
        assert relation_names(replay.backend) == before
        for changes in transactions:
            replay.apply(changes)
            replay.check()


def relation_names(backend: SparkBackend) -> set[str]:
    """The relations that are on disk."""
    return set(backend._files.relations)


def test_a_database_that_does_not_say_how_its_views_were_made(tmp_path: Path) -> None:
    """Databases from before there were trees have no note in their catalog: their views stay on terms."""
    with closing(Replay(PLANS["three"], tmp_path, "three", _at_the_driver, _tables("three", 25))) as replay:
        transactions = replay.transactions(5)
        replay.apply(next(transactions))
        replay.create_view("first_order")
        replay.backend.close()
        catalogs = sorted((tmp_path / "_catalog").glob("*.json"))
        assert catalogs
        for path in catalogs:
            written = json.loads(path.read_text())
            for view in (entry["view"] for entry in written if "view" in entry):
                del view["lowering"]
                view["options"]["strategy"] = "auto"
            path.write_text(json.dumps(written))
        replay.backend = _at_the_driver(tmp_path)
        assert "no view tree" in replay.backend.explain("v", "text")
        for changes in transactions:
            replay.apply(changes)
            replay.check()


def test_a_view_over_rows_that_are_gone_cannot_be_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a table keeps no rows, opening with other stages fails with a reason, and changes nothing."""
    with closing(_at_the_driver(tmp_path)) as backend:
        for scan in (R, S, T):
            backend.create_table(TableDefinition(scan.table, scan.fields, retain=False))
        backend.create_view(ViewDefinition("v", PLANS["three"], None, "UTC", ViewOptions("factorized")))
        row = rows_to_arrow([(1, 1, Number("1.00"))], R.fields)
        backend.apply([Change("r", ChangeKind.WEIGHTED, row, pa.array([1], pa.int64()))])
    with monkeypatch.context() as patch:
        patch.setattr(view_programs, "lower", lambda name, plan, _trees: lower(name, plan))
        with pytest.raises(UnsupportedOperation, match="rows of table 'r' are not retained"):
            _at_the_driver(tmp_path)
    with closing(_at_the_driver(tmp_path)) as backend:
        assert backend.version == 1


def test_explain(tmp_path: Path) -> None:
    """The tree, its class, what a changed row costs, and its trigger program; or why there is none."""
    with closing(_at_the_driver(tmp_path)) as backend:
        for scan in (R, S, T):
            backend.create_table(TableDefinition(scan.table, scan.fields))
        for strategy in ("factorized", "first_order"):
            backend.create_view(ViewDefinition(strategy, PLANS["three"], None, "UTC", ViewOptions(strategy)))
        text = backend.explain("factorized", "text")
        assert "query: free-connex acyclic" in text
        assert "a changed row of r costs O(matches): it meets all rows of s with the same " in text
        assert "a changed row of\n      r: at " in text
        assert "no view tree: the view's strategy has none" in backend.explain("first_order", "text")
        told = json.loads(backend.explain("factorized", "json"))
        assert told["strategy"] == "factorized"
        assert told["stages"][-1]["tree"]["updates"]["r"]["bound"] == "O(N)"
        assert json.loads(backend.explain("first_order", "json"))["strategy"] == "first_order"
        triggers = backend.explain("factorized", "triggers")
        assert "on r" in triggers
        assert "no view tree" not in triggers
        assert "no view tree: the view's strategy has none" in backend.explain("first_order", "triggers")
