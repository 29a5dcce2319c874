"""Triangles of one table (appendix B of IVM^ε): one set of parts, one auxiliary view, loops, changes that meet themselves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from everview.catalog import ViewDefinition, ViewOptions
from everview.errors import EverviewError
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Filter
from everview.relational.types import BOOLEAN, FLOAT64, INT64, STRING, DataType, Row
from tests.unit.backends.embedded.tree.skew_streams import (
    COUNT,
    SkewDatabase,
    check_invariants,
    count_joined,
    joined,
)

Shape = list[tuple[str, str]]
CYCLE: Shape = [("e", "ab"), ("e", "bc"), ("e", "ca")]
CYCLES: dict[str, Shape] = {
    "in order": CYCLE,
    "in another order": [("e", "ab"), ("e", "ca"), ("e", "bc")],
    "against its direction": [("e", "ba"), ("e", "cb"), ("e", "ac")],
    "with a variable of all": [("e", "abz"), ("e", "bcz"), ("e", "caz")],
    "with keys of two columns": [("e", "axby"), ("e", "byct"), ("e", "ctax")],
}
NOT_ROTATED: dict[str, Shape] = {
    "no cycle": [("e", "ab"), ("e", "bc"), ("e", "ac")],
    "another table": [("e", "ab"), ("e", "bc"), ("f", "ca")],
}


def skew(epsilon: float | tuple[tuple[str, float], ...] = 0.5, partitions: str = "single") -> ViewOptions:
    """The options of a view by parts."""
    return ViewOptions(strategy="skew", epsilon=epsilon, partitions=partitions)


def counting(shape: Shape, options: ViewOptions | None = None) -> SkewDatabase:
    """A database with the count of a join."""
    plan, _ = joined(shape)
    return SkewDatabase(Aggregate(plan, (), (COUNT,), ("n",)), options or skew())


def changes(rng: random.Random, db: SkewDatabase, width: int, size: int, values: int) -> list[tuple[Row, int]]:
    """Skewed edges, with loops, NULLs, repeated rows, rows that come and go at once, and deletes."""
    rows: Counter[Row] = Counter()
    held = db.held["e"]
    for _ in range(size):
        kind = rng.random()
        if held and kind < 0.4:
            row = rng.choice(sorted(held, key=str))
            if held[row] + rows[row] > 0:
                rows[row] -= 1
            continue
        cells = [min(values, int(rng.paretovariate(0.7))) for _ in range(width)]
        if kind < 0.6:
            cells = [cells[0]] * width
        rows[(*(None if rng.random() < 0.02 else c for c in cells), rng.randrange(-3, 4))] += rng.choice((1, 1, 2))
    return [(row, weight) for row, weight in rows.items() if weight]


@pytest.mark.parametrize("partitions", ["single", "refined"])
@pytest.mark.parametrize("name", sorted(CYCLES))
@given(seed=st.integers(0, 2**40), epsilon=st.sampled_from((0.5, 0.3, 0.7)))
@settings(max_examples=2, deadline=None, phases=(Phase.explicit, Phase.generate))
def test_counts_equal_recomputation(name: str, partitions: str, seed: int, epsilon: float) -> None:
    """After every transaction, with one row and with many; parts, degrees and the one view are what they say they are."""
    shape = CYCLES[name]
    rng = random.Random(seed)
    db = counting(shape, skew(epsilon, partitions))
    plan = db.operator.skew
    assert plan is not None
    assert plan.rotation is not None
    assert len(plan.views) == 1
    for _ in range(20):
        db.apply({"e": changes(rng, db, len(shape[0][1]), rng.choice((1, 1, 2, 20)), 12)})
        check_invariants(db.operator)
        assert db.answer() == Counter({(count_joined(shape, db.held),): 1})
    assert db.operator.rows is None


def test_figure_5() -> None:
    """The relation is stored once, in two parts, with one view; a change is counted three times, and meets itself."""
    db = counting(CYCLE)
    stored = {"result", "e_h", "e_l", "e_new", "V1", "e_heavy_c1", "e_degree_c1"}
    assert db.operator.state.maps.keys() == stored
    text = db.backend.explain("v", "triggers")
    assert "result[] += 3 δresult[]" in text
    assert "e_new[c1, c0]: #, emptied after each trigger" in text
    assert "one set of parts for all occurrences of e" in db.backend.explain("v", "text")


@pytest.mark.parametrize("name", sorted(NOT_ROTATED))
def test_what_no_rotation_keeps_has_parts_for_each_occurrence(name: str) -> None:
    """As in the first way of appendix B."""
    shape = NOT_ROTATED[name]
    db = counting(shape)
    assert db.operator.skew is not None
    assert db.operator.skew.rotation is None
    assert len(db.operator.skew.views) == 3


def test_exponents_that_differ_have_parts_for_each_occurrence() -> None:
    """One threshold for all occurrences, or no sharing."""
    db = counting(CYCLE, skew((("e", 0.5), ("e#1", 0.3))))
    assert db.operator.skew is not None
    assert db.operator.skew.rotation is None


def edges(stream: str) -> Iterator[tuple[Row, int]]:
    """Adversarial edges of one table, one a transaction."""
    if stream == "star with loops":
        rows: list[Row] = [r for i in range(1, 30) for r in ((0, i, 1), (i, 0, 1), (i, i, 1))]
    elif stream == "clique":
        rows = [(i, j, 1) for i in range(9) for j in range(9)]
    else:
        rows = [(i, (i * 7) % 40, 1) for i in range(40)]
    yield from ((row, 1) for row in rows)
    if stream == "around a threshold":
        for _ in range(3):
            yield from (((100 + i, 0, 1), 1) for i in range(20))
            yield from (((100 + i, 0, 1), -1) for i in reversed(range(20)))
    yield from ((row, -1) for row in reversed(rows))


@pytest.mark.parametrize("stream", ["star with loops", "clique", "around a threshold"])
def test_adversarial_streams(stream: str) -> None:
    """Edge by edge, growing and shrinking: the count is that of a view tree, and edges move between the parts."""
    db = counting(CYCLE)
    db.add_view("tree", ViewOptions(strategy="first_order"))
    for row, weight in edges(stream):
        db.apply({"e": [(row, weight)]})
        check_invariants(db.operator)
        assert db.answer() == db.answer("tree")
    partitions = db.operator.state.partitions
    assert partitions is not None
    assert partitions.done.major > 3
    assert partitions.done.moved_keys >= {"clique": 0, "star with loops": 2, "around a threshold": 6}[stream]
    assert not db.held["e"]


def product_of(weights: list[Column], number: DataType) -> Expression:
    """All weights multiplied."""
    first, second, third = weights
    return Call("*", (Call("*", (first, second), number), third), number)


@pytest.mark.parametrize("number", [INT64, FLOAT64])
@pytest.mark.parametrize("name", ["in order", "in another order"])
def test_sums(name: str, number: DataType) -> None:
    """Of one edge's numbers, of two and of all three multiplied, averages and covariances: as computed anew."""
    shape = CYCLES[name]
    plan, weights = joined(shape, number=number)
    w, x, _ = weights
    product = Call("*", (w, x), number)
    calls = [COUNT, AggregateCall("sum", (x,), number), AggregateCall("sum", (product,), number)]
    calls += [AggregateCall("avg", (w,), FLOAT64), AggregateCall("count", (x,), INT64)]
    calls += [AggregateCall("sum", (product_of(weights, number),), number)]
    if number == FLOAT64:
        calls += [AggregateCall("covar_pop", (w, x), FLOAT64)]
    names = tuple(f"c{i}" for i in range(len(calls)))
    db = SkewDatabase(Aggregate(plan, (), tuple(calls), names), skew(0.4))
    db.add_view("anew", ViewOptions(strategy="recompute"))
    assert db.operator.skew is not None
    assert db.operator.skew.rotation is not None
    rng = random.Random(7)
    for _ in range(25):
        rows = [(r, n) for r, n in changes(rng, db, 2, rng.choice((1, 5)), 6) if n > 0 or r in db.held["e"]]
        if number == FLOAT64:
            rows = [((*r[:-1], None if r[-1] is None else r[-1] / 4), n) for r, n in rows if n > 0]  # type: ignore[operator]
        db.apply({"e": rows})
        check_invariants(db.operator)
        (found,), (wanted,) = db.answer(), db.answer("anew")
        assert [c is None for c in found] == [c is None for c in wanted]
        pairs = [(c, d) for c, d in zip(found, wanted, strict=True) if c is not None]
        assert [c for c, _ in pairs] == pytest.approx([d for _, d in pairs], rel=1e-9, abs=1e-9)
    db.apply({"e": [(row, -weight) for row, weight in db.held["e"].items()]})
    assert db.answer() == db.answer("anew")
    check_invariants(db.operator)


