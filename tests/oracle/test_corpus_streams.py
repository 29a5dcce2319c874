"""The law for the whole corpus on the embedded backend: after every batch, maintained == recomputed by the reference.

That the reference equals Spark is ``test_corpus``'s business. Streams insert, delete, update, and bring cancelling pairs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from math import prod

import pyarrow as pa
import pyarrow.compute
import pytest

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.relational.arrow import canonical_rows, fields_from_arrow, rows_from_arrow, rows_to_arrow
from everview.relational.nodes import Relation, Schema
from everview.relational.schema import schema
from everview.relational.traverse import tables_of
from everview.relational.types import Row
from tests.corpus.data import Query, finance_tables, queries, small_tables, tpch_tables
from tests.oracle.bags import assert_same_bag

PLAIN = ViewOptions()
_TPCH_ROWS = 120
"""Rows of each TPC-H table: enough that joins meet, few enough to recompute after every batch."""


@cache
def _tables() -> dict[str, pa.Table]:
    return {**_tpch_sample(), **finance_tables("tiny"), **small_tables()}


def _tpch_sample() -> dict[str, pa.Table]:
    """Rows that refer to one another: the first orders with their line items, and what these name."""
    whole = tpch_tables(0.01)
    orders = whole["orders"].slice(0, _TPCH_ROWS)
    keys = orders["o_orderkey"]
    lines = whole["lineitem"].filter(pa.compute.is_in(whole["lineitem"]["l_orderkey"], keys)).slice(0, 2 * _TPCH_ROWS)
    named = {
        "customer": ("c_custkey", orders["o_custkey"]),
        "part": ("p_partkey", lines["l_partkey"]),
        "supplier": ("s_suppkey", lines["l_suppkey"]),
        "partsupp": ("ps_partkey", lines["l_partkey"]),
    }
    kept = {
        name: whole[name].filter(pa.compute.is_in(whole[name][key], values.combine_chunks())).slice(0, 2 * _TPCH_ROWS)
        for name, (key, values) in named.items()
    }
    return {**kept, "orders": orders, "lineitem": lines, "nation": whole["nation"], "region": whole["region"]}


def _all_queries() -> list[Query]:
    return [q for folder in ("tpch", "multilevel", "queryplan", "general") for q in queries(folder)]


@pytest.mark.parametrize("query", _all_queries(), ids=lambda q: f"{q.file.parent.name}-{q.name}")
def test_maintained_equals_recomputed(query: Query, corpus_plan: Callable[[Query], Relation]) -> None:
    """Whatever the stream brings, the view is what recomputation gives, and its deltas add up to it."""
    plan = corpus_plan(query)
    size = random.Random(query.name).choice((1, 7, 1000))
    _Replay(plan, size, seed=query.name).run()


_RECURSIVE = [q for q in _all_queries() if q.file.parent.name == "multilevel"] + [
    q for q in _all_queries() if q.file.parent.name == "tpch" and q.name in ("q03", "q11", "q17", "q18", "q22")
]


@pytest.mark.parametrize("depth", [0, 1, 2, None])
@pytest.mark.parametrize("query", _RECURSIVE, ids=lambda q: f"{q.file.parent.name}-{q.name}")
def test_recursive_deltas_equal_recomputed(
    query: Query, depth: int | None, corpus_plan: Callable[[Query], Relation]
) -> None:
    """The queries of multilevel-ivm, and the official ones, at every depth; when all rows are gone, so are all entries."""
    options = ViewOptions(strategy="recursive", depth=depth)
    size = random.Random(f"{query.name} {depth}").choice((1, 7, 1000))
    replay = _Replay(corpus_plan(query), size, seed=query.name, options=options)
    replay.run()
    for operator in _operators(replay.backend):
        if isinstance(operator, TreeBacked):
            left = [len(i.content()) for i in operator.inputs]  # a global aggregate below has a row, whatever happens
            for view in (v for v in operator.program.views if v.name in operator.state.maps):
                is_global = view.name == operator.program.result and not view.keys
                most = max(prod(left[a] for a in view.atoms), int(is_global))
                assert len(operator.state.maps[view.name].live_slots()) <= most, view.name


def _operators(backend: EmbeddedBackend) -> list[Operator]:
    """The operators of the view, each once."""
    found: dict[int, Operator] = {}
    waiting = [backend._views["v"].root]
    while waiting:
        operator = waiting.pop()
        if id(operator) not in found:
            found[id(operator)] = operator
            waiting += operator.inputs
    return list(found.values())


class _Replay:
    """One view over its tables, driven by a random stream."""

    def __init__(self, plan: Relation, size: int, seed: str, options: ViewOptions = PLAIN) -> None:
        self.plan = plan
        self.options = options
        self.size = size
        self.random = random.Random(seed)
        self.backend = EmbeddedBackend()
        self.fields: dict[str, Schema] = {n: fields_from_arrow(_tables()[n].schema) for n in tables_of(plan)}
        self.rows: dict[str, list[Row]] = {n: rows_from_arrow(_tables()[n], f) for n, f in self.fields.items()}
        self.current: dict[str, Counter[Row]] = {n: Counter() for n in self.fields}
        self.deltas: Counter[Row] = Counter()
        for name, fields in self.fields.items():
            self.backend.create_table(TableDefinition(name, fields))

    def run(self) -> None:
        names = sorted(self.fields)
        before = self.random.random() < 0.5  # half of the rows are there before the view is, in half of the runs
        if before:
            for name in names:
                self._apply({name: [(row, 1) for row in self.rows[name][::2]]})
        self.backend.create_view(ViewDefinition("v", self.plan, None, "UTC", options=self.options))
        self.deltas.update(self._content())
        for changes in self._stream(names, skip=before):
            self._apply(changes)
            self._check()
        self._apply({n: [(row, -count) for row, count in self.current[n].items()] for n in names})
        self._check()

    def _stream(self, names: list[str], *, skip: bool) -> Iterator[dict[str, list[tuple[Row, int]]]]:
        waiting = {n: list(self.rows[n][1::2] if skip else self.rows[n]) for n in names}
        for n in names:
            self.random.shuffle(waiting[n])
        step = max(self.size, max((len(w) for w in waiting.values()), default=0) // 6)
        while any(waiting.values()):
            chosen = self.random.sample(names, self.random.randint(1, len(names)))
            changes: dict[str, list[tuple[Row, int]]] = {}
            for name in chosen:
                taken, waiting[name] = waiting[name][:step], waiting[name][step:]
                changes[name] = [(row, 1) for row in taken] + self._disturbance(name)
            yield changes

    def _disturbance(self, name: str) -> list[tuple[Row, int]]:
        """Deletes of rows that are there, re-inserts, and a pair that cancels itself."""
        there = list(self.current[name].elements())
        gone = self.random.sample(there, min(len(there), self.random.randint(0, 5)))
        back = [(row, 1) for row in gone if self.random.random() < 0.6]
        ghost = [(row, w) for row in self.rows[name][:1] for w in (1, -1)]
        return [(row, -1) for row in gone] + back + ghost

    def _apply(self, changes: dict[str, list[tuple[Row, int]]]) -> None:
        given = []
        for name, weighted in changes.items():
            rows = rows_to_arrow([row for row, _ in weighted], self.fields[name])
            weights = pa.array([weight for _, weight in weighted], pa.int64())
            given.append(Change(name, ChangeKind.WEIGHTED, rows, weights))
            for row, weight in weighted:
                self.current[name][row] += weight
            self.current[name] = +self.current[name]
        moved = self.backend.apply(given)
        if "v" in moved:
            self._take_in(moved["v"])

    def _take_in(self, delta: pa.Table) -> None:
        fields = schema(self.plan)
        rows = rows_from_arrow(delta.select([f.name for f in delta.schema][:-1]), fields) if fields else []
        weights = delta.column(delta.num_columns - 1).to_pylist()
        assert 0 not in weights, "a weight of 0 in a delta"
        assert len(set(rows)) == len(rows), "a row twice in a delta"
        for row, weight in zip(rows, weights, strict=True):
            self.deltas[row] += weight
            assert self.deltas[row] >= 0, "a delta deletes what is not there"

    def _content(self) -> list[Row]:
        return rows_from_arrow(self.backend.read("v"), schema(self.plan))

    def _check(self) -> None:
        tables = {n: list(rows.elements()) for n, rows in self.current.items()}
        expected = canonical_rows(evaluate_plan(self.plan, tables), schema(self.plan))
        assert_same_bag(self._content(), expected, "the view")
        assert_same_bag(list((+self.deltas).elements()), expected, "the sum of the deltas")
