"""One view on the Spark backend under a random stream of changes, with restarts, checked against the reference after each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import Change, ChangeKind
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.backends.spark.backend import SparkBackend
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.relational.arrow import canonical_rows, fields_from_arrow, rows_from_arrow, rows_to_arrow
from everview.relational.nodes import Relation, Schema
from everview.relational.schema import schema
from everview.relational.traverse import tables_of
from everview.relational.types import Row
from tests.corpus.data import finance_tables, small_tables, tpch_tables
from tests.oracle.bags import assert_same_bag
from tests.oracle.generate_tables import TableData

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Changes = dict[str, list[tuple[Row, int]]]
_ORDERS = 60


@cache
def tables() -> dict[str, pa.Table]:
    """Few rows of every table of the corpus; those of TPC-H refer to one another."""
    whole = tpch_tables(0.01)
    orders = whole["orders"].slice(0, _ORDERS)
    lines = _where(whole["lineitem"], "l_orderkey", orders["o_orderkey"])
    return {
        **{n: whole[n] for n in ("nation", "region")},
        "orders": orders,
        "lineitem": lines,
        "customer": _where(whole["customer"], "c_custkey", orders["o_custkey"]),
        "part": _where(whole["part"], "p_partkey", lines["l_partkey"]),
        "supplier": _where(whole["supplier"], "s_suppkey", lines["l_suppkey"]),
        "partsupp": _where(whole["partsupp"], "ps_partkey", lines["l_partkey"]),
        **finance_tables("tiny"),
        **small_tables(),
    }


def _where(table: pa.Table, column: str, values: pa.ChunkedArray) -> pa.Table:
    return table.filter(pc.is_in(table[column], values.combine_chunks())).slice(0, 3 * _ORDERS)


def _corpus_tables(plan: Relation) -> dict[str, TableData]:
    fields = {n: fields_from_arrow(tables()[n].schema) for n in tables_of(plan)}
    return {n: TableData(n, f, tuple(rows_from_arrow(tables()[n], f))) for n, f in fields.items()}


def refuse_spark() -> Any:
    """For databases whose rows are all at the driver."""
    raise AssertionError("nothing here is large enough for Spark")


def open_on_disk(path: Path, spark: SparkSession) -> SparkBackend:
    """A database whose rows are all for Spark to read; a handful of rows gains nothing from compiling Java."""
    backend = SparkBackend(str(path), lambda: spark, local_rows=0, lookup_bytes=0)
    backend._engine.session.conf.set("spark.sql.codegen.wholeStage", "false")
    return backend


class Replay:
    """A database with one view ``v`` over the corpus's tables or given ones, and random transactions on them."""

    def __init__(
        self,
        plan: Relation,
        path: Path,
        seed: str,
        open_: Callable[[Path], SparkBackend],
        given: Mapping[str, TableData] | None = None,
        keys: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.plan = plan
        self.path = path
        self.random = random.Random(seed)
        self._open = open_
        self.backend = open_(path)
        source = _corpus_tables(plan) if given is None else {n: given[n] for n in tables_of(plan)}
        self.fields: dict[str, Schema] = {n: t.fields for n, t in source.items()}
        self._waiting = {n: list(t.rows) for n, t in source.items()}
        self.current: dict[str, Counter[Row]] = {n: Counter() for n in self.fields}
        self.deltas: Counter[Row] = Counter()
        for name, fields in self.fields.items():
            self.random.shuffle(self._waiting[name])
            self.backend.create_table(TableDefinition(name, fields, tuple((keys or {}).get(name, ()))))

    def create_view(self, strategy: str = "auto") -> None:
        self.backend.create_view(ViewDefinition("v", self.plan, None, "UTC", ViewOptions(strategy)))
        self.deltas.update(self.content())

    def restart(self) -> None:
        """Closes the database and opens it again from disk."""
        self.backend.close()
        self.backend = self._open(self.path)

    def close(self) -> None:
        """Closes the database."""
        self.backend.close()

    def transactions(self, count: int) -> Iterator[Changes]:
        """Random transactions that bring in all rows, with deletes, re-inserts and pairs that cancel.

        Each is made when it is asked for, and deletes rows that are there then: apply it before the next.
        """
        shares = {n: -(-len(rows) // count) for n, rows in self._waiting.items()}
        for _ in range(count):
            changes: Changes = {}
            for name in sorted(self._waiting):
                taken, self._waiting[name] = self._waiting[name][: shares[name]], self._waiting[name][shares[name] :]
                there = list(self.current[name].elements())
                gone = self.random.sample(there, min(len(there), self.random.randint(0, 4)))
                back = [(row, 1) for row in gone if self.random.random() < 0.5]
                changes[name] = [(row, 1) for row in taken] + [(row, -1) for row in gone] + back
            if any(changes.values()):
                yield changes

    def apply(self, changes: Changes, source: tuple[str, int] | None = None) -> None:
        """One transaction; the view's delta is added up."""
        given = []
        for name, weighted in changes.items():
            rows = rows_to_arrow([row for row, _ in weighted], self.fields[name])
            weights = pa.array([weight for _, weight in weighted], pa.int64())
            given.append(Change(name, ChangeKind.WEIGHTED, rows, weights))
        moved = self.backend.apply(given, source=source)
        self.expect(changes)
        if "v" in moved:
            self._take_in(moved["v"])

    def expect(self, changes: Changes) -> None:
        """The tables as they are after a transaction."""
        for name, weighted in changes.items():
            for row, weight in weighted:
                self.current[name][row] += weight
            self.current[name] = +self.current[name]

    def _take_in(self, delta: pa.Table) -> None:
        fields = schema(self.plan)
        rows = rows_from_arrow(delta.select(list(range(len(fields)))), fields)
        weights = delta.column(len(fields)).to_pylist()
        assert 0 not in weights, "a weight of 0 in a delta"
        assert len(set(rows)) == len(rows), "a row twice in a delta"
        for row, weight in zip(rows, weights, strict=True):
            self.deltas[row] += weight
            assert self.deltas[row] >= 0, "a delta deletes what is not there"

    def content(self) -> list[Row]:
        """The rows of the view."""
        return rows_from_arrow(self.backend.read("v"), schema(self.plan))

    def check(self, *, deltas: bool = True) -> None:
        """The law, and that the deltas add up to the content."""
        now = {n: list(rows.elements()) for n, rows in self.current.items()}
        expected = canonical_rows(evaluate_plan(self.plan, now), schema(self.plan))
        assert_same_bag(self.content(), expected, "the view")
        if deltas:
            assert_same_bag(list((+self.deltas).elements()), expected, "the sum of the deltas")

    def delete_everything(self) -> Changes:
        """A transaction that empties all tables."""
        return {n: [(row, -count) for row, count in rows.items()] for n, rows in self.current.items()}