def test_text_keys_and_filters() -> None:
    """Vertices may be of any type, and edges that a filter leaves out are in no part."""
    plan, weights = joined(CYCLE, dict.fromkeys("abc", STRING))
    small = [Call("<", (w, Literal(2, INT64)), BOOLEAN) for w in weights]
    filtered = Filter(Filter(Filter(plan, small[0]), small[1]), small[2])
    db = SkewDatabase(Aggregate(filtered, (), (COUNT,), ("n",)), skew(0.4))
    db.add_view("anew", ViewOptions(strategy="recompute"))
    assert db.operator.skew is not None
    assert db.operator.skew.rotation is not None
    rng = random.Random(5)
    for _ in range(20):
        rows = [(r, n) for r, n in changes(rng, db, 2, 6, 6) if n > 0]
        db.apply({"e": [((*(None if c is None else f"v{c}" for c in r[:-1]), r[-1]), n) for r, n in rows]})
        check_invariants(db.operator)
        assert db.answer() == db.answer("anew")


def test_failed_transactions_restore_parts() -> None:
    """A change that makes keys turn, and a division by zero in the same transaction: all maps and counters are as before."""
    plan, (w, *_) = joined(CYCLE)
    failing = Filter(plan, Call(">", (Call("div", (Literal(6, INT64), w), INT64), Literal(0, INT64)), BOOLEAN))
    db = counting(CYCLE, skew(0.4))
    guard = ViewDefinition(
        "guard",
        Aggregate(failing, (), (COUNT,), ("n",)),
        None,
        "UTC",
        options=ViewOptions(strategy="recompute", on_error="reject"),
    )
    db.backend.create_view(guard)
    rng = random.Random(2)
    for _ in range(12):
        db.apply({"e": [((*r[:-1], 1), n) for r, n in changes(rng, db, 2, 6, 7) if n > 0]})
    state = db.operator.state
    assert state.partitions is not None

    def contents() -> dict[str, list[bytes]]:
        return {name: sorted(e.tobytes() for e in m.entries[m.live_slots()]) for name, m in state.maps.items()}

    before, answer = contents(), db.answer()
    balance = (state.partitions.base, state.partitions.size, state.partitions.done)
    with pytest.raises(EverviewError):
        db.apply({"e": [((a, b, 0), 1) for a in (1, 2) for b in range(1, 40)]})
    assert contents() == before
    assert (state.partitions.base, state.partitions.size, state.partitions.done) == balance
    assert db.answer() == answer
    check_invariants(db.operator)


