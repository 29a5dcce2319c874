"""Identical stored views of different user views are kept once, and every view answers as if it were alone."""

from __future__ import annotations

import random
from decimal import Decimal as Number

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.tree.layout import INDEX_IDLE
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked, TreeGroup
from everview.backends.embedded.tree.tree_state import TreeState
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import AssertionViolated, EvaluationError
from everview.relational.arrow import rows_to_arrow
from everview.relational.expressions import Call, Column, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Relation, Scan
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64, Decimal, Row
from tests.unit.backends.embedded.related_views import (
    COUNT,
    SHAPES,
    TABLES,
    Database,
    Rows,
    change_of,
    joined,
    product_of,
    random_changes,
    random_options,
    random_plan,
    random_rows,
)


def grouped(
    shape: str, *keys: tuple[int, str], is_chain: bool = False, calls: tuple[AggregateCall, ...] = (COUNT,)
) -> Aggregate:
    """An aggregate over a join, by columns of its atoms."""
    relation, atoms = joined(shape, is_chain=is_chain)
    columns = tuple(atoms[i][name] for i, name in keys)
    return Aggregate(relation, columns, calls, tuple(f"o{i}" for i in range(len(columns) + len(calls))))


def at_most(limit: int, shape: str) -> Relation:
    """The query of an assertion: a join has no more than so many rows."""
    count = Column(0, INT64, False)
    return Filter(grouped(shape), Call(">", (count, Literal(limit, INT64)), BOOLEAN))


BY_A, BY_C = grouped("RSU", (0, "a")), grouped("RSU", (1, "c"))
"""Two views that have U[b] in common, one R[b] and one S[b] with nothing."""


@given(st.integers(0, 2**40))
@settings(max_examples=120, deadline=None)
def test_views_that_share_are_right(seed: int) -> None:
    """Views come and go between changes, some of which fail late in the DAG."""
    check_database(seed)


def check_database(seed: int) -> None:
    """A random database, checked after every step."""
    rng = random.Random(seed)
    db = Database()
    shapes = rng.sample(SHAPES, rng.choice((1, 2, 3)))
    if rng.random() < 0.5:
        db.create("limit", at_most(rng.choice((10, 30, 100)), "RU"), is_assertion=True)
    made = 0
    for step in range(rng.randint(6, 14)):
        choice = rng.random()
        if choice < 0.35 or step < 2:
            plan = random_plan(rng, shapes)
            below = db.views.get(f"v{made}")
            if below is not None and rng.random() < 0.1 and below.options.representation != "factorized":
                plan = Aggregate(Scan(f"v{made}", schema(below.plan)), (), (COUNT,), ("n",))
            made += 1
            db.create(f"v{made}", plan, random_options(rng))
        elif choice < 0.5 and db.views:
            name = rng.choice(list(db.views))
            if name not in {s.table for v in db.views.values() for s in _scans(v.plan)}:
                db.drop(name)
        else:
            db.apply(random_changes(rng, db.held))
        db.check()


def _scans(plan: Relation) -> list[Scan]:
    return [plan.child] if isinstance(plan, Aggregate) and isinstance(plan.child, Scan) else []


def test_databases_of_the_law_share() -> None:
    """The test above is about something: in its databases views are shared, by three trees and more, too."""
    largest, shared = 0, 0
    for seed in range(30):
        rng = random.Random(seed)
        db = Database()
        shapes = rng.sample(SHAPES, 2)
        for i in range(6):
            db.create(f"v{i}", random_plan(rng, shapes), random_options(rng))
        largest = max([largest, *(len(g.members) for g in db.groups())])
        shared += sum(len(t.state.maps) for t in db.trees()) - len(db.maps())
    assert largest > 3
    assert shared > 30


def filled(*views: tuple[str, Aggregate], seed: int = 1, retain: bool = True) -> Database:
    """A database with views, then rows."""
    db = Database(retain=retain)
    for name, plan in views:
        db.create(name, plan)
    rng = random.Random(seed)
    db.apply({t: (random_rows(rng, 30), []) for t in db.held})
    db.check()
    return db


