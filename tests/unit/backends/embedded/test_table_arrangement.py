"""Scans of one table that are searched have one arrangement, whatever columns they read; every view answers as if alone."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.operators.join import JoinOperator
from everview.backends.embedded.sources import ScanOperator
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import AssertionViolated, ViewSuspended
from everview.relational.arrow import rows_to_arrow
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.nodes import Field, Filter, Join, JoinKind, Project, Relation, Scan
from everview.relational.types import BOOLEAN, FLOAT64, INT64

R = (
    Field("id", INT64, nullable=False),
    Field("k", INT64, nullable=True),
    Field("x", INT64, nullable=True),
    Field("y", FLOAT64, nullable=True),
    Field("z", INT64, nullable=False),
)
S = (Field("k", INT64, nullable=False), Field("a", INT64, nullable=True), Field("b", INT64, nullable=False))
KEYS = {"r": ("id",), "s": ("k",)}
TABLES = {"r": R, "s": S}
Rows = dict[str, dict[int, tuple[object, ...]]]


def definition(name: str, *, has_key: bool = True, retain: bool = True) -> TableDefinition:
    """One of the two tables."""
    return TableDefinition(name, TABLES[name], KEYS[name] if has_key else (), retain=retain)


def column(name: str, position: int) -> Column:
    """A column of a table."""
    field = TABLES[name][position]
    return Column(position, field.type, field.nullable)


def some_of(name: str, columns: Iterable[int], condition: Expression | None = None) -> Relation:
    """A scan of some columns, of the rows that meet a condition over all of them."""
    rows: Relation = Scan(name, TABLES[name])
    return _only(name, columns, rows if condition is None else Filter(rows, condition))


def _only(name: str, columns: Iterable[int], rows: Relation) -> Relation:
    return Project(rows, tuple(column(name, c) for c in columns), tuple(TABLES[name][c].name for c in columns))


def is_not(position: int, value: int) -> Expression:
    """That a column of r has another value, which may not be NULL."""
    return Call("not", (Call("=", (column("r", position), Literal(value, INT64)), BOOLEAN),), BOOLEAN)


def is_known(position: int) -> Expression:
    """That a column of r is not NULL."""
    return Call("isnotnull", (column("r", position),), BOOLEAN)


FILTERS: tuple[Expression | None, ...] = (
    None,
    is_not(4, 1),
    is_not(2, 1),
    Call("and", (is_not(4, 0), is_known(1)), BOOLEAN),
    Call("=", (column("r", 4), Literal(2, INT64)), BOOLEAN),
    is_not(0, 50),
    Call(">", (Call("div", (Literal(4, INT64), column("r", 4)), INT64), Literal(2, INT64)), BOOLEAN),
)
"""Conditions on r; the last one fails where z is 0."""


def joined(
    r: tuple[int, ...],
    s: tuple[int, ...],
    kind: JoinKind = JoinKind.INNER,
    *,
    is_range: bool = False,
    condition: Expression | None = None,
) -> Join:
    """R ⋈ s on k, in these columns, of which k must be one; perhaps also where r.z < s.b, or of some rows of r."""
    width = len(r)
    left = Column(r.index(1), INT64, True)
    on = Call("=", (left, Column(width + s.index(0), INT64, False)), BOOLEAN)
    if is_range:
        less = Call("<", (Column(r.index(4), INT64, False), Column(width + s.index(2), INT64, False)), BOOLEAN)
        on = Call("and", (on, less), BOOLEAN)
    return Join(some_of("r", r, condition), some_of("s", s), kind, on)


def with_itself(left: Expression | None, right: Expression | None, kind: JoinKind) -> Join:
    """Rows of r that meet one condition, and their partners by k that meet another."""
    columns = (0, 1, 2)
    on = Call("=", (Column(1, INT64, True), Column(4, INT64, True)), BOOLEAN)
    return Join(some_of("r", columns, left), some_of("r", columns, right), kind, on)


def by_id(kind: JoinKind, condition: Expression | None) -> Join:
    """Rows of s, by the ids of some rows of r, none of whose columns can be NULL; for an anti-join z differs from b, too."""
    on = Call("=", (Column(0, INT64, False), Column(2, INT64, False)), BOOLEAN)
    if kind is JoinKind.ANTI:
        equal = Call("=", (Column(1, INT64, False), Column(3, INT64, False)), BOOLEAN)
        on = Call("and", (on, Call("not", (equal,), BOOLEAN)), BOOLEAN)
    return Join(some_of("s", (0, 2)), some_of("r", (0, 4), condition), kind, on)


def create(
    backend: EmbeddedBackend, name: str, plan: Relation, *, is_assertion: bool = False, lazy: bool = False
) -> None:
    """Makes a view, which may be suspended."""
    backend.create_view(
        ViewDefinition(
            name,
            plan,
            None,
            "UTC",
            ViewOptions(lazy=lazy, on_error="reject" if is_assertion else "suspend"),
            is_assertion=is_assertion,
        )
    )


def insert(backend: EmbeddedBackend, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Adds rows, or replaces those with their keys."""
    backend.apply([Change(table, ChangeKind.UPSERT, rows_to_arrow(list(rows), TABLES[table]))])


