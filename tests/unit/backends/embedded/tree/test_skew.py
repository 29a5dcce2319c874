"""Heavy and light parts (IVM^ε): answers equal recomputation after every change, and the parts keep the paper's invariants."""

from __future__ import annotations

import decimal
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree.tree_state import TreeState
from everview.backends.embedded.vectors import Batch, Vector
from everview.catalog import ViewDefinition, ViewOptions
from everview.errors import EverviewError, UnsupportedQuery
from everview.relational.expressions import Call, Column, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Project, Scan
from everview.relational.types import BOOLEAN, DATE, FLOAT64, INT64, STRING, DataType, Decimal, Row
from tests.unit.backends.embedded.tree.skew_streams import (
    COUNT,
    TRIANGLE,
    Rows,
    SkewDatabase,
    check_invariants,
    count_joined,
    joined,
)

Shape = list[tuple[str, str]]
SHAPES: dict[str, Shape] = {
    "triangle": list(TRIANGLE.items()),
    "triangle of one table": [("e", "ab"), ("e", "bc"), ("e", "ca")],
    "triangle with two of one table": [("e", "ab"), ("e", "bc"), ("t", "ca")],
    "triangle with composite keys": [("r", "axb"), ("s", "byc"), ("t", "cax")],
    "triangle with a variable of all": [("r", "abz"), ("s", "bcz"), ("t", "caz")],
    "path": [("r", "a"), ("s", "ab"), ("t", "b")],
    "path with a variable of all": [("r", "az"), ("s", "abz"), ("t", "bz")],
    "Loomis-Whitney of degree 4": [("r", "abc"), ("s", "bcd"), ("t", "cda"), ("u", "dab")],
    "4-path": [("r", "a"), ("s", "ab"), ("t", "bc"), ("u", "c")],
    "4-path of two tables": [("p", "a"), ("e", "ab"), ("e", "bc"), ("p", "c")],
    "triangle beside a vertex": [("r", "ab"), ("s", "bc"), ("t", "ca"), ("u", "a")],
    "triangle with a tail": [("r", "ab"), ("s", "bc"), ("t", "ca"), ("u", "ad"), ("w", "d")],
    "triangle beside a join": [("r", "ab"), ("s", "bc"), ("t", "ca"), ("u", "d"), ("w", "d")],
}
EPSILONS: tuple[float, ...] = (0.5, 0.3, 0.7)


def loomis_whitney(degree: int) -> Shape:
    """As many relations as variables, each of which lacks one."""
    variables = "abcdefgh"[:degree]
    return [(f"t{v}", "".join(u for u in variables if u != v)) for v in variables]


def skew(epsilon: float | tuple[tuple[str, float], ...] | None = None, partitions: str = "single") -> ViewOptions:
    """The options of a view by parts."""
    return ViewOptions(strategy="skew", epsilon=epsilon, partitions=partitions)


def random_changes(rng: random.Random, db: SkewDatabase, shape: Shape, size: int, values: int) -> Rows:
    """Inserts of skewed values, NULLs among them, and deletes, for one table or for all."""
    tables = sorted({t for t, _ in shape})
    width = {t: len(v) for t, v in shape}
    found: dict[str, list[tuple[Row, int]]] = {}
    for table in tables if rng.random() < 0.2 else [rng.choice(tables)]:
        rows: Counter[Row] = Counter()
        for _ in range(size):
            held = db.held[table]
            if held and rng.random() < 0.4:
                row = rng.choice(sorted(held, key=str))
                if held[row] + rows[row] > 0:
                    rows[row] -= 1
                continue
            cells = [min(values, int(rng.paretovariate(0.7))) for _ in range(width[table])]
            row = (*(None if rng.random() < 0.02 else c for c in cells), rng.randrange(-3, 4))
            rows[row] += rng.choice((1, 1, 2))
        found[table] = [(row, weight) for row, weight in rows.items() if weight]
    return found


@pytest.mark.parametrize("partitions", ["single", "refined"])
@pytest.mark.parametrize("name", sorted(SHAPES))
@given(seed=st.integers(0, 2**40), epsilon=st.sampled_from(EPSILONS))
@settings(max_examples=2, deadline=None)
def test_counts_equal_recomputation(name: str, partitions: str, seed: int, epsilon: float) -> None:
    """After every transaction, with one row and with many, whatever the hypergraph; and all invariants hold."""
    shape = SHAPES[name]
    if partitions == "refined" and len(shape) > 3:
        return
    rng = random.Random(seed)
    plan, _ = joined(shape)
    db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew(epsilon, partitions))
    for _ in range(20):
        db.apply(random_changes(rng, db, shape, rng.choice((1, 1, 2, 20)), 12))
        check_invariants(db.operator)
        assert db.answer() == Counter({(count_joined(shape, db.held),): 1})
    assert db.operator.rows is None


