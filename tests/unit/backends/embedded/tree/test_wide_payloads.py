"""Payloads of hundreds of parts: right, and with code that grows no faster than they do."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.catalog import TableDefinition, ViewDefinition
from everview.relational.arrow import rows_to_arrow
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Aggregate, AggregateCall, Field, Join, JoinKind, Scan, Schema
from everview.relational.types import BOOLEAN, FLOAT64, INT64
from tests.unit.backends.embedded.related_views import COUNT

Row = tuple[int | float, ...]


def tables(sums: int) -> dict[str, Schema]:
    """a(k, j), b(k, g) and c(j), each with a third of the columns that are summed up, every fourth of them a float."""
    keys = {"a": ("k", "j"), "b": ("k", "g"), "c": ("j",)}
    return {
        name: (
            *(Field(k, INT64, nullable=False) for k in own),
            *(Field(f"{name}{i}", INT64 if i % 4 else FLOAT64, nullable=False) for i in range(sums // 3)),
        )
        for name, own in keys.items()
    }


def column(fields: Schema, index: int) -> Column:
    """A column of some fields."""
    return Column(index, fields[index].type, fields[index].nullable)


def database(sums: int) -> tuple[EmbeddedBackend, TreeOperator]:
    """SELECT g, COUNT(*), SUM(…), … FROM a JOIN b USING (k) JOIN c USING (j) GROUP BY g."""
    every = tables(sums)
    backend = EmbeddedBackend()
    for name, fields in every.items():
        backend.create_table(TableDefinition(name, fields))
    a, b, c = every.values()
    whole = (*a, *b, *c)
    by_k = Call("=", (column(whole, 0), column(whole, len(a))), BOOLEAN)
    by_j = Call("=", (column(whole, 1), column(whole, len(a) + len(b))), BOOLEAN)
    join = Join(Join(Scan("a", a), Scan("b", b), JoinKind.INNER, by_k), Scan("c", c), JoinKind.INNER, by_j)
    summed = [i for i, f in enumerate(whole) if f.name not in "kjg"]
    calls = (COUNT, *(AggregateCall("sum", (column(whole, i),), whole[i].type) for i in summed))
    names = tuple(f"o{i}" for i in range(1 + len(calls)))
    plan = Aggregate(join, (column(whole, len(a) + 1),), calls, names)
    backend.create_view(ViewDefinition("v", plan, None, "UTC"))
    tree = backend._graph.roots["v"]
    assert isinstance(tree, TreeOperator)
    return backend, tree


def expected(held: dict[str, Counter[Row]]) -> dict[int, list[float]]:
    """The view, row by row."""
    found: dict[int, list[float]] = {}
    for a in held["a"].elements():
        for b in held["b"].elements():
            for c in held["c"].elements():
                if a[0] == b[0] and a[1] == c[0]:
                    sums = found.setdefault(int(b[1]), [0.0] * (len(a) + len(b) + len(c) - 4))
                    for i, value in enumerate((1, *a[2:], *b[2:], *c[1:])):
                        sums[i] += value
    return found


def test_three_hundred_sums_over_a_join_of_three() -> None:
    """Inserts and deletes of all tables; the floats are multiples of a quarter, whose sums are exact."""
    sums, rng = 300, random.Random(1)
    backend, _ = database(sums)
    every = tables(sums)
    held: dict[str, Counter[Row]] = {name: Counter() for name in every}
    for _ in range(8):
        changes = []
        for name, fields in every.items():
            keys = 2 if name != "c" else 1
            new = [
                tuple(rng.randrange(3) for _ in range(keys))
                + tuple(rng.randrange(100) if f.type is INT64 else rng.randrange(100) / 4 for f in fields[keys:])
                for _ in range(3)
            ]
            gone = rng.sample(sorted(held[name].elements()), min(2, held[name].total()))
            weights = pa.array([1] * len(new) + [-1] * len(gone))
            changes.append(Change(name, ChangeKind.WEIGHTED, rows_to_arrow([*new, *gone], fields), weights))
            held[name] = held[name] + Counter(new) - Counter(gone)
        backend.apply(changes)
        assert {row[0]: list(row[1:]) for row in backend.iterate("v")} == expected(held)


def test_the_code_is_as_long_as_the_payload_is_wide() -> None:
    """Ten times the sums, ten times the instructions at most: a row costs no more for each of them."""
    (_, few), (_, many) = database(30), database(300)
    for short, long in zip(few.state.machines, many.state.machines, strict=True):
        assert len(long.trigger.code) <= 10 * len(short.trigger.code)
        assert long.trigger.registers <= 10 * short.trigger.registers
