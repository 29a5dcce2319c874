"""Views that fail alone: streams whose rows come and go on which views fail, with other views watching.

The law: after every transaction a view is suspended exactly if recomputing it fails, or a view that it reads is suspended; all
others have the recomputed rows; and what a view held last plus its deltas since is what it holds when it answers again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.base import Backend, Change, ChangeKind
from everview.backends.embedded import suspended_views
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.reference.backend import ReferenceBackend
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import EvaluationError, ViewSuspended
from everview.relational.arrow import canonical_rows, rows_from_arrow, rows_to_arrow
from everview.relational.column_names import WEIGHT
from everview.relational.expressions import Call, Cast, Column, Literal
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Field,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    TopK,
    UnionAll,
)
from everview.relational.schema import schema
from everview.relational.traverse import tables_of
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64, STRING, Row

R = Scan("r", (Field("k", INT32, True), Field("x", INT64, True), Field("s", STRING, True)))
S = Scan("s", (Field("k", INT32, True), Field("y", INT64, True)))
TABLES = {"r": R, "s": S}
K, X, TEXT = Column(0, INT32), Column(1, INT64), Column(2, STRING)
HUNDRED = Literal(100.0, FLOAT64)
LARGE = Literal(2**62, INT64)


def _ratio(x: Column) -> Call:
    return Call("/", (HUNDRED, Cast(x, FLOAT64)), FLOAT64)


def _project(child: Relation, *columns: object) -> Project:
    return Project(child, columns, tuple(f"c{i}" for i in range(len(columns))))  # type: ignore[arg-type]


def _grouped(child: Relation, *calls: AggregateCall, keys: tuple[Column, ...] = (K,)) -> Aggregate:
    return Aggregate(child, keys, calls, tuple(f"c{i}" for i in range(len(keys) + len(calls))))


JOINED = Join(R, S, JoinKind.INNER, Call("=", (K, Column(3, INT32)), BOOLEAN))
Y = Column(4, INT64)
COUNT = AggregateCall("count", (), INT64)
PRODUCT = Call("*", (Column(1, INT64), LARGE), INT64)

PLANS: dict[str, Relation] = {
    "ratios": _project(R, K, _ratio(X)),
    "filtered": Filter(R, Call(">", (_ratio(X), Literal(0.0, FLOAT64)), BOOLEAN)),
    "numbers": _project(R, K, Cast(TEXT, INT32)),
    "products": _project(R, K, PRODUCT),
    "sum of ratios": _grouped(R, AggregateCall("sum", (_ratio(X),), FLOAT64), COUNT),
    "sum of large": _grouped(R, AggregateCall("sum", (X,), INT64), COUNT),
    "overflowing sum": _grouped(Join(R, S, JoinKind.INNER), AggregateCall("sum", (PRODUCT,), INT64), COUNT, keys=()),
    "ratio of a sum": _project(
        _grouped(S, AggregateCall("sum", (Column(1, INT64),), INT64)), K, _ratio(Column(1, INT64))
    ),
    "joined ratios": _grouped(JOINED, AggregateCall("sum", (_ratio(Y),), FLOAT64)),
    "outer": Join(R, S, JoinKind.LEFT, Call(">", (_ratio(Column(1, INT64)), Cast(Y, FLOAT64)), BOOLEAN)),
    "top": TopK(_project(R, K, _ratio(X)), (SortKey(Column(1, FLOAT64)),), 2),
    "distinct": Distinct(_project(R, _ratio(X))),
    "except": ExceptAll(_project(R, Cast(TEXT, INT32)), _project(S, Column(0, INT32))),
    # These never fail, and share sub-plans and view trees with those that do.
    "counts": _grouped(R, COUNT),
    "pairs": _grouped(JOINED, COUNT),
    "both": UnionAll((_project(R, K), _project(S, K))),
    "rows": R,
}
OVER = {
    "ratios": ("k", FLOAT64),
    "ratio of a sum": ("k", FLOAT64),
    "numbers": ("k", INT32),
    "products": ("k", INT64),
    "counts": ("k", INT64),
}
"""Views that others read: their first column is a key, the second a number."""


def _over(name: str) -> dict[str, Relation]:
    """Views over a view: one that sums, and one that may fail for itself."""
    _, number = OVER[name]
    scan = Scan(name, schema(PLANS[name]))
    largest = AggregateCall("max", (Column(1, number),), number)
    inverse = Call("/", (HUNDRED, Cast(Column(1, number), FLOAT64)), FLOAT64)
    return {f"over {name}": _grouped(scan, largest, COUNT), f"inverse of {name}": _project(scan, K, inverse)}


@dataclass
class Watched:
    """A view of one database, and what its reader knows of it."""

    plan: Relation
    held: Counter[Row] = field(default_factory=Counter)
    at: int = 0


class Played:
    """One backend with views, and the law over them."""

    def __init__(self, backend: Backend, plans: dict[str, Relation], lazy: set[str]) -> None:
        self.backend = backend
        self.tables: dict[str, Counter[Row]] = {"r": Counter(), "s": Counter()}
        self.views: dict[str, Watched] = {}
        for scan in TABLES.values():
            backend.create_table(TableDefinition(scan.table, scan.fields))
        for name, plan in plans.items():
            self.create(name, plan, is_lazy=name in lazy)

    def create(self, name: str, plan: Relation, *, is_lazy: bool = False) -> None:
        options = ViewOptions(lazy=is_lazy, on_error="suspend")
        self.backend.create_view(ViewDefinition(name, plan, None, "UTC", options))
        self.views[name] = Watched(plan, at=self.backend.version)
        if name not in self.backend.suspensions() and not is_lazy:
            self.views[name].held = self._read(name)

    def apply(self, transaction: dict[str, list[tuple[Row, int]]]) -> None:
        changes = []
        for table, rows in transaction.items():
            arrow = rows_to_arrow([r for r, _ in rows], TABLES[table].fields)
            changes.append(Change(table, ChangeKind.WEIGHTED, arrow, pa.array([w for _, w in rows], pa.int64())))
            for row, weight in rows:
                self.tables[table][row] += weight
        self.backend.apply(changes)

    def _read(self, name: str) -> Counter[Row]:
        return Counter(rows_from_arrow(self.backend.read(name), schema(self.views[name].plan)))

    def check(self, *, lazy: set[str]) -> None:
        """Every view against its recomputation."""
        contents = {t: list(rows.elements()) for t, rows in self.tables.items()}
        failed: dict[str, str] = {}
        for name, view in self.views.items():
            below = [n for n in tables_of(view.plan) if n in failed]
            try:
                if not below:
                    contents[name] = canonical_rows(evaluate_plan(view.plan, contents), schema(view.plan))
            except EvaluationError as error:
                failed[name] = error.condition
            if below:
                failed[name] = failed[below[0]]
            if name in failed:
                with pytest.raises(ViewSuspended) as caught:
                    self.backend.read(name)
                assert caught.value.condition == failed[name], name
                assert (below[0] in caught.value.reason) if below else True
                continue
            expected = Counter(contents[name])
            assert self._read(name) == expected, name
            if name not in lazy:
                for change in self.backend.changes(name, view.at):
                    rows = rows_from_arrow(change.delta.drop_columns([WEIGHT]), schema(view.plan))
                    for row, weight in zip(rows, change.delta.column(WEIGHT).to_pylist(), strict=True):
                        view.held[row] += weight
                assert +view.held == expected, name
                assert min(view.held.values(), default=0) >= 0, name
                view.at = self.backend.version


KEYS = st.sampled_from([1, 2, None])
ROWS = {
    "r": st.tuples(KEYS, st.sampled_from([0, 1, 2, 2**62, None]), st.sampled_from(["1", "7", "x", None])),
    "s": st.tuples(KEYS, st.sampled_from([0, 1, -1, 5, None])),
}
TRANSACTIONS = st.fixed_dictionaries(
    {}, optional={t: st.lists(st.tuples(rows, st.booleans()), min_size=1, max_size=4) for t, rows in ROWS.items()}
)


def _transaction(
    held: dict[str, Counter[Row]], drawn: dict[str, list[tuple[Row, bool]]]
) -> dict[str, list[tuple[Row, int]]]:
    """Deletes are of rows that are there: with the flag, one of them goes for each that comes."""
    made: dict[str, list[tuple[Row, int]]] = {}
    for table, rows in drawn.items():
        then = Counter(held[table])
        for row, deletes in rows:
            there = sorted((r for r, n in then.items() if n > 0), key=repr)
            given_row, weight = (there[0], -1) if deletes and there else (row, 1)
            then[given_row] += weight
            made.setdefault(table, []).append((given_row, weight))
    return made


@pytest.mark.parametrize("engine", ["embedded", "reference"])
@given(st.data())
def test_any_stream(engine: str, data: st.DataObject) -> None:
    """The law, for some views of all shapes over tables and views, eager and lazy, made at any time."""
    names = data.draw(st.lists(st.sampled_from(sorted(PLANS)), min_size=2, max_size=6, unique=True))
    plans = {name: PLANS[name] for name in names}
    for name in [n for n in names if n in OVER]:
        plans |= _over(name)
    late = {n: plans.pop(n) for n in data.draw(st.lists(st.sampled_from(sorted(plans)), max_size=2, unique=True))}
    for name in list(plans):  # what reads a late view comes late itself
        if any(read in late for read in tables_of(plans[name])):
            late[name] = plans.pop(name)
    late = dict(sorted(late.items(), key=lambda item: any(r in late for r in tables_of(item[1]))))
    readable = [n for n in (*plans, *late) if not any(n in tables_of(p) for p in (*plans.values(), *late.values()))]
    lazy = set(data.draw(st.lists(st.sampled_from(readable), max_size=2, unique=True)))
    played = Played(EmbeddedBackend() if engine == "embedded" else ReferenceBackend(), plans, lazy)
    for drawn in data.draw(st.lists(TRANSACTIONS, max_size=4)):
        played.apply(_transaction(played.tables, drawn))
        played.check(lazy=lazy)
    for name, plan in late.items():
        played.create(name, plan, is_lazy=name in lazy)
    played.check(lazy=lazy)
    for drawn in data.draw(st.lists(TRANSACTIONS, max_size=4)):
        played.apply(_transaction(played.tables, drawn))
        if data.draw(st.booleans()):  # what nobody reads for a while
            played.check(lazy=lazy)
    for table in TABLES:
        rows = [(row, -n) for row, n in played.tables[table].items() if n]
        if rows:
            played.apply({table: rows})
    played.check(lazy=lazy)


@given(st.data())
def test_two_databases_in_turns(data: st.DataObject) -> None:
    """The law for each of two databases of one process, with views of the same names, some of the same plans."""
    plans = st.lists(st.sampled_from(sorted(PLANS)), min_size=1, max_size=3, unique=True)
    both = []
    for _ in range(2):
        chosen = data.draw(plans)
        named = {f"v{i}": PLANS[name] for i, name in enumerate(chosen)}
        both.append(Played(EmbeddedBackend(), named, set()))
    for turn, drawn in data.draw(st.lists(st.tuples(st.integers(0, 1), TRANSACTIONS), max_size=8)):
        both[turn].apply(_transaction(both[turn].tables, drawn))
        for played in both:
            played.check(lazy=set())


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI])
@pytest.mark.parametrize("key", [False, True])
def test_a_bound_fails_beside_rows_without_a_value(kind: JoinKind, key: bool) -> None:
    """100 / x > y is computed for x = 0 also where the only partners have no y; not where there are none."""
    above = Call(">", (_ratio(Column(1, INT64)), Cast(Y, FLOAT64)), BOOLEAN)
    same = Call("=", (K, Column(3, INT32)), BOOLEAN)
    condition = Call("and", (same, above), BOOLEAN) if key else above
    late = Join(R, S, kind, condition)
    played = Played(EmbeddedBackend(), {"late": late}, set())
    played.apply({"r": [((1, 0, None), 1), ((2, 4, None), 1)]})
    played.check(lazy=set())
    played.apply({"s": [((2, None), 1)]})
    played.check(lazy=set())
    for rows in ([((1, None), 2)], [((1, 7), 1)], [((1, 7), -1), ((1, None), -2)], [((2, None), -1)]):
        played.apply({"s": rows})
        played.check(lazy=set())
    played.apply({"s": [((1, None), 1)], "r": [((1, 0, None), -1)]})
    played.check(lazy=set())
    played.apply({"r": [((1, 0, None), 1)]})
    played.check(lazy=set())
    assert played.backend.suspensions()
    played.create("made over it", late)
    played.check(lazy=set())


def test_large_tables_are_not_read_after_every_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that never answered is tried again when as many rows have changed as its table has, or when it is read."""
    monkeypatch.setattr(suspended_views, "FEW_ROWS", 10)
    played = Played(EmbeddedBackend(), {"counts": PLANS["counts"]}, set())
    played.apply({"r": [((1, n, None), 1) for n in range(101)]})
    played.create("ratios", PLANS["ratios"])
    played.apply({"r": [((1, 0, None), -1)]})
    assert set(played.backend.suspensions()) == {"ratios"}
    played.check(lazy=set())  # reads it
    assert not played.backend.suspensions()
    played.apply({"r": [((1, 0, None), 1)]})
    played.create("filtered", PLANS["filtered"])
    played.apply({"r": [((1, 0, None), -1)]})
    assert set(played.backend.suspensions()) == {"filtered"}
    assert played.backend.refreshed().keys() == {"ratios", "counts"}
    played.apply({"r": [((2, n, None), 1) for n in range(1, 201)]})
    assert not played.backend.suspensions()
    assert played.backend.refreshed()["filtered"].how == "full"
    played.check(lazy=set())