@pytest.mark.slow
@pytest.mark.parametrize("degree", [5, 6, 7])
def test_loomis_whitney_queries_of_higher_degree(degree: int) -> None:
    """Counts and invariants, after every transaction, with more relations than other joins may have."""
    shape = loomis_whitney(degree)
    plan, _ = joined(shape)
    db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew())
    rng = random.Random(degree)
    counts = set()
    for _ in range(25):
        db.apply(random_changes(rng, db, shape, 40, 2))
        check_invariants(db.operator)
        counts.add(count_joined(shape, db.held))
        assert db.answer() == Counter({(count_joined(shape, db.held),): 1})
    assert len(counts) > 2


@pytest.mark.parametrize("number", [INT64, FLOAT64, Decimal(12, 2)])
def test_sums_over_edges(number: DataType) -> None:
    """Sums of a column of one relation, of two multiplied, and averages, as a view tree has them, under deletes and moves."""
    shape = SHAPES["triangle"]
    rng = random.Random(7)
    plan, (w, x, y) = joined(shape)
    if number != INT64:
        plan, (w, x, y) = joined(shape, number=number)
    calls = (
        COUNT,
        AggregateCall("sum", (w,), number if number != Decimal(12, 2) else Decimal(22, 2)),
        AggregateCall("avg", (y,), FLOAT64 if number != Decimal(12, 2) else Decimal(16, 6)),
        AggregateCall("count", (x,), INT64),
    )
    db = SkewDatabase(Aggregate(plan, (), calls, ("n", "s", "m", "c")), skew(0.3))
    db.add_view("tree", ViewOptions(strategy="factorized"))
    db.add_view("anew", ViewOptions(strategy="recompute"))
    for _ in range(40):
        changes = random_changes(rng, db, shape, rng.choice((1, 5)), 6)
        db.apply({t: [((*r[:-1], _as(number, r[-1])), w) for r, w in _inserts(rows)] for t, rows in changes.items()})
        assert db.answer() == db.answer("tree") == db.answer("anew")
        check_invariants(db.operator)
    gone = {t: [(row, -weight) for row, weight in rows.items()] for t, rows in db.held.items()}
    db.apply(gone)
    assert db.answer() == db.answer("anew") == Counter({(0, None, None, 0): 1})
    check_invariants(db.operator)


GROUPED: dict[str, tuple[Shape, int]] = {
    "vertex": (SHAPES["triangle"], 0),
    "vertex of one table": (SHAPES["triangle of one table"], 0),
    "weight of an edge": (SHAPES["triangle"], 2),
    "end of a path": (SHAPES["4-path"], 0),
    "vertex inside a larger join": (SHAPES["triangle beside a vertex"], 0),
}


def hubs_of_a_path(size: int) -> dict[str, list[tuple[Row, int]]]:
    """A 4-path: the values 5 and 6 have linearly many partners, others are joined all with all."""
    side, spokes = math.isqrt(size // 6), range(10, 10 + size // 12)
    dense = [(10**6 + i, 10**6 + j) for i in range(side) for j in range(side)]
    s = [*dense, *((5, i) for i in spokes), *((i, 6) for i in spokes)]
    t = [*dense, *((6, i) for i in spokes), *((i, 5) for i in spokes)]
    ends = [*spokes[::3], *(10**6 + i for i in range(0, side, 2))]
    rows: dict[str, list[Row]] = {"s": [(*e, 1) for e in s], "t": [(*e, 1) for e in t]}
    rows |= {name: [(e, 1) for e in ends] for name in "ru"}
    return {name: [(row, 1) for row in found] for name, found in rows.items()}


@pytest.mark.parametrize(("strategy", "least", "most"), [("skew", 0.4, 0.55), ("factorized", 0.9, 1.1)])
def test_work_on_a_path(strategy: str, least: float, most: float) -> None:
    """The rows that the dearest change of a 4-path touches grow with √N by parts, and with N in a view tree."""
    work = []
    for size in (1_500, 15_000):
        plan, _ = joined(SHAPES["4-path"])
        db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), ViewOptions(strategy=strategy))
        db.apply(hubs_of_a_path(size))
        spent = []
        changes: list[tuple[str, Row]] = [(t, (v, 1)) for t in "ru" for v in (5, 6, 11, 10**6 + 1)]
        for table, row in (*changes, ("s", (5, 6, 1)), ("t", (6, 5, 1)), ("s", (11, 10**6, 1)), ("t", (11, 5, 2))):
            before = db.operator.state.work
            db.apply({table: [(row, 1)]})
            spent.append(db.operator.state.work - before)
        work.append(max(spent))
    assert least < math.log10(work[1] / work[0]) < most


