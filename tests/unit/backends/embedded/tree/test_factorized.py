"""A factorized result lists what the definition of the query gives, at any time, by any columns, and without delay."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from everview.backends.embedded.state.memory import address_of
from everview.errors import InternalError, UnsupportedOperation
from everview.planner.block_build import Facts
from everview.relational.expressions import Call, Column, Expression, Literal, conjunction
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Project, Relation, Scan
from everview.relational.schema import columns
from everview.relational.types import BOOLEAN, INT32, INT64, Row
from everview.trigger.plan_factorized import FactorizedPlan, Refused, plan_factorized
from tests.unit.backends.embedded.tree.factorized_run import FactorizedRun
from tests.unit.backends.embedded.tree.generate_blocks import Query, random_change, random_query, random_row


def planned(relation: Relation) -> FactorizedPlan:
    """The plan, with nothing known of the tables."""
    return plan_factorized(relation, lambda _: Facts())


def random_listing(rng: random.Random, query: Query) -> Relation:
    """Some columns of a random join, now and then computed ones."""
    joined = query.aggregate.child
    available = columns(joined)
    chosen: list[Expression] = [rng.choice(available) for _ in range(rng.randint(0, 4))]
    for _ in range(rng.choice((0, 0, 1, 2))):
        a, b = rng.choice(available), rng.choice(available)
        chosen.append(Call("isnull", (a,), BOOLEAN))
        if a.type == b.type:
            chosen.append(Call("<=>", (a, b), BOOLEAN))
    if not chosen:
        chosen.append(Literal(7, INT32))
    return Project(joined, tuple(chosen), tuple(f"o{i}" for i in range(len(chosen))))


@given(st.integers(0, 2**40), st.booleans())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_enumerated_is_recomputed(seed: int, is_aggregate: bool) -> None:
    """For random joins and aggregates over them: after every batch, within a transaction, and after one that failed."""
    check_stream(seed, is_aggregate=is_aggregate)


def check_stream(seed: int, *, is_aggregate: bool) -> None:
    """A stream of transactions, from some content to none."""
    rng = random.Random(seed)
    query = random_query(rng)
    relation = query.aggregate if is_aggregate else random_listing(rng, query)
    try:
        plan = planned(relation)
    except Refused:
        assume(False)
    odd = query.has_odd_floats
    tables = {
        t.name: [random_row(rng, t, has_odd_floats=odd) for _ in range(rng.choice((0, 3, 12)))] for t in query.tables
    }
    run = FactorizedRun(relation, plan, tables)
    run.check()
    for _ in range(rng.randint(1, 4)):
        change = random_change(rng, query, run.tables)
        if rng.random() < 0.25:
            run.roll_back(change)
        else:
            run.commit(change, reads_before=rng.random() < 0.3)
        run.check()
        rows = sorted(run.expected(), key=repr)
        if rows and not odd:
            row = rng.choice(rows)
            run.check_lookup({c: row[c] for c in range(len(row)) if rng.random() < 0.5})
    run.commit({name: ([], list(rows)) for name, rows in run.tables.items()})
    run.check()
    assert all(len(view) == 0 for view in run.operator.state.maps.values())


def table(name: str, *variables: str) -> Scan:
    """A table of integers that are never NULL."""
    return Scan(name, tuple(Field(v, INT32, nullable=False) for v in variables))


def joined(*tables: Scan) -> Relation:
    """The natural join: columns of one name are equal; each name once in the output, in order of first use."""
    relation: Relation = tables[0]
    names = [f.name for f in tables[0].fields]
    for more in tables[1:]:
        equal = tuple(
            Call("=", (integer(names.index(f.name)), integer(len(names) + i)), BOOLEAN)
            for i, f in enumerate(more.fields)
            if f.name in names
        )
        relation = Join(relation, more, JoinKind.INNER, conjunction(equal))
        names += [f.name for f in more.fields]
    first = {name: names.index(name) for name in names}
    return Project(relation, tuple(integer(i) for i in first.values()), tuple(first))


def integer(index: int) -> Column:
    """A column of integers that are never NULL."""
    return Column(index, INT32, nullable=False)


def only(relation: Relation, *names: str) -> Project:
    """Some columns of a natural join, duplicates kept."""
    assert isinstance(relation, Project)
    return Project(relation, tuple(integer(relation.names.index(n)) for n in names), names)


EXAMPLE_15 = only(joined(table("R", "A", "B"), table("S", "A", "C", "E"), table("T", "C", "D")), "A", "B", "C")


def test_example_19() -> None:
    """A from the root, B and C under it; the payload is R[a, b] · H@C[a, c], so that H@A counts only."""
    plan = planned(EXAMPLE_15)
    steps = [(s.view, s.bound, s.new, s.is_factor) for s in plan.factorized.steps]
    assert steps == [
        ("H@A_RST", (), ("A",), False),
        ("R", ("A",), ("B",), True),
        ("H@C_ST", ("A",), ("C",), True),
    ]
    tables: dict[str, list[Row]] = {
        "R": [(1, 1), (1, 2), (2, 3), (3, 4), (1, 1)],
        "S": [(1, 1, 1), (1, 1, 2), (1, 2, 3), (2, 2, 4)],
        "T": [(1, 1), (2, 2), (2, 3), (3, 4)],
    }
    run = FactorizedRun(EXAMPLE_15, plan, tables)
    run.check()
    assert run.expected()[1, 1, 2] == 4


def test_remark_18() -> None:
    """Views above the frontier hold multiplicities, whatever the sums below."""
    inner = EXAMPLE_15.child
    assert isinstance(inner, Project)
    amount, price = integer(inner.names.index("E")), integer(inner.names.index("D"))
    keys = tuple(integer(inner.names.index(n)) for n in "ABC")
    sums = tuple(AggregateCall("sum", (c,), INT64) for c in (amount, price))
    aggregate = Aggregate(inner, keys, sums, ("A", "B", "C", "e", "d"))
    program = planned(aggregate).factorized.program
    assert len(program.view("H@A_RST").payload) == 1
    assert len(program.view("H@C_ST").payload) == 3
    rows: dict[str, list[Row]] = {"R": [(1, 1), (1, 2)], "S": [(1, 1, 5), (1, 2, 6)], "T": [(1, 7), (2, 8), (2, 9)]}
    FactorizedRun(aggregate, planned(aggregate), rows).check()


def delays(run: FactorizedRun, limit: int) -> list[int]:
    """How many entries are visited for each of the first rows."""
    cursor = run.operator.enumeration.cursor({})
    slots = np.empty(len(run.operator.enumeration.steps), dtype=np.int64)
    found: list[int] = []
    before = 0
    while len(found) < limit and cursor.next_slots(address_of(slots), 1):
        found.append(cursor.steps - before)
        before = cursor.steps
    return found


@pytest.mark.parametrize("relation", [EXAMPLE_15, joined(table("R", "A", "B"), table("S", "A", "C"), table("U", "F"))])
def test_delay_does_not_grow(relation: Relation) -> None:
    """The first row, and each one after it, takes as many steps over much data as over little."""
    worst = {}
    for size in (20, 2_000):
        rng = random.Random(size)
        contents: dict[str, list[Row]] = {
            "R": [(rng.randrange(size), i) for i in range(size)],
            "S": [(rng.randrange(size), rng.randrange(size)) for _ in range(size)],
            "T": [(rng.randrange(size), i) for i in range(size)],
            "U": [(i,) for i in range(size)],
        }
        if relation is EXAMPLE_15:
            contents["S"] = [(*row, 0) for row in contents["S"]]
        run = FactorizedRun(relation, planned(relation), contents)
        worst[size] = max(delays(run, 3_000))
    depth = len(planned(relation).factorized.steps)
    assert max(worst.values()) <= 2 * depth + 1
    assert abs(worst[2_000] - worst[20]) <= 1


def test_empty_chains_of_free_slots_cost_nothing() -> None:
    """Also after most of the data has gone the first row comes at once."""
    relation = joined(table("R", "A", "B"), table("S", "A", "C"))
    rows: dict[str, list[Row]] = {n: [(i, 10**6 + i) for i in range(3_000)] for n in ("R", "S")}
    run = FactorizedRun(relation, planned(relation), rows)
    run.commit({n: ([], [(i, 10**6 + i) for i in range(2_999)]) for n in ("R", "S")})
    run.check()
    assert len(delays(run, 10)) == 1
    assert delays(run, 10)[0] <= 4


def test_a_product_with_nothing_is_known_to_be_empty() -> None:
    """Without going through the other factors."""
    relation = joined(table("R", "A"), table("S", "B"))
    run = FactorizedRun(relation, planned(relation), {"R": [(i,) for i in range(1_000)], "S": []})
    cursor = run.operator.enumeration.cursor({})
    assert cursor.next_slots(address_of(np.empty(2, dtype=np.int64)), 1) == 0
    assert cursor.steps == 0


def test_lookup_by_a_prefix_visits_only_its_rows() -> None:
    """A slice at each step, and no other entry."""
    relation = joined(table("R", "A", "B"), table("S", "A", "C"))
    rows: dict[str, list[Row]] = {n: [(i % 500, i) for i in range(1_000)] for n in ("R", "S")}
    run = FactorizedRun(relation, planned(relation), rows)
    for wanted in ({0: 7}, {0: 7, 1: 507}, {0: 7, 1: 7, 2: 507}, {1: 3}, {2: 999}, {0: 7, 1: 8}, {0: -1}):
        run.check_lookup(wanted)
    cursor = run.operator.enumeration.cursor({"A": np.array([7]), "B": np.array([7])})
    slots = np.empty((len(run.operator.enumeration.steps), 10), dtype=np.int64)
    assert cursor.next_slots(address_of(slots), 10) == 2
    assert cursor.steps <= 8


def test_products_are_counted_without_listing() -> None:
    """10^12 rows in 3 * 10^4 entries; the first of them come at once."""
    relation = joined(table("R", "A"), table("S", "B"), table("T", "C"))
    rows: dict[str, list[Row]] = {n: [(i,) for i in range(10_000)] for n in "RST"}
    run = FactorizedRun(relation, planned(relation), rows)
    assert run.operator.count() == 10**12
    assert len(next(run.operator.iterate())) > 0


def test_a_listing_ends_when_the_view_changes() -> None:
    """A cursor into entries that may have gone lists nothing wrong: it fails."""
    relation = joined(table("R", "A"), table("S", "B"))
    rows: dict[str, list[Row]] = {n: [(i,) for i in range(20)] for n in "RS"}
    run = FactorizedRun(relation, planned(relation), rows)
    listing = run.operator.iterate(10)
    next(listing)
    run.operator.commit()  # of a transaction that did not touch the view
    next(listing)
    run.commit({"R": ([], [(3,)])})
    with pytest.raises(UnsupportedOperation, match="has changed"):
        next(listing)


def test_nothing_is_kept_by_what_has_no_delta() -> None:
    """An arrangement would never hear of a change."""
    relation = joined(table("R", "A"), table("S", "A"))
    run = FactorizedRun(relation, planned(relation), {"R": [], "S": []})
    with pytest.raises(InternalError):
        run.operator.arranged()


def test_refused_with_the_reason() -> None:
    """Predicates over free variables of several atoms, and columns that can fail."""
    pair = joined(table("R", "A", "B"), table("S", "A", "C"))
    assert isinstance(pair, Project)
    below = Filter(pair, Call("<", (integer(1), integer(2)), BOOLEAN))
    with pytest.raises(Refused, match="together"):
        planned(below)
    planned(Project(below, (integer(0),), ("A",)))  # B and C are bound: one view joins both
    with pytest.raises(Refused, match="can fail"):
        planned(Project(pair, (Call("+", (integer(1), integer(2)), INT32),), ("sum",)))


def test_a_listing_of_an_open_transaction_ends_with_it() -> None:
    """Its entries that are zero go."""
    relation = joined(table("R", "A"), table("S", "B"))
    run = FactorizedRun(relation, planned(relation), {n: [(i,) for i in range(20)] for n in "RS"})
    run.push({"R": ([], [(3,)])})
    listing = run.operator.iterate(10)
    next(listing)
    run.operator.rollback()
    with pytest.raises(UnsupportedOperation, match="has changed"):
        next(listing)
    run.check()


def test_static_tables_are_loaded_in_any_order() -> None:
    """What only a first load changes is still a factor of the payload, and joined with by that load."""
    relation = joined(table("R", "A", "B"), table("S", "A"), table("T", "A", "C"))
    for static in ("R", "S", "T", "RS", "RT", "ST", "RST"):
        plan = plan_factorized(relation, lambda r, s=static: Facts(updatable=r.table not in s))  # type: ignore[misc]
        rows: dict[str, list[Row]] = {"R": [(1, 1), (1, 2), (2, 1)], "S": [(1,), (1,), (3,)], "T": [(1, 5), (2, 6)]}
        run = FactorizedRun(relation, plan, rows)
        run.check()
        if "T" not in static:
            run.commit({"T": ([(1, 7), (2, 8)], [(2, 6)])})
            run.check()