def names_of(db: Database, view: str) -> set[str]:
    """The stored views of a user view's tree that others have, too."""
    tree = db.embedded._graph.roots[view]
    assert isinstance(tree, TreeBacked)
    return set(tree.sharing())


@pytest.mark.parametrize("is_late", [False, True])
def test_a_second_view_stores_only_what_is_new(is_late: bool) -> None:
    """Whether it comes before the rows or after them; what it would have stored is there once."""
    db = filled(("a", BY_A)) if is_late else filled(("a", BY_A), ("b", BY_C))
    if is_late:
        db.create("b", BY_C)
    alone = filled(("b", BY_C))
    shared = names_of(db, "b")
    assert shared == {"U"}
    assert len(db.maps()) == len(db.trees()[0].state.maps) + len(alone.maps()) - 1
    counted = db.embedded.stats("b")["bytes"]
    everything = alone.embedded.stats("b")["bytes"]
    assert counted["#1.tree.U.counted_by(a)"] == 0
    assert sum(counted.values()) == sum(size for part, size in everything.items() if not part.startswith("#1.tree.U"))
    db.check()


@pytest.mark.parametrize("first", ["a", "b", "c"])
@pytest.mark.parametrize("second", ["a", "b", "c"])
def test_who_goes_leaves_the_others_right(first: str, second: str) -> None:
    """Owner or not, in any order; what nobody uses any more is gone."""
    db = filled(("a", BY_A), ("b", BY_C), ("c", grouped("RU", (0, "a"))))
    assert len(db.groups()) == 1
    rng = random.Random(5)
    for name in dict.fromkeys((first, second)):
        db.drop(name)
        db.apply(random_changes(rng, db.held))
        db.check()
    if first != second:
        assert not db.groups()
    (left, *_) = db.views
    alone = Database()
    alone.create(left, db.views[left].plan)
    if first != second:
        assert len(db.maps()) == len(alone.maps())
        assert not any(t.state.borrowed for t in db.trees())


def test_a_shared_view_moves_to_a_later_owner_with_its_indexes() -> None:
    """The one that is left writes what it borrowed before, and can be shared again."""
    db = filled(("a", BY_A), ("b", BY_C))
    db.drop("a")
    db.create("a", BY_A)
    assert names_of(db, "a") == {"U"}
    (group,) = db.groups()
    assert [t.state.borrowed for t in group.members] == [frozenset(), {"U"}]
    db.apply(random_changes(random.Random(3), db.held))
    db.check()


def test_an_index_goes_with_the_view_that_listed_by_it() -> None:
    """A factorized view keeps indexes to list by; without it, one that no trigger uses is given up."""
    db = Database("RU")
    plan = grouped("RU", (0, "a"), (1, "d"))
    db.create("listed", grouped("RU", (0, "a"), (0, "b"), (1, "d")), ViewOptions(representation="factorized"))
    db.create("plain", plan)
    rng = random.Random(31)
    db.apply({t: (random_rows(rng, 30), []) for t in db.held})
    db.check()
    assert db.groups()
    kept = [i for m in db.maps().values() for i in m._indexes if i.fields[INDEX_IDLE] < 0]
    assert kept
    db.drop("listed")
    assert not [i for m in db.maps().values() for i in m._indexes if i.fields[INDEX_IDLE] < 0]
    db.apply(random_changes(rng, db.held))
    db.check()


def test_views_with_nothing_in_common_have_no_group() -> None:
    """They run as they would alone."""
    db = filled(("a", grouped("R", (0, "a"))), ("b", grouped("SU", (0, "c"))))
    assert not db.groups()
    assert all(t.group is None and not t.state.borrowed for t in db.trees())


