from __future__ import annotations

import pytest

from everview.catalog import Catalog, TableDefinition, ViewDefinition
from everview.errors import AlreadyExists, DependencyError, UnknownName
from everview.relational.nodes import Distinct, Field, Relation, Scan, UnionAll
from everview.relational.types import INT32

FIELDS = (Field("x", INT32), Field("y", INT32))


def view(name: str, plan: Relation, *, is_assertion: bool = False) -> ViewDefinition:
    """A definition with this plan."""
    return ViewDefinition(name, plan, None, "UTC", is_assertion=is_assertion)


@pytest.fixture
def catalog() -> Catalog:
    """Two tables, a view over them, a view over the view, and an assertion."""
    made = Catalog()
    made.add(TableDefinition("a", FIELDS, ("y", "x")))
    made.add(TableDefinition("B", FIELDS))
    made.add(view("v", UnionAll((Scan("a", FIELDS), Scan("b", FIELDS)))))
    made.add(view("w", Distinct(Scan("V", FIELDS))))
    made.add(view("empty", Scan("w", FIELDS), is_assertion=True))
    return made


def test_inputs_come_in_order(catalog: Catalog) -> None:
    """What a view needs, directly or not, is listed so that each comes after what it needs itself."""
    assert [d.name for d in catalog.inputs_of(catalog.view("W"))] == ["a", "B", "v"]
    assert [d.name for d in catalog.inputs_of(catalog.assertions[0])] == ["a", "B", "v", "w"]
    assert [d.name for d in catalog.dependents("b")] == ["v"]


def test_kinds_are_told_apart(catalog: Catalog) -> None:
    """Tables, views and assertions are listed each by themselves."""
    assert [t.name for t in catalog.tables] == ["a", "B"]
    assert [v.name for v in catalog.views] == ["v", "w"]
    assert [a.name for a in catalog.assertions] == ["empty"]
    with pytest.raises(UnknownName, match="'empty' is an assertion, not a table"):
        catalog.table("empty")


def test_removal_respects_readers(catalog: Catalog) -> None:
    """What is read stays; what is not read goes, and its name is free."""
    with pytest.raises(DependencyError):
        catalog.droppable("w")
    for name in ("EMPTY", "w", "v", "b"):
        definition = catalog.droppable(name)
        catalog.remove(definition)
        assert not catalog.has(definition)
    assert "B" not in catalog
    catalog.check_name("b")
    with pytest.raises(AlreadyExists):
        catalog.check_name("A")


def test_key_columns_in_the_keys_order(catalog: Catalog) -> None:
    """The order of a primary key is its own, not the table's."""
    table = catalog.table("A")
    assert table.key_positions == (1, 0)
    assert [f.name for f in table.key_fields] == ["y", "x"]
