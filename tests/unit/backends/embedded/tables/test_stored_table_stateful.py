"""Stored tables against the reference backend's tables: the same bags, deltas and errors after every transaction."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from everview.algebra.zset import difference, expand, size
from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.tables import StoredTable
from everview.backends.reference.state import TableState
from everview.catalog import TableDefinition
from everview.errors import InvalidChange
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.nodes import Field
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NAN,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Row,
    Struct,
)
from tests.unit.backends.embedded.tables.table_changes import content, delete_keys, effect, upsert, weighted

WIDE, NARROW = Decimal(38, 3), Decimal(9, 2)
VALUES: dict[DataType, Sequence[Any]] = {
    BOOLEAN: (True, False),
    INT8: (-128, 0, 127),
    INT16: (-5, 7),
    INT32: (0, 2**31 - 1),
    INT64: (0, 1, -(2**63), 2**63 - 1),
    FLOAT32: (0.0, 1.5, NAN),
    FLOAT64: (0.0, -2.25, NAN, float("inf")),
    NARROW: (decimal.Decimal("0.00"), decimal.Decimal("-1234567.89")),
    WIDE: (decimal.Decimal("0.000"), decimal.Decimal("-12345678901234567890123456789012345.678")),
    STRING: ("", "a", "ä€", "a\0"),
    BINARY: (b"", b"\xff\0"),
    DATE: (0, -719162, 20000),
    TIMESTAMP: (0, -1, 1_700_000_000_123_456),
    TIMESTAMP_NTZ: (0, 86_400_000_000),
    YEAR_MONTH_INTERVAL: (0, -13),
    DAY_TIME_INTERVAL: (0, -(2**63), 5),
    Array(FLOAT64): ((), (1.0, None), (NAN,)),
    Struct(("x", "y"), (INT32, STRING)): ((1, "a"), (None, None)),
}
KEYS: tuple[DataType, ...] = (INT64, STRING)
BULK = 700
"""Rows of a bulk change; more than a small batch has."""


def row_of(fields: tuple[Field, ...], number: int) -> Row:
    """One of many rows, different for each number up to 10**6, or so, by its integer and string columns."""
    drawn = []
    for position, field in enumerate(fields):
        if field.type == INT64:
            drawn.append(1000 + number)
        elif field.type == STRING:
            drawn.append(f"row {number}")
        else:
            choices = VALUES[field.type]
            drawn.append(choices[(number >> position % 4) % len(choices)])
    return tuple(drawn)


class Tables(RuleBasedStateMachine):
    """A stored table and a reference table that get the same transactions."""

    @initialize(
        has_key=st.booleans(),
        key=st.permutations(KEYS),
        others=st.lists(st.sampled_from(tuple(VALUES)), max_size=5),
        data=st.data(),
    )
    def create(self, has_key: bool, key: Sequence[DataType], others: Sequence[DataType], data: st.DataObject) -> None:
        columns = [Field(f"k{i}", t, False) for i, t in enumerate(key)]
        columns += [Field(f"c{i}", t, data.draw(st.booleans())) for i, t in enumerate(others)]
        fields = tuple(data.draw(st.permutations(columns)))
        names = tuple(f"k{i}" for i in range(len(key))) if has_key else ()
        self.table = TableDefinition("t", fields, names)
        self.stored = StoredTable(self.table, Dictionary())
        self.model = TableState(self.table, {})
        self.serial = 0

    def draw_row(self, data: st.DataObject) -> Row:
        present = list(self.model.rows)[:8]
        if present and data.draw(st.integers(0, 2), label="stored?"):
            row = data.draw(st.sampled_from(present))
            if data.draw(st.booleans(), label="as it is?"):
                return row
            at = data.draw(st.integers(0, len(row) - 1))
            return (*row[:at], self.draw_value(data, self.table.fields[at]), *row[at + 1 :])
        return tuple(self.draw_value(data, f) for f in self.table.fields)

    @staticmethod
    def draw_value(data: st.DataObject, field: Field) -> Any:
        return data.draw(st.sampled_from((*VALUES[field.type], *((None,) if field.nullable else ()))))

    def draw_change(self, data: st.DataObject) -> Change:
        kinds = list(ChangeKind) if self.table.primary_key else [ChangeKind.WEIGHTED]
        kind = data.draw(st.sampled_from(kinds))
        rows = [self.draw_row(data) for _ in range(data.draw(st.integers(0, 4), label="rows"))]
        if kind is ChangeKind.WEIGHTED:
            if data.draw(st.booleans(), label="insert?"):
                return weighted(self.table, rows)
            return weighted(self.table, rows, [data.draw(st.sampled_from((1, -1, 2, -2))) for _ in rows])
        if data.draw(st.integers(0, 3), label="distinct?"):
            rows = list({self.key_of(row): row for row in rows}.values())
        return (
            upsert(self.table, *rows) if kind is ChangeKind.UPSERT else delete_keys(self.table, *map(self.key_of, rows))
        )

    def key_of(self, row: Row) -> Row:
        return tuple(row[i] for i in self.table.key_positions)

    def outcome(self, changes: Sequence[Change]) -> tuple[TableState | None, str]:
        try:
            return self.model.after(changes), ""
        except InvalidChange as error:
            return None, error.message

    def run(self, changes: Sequence[Change], keep: bool) -> None:
        expected, rejection = self.outcome(changes)
        if expected is None:
            with pytest.raises(InvalidChange) as raised:
                self.stored.prepare(changes)
            assert summary(raised.value.message) == summary(rejection)
            return
        delta = self.stored.prepare(changes)
        assert effect(delta, self.table) == difference(expected.rows, self.model.rows)
        assert content(self.stored) == expected.rows
        assert self.stored.has_received_rows == expected.has_received_rows
        if keep:
            self.stored.commit()
            self.model = expected
        else:
            self.stored.rollback()

    @rule(data=st.data(), keep=st.sampled_from((True, True, False)))
    def small_transaction(self, data: st.DataObject, keep: bool) -> None:
        self.run([self.draw_change(data) for _ in range(data.draw(st.integers(1, 4), label="changes"))], keep)

    @rule(count=st.sampled_from((1, 40, BULK)), keep=st.booleans())
    def new_rows(self, count: int, keep: bool) -> None:
        rows = [row_of(self.table.fields, self.serial + i) for i in range(count)]
        self.serial += count
        self.run([weighted(self.table, rows)], keep)

    @rule(times=st.sampled_from((3, 40)))
    def new_rows_one_by_one(self, times: int) -> None:
        for _ in range(times):
            self.run([weighted(self.table, [row_of(self.table.fields, self.serial)])], keep=True)
            self.serial += 1

    @rule(data=st.data(), share=st.sampled_from((0.1, 0.6, 1.0)), keep=st.sampled_from((True, True, False)))
    def delete_many(self, data: st.DataObject, share: float, keep: bool) -> None:
        present = list(expand(self.model.rows))
        random = data.draw(st.randoms(use_true_random=False))
        chosen = random.sample(present, round(len(present) * share))
        if self.table.primary_key and data.draw(st.booleans()):
            self.run([delete_keys(self.table, *map(self.key_of, chosen))], keep)
        else:
            self.run([weighted(self.table, chosen, [-1] * len(chosen))], keep)

    @rule(data=st.data(), keep=st.sampled_from((True, True, False)))
    def update_many(self, data: st.DataObject, keep: bool) -> None:
        if not self.table.primary_key or not self.model.rows:
            return
        random = data.draw(st.randoms(use_true_random=False))
        chosen = random.sample(list(self.model.rows), (len(self.model.rows) + 1) // 2)
        others = [i for i in range(len(self.table.fields)) if i not in self.table.key_positions]
        fresh = [row_of(self.table.fields, self.serial + i) for i in range(len(chosen))]
        new = [tuple(n[i] if i in others else o[i] for i in range(len(o))) for o, n in zip(chosen, fresh, strict=True)]
        self.run([upsert(self.table, *new)], keep)

    @invariant()
    def same_content(self) -> None:
        assert content(self.stored) == self.model.rows
        assert self.stored.row_count == size(self.model.rows)

    @invariant()
    def same_parts(self) -> None:
        columns = range(len(self.table.fields) - 1, -1, -2)
        rows, weights = self.stored.content(columns)
        fields = tuple(self.table.fields[c] for c in columns)
        assert rows.schema.names == [f.name for f in fields]
        found = sorted(map(repr, expand_rows(rows_from_arrow(rows, fields), weights.tolist())))
        assert found == sorted(repr(tuple(row[c] for c in columns)) for row in expand(self.model.rows))

    @invariant()
    def finds_keys(self) -> None:
        if not self.table.primary_key:
            return
        by_key = {self.key_of(row): row for row in list(self.model.rows)[-5:]}
        absent = (*(5 if f.type == INT64 else "nobody" for f in self.table.key_fields),)
        keys = rows_to_arrow([absent, *by_key], self.table.key_fields)
        positions, rows = self.stored.lookup(keys)
        assert positions.tolist() == list(range(1, len(by_key) + 1))
        assert rows_from_arrow(rows, self.table.fields) == list(by_key.values())


def expand_rows(rows: Sequence[Row], weights: Sequence[int]) -> list[Row]:
    """Each row as often as its weight says."""
    return [row for row, weight in zip(rows, weights, strict=True) for _ in range(weight)]


def summary(message: str) -> tuple[str, str]:
    """An error without the order of the rows it names, which is not fixed once rows came and went."""
    if message.endswith(" more."):
        return message.split("(", maxsplit=1)[0], message.rsplit(")", maxsplit=1)[1]
    return "", "".join(sorted(message))


TestTables = Tables.TestCase
TestTables.settings = settings(
    stateful_step_count=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