def test_a_result_is_a_view_of_another_tree() -> None:
    """Σ by a key is what a join with the table needs of it, whichever comes first; its own delta is still known."""
    result, join = grouped("U", (0, "b")), grouped("RU", (0, "a"))
    for names in (("result", "join"), ("join", "result")):
        plans = {"result": result, "join": join}
        relation, atoms = joined("U")
        # the rows without a key are not in the join, so neither are they in the group-by that is like it
        known = Filter(relation, Call("isnotnull", (atoms[0]["b"],), BOOLEAN))
        plans["result"] = Aggregate(known, result.keys, result.aggregates, result.names)
        db = filled(*((n, plans[n]) for n in names))
        assert len(db.groups()) == 1, names
        for seed in range(5):
            db.apply(random_changes(random.Random(seed), db.held))
            db.check()
        db.drop(names[0])
        db.apply(random_changes(random.Random(9), db.held))
        db.check()


@pytest.mark.parametrize(
    "options", [ViewOptions(), ViewOptions(strategy="first_order"), ViewOptions(representation="factorized")]
)
def test_keys_and_parts_in_another_order(options: ViewOptions) -> None:
    """A map has the order of who made it, and others find their keys and sums in it, also when they write it."""
    db = Database()
    plans = []
    for shape in ("TRU", "URT"):
        _, atoms = joined(shape)
        calls = [AggregateCall("sum", (atoms[1][name],), kind) for name, kind in (("x", INT64), ("f", FLOAT64))]
        plans.append(
            grouped(shape, (0, "d" if shape == "URT" else "c"), calls=tuple(calls if shape == "TRU" else calls[::-1]))
        )
    db.create("one", plans[0])
    db.create("other", plans[1], options)
    one, other = db.trees()
    assert one.state.maps["R"] is other.state.maps["R"]
    assert one.program.view("R").keys != other.program.view("R").keys
    assert other.state.program.view("R").payload != other.program.view("R").payload
    rng = random.Random(21)
    db.apply({t: (random_rows(rng, 20), []) for t in db.held})
    for name in ("", "one"):
        if name:
            db.drop(name)
        for _ in range(4):
            db.apply(random_changes(rng, db.held))
            db.check()


@pytest.mark.parametrize("options", [ViewOptions(), ViewOptions(representation="factorized")])
def test_self_joins_share_by_occurrence(options: ViewOptions) -> None:
    """Paths of two and of three steps over one table, which is several atoms in each; within a tree nothing is merged."""
    db = Database("R")
    keys = ((0, "a"), (1, "a"))
    db.create("two", grouped("RR", *keys[:1]))
    db.create("three", grouped("RRR", *keys[:1]), options)
    db.create("ends", grouped("RR", (1, "b")))
    assert db.groups()
    for tree in db.trees():
        assert len({id(m) for m in tree.state.maps.values()}) == len(tree.state.maps)
    rng = random.Random(2)
    for _ in range(8):
        db.apply(random_changes(rng, db.held))
        db.check()


def test_a_cycle_shares_what_no_indicator_touches() -> None:
    """A triangle keeps the relations beside its indicator in common with a path."""
    db = filled(("triangle", grouped("RST")), ("tail", grouped("RSTU", (0, "a"))))
    rng = random.Random(4)
    assert all(any(v.indicates is not None for v in t.program.views) for t in db.trees())
    assert db.groups()
    for _ in range(6):
        db.apply(random_changes(rng, db.held))
        db.check()


def test_a_view_over_a_view_is_not_in_step_with_it() -> None:
    """Its input is the other's output; both have a join with the same table."""
    db = Database()
    db.create("below", BY_A)
    below = Scan("below", schema(BY_A))
    scan, fields = TABLES["U"], len(schema(BY_A))
    equal = Call("=", (Column(0, BY_A.keys[0].type, True), Column(fields, scan.fields[0].type, True)), BOOLEAN)
    db.create("above", Aggregate(Join(below, scan, JoinKind.INNER, equal), (), (COUNT,), ("n",)))
    db.create("beside", BY_C)
    users = db.embedded._graph.views_over
    assert {frozenset(users(m)) for g in db.groups() for m in g.members} == {
        frozenset({"below", "above"}),
        frozenset({"beside"}),
    }
    rng = random.Random(6)
    for _ in range(6):
        db.apply(random_changes(rng, db.held))
        db.check()