@pytest.mark.parametrize("name", sorted(GROUPED))
def test_groups(name: str) -> None:
    """GROUP BY on a vertex, with sums of products of several relations' columns: as recomputed, after every change."""
    shape, group = GROUPED[name]
    rng = random.Random(11)
    plan, weights = joined(shape)
    product = Call("*", (weights[0], weights[-1]), INT64)
    calls = (COUNT, AggregateCall("sum", (product,), INT64), AggregateCall("avg", (weights[1],), FLOAT64))
    db = SkewDatabase(Aggregate(plan, (Column(group, INT64),), calls, ("g", "n", "s", "m")), skew(0.4))
    db.add_view("anew", ViewOptions(strategy="recompute"))
    for _ in range(25):
        db.apply(random_changes(rng, db, shape, rng.choice((1, 1, 2, 15)), 9))
        check_invariants(db.operator)
        assert db.answer() == db.answer("anew")
    assert db.operator.skew is not None
    assert db.operator.rows is None


@pytest.mark.parametrize(("name", "fixed"), [("triangle", "s"), ("triangle with a tail", "uw")])
def test_tables_that_do_not_change(name: str, fixed: str) -> None:
    """With the edge opposite to the groups, or what is beside the triangle, static, every change is sublinear."""
    shape = SHAPES[name]
    rng = random.Random(13)
    plan, weights = joined(shape)
    keys = (Column(0, INT64),) if fixed == "s" else ()
    calls = (COUNT, AggregateCall("sum", (weights[-1],), INT64))
    aggregate = Aggregate(plan, keys, calls, ("a", "n", "s")[1 - len(keys) :])
    widths = {t: len(v) for t, v in shape}
    rows = {t: {(*(rng.randrange(6) for _ in range(widths[t])), i) for i in range(30)} for t in fixed}
    static = {t: [(row, 1) for row in sorted(found)] for t, found in rows.items()}
    db = SkewDatabase(aggregate, skew(), static=static)  # type: ignore[arg-type]  # rows of numbers
    assert db.operator.skew is not None
    assert {str(c.bound) for c in db.operator.skew.costs} == {"O(√N)"}
    db.add_view("anew", ViewOptions(strategy="recompute"))
    changing = [(t, v) for t, v in shape if t not in fixed]
    for _ in range(25):
        db.apply(random_changes(rng, db, changing, rng.choice((1, 1, 2, 15)), 9))
        check_invariants(db.operator)
        assert db.answer() == db.answer("anew")


def test_moments_over_triangles() -> None:
    """Covariances and variances of the edges' weights, whose sums of products span two relations, keep their parts."""
    shape = SHAPES["triangle"]
    plan, (w, x, _) = joined(shape, number=FLOAT64)
    calls = (
        AggregateCall("covar_samp", (w, x), FLOAT64),
        AggregateCall("var_pop", (w,), FLOAT64),
        AggregateCall("sum", (Call("*", (w, x), FLOAT64),), FLOAT64),
    )
    db = SkewDatabase(Aggregate(plan, (), calls, ("c", "v", "s")), skew())
    db.add_view("tree", ViewOptions(strategy="factorized"))
    rng = random.Random(4)
    for _ in range(20):
        changes = random_changes(rng, db, shape, 6, 6)
        db.apply({t: [((*r[:-1], _as(FLOAT64, r[-1])), n) for r, n in _inserts(rows)] for t, rows in changes.items()})
        check_invariants(db.operator)
        (found,), (wanted,) = db.answer(), db.answer("tree")
        assert [x is None for x in found] == [x is None for x in wanted]
        numbers = [(x, y) for x, y in zip(found, wanted, strict=True) if x is not None]
        assert [x for x, _ in numbers] == pytest.approx([y for _, y in numbers], rel=1e-9, abs=1e-9, nan_ok=True)


def _inserts(rows: list[tuple[Row, int]] | object) -> Iterator[tuple[Row, int]]:
    """Only inserts: numbers of other types are made of those that are held."""
    assert isinstance(rows, list)
    return ((row, weight) for row, weight in rows if weight > 0)


