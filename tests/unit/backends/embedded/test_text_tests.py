"""Tests of text at the scan: what they answer, when they take the text's place, and that the dictionary stays small."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.text_tests import TextTest
from everview.backends.factorized_rows import FactorizedChange, FactorRows
from everview.catalog import TableDefinition, ViewDefinition
from everview.relational.arrow import arrow_schema
from everview.relational.evaluate import compile_expression
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Project, Relation, Scan
from everview.relational.schema import columns
from everview.relational.types import BOOLEAN, INT64, STRING

FIELDS = (Field("id", INT64, nullable=False), Field("note", STRING), Field("kind", STRING))
NOTE = Column(1, STRING, nullable=True)


def like(text: Expression, pattern: str, function: str = "like") -> Call:
    """A test of text."""
    extra = (Literal("\\", STRING),) if function == "like" else ()
    return Call(function, (text, Literal(pattern, STRING), *extra), BOOLEAN)


texts = st.lists(st.none() | st.text(alphabet="aä%_\\€😀 ", max_size=6), max_size=12)
patterns = st.text(alphabet="aä%_€", max_size=4)


@given(texts, patterns, st.sampled_from(["like", "startswith", "endswith", "contains"]), st.integers(0, 3))
def test_reads_what_the_definition_says(values: list[str | None], pattern: str, function: str, skipped: int) -> None:
    """A test at the scan answers what the definition of the function says, also of sliced and large arrays."""
    call = like(Column(0, STRING, nullable=True), pattern, function)
    holds = compile_expression(call)
    for array in (pa.array(values, pa.string()), pa.array(values, pa.large_string())):
        vector = TextTest(call).read(array.slice(skipped))
        found = [None if vector.nulls is not None and vector.nulls[i] else bool(v) for i, v in enumerate(vector.values)]
        assert found == [holds((v,)) for v in values[skipped:]]


def scan() -> Scan:
    """All of the table."""
    return Scan("t", FIELDS)


def counted(condition: Expression, *keys: int) -> Relation:
    """How many rows pass, by key."""
    kept = Filter(scan(), condition)
    every = columns(kept)
    call = AggregateCall("count", (), INT64)
    return Aggregate(kept, tuple(every[k] for k in keys), (call,), (*(FIELDS[k].name for k in keys), "n"))


def rows(*values: tuple[int, str | None, str | None]) -> pa.Table:
    """Rows of the table."""
    lists = [list(column) for column in zip(*values, strict=True)] if values else [[], [], []]
    return pa.Table.from_arrays(
        [pa.array(v, f.type) for v, f in zip(lists, arrow_schema(FIELDS), strict=True)], schema=arrow_schema(FIELDS)
    )


def maintained(plan: Relation, *, retain: bool = True) -> EmbeddedBackend:
    """A backend with the table and the view."""
    backend = EmbeddedBackend()
    backend.create_table(TableDefinition("t", FIELDS, ("id",) if retain else (), retain=retain))
    backend.create_view(ViewDefinition("v", plan, None, "UTC"))
    return backend


def change(backend: EmbeddedBackend, table: pa.Table, weight: int = 1) -> None:
    """Inserts or deletes rows."""
    weights = pa.array([weight] * len(table), pa.int64())
    backend.apply([Change("t", ChangeKind.WEIGHTED, table, weights if weight != 1 else None)])


MANY = [(i, f"note {i} of a kind" if i % 5 else None, "xy"[i // 2 % 2]) for i in range(200)]


def test_a_text_that_is_only_tested_is_not_learned() -> None:
    """The dictionary has the keys of the view, and none of the notes."""
    backend = maintained(counted(like(NOTE, "%3 of%"), 2))
    change(backend, rows(*MANY))
    assert len(backend._dictionary) < 10
    expected = {k: sum(1 for _, n, kind in MANY if kind == k and n and "3 of" in n) for k in "xy"}
    assert dict(zip(*backend.read("v").to_pydict().values(), strict=True)) == expected
    change(backend, rows(*MANY[:150]), -1)
    expected = {k: sum(1 for _, n, kind in MANY[150:] if kind == k and n and "3 of" in n) for k in "xy"}
    assert dict(zip(*backend.read("v").to_pydict().values(), strict=True)) == expected


def test_a_view_made_later_tests_the_rows_that_are_there() -> None:
    """A test is made of the rows of the table too."""
    backend = maintained(counted(like(NOTE, "%3 of%"), 2))
    change(backend, rows(*MANY))
    backend.create_view(ViewDefinition("late", counted(Call("not", (like(NOTE, "note 1%"),), BOOLEAN)), None, "UTC"))
    assert len(backend._dictionary) < 10
    assert backend.read("late").to_pydict() == {"n": [sum(1 for _, n, _ in MANY if n and not n.startswith("note 1"))]}


def test_a_text_that_is_read_too_is_learned_and_tested_by_its_code() -> None:
    """Nothing is gained by a test at the scan where the text is encoded anyway."""
    kept = Filter(scan(), like(NOTE, "%3 of%"))
    plan = Project(kept, (columns(kept)[1],), ("note",))
    backend = maintained(plan)
    change(backend, rows(*MANY))
    assert "like" not in backend.explain("v", "text").split("scan")[1]
    assert sorted(backend.read("v").to_pydict()["note"]) == sorted(n for _, n, _ in MANY if n and "3 of" in n)


def test_the_scan_of_explain_says_the_test() -> None:
    """The test is a column of the scan."""
    backend = maintained(counted(like(NOTE, "%3 of%"), 2))
    assert "scan t [kind, like(note, '%3 of%', '\\')]" in backend.explain("v", "text")


@pytest.mark.parametrize("retain", [True, False])
def test_products_are_tested_factor_by_factor(retain: bool) -> None:
    """Each factor that has the text has its test too."""
    backend = maintained(counted(like(NOTE, "b%"), 2), retain=retain)
    schema = arrow_schema(FIELDS)
    left = FactorRows(
        (0, 2), pa.record_batch({"id": [1, 2], "kind": ["x", "y"]}, schema=pa.schema([schema[0], schema[2]]))
    )
    right = FactorRows((1,), pa.record_batch({"note": ["ab"]}, schema=pa.schema([schema[1]])))
    other = FactorRows(
        (0, 2), pa.record_batch({"id": [3, 4], "kind": ["x", "x"]}, schema=pa.schema([schema[0], schema[2]]))
    )
    matching = FactorRows((1,), pa.record_batch({"note": ["ba"]}, schema=pa.schema([schema[1]])))
    table = TableDefinition("t", FIELDS, ("id",) if retain else (), retain=retain)
    backend.apply([FactorizedChange(table, [(left, right), (other, matching)])])
    assert backend.read("v").to_pydict() == {"kind": ["x"], "n": [2]}