def arrangements(backend: EmbeddedBackend) -> list[str]:
    """The tables that are kept, each as often as it is, and a star for whatever else is."""
    scans = [o for o in backend._graph.operators if isinstance(o, ScanOperator)]
    shared = [o.source.table.name for o in scans if o.nbytes()]
    kept = [o for o in backend._graph.operators if o.arrangement is not None]
    return sorted(shared + [o.source.table.name if isinstance(o, ScanOperator) else "*" for o in kept])


def alone(held: Rows, plan: Relation, *, has_key: bool) -> list[str] | str:
    """What a view answers in a database of its own, which is made after its rows."""
    backend = EmbeddedBackend()
    for name in TABLES:
        backend.create_table(definition(name, has_key=has_key))
        insert_all(backend, name, held)
    create(backend, "v", plan)
    return answer(backend, "v")


def answer(backend: EmbeddedBackend, name: str) -> list[str] | str:
    """The rows of a view, or that it fails."""
    try:
        return sorted(map(repr, backend.iterate(name)))
    except ViewSuspended:
        return "suspended"


def insert_all(backend: EmbeddedBackend, table: str, held: Rows) -> None:
    """Adds all rows of a table."""
    if held[table]:
        change = Change(table, ChangeKind.WEIGHTED, rows_to_arrow(list(held[table].values()), TABLES[table]))
        backend.apply([change])


def random_row(rng: random.Random, table: str, key: int) -> tuple[object, ...]:
    """A row with few different values."""
    if table == "s":
        return (key, rng.choice((None, 1, 2)), rng.randrange(3))
    return (key, rng.choice((None, *range(4))), rng.choice((None, 1)), rng.choice((None, 0.0, 1.5)), rng.randrange(3))


def random_view(rng: random.Random) -> Relation:
    """A join of some columns and rows, of one kind or another."""
    kind = rng.choice((JoinKind.INNER, JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI))
    if rng.random() < 0.2:
        return with_itself(rng.choice(FILTERS), rng.choice(FILTERS), kind)
    if rng.random() < 0.2:
        return by_id(rng.choice((JoinKind.INNER, JoinKind.ANTI)), rng.choice(FILTERS))
    is_range = rng.random() < 0.3
    r = {1, *rng.sample(range(5), rng.randint(1, 4)), *((4,) if is_range else ())}
    s = {0, *rng.sample(range(3), rng.randint(0, 2)), *((2,) if is_range else ())}
    orders = [rng.sample(sorted(c), len(c)) for c in (r, s)]
    return joined(tuple(orders[0]), tuple(orders[1]), kind, is_range=is_range, condition=rng.choice(FILTERS))


TOO_MUCH = 99