def _as(number: DataType, value: object) -> object:
    assert isinstance(value, int)
    if number == INT64:
        return value
    if number == FLOAT64:
        return value * 0.1
    return decimal.Decimal(value * 11).scaleb(-2)


def star(hub: int, size: int) -> list[tuple[str, Row, int]]:
    """Edges of one value in all tables, that come one after another and go again."""
    come = [(t, row, 1) for i in range(size) for t in "rst" for row in ((hub, i, 1), (i, hub, 1)) if i != hub]
    return [*come, *((t, row, -1) for t, row, _ in come)]


def clique(size: int) -> list[tuple[str, Row, int]]:
    """All edges between some values, growing vertex by vertex, and shrinking."""
    come = [
        (t, edge, 1)
        for n in range(size)
        for i in range(n + 1)
        for edge in {(n, i, 1), (i, n, 1)}
        for t in ("r", "s", "t")
    ]
    return [*come, *((t, row, -1) for t, row, _ in reversed(come))]


def around_a_threshold(times: int) -> list[tuple[str, Row, int]]:
    """One value whose degree goes up and down around each threshold in turn."""
    found: list[tuple[str, Row, int]] = [(t, (100 + i, 200 + i, 1), 1) for i in range(20) for t in "rst"]
    for size in (4, 8, 15, 20):
        for _ in range(times):
            found += [
                (t, row, 1) for i in range(size) for t, row in (("r", (1, i, 1)), ("r", (i, 1, 1)), ("t", (i, 1, 1)))
            ]
            found += [(t, row, -1) for t, row, _ in found[-3 * size :]]
    return found


def hub_of_a_path(size: int) -> list[tuple[str, Row, int]]:
    """A 4-path in which one value after another of the middle gets many edges on one side, then on the other, then none."""
    ends = [(t, (i, 1), 1) for i in range(0, size, 2) for t in "ru"]
    edges = [(t, row, 1) for hub in (1, 2) for i in range(size) for t, row in (("s", (i, hub, 1)), ("t", (hub, i, 1)))]
    turned = [(t, (row[1], row[0], 1), 1) for t, row, _ in edges[: 2 * size]]
    return [*ends, *edges, *turned, *((t, row, -1) for t, row, _ in (*edges, *reversed(turned)))]


STREAMS = {"star": star(3, 24), "clique": clique(6), "around a threshold": around_a_threshold(1)}
PATH_STREAM = hub_of_a_path(16)


@pytest.mark.parametrize("epsilon", [0.5, 0.3])
@pytest.mark.parametrize("name", sorted(STREAMS))
def test_adversarial_streams(name: str, epsilon: float) -> None:
    """Row by row, and rows of both kinds turn: the count and all invariants hold after every one."""
    shape = SHAPES["triangle"]
    plan, _ = joined(shape)
    db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew(epsilon))
    db.add_view("tree", ViewOptions())
    for table, row, weight in STREAMS[name]:
        db.apply({table: [(row, weight)]})
        check_invariants(db.operator)
        assert db.answer() == db.answer("tree")
    partitions = db.operator.state.partitions
    assert partitions is not None
    assert partitions.done.major > 3
    if name != "clique":
        assert partitions.done.minor > 0
        assert partitions.done.moved_keys > 3


def test_adversarial_paths() -> None:
    """Keys of the middle of a 4-path turn on either side: views restricted to heavy keys follow, after every row."""
    shape = SHAPES["4-path"]
    plan, _ = joined(shape)
    db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew())
    db.add_view("tree", ViewOptions(strategy="first_order"))
    for table, row, weight in PATH_STREAM:
        db.apply({table: [(row, weight)]})
        check_invariants(db.operator)
        assert db.answer() == db.answer("tree")
    partitions = db.operator.state.partitions
    assert partitions is not None
    assert partitions.done.minor > 2


