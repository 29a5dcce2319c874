"""An ad-hoc query leaves nothing behind."""

from __future__ import annotations

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.catalog import TableDefinition, ViewDefinition
from everview.relational.arrow import rows_to_arrow
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Field, Filter, Join, JoinKind, Scan
from everview.relational.types import BOOLEAN, INT32

FIELDS = (Field("a", INT32), Field("b", INT32))


def test_a_query_keeps_no_arrangement() -> None:
    """The index that a query's join needed goes with the query, and the view it shared a scan with stays right."""
    backend = EmbeddedBackend()
    backend.create_table(TableDefinition("t", FIELDS))
    scan = Scan("t", FIELDS)
    view = Filter(scan, Call("isnotnull", (Column(0, INT32),), BOOLEAN))
    backend.create_view(ViewDefinition("v", view, None, "UTC"))
    change = Change("t", ChangeKind.WEIGHTED, rows_to_arrow([(1, 2), (2, 1)], FIELDS))
    backend.apply([change])
    before = backend.stats("v")["bytes"]
    condition = Call("=", (Column(0, INT32), Column(3, INT32)), BOOLEAN)
    assert backend.query(Join(scan, scan, JoinKind.INNER, condition)).num_rows == 2
    assert backend.stats("v")["bytes"] == before
    backend.apply([change])
    assert backend.read("v").num_rows == 4


def test_a_look_up_keeps_its_index() -> None:
    """An index that a user asks through survives a query, and follows later changes."""
    backend = EmbeddedBackend()
    backend.create_table(TableDefinition("t", FIELDS))
    scan = Scan("t", FIELDS)
    backend.create_view(ViewDefinition("v", scan, None, "UTC"))
    backend.apply([Change("t", ChangeKind.WEIGHTED, rows_to_arrow([(1, 2)], FIELDS))])
    assert backend.lookup("v", {"a": 1}).num_rows == 1
    with_index = backend.stats("v")["bytes"]
    backend.query(scan)
    assert backend.stats("v")["bytes"] == with_index
    backend.apply([Change("t", ChangeKind.WEIGHTED, rows_to_arrow([(1, 3)], FIELDS))])
    assert backend.lookup("v", {"a": 1}).num_rows == 2