def test_many_rows_at_once() -> None:
    """A hub with thousands of edges in one transaction is taken in by pieces, loaded or changed: no row meets all others."""
    hub = [row for i in range(1, 3_000) for row in ((0, i, 1), (i, 0, 1))]
    db = counting(CYCLE)
    db.apply({"e": [((0, 0, 1), 1), *((row, 1) for row in hub)]})
    check_invariants(db.operator)
    work = db.operator.state.work
    assert db.answer() == Counter({(1 + 3 * 2_999,): 1})
    assert work < len(hub) * 2_000
    db.apply({"e": [(row, -1) for row in hub[100:]]})
    check_invariants(db.operator)
    assert db.answer() == Counter({(1 + 3 * 50,): 1})


def test_auto_shares_parts() -> None:
    """Where auto takes parts for a graph with a hub, there is one set of them."""
    db = counting(CYCLE, ViewOptions(strategy="first_order"))
    db.apply({"e": [(row, 1) for i in range(10_000, 13_000) for row in ((7, i, 0), (i, 7, 0))]})
    db.backend.drop("v")
    db.add_view("v", ViewOptions())
    assert db.operator.skew is not None
    assert db.operator.skew.rotation is not None
    check_invariants(db.operator)
    db.add_view("tree", ViewOptions(strategy="first_order"))
    db.apply({"e": [((7, 7, 0), 1), ((10_001, 10_002, 0), 2)]})
    assert db.answer() == db.answer("tree")