@pytest.mark.parametrize("name", ["4-path", "triangle beside a vertex", "triangle of one table"])
def test_failed_transactions_of_other_shapes_restore_parts(name: str) -> None:
    """A change that makes keys turn, and a division by zero in the same transaction: all maps and counters are as before."""
    shape = SHAPES[name]
    plan, (w, *_) = joined(shape)
    failing = Filter(plan, Call(">", (Call("div", (Literal(6, INT64), w), INT64), Literal(0, INT64)), BOOLEAN))
    db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew(0.4))
    guard = ViewOptions(strategy="recompute", on_error="reject")
    counted = Aggregate(failing, (), (COUNT,), ("n",))
    db.backend.create_view(ViewDefinition("guard", counted, None, "UTC", options=guard))
    rng = random.Random(2)
    for _ in range(12):
        rows = random_changes(rng, db, shape, 6, 7)
        db.apply({t: [((*r[:-1], 1), n) for r, n in _inserts(given)] for t, given in rows.items()})
    state = db.operator.state
    assert state.partitions is not None
    before, answer = contents(state), db.answer()
    balance = (state.partitions.base, state.partitions.size, state.partitions.done)
    widths = {t: len(v) for t, v in shape}
    bad = {t: [((*((1,) * (widths[t] - 1)), i, 0), 1) for i in range(1, 25)] for t in widths}
    with pytest.raises(EverviewError):
        db.apply(bad)
    assert contents(state) == before
    assert (state.partitions.base, state.partitions.size, state.partitions.done) == balance
    assert db.answer() == answer
    check_invariants(db.operator)


def contents(state: TreeState) -> dict[str, list[bytes]]:
    """All entries of all maps, bit for bit, in the order of their keys."""
    return {name: sorted(e.tobytes() for e in m.entries[m.live_slots()]) for name, m in state.maps.items()}


def test_failed_transactions_restore_parts() -> None:
    """Parts, degrees, heavy keys, views, the threshold base and the counters are as before, bit for bit."""
    shape = SHAPES["triangle"]
    plan, (w, *_) = joined(shape, number=FLOAT64)
    calls = (COUNT, AggregateCall("sum", (w,), FLOAT64))
    db = SkewDatabase(Aggregate(plan, (), calls, ("n", "s")), skew(0.4))
    rng = random.Random(3)
    for _ in range(30):
        rows = random_changes(rng, db, shape, 8, 9)
        db.apply({t: [((*r[:-1], 0.1), w) for r, w in _inserts(given)] for t, given in rows.items()})
    state = db.operator.state
    assert state.partitions is not None
    before, balance, done = contents(state), (state.partitions.base, state.partitions.size), state.partitions.done
    answer = db.answer()
    many = [((1, i, 0.3), 1) for i in range(300)]
    for table in ("r", "s", "t"):
        inputs = zip(shape, db.operator.inputs, strict=True)
        state.take([_batch(len(i.fields), many) if t == table else None for (t, _), i in inputs])
        assert (state.partitions.base, state.partitions.size) != balance
        state.rollback()
        assert contents(state) == before
        assert (state.partitions.base, state.partitions.size) == balance
        assert state.partitions.done == done
    assert db.answer() == answer
    check_invariants(db.operator)


def _batch(width: int, rows: list[tuple[Row, int]]) -> Batch:
    columns = np.array([r for r, _ in rows])
    found = [Vector(INT64, columns[:, i].astype(np.int64)) for i in (0, 1)]
    if width == 3:
        found.append(Vector(FLOAT64, np.ascontiguousarray(columns[:, 2])))
    return Batch(tuple(found), np.array([w for _, w in rows], dtype=np.int64))


def listing(shape: Shape) -> Project:
    """All vertices of a join, each once."""
    plan, _ = joined(shape)
    columns = [c for _, variables in shape for c in (*variables, "weight")]
    places = {c: columns.index(c) for c in columns if c != "weight"}
    return Project(plan, tuple(Column(i, INT64) for i in places.values()), tuple(places))


LISTED = ("triangle", "triangle of one table", "triangle with a variable of all")


@pytest.mark.parametrize("name", LISTED)
@given(seed=st.integers(0, 2**40), epsilon=st.sampled_from(EPSILONS))
@settings(max_examples=2, deadline=None)
def test_listings_equal_recomputation(name: str, seed: int, epsilon: float) -> None:
    """All triangles, factorized over heavy and light parts: rows, their number and look-ups, after every transaction."""
    shape = SHAPES[name]
    rng = random.Random(seed)
    db = SkewDatabase(listing(shape), ViewOptions(strategy="skew", epsilon=epsilon, representation="factorized"))
    db.add_view("anew", ViewOptions(strategy="recompute"))
    for _ in range(15):
        db.apply(random_changes(rng, db, shape, rng.choice((1, 1, 2, 20)), 9))
        check_invariants(db.listing)
        rows = db.answer("anew")
        assert db.answer() == rows
        assert db.listing.count() == rows.total()
        for row in sorted(rows)[:2]:
            found = db.listing.lookup([1], [Vector(INT64, np.array([row[1]]))])
            assert int(found.weights.sum()) == sum(n for r, n in rows.items() if r[1] == row[1])


