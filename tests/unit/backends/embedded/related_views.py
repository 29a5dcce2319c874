"""Random views over a few tables whose joins have parts in common, and a database that runs them on two backends at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked, TreeGroup
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.factorized_rows import FactorizedChange, FactorRows
from everview.backends.reference.backend import ReferenceBackend
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import EverviewError, UnsupportedQuery
from everview.relational.arrow import arrow_schema, column_to_arrow, rows_from_arrow
from everview.relational.column_names import WEIGHT
from everview.relational.expressions import TRUE, Call, Column, Expression, Literal, conjunction
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Project, Relation, Scan
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64, Row

COUNT = AggregateCall("count", (), INT64)
VARIABLES = {"R": "ab", "S": "bc", "T": "ca", "U": "bd"}
"""Tables and their key columns; R, S and T close a cycle."""
TABLES = {
    name: Scan(name, (*(Field(v, INT32, True) for v in own), Field("x", INT32, True), Field("f", FLOAT64, True)))
    for name, own in VARIABLES.items()
}
Rows: TypeAlias = dict[str, tuple[list[Row], list[Row]]]
"""By table, the rows that come and those that go."""
SHAPES = ("RS", "RSU", "RST", "RU", "SU", "ST", "RR", "RRS", "RRR", "SSU", "R", "S", "RTU", "RSTU", "TRU", "URT")


def joined(
    shape: str, filtered: frozenset[str] = frozenset(), is_chain: bool = False
) -> tuple[Relation, list[dict[str, Column]]]:
    """The natural join of some tables, with the columns of each; tables that occur twice, or all of a chain, make a path.

    Args:
        shape: A table a letter.
        filtered: Tables of which only rows with a positive x count.
        is_chain: Join the last key column of each table to the first of the next.
    """
    atoms: list[dict[str, Column]] = []
    found: Relation | None = None
    start = 0
    for table in shape:
        scan = TABLES[table]
        own = {f.name: Column(start + i, f.type, f.nullable) for i, f in enumerate(scan.fields)}
        start += len(scan.fields)
        conditions: list[Expression] = []
        if table in filtered:
            conditions.append(Call(">", (own["x"], Literal(0, INT32)), BOOLEAN))
        same = [i for i, t in enumerate(shape[: len(atoms)]) if t == table]
        if atoms and (same or is_chain):
            before = same[-1] if same else len(atoms) - 1
            last, first = VARIABLES[shape[before]][-1], VARIABLES[table][0]
            conditions.append(Call("=", (atoms[before][last], own[first]), BOOLEAN))
        elif atoms:
            for v in VARIABLES[table]:
                before = next((a for t, a in zip(shape, atoms, strict=False) if v in VARIABLES[t]), None)
                if before is not None:
                    conditions.append(Call("=", (before[v], own[v]), BOOLEAN))
        atoms.append(own)
        if found is None:
            found = scan if not conditions else Filter(scan, conjunction(tuple(conditions)))
        else:
            found = Join(found, scan, JoinKind.INNER, conjunction(tuple(conditions)) if conditions else TRUE)
    assert found is not None
    return found, atoms


def random_plan(rng: random.Random, shapes: Sequence[str] = SHAPES) -> Relation:
    """A join, mostly with an aggregate on top."""
    shape = rng.choice(shapes)
    filtered = frozenset(t for t in shape if rng.random() < 0.1)
    relation, atoms = joined(shape, filtered, is_chain=rng.random() < 0.2)
    if len(atoms) > 1 and rng.random() < 0.1:
        less = Call("<", (atoms[0]["x"], atoms[-1]["x"]), BOOLEAN)
        relation = Filter(relation, less)
    keys = [a[v] for a, t in zip(atoms, shape, strict=True) for v in VARIABLES[t]]
    picked = rng.sample(keys, rng.choice((0, 1, 1, 2)))
    if rng.random() < 0.2:
        columns = (*picked, rng.choice(atoms)["x"])
        return Project(relation, columns, tuple(f"o{i}" for i in range(len(columns))))
    calls = [COUNT, *([] if rng.random() < 0.5 else [rng.choice(sums(atoms))])]
    return Aggregate(relation, tuple(picked), tuple(calls), tuple(f"o{i}" for i in range(len(picked) + len(calls))))


def sums(atoms: list[dict[str, Column]]) -> list[AggregateCall]:
    """Sums over one table, and over the product of two."""
    found = [AggregateCall("sum", (a["x"],), INT64) for a in atoms]
    found += [AggregateCall("sum", (a["f"],), FLOAT64) for a in atoms[:1]]
    found.append(AggregateCall("sum", (Call("*", (atoms[0]["f"], atoms[-1]["f"]), FLOAT64),), FLOAT64))
    return found


def random_options(rng: random.Random) -> ViewOptions:
    """Mostly the default."""
    choice = rng.randrange(8)
    if choice == 0:
        return ViewOptions(strategy="first_order")
    if choice == 1:
        return ViewOptions(representation="factorized")
    if choice == 2:
        return ViewOptions(lazy=True)
    return ViewOptions(strategy="factorized") if choice == 3 else ViewOptions()


class Database:
    """An embedded backend and the reference, which get the same calls and must answer alike."""

    def __init__(self, tables: str = "RSTU", *, retain: bool = True, static: str = "") -> None:
        self.embedded, self.reference = EmbeddedBackend(), ReferenceBackend()
        self.held: dict[str, list[Row]] = {t: [] for t in tables}
        self.views: dict[str, ViewDefinition] = {}
        for t in tables:
            fields = TABLES[t].fields
            self.embedded.create_table(TableDefinition(t, fields, retain=retain, static=t in static))
            self.reference.create_table(TableDefinition(t, fields, static=t in static))

    def create(
        self, name: str, plan: Relation, options: ViewOptions | None = None, *, is_assertion: bool = False
    ) -> bool:
        """Makes a view on both; False if the embedded backend does not have what its options ask for."""
        view = ViewDefinition(name, plan, None, "UTC", options or ViewOptions(), is_assertion)
        try:
            self.embedded.create_view(view)
        except UnsupportedQuery:
            return False
        self.reference.create_view(ViewDefinition(name, plan, None, "UTC", ViewOptions(), is_assertion))
        self.views[name] = view
        return True

    def drop(self, name: str) -> None:
        """Drops a view of both."""
        self.embedded.drop(name)
        self.reference.drop(name)
        del self.views[name]

    def apply(self, changes: Rows) -> bool:
        """Rows that come and rows that go; False if both backends refuse them."""
        is_done = self.take([change_of(t, come, gone) for t, (come, gone) in changes.items()])
        if is_done:
            for t, (come, gone) in changes.items():
                for row in gone:
                    self.held[t].remove(row)
                self.held[t] += come
        return is_done

    def take(self, changes: Sequence[Change]) -> bool:
        """One transaction; both backends commit it, or both refuse."""
        failed = []
        for backend in (self.embedded, self.reference):
            try:
                backend.apply(changes)
            except EverviewError as error:
                failed.append(type(error))
        assert len(set(failed)) <= 1
        assert len(failed) in (0, 2), failed
        return not failed

    def check(self) -> None:
        """Every view has the rows that the reference has, and so have its changes since it was made."""
        for tree in self.trees():
            result = tree.state.maps.get(tree.program.result)
            assert result is None or result.is_result, "a result logs what its entries were"
        for name, view in self.views.items():
            if view.is_assertion:
                continue
            fields = schema(view.plan)
            rows = Counter(rows_from_arrow(self.embedded.read(name), fields))
            assert rows == Counter(rows_from_arrow(self.reference.read(name), fields)), name
            if view.options.representation != "factorized":
                self._check_changes(name)

    def _check_changes(self, name: str) -> None:
        since = max(b.changes_kept_since(name) for b in (self.embedded, self.reference))
        totals = []
        for backend in (self.embedded, self.reference):
            total: Counter[tuple[object, ...]] = Counter()
            for moved in backend.changes(name, since):
                for row in moved.delta.to_pylist():
                    weight = row.pop(WEIGHT)
                    total[tuple(row.values())] += weight
            totals.append({row: n for row, n in total.items() if n})
        assert totals[0] == totals[1], name

    def trees(self) -> list[TreeBacked]:
        """The view trees of the embedded backend."""
        return [o for o in self.embedded._graph.operators if isinstance(o, TreeBacked)]

    def groups(self) -> list[TreeGroup]:
        """The groups that they form."""
        return [o for o in self.embedded._graph.operators if isinstance(o, TreeGroup)]

    def maps(self) -> dict[int, ViewMap]:
        """The stored views, each once."""
        return {id(m): m for t in self.trees() for m in t.state.maps.values()}


def random_rows(rng: random.Random, count: int, width: int = 2) -> list[Row]:
    """Rows whose keys often meet."""
    return [
        (
            *(rng.choice((0, 0, 1, 2, 3, None)) for _ in range(width)),
            rng.choice((None, -1, 2, 7)),
            rng.choice((None, 0.5, 3.0, -8.0)),
        )
        for _ in range(count)
    ]


def random_changes(rng: random.Random, held: dict[str, list[Row]]) -> Rows:
    """Rows that come to and go from some of the tables."""
    changes = {}
    for table, rows in held.items():
        if rng.random() < 0.6:
            share = rng.choice((0.0, 0.0, 0.3, 0.3, 1.0))
            changes[table] = random_rows(rng, rng.choice((0, 1, 4, 12))), [r for r in rows if rng.random() < share]
    return changes


def change_of(table: str, come: list[Row], gone: list[Row]) -> Change:
    """A weighted change."""
    rows, fields = [*come, *gone], TABLES[table].fields
    columns = [column_to_arrow([r[i] for r in rows], f.type) for i, f in enumerate(fields)]
    weights = pa.array(np.array([1] * len(come) + [-1] * len(gone), dtype=np.int64))
    return Change(table, ChangeKind.WEIGHTED, pa.table(columns, schema=None, names=[f.name for f in fields]), weights)


def product_of(table: str, left: list[Row], right: list[Row], weight: int = 1) -> FactorizedChange:
    """The product of rows over the first column of a table and rows over the others."""
    fields = TABLES[table].fields
    factors = []
    for rows, places in ((left, (0,)), (right, tuple(range(1, len(fields))))):
        columns = [column_to_arrow([r[i] for r in rows], fields[p].type) for i, p in enumerate(places)]
        schema_ = arrow_schema(tuple(fields[p] for p in places))
        weights = np.full(len(rows), weight if places == (0,) else 1, dtype=np.int64)
        factors.append(FactorRows(places, pa.RecordBatch.from_arrays(columns, schema=schema_), weights))
    return FactorizedChange(TableDefinition(table, fields), (tuple(factors),))
