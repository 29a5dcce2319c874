"""Decomposing rows into products: what is found is a product of the rows, and it is the finest one."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.factorized_rows import FactorizedChange
from everview.catalog import TableDefinition
from everview.relational.arrow import arrow_schema
from everview.relational.nodes import Field
from everview.relational.types import FLOAT64, INT32, STRING, Array
from everview.session.rows.decompose import decompose

Weighted = dict[tuple[object, ...], int]


def table_of(columns: int) -> TableDefinition:
    """A table of so many integers."""
    return TableDefinition("t", tuple(Field(f"c{i}", INT32, True) for i in range(columns)), (), False, True)


def change_of(table: TableDefinition, rows: Weighted) -> Change:
    """Rows with weights, as they reach a backend."""
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in table.fields]
    schema = arrow_schema(table.fields)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return Change("t", ChangeKind.WEIGHTED, pa.Table.from_arrays(arrays, schema=schema), pa.array(list(rows.values())))


def bag_of(change: Change) -> Counter[tuple[object, ...]]:
    """The rows of a change, summed up."""
    weights = [1] * change.given.num_rows if change.weights is None else change.weights.to_pylist()
    bag: Counter[tuple[object, ...]] = Counter()
    for row, weight in zip(change.rows.to_pylist(), weights, strict=True):
        bag[tuple(row.values())] += weight
    return Counter({r: w for r, w in bag.items() if w})


def is_product(rows: Weighted, group: tuple[int, ...], columns: int) -> bool:
    """By definition: w(g, r) · w(g₀, r₀) = w(g, r₀) · w(g₀, r) for all g, r."""
    others = tuple(c for c in range(columns) if c not in group)

    def combined(g: tuple[object, ...], r: tuple[object, ...]) -> int:
        row: list[object] = [None] * columns
        for c, v in (*zip(group, g, strict=True), *zip(others, r, strict=True)):
            row[c] = v
        return rows.get(tuple(row), 0)

    left = {tuple(row[c] for c in group) for row in rows}
    right = {tuple(row[c] for c in others) for row in rows}
    g0, r0 = next(iter(left)), next(iter(right))
    return all(
        combined(g, r) != 0 and combined(g, r) * combined(g0, r0) == combined(g, r0) * combined(g0, r)
        for g in left
        for r in right
    )


@st.composite
def products(draw: st.DrawFn) -> tuple[Weighted, int]:
    """Rows that are products more often than not, with a row more or less now and then."""
    columns = draw(st.integers(1, 5))
    home = draw(st.lists(st.integers(0, 2), min_size=columns, max_size=columns))
    value = st.one_of(st.none(), st.integers(0, 2))
    factors = []
    for number in sorted(set(home)):
        own = [c for c in range(columns) if home[c] == number]
        rows = draw(st.lists(st.tuples(*(value for _ in own)), min_size=1, max_size=4, unique=True))
        weights = draw(st.lists(st.sampled_from((1, 1, 2, -3)), min_size=len(rows), max_size=len(rows)))
        factors.append([(dict(zip(own, r, strict=True)), w) for r, w in zip(rows, weights, strict=True)])
    found: Weighted = {}
    for combination in itertools.product(*factors):
        merged = {c: v for r, _ in combination for c, v in r.items()}
        found[tuple(merged[c] for c in range(columns))] = math.prod(w for _, w in combination)
    if draw(st.booleans()) and len(found) > 1:
        del found[draw(st.sampled_from(sorted(found, key=repr)))]
    return found, columns


@given(products())
def test_what_is_found_is_the_finest_product(case: tuple[Weighted, int]) -> None:
    """Its expansion is the rows, and no group of columns can be taken apart further."""
    rows, columns = case
    table = table_of(columns)
    found = decompose(table, change_of(table, rows))
    assert bag_of(found) == Counter(rows)
    assert found.decomposed is not None
    groups = [tuple(int(name[1:]) for name in g) for g in found.decomposed]
    assert sorted(c for g in groups for c in g) == list(range(columns))
    varying = [g for g in groups if len({tuple(r[c] for c in g) for r in rows}) > 1]
    assert isinstance(found, FactorizedChange) == (len(varying) > 1)
    assert all(is_product(rows, g, columns) for g in groups)
    for group in varying:
        for size in range(1, len(group)):
            for part in itertools.combinations(group, size):
                assert not is_product(rows, part, columns)


def test_rows_that_come_twice_are_summed_up_first() -> None:
    """Weights of equal rows count together, and rows that cancel are not there."""
    table = table_of(2)
    rows = pa.table({"c0": pa.array([1, 1, 1, 2, 2, 7], pa.int32()), "c1": pa.array([1, 1, 2, 1, 2, 7], pa.int32())})
    given = Change("t", ChangeKind.WEIGHTED, rows.cast(arrow_schema(table.fields)), pa.array([1, 1, 2, 1, 1, 3]))
    assert decompose(table, given).decomposed == (("c0", "c1"),)
    cancelled = pa.concat_tables([rows, rows.slice(5)]).cast(arrow_schema(table.fields))
    found = decompose(table, Change("t", ChangeKind.WEIGHTED, cancelled, pa.array([1, 1, 2, 1, 1, 3, -3])))
    assert found.decomposed == (("c0",), ("c1",))
    assert bag_of(found) == Counter({(1, 1): 2, (1, 2): 2, (2, 1): 1, (2, 2): 1})


def test_lists_are_left_as_they_are() -> None:
    """Values that Arrow cannot number are not compared."""
    table = TableDefinition("t", (Field("a", Array(INT32, True), True), Field("b", STRING, True)), (), False, True)
    rows = pa.Table.from_pylist([{"a": [1], "b": "x"}], schema=arrow_schema(table.fields))
    assert decompose(table, Change("t", ChangeKind.WEIGHTED, rows)).decomposed == (("a", "b"),)


def test_nan_and_text() -> None:
    """All NaNs are one value."""
    table = TableDefinition("t", (Field("a", FLOAT64, True), Field("b", STRING, True)), (), False, True)
    rows = [{"a": a, "b": b} for a in (float("nan"), None, 0.0) for b in ("x", None)]
    change = Change("t", ChangeKind.WEIGHTED, pa.Table.from_pylist(rows, schema=arrow_schema(table.fields)))
    assert decompose(table, change).decomposed == (("a",), ("b",))


@pytest.mark.parametrize("columns", [3, 6])
def test_large_products_take_little_time(columns: int) -> None:
    """2^18 rows of a product of single columns."""
    size = round(2 ** (18 / columns))
    table = table_of(columns)
    rows = dict.fromkeys(itertools.product(range(size), repeat=columns), 1)
    found = decompose(table, change_of(table, rows))
    assert found.decomposed == tuple((f"c{i}",) for i in range(columns))
    assert isinstance(found, FactorizedChange)
    assert [len(f) for f in found.products[0]] == [size] * columns