def test_listings_with_sums() -> None:
    """Triangles as groups, with sums and averages of the edges' weights, are factors of parts multiplied when they are read."""
    shape = SHAPES["triangle"]
    plan, (w, x, y) = joined(shape, number=FLOAT64)
    keys = tuple(Column(i, INT64) for i in (0, 1, 4))
    sums = ((Call("*", (w, x), FLOAT64), "sum"), (y, "avg"))
    calls = (COUNT, *(AggregateCall(name, (value,), FLOAT64) for value, name in sums))
    aggregate = Aggregate(plan, keys, calls, ("a", "b", "c", "n", "s", "m"))
    db = SkewDatabase(aggregate, ViewOptions(strategy="skew", representation="factorized", epsilon=0.3))
    db.add_view("anew", ViewOptions(strategy="recompute"))
    rng = random.Random(12)
    for _ in range(15):
        changes = random_changes(rng, db, shape, 6, 6)
        db.apply({t: [((*r[:-1], r[-1] / 4), n) for r, n in _inserts(rows)] for t, rows in changes.items()})  # type: ignore[operator]
        check_invariants(db.listing)
        assert db.answer() == db.answer("anew")


@given(seed=st.integers(0, 2**40))
@settings(max_examples=6, deadline=None)
def test_any_join(seed: int) -> None:
    """Joins of three to five relations over four variables, with groups and sums or without: as recomputed, or refused."""
    rng = random.Random(seed)
    shape = [(f"t{i}", "".join(rng.sample("abcd", rng.choice((1, 2, 2, 2, 3))))) for i in range(rng.choice((3, 4, 5)))]
    plan, weights = joined(shape)
    keys = (Column(rng.randrange(len(shape[0][1])), INT64),)[: rng.randrange(2)]
    product = Call("*", (weights[0], weights[-1]), INT64)
    aggregate = Aggregate(
        plan, keys, (COUNT, AggregateCall("sum", (product,), INT64)), ("g", "n", "s")[1 - len(keys) :]
    )
    try:
        db = SkewDatabase(aggregate, skew(rng.choice((0.5, 0.3, 0.7, 0.0, 1.0))))
    except UnsupportedQuery:
        return
    db.add_view("anew", ViewOptions(strategy="recompute"))
    for _ in range(10):
        db.apply(random_changes(rng, db, shape, rng.choice((1, 2, 15)), 6))
        if db.operator.skew is not None:
            check_invariants(db.operator)
        assert db.answer() == db.answer("anew")


def test_listings_have_constant_delay() -> None:
    """However many triangles there are, the next one is a few entries away, whichever parts it is in."""
    delays = []
    for size in (8, 32):
        db = SkewDatabase(listing(SHAPES["triangle"]), ViewOptions(strategy="skew", representation="factorized"))
        star_and_clique = [(0, i) for i in range(size * 4)] + [(i, j) for i in range(size) for j in range(0, size, 2)]
        edges = sorted({e for a, b in star_and_clique for e in ((a, b), (b, a))})
        db.apply({t: [((a, b, 1), 1) for a, b in edges] for t in "rst"})
        check_invariants(db.listing)
        most = total = 0
        for enumeration in db.listing.enumerations:
            cursor = enumeration.cursor({})
            slots = np.empty(len(enumeration.steps), dtype=np.int64)
            before = cursor.steps
            while cursor.next_slots(address_of(slots), 1):
                most, before, total = max(most, cursor.steps - before), cursor.steps, total + 1
        assert total == db.listing.count()
        delays.append(most)
    assert max(delays) < 20


def test_failed_transactions_restore_listings() -> None:
    """The views of a factorized listing, its parts and its rows are as before."""
    shape = SHAPES["triangle"]
    db = SkewDatabase(listing(shape), ViewOptions(strategy="skew", representation="factorized"))
    rng = random.Random(8)
    for _ in range(12):
        db.apply(random_changes(rng, db, shape, 6, 7))
    state = db.listing.state
    before, rows = contents(state), db.answer()
    with pytest.raises(EverviewError):
        db.apply({"r": [((1, i, 1), 1) for i in range(50)], "t": [((77, 77, 77), -1)]})
    assert contents(state) == before
    assert db.answer() == rows
    check_invariants(db.listing)