@given(st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_views_of_any_columns_are_right(seed: int) -> None:
    """Views come and go, fail and wait between changes, of which some are rolled back, over tables with keys and without."""
    rng = random.Random(seed)
    backend, views, has_key = EmbeddedBackend(), {}, rng.random() < 0.7
    held: Rows = {"r": {}, "s": {}}
    for name in TABLES:
        backend.create_table(definition(name, has_key=has_key))
    limit = Filter(joined((0, 1, 4), (0, 1)), Call("=", (Column(2, INT64, False), Literal(TOO_MUCH, INT64)), BOOLEAN))
    create(backend, "limit", limit, is_assertion=True)
    for step in range(12):
        choice = rng.random()
        if choice < 0.3 or step == 4:
            views[f"v{step}"] = random_view(rng)
            create(backend, f"v{step}", views[f"v{step}"], lazy=rng.random() < 0.3)
        elif choice < 0.4 and views:
            name = rng.choice(list(views))
            backend.drop(name)
            del views[name]
        else:
            change(rng, backend, held)
        for name, plan in views.items():
            if rng.random() < 0.7:
                assert answer(backend, name) == alone(held, plan, has_key=has_key)
    for name, plan in views.items():
        assert answer(backend, name) == alone(held, plan, has_key=has_key)


def change(rng: random.Random, backend: EmbeddedBackend, held: Rows) -> None:
    """Inserts and deletes some rows of both tables; one change in four breaks the assertion, if its row finds a partner."""
    changes, after = [], {name: dict(rows) for name, rows in held.items()}
    for table, fields in TABLES.items():
        gone = rng.sample(sorted(held[table]), min(len(held[table]), rng.randrange(3)))
        new = {k: random_row(rng, table, k) for k in rng.sample(range(12), rng.randrange(4)) if k not in held[table]}
        if table == "r" and 50 not in held[table] and rng.random() < 0.25:
            new[50] = (50, 1, None, None, TOO_MUCH)
        rows = [held[table][k] for k in gone] + list(new.values())
        weights = [-1] * len(gone) + [1] * len(new)
        for k in gone:
            del after[table][k]
        after[table] |= new
        if rows:
            changes.append(Change(table, ChangeKind.WEIGHTED, rows_to_arrow(rows, fields), pa.array(weights)))
    try:
        backend.apply(changes)
    except AssertionViolated:
        return
    held |= after


def database(*, rows: int = 0, has_key: bool = True, retain: bool = True) -> EmbeddedBackend:
    """Both tables, with some rows: in r all ids differ, and all else is the same."""
    backend = EmbeddedBackend()
    for name in TABLES:
        backend.create_table(definition(name, has_key=has_key, retain=retain))
    if rows:
        every = {i: (i, 1, None, 0.5, 0) for i in range(rows)}
        insert_all(backend, "r", {"r": every, "s": {}})
        insert_all(backend, "s", {"r": {}, "s": {1: (1, None, 7), 2: (2, 5, 7)}})
    return backend


EIGHT = [joined((0, 1, *more), (0, *others)) for more in ((), (2,), (3, 4), (2, 4)) for others in ((1,), (2, 1))]


@pytest.mark.parametrize("rows", [0, 20])
def test_eight_views_over_a_join_keep_each_table_once(rows: int) -> None:
    """Whatever columns they read, and whether they are made before the rows or after."""
    backend = database(rows=rows)
    for i, plan in enumerate(EIGHT):
        create(backend, f"v{i}", plan)
    assert arrangements(backend) == ["r", "s"]
    insert(backend, "r", [(100, 2, 1, None, 3)])
    insert(backend, "s", [(2, 6, 8)])
    assert sum(row == (100, 2, 2, 6) for row in backend.iterate("v0")) == 1
    assert (100, 2, None, 3, 2, 8, 6) in set(backend.iterate("v5"))


def test_a_view_that_goes_leaves_the_others_what_they_read() -> None:
    """The arrangement gets narrower, and goes with the last view."""
    backend = database(rows=300)
    widths = []
    for i, plan in enumerate(EIGHT):
        create(backend, f"v{i}", plan)
        widths.append(arranged_bytes(backend))
    assert widths == sorted(widths)
    for i in reversed(range(1, 8)):
        backend.drop(f"v{i}")
    assert arranged_bytes(backend) == widths[0]
    insert(backend, "s", [(1, 5, 8)])
    assert set(backend.iterate("v0")) == {(i, 1, 1, 5) for i in range(300)}
    backend.drop("v0")
    assert arrangements(backend) == []


def arranged_bytes(backend: EmbeddedBackend) -> int:
    """What scans keep."""
    return sum(sum(o.nbytes().values()) for o in backend._graph.operators if isinstance(o, ScanOperator))


def test_a_view_that_could_not_be_made_leaves_nothing_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had arranged is not taken for the table's content later."""
    backend = database(rows=3)
    with monkeypatch.context() as patched:
        patched.setattr(JoinOperator, "load", lambda *_: pytest.fail("cannot be made"))
        with pytest.raises(pytest.fail.Exception):
            create(backend, "v", EIGHT[0])
    insert(backend, "r", [(100, 2, 1, None, 3)])
    create(backend, "v", EIGHT[0])
    assert (100, 2, 2, 5) in set(backend.iterate("v"))


def test_a_scan_in_which_rows_repeat_keeps_them_once() -> None:
    """Without the key, all rows of r are one: the arrangement of the others would make each change meet all of them."""
    backend = database(rows=500)
    create(backend, "wide", EIGHT[3])
    create(backend, "narrow", joined((1, 2), (0, 1)))
    assert arrangements(backend) == ["r", "r", "s"]
    (narrow,) = (o for o in backend._graph.operators if isinstance(o, ScanOperator) and o.columns == (1, 2))
    assert narrow.arrangement is not None
    assert len(narrow.arrangement.rows) == 1


def test_a_scan_in_which_rows_differ_needs_no_key() -> None:
    """What the table holds shows that its rows are distinct."""
    backend = database(rows=500, has_key=False)
    for i, plan in enumerate(EIGHT):
        create(backend, f"v{i}", plan)
    assert arrangements(backend) == ["r", "s"]


def test_a_table_that_keeps_no_rows_is_arranged_once() -> None:
    """Its views are made before its rows, so nothing has to be read back."""
    backend = database(retain=False)
    for i, plan in enumerate(EIGHT):
        create(backend, f"v{i}", plan)
    insert_all(backend, "r", {"r": {1: (1, 1, 3, 0.5, 9)}, "s": {}})
    backend.drop("v7")
    insert_all(backend, "s", {"r": {}, "s": {1: (1, None, 7)}})
    assert arrangements(backend) == ["r", "s"]
    assert list(backend.iterate("v6")) == [(1, 1, 3, 9, 1, None)]


MOST = [is_not(4, value) for value in range(3, 11)]


@pytest.mark.parametrize("rows", [0, 20])
def test_views_of_most_rows_keep_the_table_once(rows: int) -> None:
    """Eight joins with different filters search one arrangement, once there are two, and each meets its own rows alone."""
    backend = database(rows=rows)
    for i, condition in enumerate(MOST):
        create(backend, f"v{i}", joined((0, 1, *((2,) if i % 2 else (3,))), (0, 1), condition=condition))
        assert arrangements(backend) == (["*", "s"] if i == 0 else ["r", "s"])
    insert(backend, "r", [(100, 2, 1, None, 3)])
    insert(backend, "s", [(2, 6, 8)])
    assert (100, 2, None, 2, 6) not in set(backend.iterate("v0"))
    assert (100, 2, None, 2, 6) in set(backend.iterate("v2"))
    for i in range(8):
        backend.drop(f"v{i}")
    assert arrangements(backend) == []


def test_a_view_of_few_rows_keeps_these_alone() -> None:
    """What it would meet in the table's arrangement is more than twice what it needs; so with what repeats without the key."""
    backend = database(rows=20)
    create(backend, "most", joined((0, 1), (0, 1), condition=MOST[0]))
    create(backend, "every", joined((0, 1, 2), (0, 1)))
    assert arrangements(backend) == ["r", "s"]
    create(backend, "few", joined((0, 1), (0, 1), condition=FILTERS[4]))
    create(backend, "repeated", joined((1, 2), (0, 1), condition=MOST[0]))
    assert arrangements(backend) == ["*", "*", "r", "s"]


def test_what_can_fail_is_not_tested_again() -> None:
    """A filter that may fail keeps the rows that have passed it."""
    backend = database(rows=20)
    create(backend, "every", joined((0, 1, 2), (0, 1)))
    create(backend, "failing", joined((0, 1), (0, 1), condition=Call("not", (FILTERS[6],), BOOLEAN)))
    assert answer(backend, "failing") == "suspended"
    insert(backend, "r", [(i, 1, None, None, 5) for i in range(20)])
    assert len(answer(backend, "failing")) == 20
    assert arrangements(backend) == ["*", "r", "s"]


def test_a_part_whose_rows_users_look_up_keeps_them() -> None:
    """An index that was made for look-ups stays, and joins of the same rows take it too."""
    backend = database(rows=20)
    create(backend, "rows", some_of("r", (0, 1), MOST[0]))
    assert backend.lookup("rows", {"k": 1}).num_rows == 20
    create(backend, "v", joined((0, 1), (0, 1), condition=MOST[0]))
    create(backend, "w", joined((0, 1), (0, 1), condition=MOST[1]))
    assert arrangements(backend) == ["*", "*", "s"]


def test_a_part_that_somebody_keeps_stays_where_it_is() -> None:
    """An anti-join by other values counts in the rows that joins search: these do not move into the table's arrangement."""
    backend = database(rows=0)
    create(backend, "v", by_id(JoinKind.INNER, MOST[0]))
    create(backend, "others", by_id(JoinKind.ANTI, MOST[0]))
    create(backend, "w", by_id(JoinKind.INNER, MOST[1]))
    insert(backend, "s", [(1, None, 0), (2, None, 0)])
    insert(backend, "r", [(1, None, None, None, 1), (2, None, None, None, 0)])
    assert answer(backend, "others") == ["(2, 0)"]
    assert answer(backend, "v") == answer(backend, "w") == ["(1, 0, 1, 1)", "(2, 0, 2, 0)"]
