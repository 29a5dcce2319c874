"""Values at the edge of every type, with inserts and their deletes: the maintained answer is the recomputed one.

Plans are made by hand, so that none of this but the last test needs a JVM.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from decimal import Decimal as Number
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.reference.backend import ReferenceBackend
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import EvaluationError
from everview.relational.arrow import column_to_arrow, rows_from_arrow
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Field,
    Frame,
    FrameUnit,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    Window,
    WindowCall,
)
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN, DATE, FLOAT64, INT32, INT64, Decimal, Row
from tests.oracle.bags import assert_same_bag
from tests.oracle.generate_tables import TableData
from tests.oracle.oracle import Oracle

INF, NAN = math.inf, math.nan
MONEY, WIDE = Decimal(12, 2), Decimal(38, 0)
FIELDS = (
    Field("k", INT32, True),
    Field("g", INT32, True),
    Field("x", FLOAT64, True),
    Field("n", INT64, True),
    Field("d", WIDE, True),
    Field("t", DATE, True),
)
TABLES = "rsuv"
LAST_DAY = (datetime.date(9999, 12, 31) - datetime.date(1970, 1, 1)).days
FLOATS = (INF, -INF, NAN, 1e308, -1e308, 1.7e308, 1e200, -1e200, 1e100, 1e-200, 5e-324, -0.0, 0.0, 1.0, -1.5, 0.1, 1e19)
INTS = (2**63 - 1, -(2**63), 2**62, 1, 0, -1, 7)
WIDES = (Number(10**38 - 1), Number(1 - 10**38), Number(10**37), Number(1), Number(0), Number(-3))
DAYS = (LAST_DAY, 0, -719162, 11)


def columns_of(table: int) -> dict[str, Column]:
    """The columns of a table, those of ``table`` others before it."""
    return {f.name: Column(table * len(FIELDS) + i, f.type, f.nullable) for i, f in enumerate(FIELDS)}


def joined(count: int) -> Relation:
    """The first tables, joined by k."""
    relation: Relation = Scan(TABLES[0], FIELDS)
    for i in range(1, count):
        on = Call("=", (columns_of(0)["k"], columns_of(i)["k"]), BOOLEAN)
        relation = Join(relation, Scan(TABLES[i], FIELDS), JoinKind.INNER, on)
    return relation


def aggregate(relation: Relation, keys: Sequence[Column], *calls: AggregateCall) -> Aggregate:
    """An aggregate with made-up names."""
    return Aggregate(relation, tuple(keys), calls, tuple(f"o{i}" for i in range(len(keys) + len(calls))))


def double(function: str, *args: Expression) -> AggregateCall:
    """An aggregate of doubles."""
    return AggregateCall(function, args, FLOAT64)


def times(*factors: Expression) -> Expression:
    """A product of doubles, from left to right."""
    product, *rest = factors
    for factor in rest:
        product = Call("*", (product, factor), FLOAT64)
    return product


def plans() -> dict[str, Relation]:
    """Sums, averages, counts, variances and extremes of single tables, and of products over joins."""
    own, other = columns_of(0), columns_of(1)
    count = AggregateCall("count", (), INT64)
    minus = Call("-", (own["x"], other["x"]), FLOAT64)
    zero = Call("*", (own["x"], Literal(0.0, FLOAT64)), FLOAT64)
    cancelled = Call("-", (Call("+", (own["x"], other["x"]), FLOAT64), own["x"]), FLOAT64)
    found: dict[str, Relation] = {
        "sums": aggregate(joined(1), [own["g"]], double("sum", own["x"]), double("avg", own["x"]), count),
        "total": aggregate(joined(1), [], double("sum", own["x"]), count),
        "moments": aggregate(
            joined(1), [own["g"]], *(double(f, own["x"]) for f in ("var_pop", "var_samp", "stddev_pop", "min", "max"))
        ),
        "pairs": aggregate(joined(2), [own["g"]], *(double(f, own["x"], other["x"]) for f in ("covar_pop", "corr"))),
        "product": aggregate(joined(2), [], double("sum", times(own["x"], other["x"])), double("sum", own["x"]), count),
        "by group": aggregate(
            joined(2), [own["g"]], double("sum", times(own["x"], other["x"])), double("avg", minus), count
        ),
        "first order": aggregate(joined(2), [other["g"]], double("avg", times(own["x"], other["x"]))),
        "nothing": aggregate(joined(2), [], double("sum", zero), double("sum", cancelled)),
        "chain": aggregate(joined(3), [own["g"]], double("sum", times(*(columns_of(i)["x"] for i in range(3))))),
        "long chain": aggregate(joined(4), [], double("sum", times(*(columns_of(i)["x"] for i in range(4)))), count),
        "distinct": aggregate(
            Distinct(Project(joined(1), (own["g"], own["x"]), ("g", "x"))),
            [Column(0, INT32, True)],
            double("sum", Column(1, FLOAT64, True)),
        ),
        "days": aggregate(
            joined(2), [own["g"]], AggregateCall("max", (own["t"],), DATE), AggregateCall("min", (other["t"],), DATE)
        ),
    }
    for name, function in (("running", "sum"), ("mean", "avg")):
        call = WindowCall(function, (own["x"],), FLOAT64, frame=Frame(FrameUnit.ROWS, None, Literal(0, INT32)))
        found[name] = Window(joined(1), (own["g"],), (SortKey(own["n"]),), (call,), ("w",))
    return found


def exact_plans() -> dict[str, Relation]:
    """Sums of integers and decimals, which are errors where they do not fit."""
    own, other = columns_of(0), columns_of(1)
    return {
        "ints": aggregate(joined(1), [own["g"]], AggregateCall("sum", (own["n"],), INT64)),
        "joined ints": aggregate(joined(2), [], AggregateCall("sum", (other["n"],), INT64), double("avg", own["n"])),
        "tried": aggregate(
            joined(2),
            [own["g"]],
            AggregateCall("try_sum", (own["n"],), INT64),
            AggregateCall("try_sum", (own["d"],), WIDE),
        ),
        "wide": aggregate(joined(1), [own["g"]], AggregateCall("sum", (own["d"],), WIDE)),
        "joined wide": aggregate(joined(2), [], AggregateCall("sum", (own["d"],), WIDE)),
    }


class Both:
    """An embedded backend and the reference, which get the same calls and must answer alike."""

    def __init__(self, views: dict[str, Relation], options: dict[str, ViewOptions] | None = None) -> None:
        self.views = views
        self.embedded, self.reference = EmbeddedBackend(), ReferenceBackend()
        self.held: dict[str, list[Row]] = {t: [] for t in TABLES}
        for backend in (self.embedded, self.reference):
            for table in TABLES:
                backend.create_table(TableDefinition(table, FIELDS))
        for name in views:
            self.create(name, (options or {}).get(name, ViewOptions()))

    def create(self, name: str, options: ViewOptions) -> None:
        """Makes a view on both."""
        self.embedded.create_view(ViewDefinition(name, self.views[name], None, "UTC", options, False))
        self.reference.create_view(ViewDefinition(name, self.views[name], None, "UTC", ViewOptions(), False))

    def apply(self, come: dict[str, list[Row]], gone: dict[str, list[Row]]) -> bool:
        """One transaction; both commit it, or both refuse."""
        changes = [change_of(t, come.get(t, []), gone.get(t, [])) for t in {**come, **gone}]
        failed = []
        for backend in (self.embedded, self.reference):
            try:
                backend.apply(changes)
            except EvaluationError as error:
                failed.append(error)
        assert len(failed) in (0, 2), failed
        if not failed:
            for table, rows in come.items():
                self.held[table] += rows
            for table, rows in gone.items():
                for row in rows:
                    at = next(i for i, held in enumerate(self.held[table]) if repr(held) == repr(row))
                    del self.held[table][at]
        return not failed

    def rows(self, name: str) -> list[Row]:
        """What the embedded backend has in a view."""
        return rows_from_arrow(self.embedded.read(name), schema(self.views[name]))

    def check(self) -> None:
        """Every view has the rows that the reference has."""
        for name, plan in self.views.items():
            assert_same_bag(self.rows(name), rows_from_arrow(self.reference.read(name), schema(plan)), name)

    def trees(self) -> list[TreeOperator]:
        """The trees of aggregates."""
        return [o for o in self.embedded._graph.operators if isinstance(o, TreeOperator)]


def change_of(table: str, come: Sequence[Row], gone: Sequence[Row]) -> Change:
    """A weighted change."""
    rows = [*come, *gone]
    columns = [column_to_arrow([r[i] for r in rows], f.type) for i, f in enumerate(FIELDS)]
    weights = pa.array(np.array([1] * len(come) + [-1] * len(gone), dtype=np.int64))
    return Change(table, ChangeKind.WEIGHTED, pa.table(columns, names=[f.name for f in FIELDS]), weights)


def row(rng: random.Random, *, odd: float) -> Row:
    """A row whose numbers are ordinary, or with this probability at the edge of their type."""

    def one(edges: Sequence[object], ordinary: object) -> object:
        if rng.random() < 0.1:
            return None
        return rng.choice(edges) if rng.random() < odd else ordinary

    return (
        rng.choice((1, 1, 2)),
        rng.choice((1, 2, None)),
        one(FLOATS, rng.randrange(-40, 40) / 8),
        one(INTS, rng.randrange(-9, 9)),
        one(WIDES, Number(rng.randrange(-9, 9))),
        one(DAYS, rng.randrange(100)),
    )


def check_stream(both: Both, rng: random.Random, steps: int) -> None:
    """Random changes, mostly inserts and then mostly deletes, with a look at all views after each; at last all goes."""
    for step in range(steps):
        come: dict[str, list[Row]] = {}
        gone: dict[str, list[Row]] = {}
        for table in rng.sample(TABLES, rng.choice((1, 1, 2, 4))):
            size = rng.choice((1, 1, 1, 4))
            if rng.random() < (0.8 if step < steps // 2 else 0.3):
                come[table] = [row(rng, odd=rng.choice((0.0, 0.3))) for _ in range(size)]
            held = both.held[table]
            if held and rng.random() < (0.3 if step < steps // 2 else 0.8):
                gone[table] = [held[i] for i in rng.sample(range(len(held)), min(len(held), size))]
        if come or gone:
            both.apply(come, gone)
            both.check()
    for table in TABLES:
        if both.held[table]:
            assert both.apply({}, {table: list(both.held[table])})
            both.check()


@given(st.integers(0, 2**40))
@settings(max_examples=12, deadline=None)
def test_floats_at_the_edge(seed: int) -> None:
    """Sums, averages, moments, extremes and windows of infinities, NaN, and numbers whose products over- or underflow."""
    rng = random.Random(seed)
    options = {
        name: rng.choice((ViewOptions(), ViewOptions(), ViewOptions(lazy=True), ViewOptions(strategy="recompute")))
        for name in plans()
    }
    options["first order"] = ViewOptions(strategy="first_order")
    check_stream(Both(plans(), options), rng, 14)


@given(st.integers(0, 2**40))
@settings(max_examples=12, deadline=None)
def test_integers_and_decimals_at_the_edge(seed: int) -> None:
    """A sum that does not fit its type is refused exactly where the definition refuses it, whatever it was on the way."""
    rng = random.Random(seed)
    name = rng.choice(list(exact_plans()))
    check_stream(Both({name: exact_plans()[name]}), rng, 25)


@pytest.mark.parametrize("name", ["product", "by group", "first order", "chain"])
def test_what_overflows_a_product_leaves_no_trace(name: str) -> None:
    """1e200² is infinite and 1e200² - 1e200² is NaN; afterwards the view is a tree again, with the sum that it had."""
    both = Both({name: plans()[name]}, {"first order": ViewOptions(strategy="first_order")})
    base = [(1, 1, 1.5, i, None, None) for i in range(3)]
    both.apply(dict.fromkeys(TABLES, base), {})
    (tree,) = both.trees()
    before = both.rows(name)
    large, minus = (1, 1, 1e200, 9, None, None), (1, 1, -1e200, 9, None, None)
    both.apply({"r": [large], "s": [large], "u": [large]}, {})
    both.check()
    assert "row by row" in tree.describe()
    assert math.inf in both.rows(name)[0]
    both.apply({"r": [minus]}, {})
    both.check()
    assert any(isinstance(v, float) and math.isnan(v) for v in both.rows(name)[0])
    both.apply({}, {"r": [large, minus], "s": [large], "u": [large]})
    both.check()
    assert both.rows(name) == before
    for _ in range(6):
        both.apply({"r": base}, {})
        both.apply({}, {"r": base})
    assert tree.rows is None
    assert both.rows(name) == before


def test_trees_that_share_views_part() -> None:
    """A tree whose numbers leave its range goes on alone; those that it shared views with stay together, and right."""
    views = {name: plans()[name] for name in ("product", "by group", "nothing", "chain", "long chain")}
    both = Both(views)
    both.apply({t: [(1, 1, 2.0, 1, None, None)] for t in TABLES}, {})
    both.apply({"r": [(1, 1, INF, 1, None, None)]}, {})
    both.check()
    both.apply({"s": [(1, 2, 0.0, 1, None, None)]}, {"r": [(1, 1, INF, 1, None, None)]})
    both.check()
    both.apply({"r": [(1, 2, 1e300, 1, None, None)], "u": [(1, 1, NAN, 1, None, None)]}, {})
    both.check()


def test_views_made_over_extremes() -> None:
    """The rows that a view finds when it is made are no other than those that come later."""
    both = Both({})
    extremes = [(1, 1, x, i, None, None) for i, x in enumerate(FLOATS[3:])]
    both.apply(dict.fromkeys(TABLES, extremes[:6]), {})
    both.views = plans()
    for name in both.views:
        both.create(name, ViewOptions(strategy="recompute" if name == "chain" else "auto"))
    both.check()
    both.apply({"s": extremes[6:]}, {"r": extremes[1:4]})
    both.check()


def test_a_failed_transaction_leaves_the_tree() -> None:
    """A transaction that moves one view to sums row by row, and fails in another, has moved none."""
    both = Both({"product": plans()["product"], "ints": exact_plans()["ints"]})
    both.apply({t: [(1, 1, 2.0, 1, None, None)] for t in TABLES}, {})
    (tree,) = (t for t in both.trees() if len(t.inputs) == 2)
    assert not both.apply({"r": [(1, 1, NAN, 2**63 - 1, None, None)]}, {})
    assert tree.rows is None
    both.check()
    assert both.apply({"r": [(1, 1, NAN, 5, None, None)]}, {})
    assert tree.rows is not None
    both.check()
    assert not both.apply({"r": [(1, 1, 3.0, 2**63 - 1, None, None)], "s": [(1, 1, 1.0, 1, None, None)]}, {})
    both.check()


def test_sums_do_not_wear_out() -> None:
    """What 106 bits cannot hold together is still there when the large part goes."""
    both = Both({name: plans()[name] for name in ("sums", "total", "by group", "product", "moments")})
    both.apply({t: [(1, 1, 0.1, 1, None, None)] for t in "rs"}, {})
    for large in (1e16, 1e20, 1e25, 1e29, 1e40, 1e100, 1e155):
        rows = [(1, 1, x, 2, None, None) for x in (large, large**0.75, -math.sqrt(large))]
        both.apply({"r": rows[:2], "s": rows[1:]}, {})
        both.check()
        both.apply({}, {"r": rows[:2]})
        both.check()
        both.apply({}, {"s": rows[1:]})
        both.check()


KEYED = (Field("k", INT32, True), Field("n", INT64, True))


def star(tables: int, rows: int) -> tuple[EmbeddedBackend, Aggregate]:
    """A backend with so many tables of so many rows with one key, and the count, sum and average over their join."""
    relation: Relation = Scan("t0", KEYED)
    for i in range(1, tables):
        on = Call("=", (Column(0, INT32, True), Column(2 * i, INT32, True)), BOOLEAN)
        relation = Join(relation, Scan(f"t{i}", KEYED), JoinKind.INNER, on)
    last = Column(2 * tables - 1, INT64, True)
    plan = aggregate(
        relation, [Column(0, INT32, True)], AggregateCall("count", (), INT64), AggregateCall("avg", (last,), FLOAT64)
    )
    backend = EmbeddedBackend()
    for i in range(tables):
        backend.create_table(TableDefinition(f"t{i}", KEYED))
    backend.create_view(ViewDefinition("v", plan, None, "UTC", ViewOptions(), False))
    return backend, plan


def keyed_change(table: int, rows: int, weight: int = 1, key: int = 1) -> Change:
    """Rows 0, 1, … with one key."""
    numbers = pa.array(np.arange(rows))
    given = pa.table([pa.array(np.full(rows, key, dtype=np.int32)), numbers], names=["k", "n"])
    return Change(f"t{table}", ChangeKind.WEIGHTED, given, pa.array(np.full(rows, weight, dtype=np.int64)))


@pytest.mark.parametrize(("tables", "rows"), [(6, 2_000), (4, 60_000), (4, 65_536), (8, 256)])
def test_counts_beyond_64_bits_are_an_error(tables: int, rows: int) -> None:
    """2^64 joined rows are not 0 rows: the transaction that would make them is refused, and nothing has changed."""
    backend, plan = star(tables, rows)
    for i in range(tables - 1):
        backend.apply([keyed_change(i, rows)])
    backend.apply([keyed_change(tables - 1, 1)])
    (before,) = rows_from_arrow(backend.read("v"), schema(plan))
    assert before == (1, rows ** (tables - 1), 0.0)
    with pytest.raises(EvaluationError, match=r"'v' cannot be computed: a number of rows is beyond 2\^63 - 1"):
        backend.apply([keyed_change(tables - 1, rows - 1)])
    assert rows_from_arrow(backend.read("v"), schema(plan)) == [before]
    backend.apply([keyed_change(0, rows - 1, -1)])
    assert rows_from_arrow(backend.read("v"), schema(plan)) == [(1, rows ** (tables - 2), 0.0)]


@pytest.mark.parametrize(("tables", "rows"), [(5, 6_000), (3, 200_000), (4, 55_000), (2, 3)])
def test_counts_within_64_bits_are_exact(tables: int, rows: int) -> None:
    """Up to 2^63 - 1, and so are averages over as many rows."""
    backend, plan = star(tables, rows)
    for i in range(tables):
        backend.apply([keyed_change(i, rows)])
    assert rows**tables < 2**63
    assert rows_from_arrow(backend.read("v"), schema(plan)) == [(1, rows**tables, float(Fraction(rows - 1, 2)))]
    backend.apply([keyed_change(0, rows, -1)])
    assert rows_from_arrow(backend.read("v"), schema(plan)) == []


def test_weights_beyond_64_bits_are_an_error() -> None:
    """Multiplicities multiply through joins without aggregates, too, and through DISTINCT and semi-joins above them."""
    left, right = Scan("t0", KEYED), Scan("t1", KEYED)
    on = Call("=", (Column(0, INT32, True), Column(2, INT32, True)), BOOLEAN)
    pairs = Project(Join(left, right, JoinKind.INNER, on), (Column(0, INT32, True),), ("k",))
    backend = EmbeddedBackend()
    for i in range(2):
        backend.create_table(TableDefinition(f"t{i}", KEYED))
    backend.create_view(ViewDefinition("v", Distinct(pairs), None, "UTC", ViewOptions(), False))
    backend.apply([keyed_change(0, 1, 2**40)])
    with pytest.raises(EvaluationError, match=r"2\^63"):
        backend.apply([keyed_change(1, 1, 2**30)])
    assert backend.read("v").num_rows == 0
    backend.apply([keyed_change(1, 3, 2**20)])
    assert backend.read("v").to_pydict() == {"k": [1]}
    with pytest.raises(EvaluationError, match=r"2\^63"):
        backend.apply([keyed_change(0, 1, 2**63 - 1)])
    backend.apply([keyed_change(0, 1, -(2**40))])
    assert backend.read("v").num_rows == 0


QUERIES = (
    "SELECT g, SUM(x), AVG(x), COUNT(x), MIN(x), MAX(x) FROM r GROUP BY g",
    "SELECT SUM(r.x * s.x), AVG(r.x * s.x), COUNT(*) FROM r JOIN s ON r.k = s.k",
    "SELECT r.g, SUM(r.x - s.x), SUM(r.x * 0.0D) FROM r JOIN s ON r.k = s.k GROUP BY r.g",
    "SELECT g, SUM(n), AVG(n) FROM r GROUP BY g",
    "SELECT g, SUM(d), AVG(d), MIN(t), MAX(t) FROM r GROUP BY g",
    "SELECT g, n, SUM(x) OVER (PARTITION BY g ORDER BY n) FROM r",
)


@pytest.mark.parametrize(
    "floats",
    [(1e200, 1.5), (1e200, -1e200), (INF, 1.0), (INF, -INF), (NAN, 1.0), (1e308,), (5e-324, -0.0), (INF, 0.0)],
    ids=str,
)
def test_spark_has_the_same_answers(oracle: Oracle, floats: tuple[float, ...]) -> None:
    """What the tests above compare with is what Spark says, where its answer does not depend on the order of rows."""
    edges = (2**62, -(2**62)), (Number(10**37), Number(-3)), (LAST_DAY, 0)
    rows = [(1, 1, x, edges[0][i % 2], edges[1][i % 2], edges[2][i % 2]) for i, x in enumerate(floats)]
    oracle.load([TableData("r", FIELDS, tuple(rows)), TableData("s", FIELDS, tuple(rows))])
    for sql in QUERIES:
        oracle.check(sql)