def test_a_view_comes_back_from_deltas(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large its table is, it answers with the transaction that takes the rows away, and no table is read."""
    monkeypatch.setattr(suspended_views, "FEW_ROWS", 10)
    names = ("ratios", "sum of ratios", "joined ratios", "ratio of a sum", "counts")
    plans = {name: PLANS[name] for name in names} | _over("ratios")
    played = Played(EmbeddedBackend(), plans, set())
    played.apply({"r": [((1, n, None), 1) for n in range(1, 101)], "s": [((1, 5), 1), ((2, 7), 1)]})
    failing = {"ratios", "sum of ratios", "over ratios", "inverse of ratios"}
    for _ in range(2):  # it comes back as it was, and can fail again
        played.apply({"r": [((1, 0, None), 2), ((3, 8, None), 1)]})
        played.apply({"r": [((1, 0, None), -1)], "s": [((1, 6), 1)]})
        assert set(played.backend.suspensions()) == failing
        assert "from deltas" in played.backend.explain("ratios", "text")
        with monkeypatch.context() as patched:
            patched.setattr(suspended_views, "add_to_graph", None)  # nothing is built
            played.apply({"r": [((1, 0, None), -1), ((3, 9, None), 1)]})
        assert not played.backend.suspensions()
        assert {played.backend.refreshed()[name].how for name in failing} == {"incremental"}
        played.check(lazy=set())


def test_paused_views_are_not_shared_with_new_ones() -> None:
    """A new view with the same sub-plans has operators of its own; drops and lazy views end the pause, and nothing else."""
    played = Played(EmbeddedBackend(), {"filtered": PLANS["filtered"], "distinct": PLANS["distinct"]}, set())
    played.apply({"r": [((1, 1, None), 1), ((1, 2, None), 1)]})
    played.apply({"r": [((1, 0, None), 1), ((2, 5, None), 1)]})
    for name in ("ratios", "top", "rows", "filtered again"):
        played.create(name, PLANS[name.removesuffix(" again")])
    played.check(lazy=set())
    played.apply({"r": [((1, 0, None), -1), ((2, 6, None), 1)]})
    played.check(lazy=set())
    played.apply({"r": [((1, 0, None), 1)]})
    played.backend.drop("distinct")
    del played.views["distinct"]
    played.create("counts", PLANS["counts"], is_lazy=True)
    played.apply({"r": [((1, 0, None), -1)]})
    played.check(lazy={"counts"})
