"""A small database for the tests of durability: tables of every kind, views over them, and numbered transactions.

No query is translated, so no test of these starts a JVM: views are made of plans. Transaction n is a function of n, so a
process that has been killed and one that was not can be compared; the state after any number of them is recomputed by the
reference backend.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import everview as ev
from everview.backends.reference import ReferenceBackend
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.relational.expressions import Call, Column, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Filter, Join, JoinKind, Relation, Scan
from everview.relational.types import BOOLEAN, FLOAT64, INT64, STRING
from everview.session.database import Database

ORDERS = "id BIGINT NOT NULL, customer BIGINT, amount DOUBLE, note STRING"
EVENTS = "kind STRING, size BIGINT"
SIGNALS = "note STRING, kind STRING, size BIGINT"
"""The events again, in a table that keeps no rows; no view reads the note."""
CUSTOMERS = "id BIGINT NOT NULL, city STRING"


def _scan(db: ev.Database, table: str) -> Scan:
    return db._core.catalog.table(table).scan


def plans(db: ev.Database) -> dict[str, Relation]:
    """The views: a grouped sum, a join, a count with a minimum, a filter; a minimum and a join over what is not kept."""
    orders, events, customers, signals = (_scan(db, t) for t in ("orders", "events", "customers", "signals"))
    count = AggregateCall("count", (), INT64)
    joined = Join(orders, customers, JoinKind.INNER, Call("=", (Column(1, INT64), Column(4, INT64, False)), BOOLEAN))
    met = Join(signals, customers, JoinKind.INNER, Call("=", (Column(2, INT64), Column(3, INT64, False)), BOOLEAN))
    return {
        "by_customer": Aggregate(
            orders, (Column(1, INT64),), (count, AggregateCall("sum", (Column(2, FLOAT64),), FLOAT64)), ("c", "n", "s")
        ),
        "by_city": Aggregate(joined, (Column(5, STRING),), (count,), ("city", "n")),
        "by_kind": Aggregate(
            events,
            (Column(0, STRING),),
            (count, AggregateCall("min", (Column(1, INT64),), INT64)),
            ("kind", "n", "least"),
        ),
        "by_signal": Aggregate(
            signals,
            (Column(1, STRING),),
            (count, AggregateCall("min", (Column(2, INT64),), INT64)),
            ("kind", "n", "least"),
        ),
        "signals_by_city": Aggregate(met, (Column(4, STRING), Column(1, STRING)), (count,), ("city", "kind", "n")),
        "large": Filter(orders, Call(">", (Column(2, FLOAT64), Literal(50.0, FLOAT64)), BOOLEAN)),
    }


def add_view(db: ev.Database, name: str, plan: Relation, options: ViewOptions | None = None) -> None:
    """Makes a view of a plan, as ``create_view`` does after translating its text."""
    core = db._core
    with core.locked():
        definition = ViewDefinition(name, plan, None, "UTC", options or ViewOptions())
        core.backend.create_view(definition)
        core.catalog.add(definition)


def make_shop(db: ev.Database) -> None:
    """Makes tables and views; ``customers`` is filled by version 1."""
    db.create_table("orders", ORDERS, primary_key="id")
    db.create_table("events", EVENTS)
    db.create_table("signals", SIGNALS, retain=False)
    db.create_table("customers", CUSTOMERS, primary_key="id", static=True)
    for name, plan in plans(db).items():
        add_view(db, name, plan)
    db.apply({"customers": [(i, f"city {i % 3}") for i in range(10)]})


def transaction(number: int) -> dict[str, list[dict[str, Any]]]:
    """Transaction ``number``, from 0: two orders and an event come; every third takes back what the one before it brought."""
    orders: list[dict[str, Any]] = [_order(2 * number), _order(2 * number + 1)]
    events: list[dict[str, Any]] = [_event(number)]
    if number % 3 == 2:
        orders.append({**_order(2 * number - 2), "_weight": -1})
        events.append({**_event(number - 1), "_weight": -1})
    for row in (*orders, *events):
        row.setdefault("_weight", 1)
    return {"orders": orders, "events": events, "signals": [{"note": "passing", **e} for e in events]}


def _order(number: int) -> dict[str, Any]:
    rng = random.Random(f"order {number}")
    note = None if number % 5 == 0 else f"note {number}"
    return {"id": number, "customer": rng.randrange(12), "amount": rng.random() * 100, "note": note}


def _event(number: int) -> dict[str, Any]:
    return {"kind": f"kind {number % 4}", "size": number % 17}


def contents(db: ev.Database) -> dict[str, Counter[tuple[Any, ...]]]:
    """The bags of all tables that keep rows, and of all views."""
    kept = {t.name for t in db._core.catalog.tables if t.retain}
    tables = ((name, table) for name, table in db.tables.items() if name in kept)
    return {name: Counter(r.rows()) for name, r in (*tables, *db.views.items())}


def recomputed(db: ev.Database) -> dict[str, Counter[tuple[Any, ...]]]:
    """The bags of all views by the reference backend, from the rows that the tables have now."""
    reference = Database(ReferenceBackend())
    core = reference._core
    for definition in db._core.catalog.definitions:
        if isinstance(definition, TableDefinition):
            table = TableDefinition(definition.name, definition.fields, definition.primary_key)
            core.backend.create_table(table)
            core.catalog.add(table)
            if definition.retain:
                reference.apply({definition.name: db.table(definition.name).to_arrow()})
            elif definition.name == "signals":  # they are the events
                reference.apply({"signals": [("passing", *event) for event in db.table("events").rows()]})
        else:
            core.backend.create_view(definition)
            core.catalog.add(definition)
    return {name: Counter(view.rows()) for name, view in reference.views.items()}


def check(db: ev.Database) -> None:
    """Every view equals recomputation."""
    there = contents(db)
    for name, rows in recomputed(db).items():
        assert _rounded(there[name]) == _rounded(rows), name


def _rounded(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row, n in rows.items():
        found[tuple(round(v, 6) if isinstance(v, float) else v for v in row)] += n
    return found


def prepared(path: Path, count: int = 0, **options: Any) -> None:
    """Makes the database at a path, with some transactions."""
    with ev.connect(path, **options) as db:
        make_shop(db)
        for number in range(count):
            db.apply(transaction(number))


def torn(db: ev.Database) -> tuple[str | None, int]:
    """What is wrong with one read of a shop that took transactions 0, 1, 2 …, and the version of that read.

    Two orders come with each transaction, and one of the two before goes with every third.
    """
    with db._core.locked():
        version = db.version
        orders = db.table("orders").to_arrow().num_rows
        counted = sum(row[1] for row in db.view("by_customer").rows())
    done = version - 1
    expected = 2 * done - done // 3
    if not orders == counted == expected:
        return f"version {version}: {orders} orders, {counted} counted, {expected} expected", version
    return None, version