def state_of(db: Database) -> list[tuple[object, ...]]:
    """All stored views, bit for bit, as sets of entries."""
    return [
        tuple(sorted(map(tuple, m.entries[m.live_slots()][:, : m.offsets[0] + 1].tolist()))) for m in db.maps().values()
    ]


def test_predicates_over_several_tables_stay_with_their_tree() -> None:
    """Each tree checks its own, in code that both run together."""
    relation, atoms = joined("RSU")
    db = Database("RSU")
    for name, sign in (("less", "<"), ("more", ">=")):
        held = Filter(relation, Call(sign, (atoms[0]["x"], atoms[2]["x"]), BOOLEAN))
        db.create(name, Aggregate(held, (atoms[0]["a"],), (COUNT,), ("a", "n")))
    (group,) = db.groups()
    assert len(group.members) == 2
    rng = random.Random(22)
    for _ in range(6):
        db.apply({t: (random_rows(rng, 8), []) for t in db.held})
        db.check()


def test_a_late_failure_takes_everything_back() -> None:
    """An assertion is looked at after all trees have moved."""
    db = filled(("a", BY_A), ("b", BY_C))
    db.create("limit", at_most(400, "RU"), is_assertion=True)
    before = state_of(db)
    rows = [(1, 1, 1, 0.5)] * 60
    with pytest.raises(AssertionViolated):
        db.embedded.apply([change_of(t, rows, []) for t in "RSU"])
    assert state_of(db) == before
    assert all(len(m.logged()) == 0 for m in db.maps().values())
    db.apply(random_changes(random.Random(8), db.held))
    db.check()


def test_a_view_that_fails_is_named() -> None:
    """Not another one of its group, wherever in the group's code it was; and nothing has happened then."""
    wide = Decimal(38, 0)
    p, q = Scan("p", (Field("k", INT32, False), Field("d", wide, True))), Scan("q", (Field("k", INT32, False),))
    k, d, same = Column(0, INT32, False), Column(1, wide, True), Column(2, INT32, False)
    relation = Join(p, q, JoinKind.INNER, Call("=", (k, same), BOOLEAN))
    calls = {"first": COUNT, "sum": AggregateCall("sum", (d,), wide), "last": AggregateCall("count", (d,), INT64)}
    backend = EmbeddedBackend()
    for scan in (p, q):
        backend.create_table(TableDefinition(scan.table, scan.fields))
    for name, call in calls.items():
        plan = Aggregate(relation, (k,), (call,), ("k", "o"))
        backend.create_view(ViewDefinition(name, plan, None, "UTC"))
    (group,) = (o for o in backend._graph.operators if isinstance(o, TreeGroup))
    assert len(group.members) == 3
    half = Number(9 * 10**37)

    def change(scan: Scan, rows: list[Row]) -> Change:
        return Change(scan.table, ChangeKind.WEIGHTED, rows_to_arrow(rows, scan.fields))

    backend.apply([change(p, [(1, half)]), change(q, [(1,)])])
    before = [backend.read(name) for name in calls]
    for failing in (change(q, [(1,), (2,)]), change(p, [(1, half)])):  # in the code of three trees, and in that of one
        with pytest.raises(EvaluationError, match=r"view 'sum'.*cannot be represented"):
            backend.apply([failing])
        assert [backend.read(name) for name in calls] == before
    backend.apply([change(q, [(2,)]), change(p, [(2, None)])])
    assert [len(backend.read(name)) for name in calls] == [2, 2, 2]


