"""Reading a view: what computing would take long is kept from the first time on."""

from __future__ import annotations

import pyarrow as pa
import pytest

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.operators.join import JoinOperator
from everview.backends.embedded.tree.join_tree_operator import JoinTreeOperator
from everview.catalog import TableDefinition, ViewDefinition
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Field, Filter, Join, JoinKind, Relation, Scan
from everview.relational.types import BOOLEAN, INT64

FIELDS = (Field("a", INT64, nullable=False), Field("b", INT64, nullable=False))


def scan(name: str) -> Scan:
    """A table of two columns."""
    return Scan(name, FIELDS)


def joined(left: Relation, right: Relation, width: int) -> Join:
    """The join of the left side's last column with the right side's first."""
    equal = Call("=", (Column(width - 1, INT64, nullable=False), Column(width, INT64, nullable=False)), BOOLEAN)
    return Join(left, right, JoinKind.INNER, equal)


def backend_with(plan: Relation, *tables: str) -> EmbeddedBackend:
    """A backend with the view ``v`` over tables."""
    backend = EmbeddedBackend()
    for name in tables:
        backend.create_table(TableDefinition(name, FIELDS))
    backend.create_view(ViewDefinition("v", plan, None, "UTC"))
    return backend


def insert(backend: EmbeddedBackend, table: str, *rows: tuple[int, int]) -> None:
    """Adds rows."""
    a, b = zip(*rows, strict=True)
    fields = [pa.field(f.name, pa.int64(), nullable=False) for f in FIELDS]
    backend.apply([Change(table, ChangeKind.WEIGHTED, pa.table([pa.array(a), pa.array(b)], schema=pa.schema(fields)))])


def rows_of(backend: EmbeddedBackend) -> list[tuple[int, ...]]:
    """The rows of the view, sorted."""
    return sorted(backend.iterate("v"))


def test_a_join_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first read keeps the rows; later ones, and those after a change, do not join again."""
    backend = backend_with(joined(scan("r"), scan("s"), 2), "r", "s")
    insert(backend, "r", (1, 2), (1, 3))
    insert(backend, "s", (2, 5), (3, 6))
    assert backend._graph.roots["v"].arrangement is None
    assert rows_of(backend) == [(1, 2, 2, 5), (1, 3, 3, 6)]
    monkeypatch.setattr(JoinOperator, "recompute", lambda *_: pytest.fail("joined again"))
    insert(backend, "s", (2, 7))
    assert rows_of(backend) == [(1, 2, 2, 5), (1, 2, 2, 7), (1, 3, 3, 6)]
    assert backend.read("v").num_rows == 3


def test_a_filter_is_not_kept() -> None:
    """Its rows are one pass over the table, which is kept already."""
    positive = Call(">", (Column(0, INT64, nullable=False), Column(1, INT64, nullable=False)), BOOLEAN)
    backend = backend_with(Filter(scan("r"), positive), "r")
    insert(backend, "r", (1, 2), (3, 2))
    assert rows_of(backend) == [(3, 2)]
    assert backend._graph.roots["v"].arrangement is None


def test_a_join_of_three_is_a_tree() -> None:
    """Also under ``auto``; one of two is a binary join, whose sides other views can use."""
    backend = backend_with(joined(joined(scan("r"), scan("s"), 2), scan("t"), 4), "r", "s", "t")
    assert isinstance(backend._graph.roots["v"], JoinTreeOperator)
    insert(backend, "r", (1, 2))
    insert(backend, "s", (2, 3))
    insert(backend, "t", (3, 4), (3, 5))
    assert rows_of(backend) == [(1, 2, 2, 3, 3, 4), (1, 2, 2, 3, 3, 5)]