def test_listings_that_have_no_parts_are_refused() -> None:
    """A path, a listing that leaves a vertex out, and one with a column that is joined on nowhere: each says why."""
    options = ViewOptions(strategy="skew", representation="factorized")
    whole = listing(SHAPES["triangle"])
    for plan, why in (
        (listing(SHAPES["path"]), "triangles of three relations are listed"),
        (replace(whole, expressions=whole.expressions[:2], names=whole.names[:2]), "it leaves .* out"),
        (joined(SHAPES["triangle"])[0], "w.* is joined on nowhere"),
    ):
        with pytest.raises(UnsupportedQuery, match=why):
            SkewDatabase(plan, options)
    with pytest.raises(UnsupportedQuery, match="it sums nothing"):
        SkewDatabase(whole, ViewOptions(strategy="skew"))


def test_other_keys() -> None:
    """Text, dates and doubles join as numbers do; filters and other columns are dealt with at the leaves."""
    shape = SHAPES["triangle"]
    plan, (w, *_) = joined(shape, {"a": STRING, "b": DATE, "c": FLOAT64})
    is_small = Call("<", (w, Literal(2, INT64)), BOOLEAN)
    db = SkewDatabase(Aggregate(Filter(plan, is_small), (), (COUNT,), ("n",)), skew(0.3))
    db.add_view("anew", ViewOptions(strategy="recompute"))
    kinds = {"a": lambda i: f"v{i}", "b": lambda i: 20_000 + i, "c": lambda i: i / 4}
    rng = random.Random(5)
    for _ in range(30):
        changes = random_changes(rng, db, shape, rng.choice((1, 6)), 6)
        typed = {
            t: [
                ((*(None if x is None else kinds[v](x) for v, x in zip(TRIANGLE[t], r, strict=False)), r[-1]), weight)
                for r, weight in _inserts(rows)
            ]
            for t, rows in changes.items()
        }
        db.apply(typed)  # type: ignore[arg-type]  # cells of other types
        assert db.answer() == db.answer("anew")


def test_what_has_no_parts_is_refused() -> None:
    """By name, with the reason, when the view is created."""
    plan, _ = joined([("r", "ab"), ("s", "bc"), ("t", "cd"), ("u", "da")])
    with pytest.raises(UnsupportedQuery, match="no partition of its relations"):
        SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew())
    plan, _ = joined(SHAPES["triangle"])
    with pytest.raises(UnsupportedQuery, match="epsilon names 'x', and it joins r, s, t"):
        SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew((("x", 0.5),)))


CLASSICAL: dict[str, tuple[float | tuple[tuple[str, float], ...], set[str]]] = {
    "all heavy": (0.0, set()),
    "all light": (1.0, set()),
    "factorized": ((("r", 0.0), ("s", 0.0), ("t", 1.0)), {"V1"}),
}


@pytest.mark.parametrize("name", sorted(CLASSICAL))
def test_other_methods_are_recovered(name: str) -> None:
    """With ε = 0 or 1 only relations and result are stored (A.1); with mixed ε also the whole join of two (A.2)."""
    epsilon, views = CLASSICAL[name]
    shape = SHAPES["triangle"]
    plan, _ = joined(shape)
    db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew(epsilon))
    rng = random.Random(6)
    for _ in range(20):
        db.apply(random_changes(rng, db, shape, rng.choice((1, 8)), 7))
        assert db.answer() == Counter({(count_joined(shape, db.held),): 1})
    state = db.operator.state
    assert state.partitions is None
    assert state.maps.keys() == {"r", "s", "t", "result"} | views
    if views:
        pairs = {(b, c) for a, b, _ in db.held["r"] for c, d, _ in db.held["t"] if a == d and None not in (a, b, c)}
        assert len(state.maps["V1"]) == len(pairs)


def test_sub_blocks_have_parts() -> None:
    """A triangle count below another aggregate and beside a join has parts; blocks without say why, and keep their trees."""
    inner, _ = joined(SHAPES["triangle"])
    counts = Aggregate(inner, (Column(0, INT64),), (COUNT,), ("a", "n"))
    names = Scan("names", (Field("id", INT64, True), Field("k", INT64, True)))
    at = Call("=", (Column(0, INT64), Column(2, INT64)), BOOLEAN)
    above = Join(counts, names, JoinKind.INNER, at)
    total = AggregateCall("sum", (Column(1, INT64),), INT64)
    db = SkewDatabase(Aggregate(above, (Column(3, INT64),), (total,), ("k", "s")), skew())
    db.add_view("anew", ViewOptions(strategy="recompute"))
    rng = random.Random(9)
    for i in range(20):
        changes = dict(random_changes(rng, db, SHAPES["triangle"], 6, 7))
        changes["names"] = [((i, i % 3), 1)]
        db.apply(changes)
        assert db.answer() == db.answer("anew")
    text = db.backend.explain("v", "text")
    assert "query: triangle with groups, maintained by heavy and light parts" in text
    assert "s: O(N) a row: nothing bounds what it meets in r_h: without c0 it meets any number of groups" in text