def test_a_failing_create_view_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while its tree is loaded, nor while it takes over what others have."""
    db = filled(("a", BY_A), ("b", BY_C))
    operators, members = list(db.embedded._graph.operators), db.groups()[0].members
    states = [m.state for m in members]
    third = ViewDefinition("c", grouped("RU", (0, "a")), None, "UTC")

    def refuse(*_: object) -> TreeState:
        raise EvaluationError("no", condition="NO")

    with monkeypatch.context() as patched:
        patched.setattr(TreeBacked, "state_over", refuse)
        with pytest.raises(EvaluationError, match="view 'c'"):
            db.embedded.create_view(third)
    assert [m.state for m in members] == states
    assert [type(o) for o in db.embedded._graph.operators] == [type(o) for o in operators]
    db.apply(random_changes(random.Random(8), db.held))
    db.check()
    db.create("c", third.plan)
    assert len(db.groups()[0].members) == 3
    db.check()


def test_products_are_taken_in_by_all_trees() -> None:
    """A factorized change of a table that the trees have as one atom, and of one that they have not."""
    db = Database(retain=False)
    for name, plan in (("a", grouped("RSU", (1, "c"))), ("b", grouped("SU", (1, "d"))), ("c", grouped("RS", (0, "a")))):
        db.create(name, plan)
    assert db.groups()
    left: list[tuple[object, ...]] = [(1,), (2,), (2,), (3,)]
    for table in "SRUS":
        assert db.take([product_of(table, left, [(1, 2, 0.5), (2, None, 3.0), (3, 7, None)])])
        db.check()
    assert db.take([product_of("S", left[:2], [(1, 2, 0.5)], weight=-1), change_of("R", [(1, 1, 1, 1.0)], [])])
    db.check()


def test_tables_that_keep_no_rows() -> None:
    """Sharing needs nothing of them after a view is made; a view over them that comes too late is refused as ever."""
    db = filled(("a", BY_A), ("b", BY_C), retain=False)
    assert names_of(db, "a") == {"U"}
    rng = random.Random(11)
    db.drop("a")
    for _ in range(4):
        db.apply({t: (random_rows(rng, 3), []) for t in db.held})
        db.check()


def test_static_tables() -> None:
    """A view made before such a table is filled shares with one made after; its tree has nothing to do for it any more."""
    db = Database(static="U")
    db.create("before", BY_A)
    rng = random.Random(12)
    db.apply({t: (random_rows(rng, 20), []) for t in db.held})
    db.create("after", BY_C)
    db.create("last", grouped("RU", (0, "a")))
    moving: Rows = {t: (random_rows(rng, 4), db.held[t][:3]) for t in "RS"}
    for name in ("before", "after"):
        db.apply(moving)
        db.check()
        db.drop(name)
        moving = {t: (random_rows(rng, 4), db.held[t][:3]) for t in "RS"}
    db.apply(moving)
    db.check()


def test_a_lazy_view_does_not_make_others_wait() -> None:
    """It shares only what it uses of an eager view, and stays right when that goes."""
    db = filled(("a", BY_A), ("b", BY_C))
    db.create("lazy", grouped("RU", (0, "a")), ViewOptions(lazy=True))
    db.create("same", BY_A, ViewOptions(lazy=True))
    assert {len(g.members) for g in db.groups()} == {2}
    rng = random.Random(13)
    for name in ("", "a", "b"):
        if name:
            db.drop(name)
        for _ in range(3):
            db.apply(random_changes(rng, db.held))
        db.check()


def test_what_is_identical_is_computed_once() -> None:
    """Two views touch fewer rows than each for itself, and fewer than in step but with code of their own."""

    def work(*views: str, is_together: bool = True) -> int:
        db = Database()
        plans = {"a": BY_A, "b": grouped("RSU", (0, "a"), (2, "d"))}
        for name in views:
            db.create(name, plans[name])
        for step in (s for g in db.groups() for s in g._steps if not is_together):
            step._alone, step._together = list(step.runs), []
        start = sum(t.state.work for t in db.trees())
        rng = random.Random(14)
        db.apply({"R": (random_rows(rng, 300), [])})
        return sum(t.state.work for t in db.trees()) - start

    assert work("a", "b") < work("a", "b", is_together=False) < work("a") + work("b")


def test_explain_says_what_is_shared() -> None:
    """In the text, and for programs."""
    db = filled(("a", BY_A), ("b", BY_C))
    assert "U shared with view b\n" in db.embedded.explain("a", "text")
    assert "U shared with view a, written and counted by a\n" in db.embedded.explain("b", "text")
    assert '"written_here": false' in db.embedded.explain("b", "json")
    assert "in step with other trees" in db.embedded.explain("b", "code")
    db.drop("b")
    assert "shared" not in db.embedded.explain("a", "text")
