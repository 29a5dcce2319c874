"""What ``explain`` says of views on view trees, and of those that have none, in all modes."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.relational.arrow import arrow_schema
from everview.relational.expressions import Call, Column, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Relation, Scan
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64

ORDERS = Scan("orders", (Field("id", INT32, False), Field("customer", INT32, False)))
ITEMS = Scan("items", (Field("order", INT32, False), Field("price", FLOAT64, False)))
JOINED = Join(ORDERS, ITEMS, JoinKind.INNER, Call("=", (Column(0, INT32, False), Column(2, INT32, False)), BOOLEAN))
SUM = AggregateCall("sum", (Column(3, FLOAT64, False),), FLOAT64)
COUNT = AggregateCall("count", (), INT64)
LEAST = AggregateCall("min", (Column(3, FLOAT64, False),), FLOAT64)
BY_CUSTOMER = Column(1, INT32, False)
MODES = ("text", "json", "svg", "triggers", "code")


def explained(plan: Relation, mode: str, strategy: str = "auto") -> str:
    """The explanation of a view over two tables, of which one has a primary key."""
    backend = EmbeddedBackend()
    backend.create_table(TableDefinition("orders", ORDERS.fields, ("id",)))
    backend.create_table(TableDefinition("items", ITEMS.fields))
    backend.create_view(ViewDefinition("v", plan, "select", "UTC", ViewOptions(strategy=strategy)))
    return backend.explain("v", mode)


def aggregate(*calls: AggregateCall) -> Aggregate:
    """Aggregates by customer over the join."""
    return Aggregate(JOINED, (BY_CUSTOMER,), calls, ("customer", *(c.function for c in calls)))


def test_text_of_a_tree() -> None:
    """Class with and without dependencies, order, what is stored, and the cost of a row with its reason."""
    text = explained(aggregate(SUM), "text")
    assert "maintained incrementally by view trees\n" in text
    for part in (
        "query: free-connex acyclic, q-hierarchical under the dependencies",
        "variable order: ",
        "orders[id, customer]  *",
        "items[id]  *",
        "orders: every look-up is by all keys: items by id",
        "items: dependencies fix what is looked up: orders by id finds one customer",
    ):
        assert part in text
    assert text.splitlines()[:4] == [
        "view v: maintained incrementally by view trees",
        "a changed row of orders costs O(1): one look-up (items by id)",
        "a changed row of items costs O(1): one look-up (orders by id)",
        "operators:",
    ]


def test_a_loaded_static_table_costs_nothing() -> None:
    """It cannot change any more, so no cost of a changed row is told, and it has no trigger."""
    backend = EmbeddedBackend()
    backend.create_table(TableDefinition("orders", ORDERS.fields, ("id",), static=True))
    backend.create_table(TableDefinition("items", ITEMS.fields))
    orders = pa.table({"id": [1], "customer": [7]}, schema=arrow_schema(ORDERS.fields))
    backend.apply([Change("orders", ChangeKind.WEIGHTED, orders)])
    backend.create_view(ViewDefinition("v", aggregate(SUM), "select", "UTC"))
    assert [line for line in backend.explain("v", "text").splitlines() if " costs " in line] == [
        "a changed row of items costs O(1): one look-up (orders by id)"
    ]
    assert "on orders" not in backend.explain("v", "triggers")


def test_text_of_first_order() -> None:
    """No plan of an order, but the relations that are stored."""
    text = explained(aggregate(SUM), "text", "first_order")
    assert "first-order: the result directly over the relations" in text
    assert "result[customer]  *" in text


def test_why_there_is_no_tree() -> None:
    """The reason stands at the operator that does it instead."""
    assert "view tree: no, min(…) is no function of sums" in explained(aggregate(SUM, LEAST), "text")
    told = json.loads(explained(aggregate(LEAST), "json"))
    assert any(o.get("why_no_tree") == "min(…) is no function of sums" for o in told["operators"])


def test_json_of_a_tree() -> None:
    """The same facts as values."""
    told = json.loads(explained(aggregate(SUM, COUNT), "json"))
    (tree,) = [o["view_tree"] for o in told["operators"] if "view_tree" in o]
    assert tree["class_under_dependencies"] == "q-hierarchical"
    assert {v["name"]: v["payload"] for v in tree["views"]}["items"] == ["#", "price"]
    assert tree["updates"]["items"]["bound"] == "O(1)"
    assert told["update"] == {"orders": "O(1)", "items": "O(1)"}


def test_triggers_of_a_tree() -> None:
    """The statements of the program below the step of the operator."""
    text = explained(aggregate(SUM), "triggers")
    assert "    on items\n      δitems[id] := Σ #, price  with id = order\n" in text
    assert "-- slice by id" in text
    assert text.count("+= δ") >= 4


def test_code_of_a_tree() -> None:
    """Instructions of leaf and trigger; registers that are read have been written, or are given."""
    text = explained(Aggregate(Filter(JOINED, Call(">", (Column(3, FLOAT64, False), Literal(1.0, FLOAT64)), BOOLEAN)),
                               (BY_CUSTOMER,), (SUM,), ("customer", "sum")), "code")  # fmt: skip
    assert "leaf, for batches without NULL:" in text
    assert "slice     f2 := f1 * orders index 0 by (r" in text
    assert "multiply  f2.r" in text
    assert "upsert    items[r" in text
    assert "evaluated beforehand" in text  # a comparison of doubles


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", ["auto", "first_order", "recompute"])
def test_every_mode_of_every_strategy(mode: str, strategy: str) -> None:
    """Says something, and the same again; SVG and JSON are well formed."""
    text = explained(aggregate(SUM), mode, strategy)
    assert text == explained(aggregate(SUM), mode, strategy)
    assert "v" in text
    if mode == "svg":
        ElementTree.fromstring(text)
    if mode == "json":
        json.loads(text)