def test_hierarchical_joins_need_no_parts() -> None:
    """They are O(1) in a view tree, which is taken, and explain says so."""
    plan, _ = joined([("r", "ab"), ("s", "ac"), ("t", "a")])
    db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew())
    assert db.operator.state.partitions is None
    assert "nothing is partitioned: every change is O(1) in this view tree" in db.backend.explain("v", "text")


def test_explain_and_stats_tell_of_parts() -> None:
    """The parts, views, cases, costs and space; what rebalancing has done; the part instruction in the code."""
    shape = SHAPES["triangle"]
    plan, _ = joined(shape)
    db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), skew())
    rng = random.Random(1)
    for _ in range(20):
        db.apply(random_changes(rng, db, shape, 10, 9))
    text = db.backend.explain("v", "text")
    assert "query: triangle, maintained by heavy and light parts (IVM^ε)" in text
    assert "a look-up in V1: O(1)" in text
    assert "r: O(√N) a row: amortized" in text
    assert "space: O(N^3/2)" in text
    (told,) = db.backend.stats("v")["rebalancing"]
    assert told["major"] > 0
    assert told["largest_pause_seconds"] > 0
    assert told["keys"] < told["threshold_base"]
    assert "part      " in db.backend.explain("v", "code")
    assert "for a light key" in db.backend.explain("v", "triggers")


def test_auto_sees_triangles_inside_a_larger_join() -> None:
    """With a relation at a vertex, and groups on it, auto compares parts with the tree, and takes them on a star."""
    shape = SHAPES["triangle beside a vertex"]
    plan, _ = joined(shape)
    aggregate = Aggregate(plan, (Column(0, INT64),), (COUNT,), ("a", "n"))
    db = SkewDatabase(aggregate, ViewOptions(strategy="first_order"))
    db.apply({t: [(row, 1) for i in range(10_000, 11_800) for row in ((7, i, 0), (i, 7, 0))] for t in "rst"})
    db.apply({"u": [((7, 0), 1), ((10_001, 0), 2)]})
    db.backend.drop("v")
    db.add_view("v", ViewOptions())
    assert db.operator.skew is not None
    check_invariants(db.operator)
    assert "triangle inside a join of 4 relations with groups" in db.backend.explain("v", "text")
    assert "auto takes heavy and light parts: they promise" in db.backend.explain("v", "text")
    db.add_view("tree", ViewOptions(strategy="first_order"))
    db.apply({"r": [((7, 7, 0), 1)], "s": [((7, 7, 0), 2)], "u": [((7, 0), 1)]})
    assert db.answer() == db.answer("tree")
    assert db.answer()


def test_auto_takes_parts_where_they_pay() -> None:
    """With skewed rows there when the view is created; without rows, or on a sparse graph, the tree stays; it says why."""
    shape = SHAPES["triangle"]
    plan, _ = joined(shape)
    db = SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), ViewOptions())
    assert db.operator.skew is None
    assert "there are no rows to tell whether that pays" in db.backend.explain("v", "text")
    db.apply({t: [((i, i + 1, 0), 1) for i in range(1_500)] for t in "rst"})
    db.add_view("sparse", ViewOptions())
    assert "auto takes the tree: heavy and light parts promise O(√N)" in db.backend.explain("sparse", "text")
    db.apply({t: [(row, 1) for i in range(10_000, 11_500) for row in ((7, i, 0), (i, 7, 0))] for t in "rst"})
    db.backend.drop("v")
    db.backend.drop("sparse")
    db.add_view("v", ViewOptions())
    assert db.operator.skew is not None
    assert "auto takes heavy and light parts: they promise O(√N) a change, a view tree O(N)" in db.backend.explain(
        "v", "text"
    )
    check_invariants(db.operator)
    db.add_view("tree", ViewOptions(strategy="first_order"))
    db.apply({"r": [((7, 7, 0), 1)], "s": [((7, 7, 0), 2)]})
    assert db.answer() == db.answer("tree")
