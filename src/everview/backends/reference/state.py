"""The content of one table of the reference backend, and what a transaction makes of it.

A table is a bag. A transaction works on a copy in which weights may be negative for a while; ``settled`` judges the
result as a whole, so the order of changes inside a transaction does not matter, except that an upsert sees what came
before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from everview.algebra.zset import ZSet
from everview.backends.base import Change, ChangeKind
from everview.backends.rejections import absent_keys, absent_rows, duplicate_keys, repeated_keys, static_changed
from everview.catalog import TableDefinition
from everview.relational.arrow import canonical_rows, rows_from_arrow
from everview.relational.types import Row


@dataclass(frozen=True, slots=True)
class TableState:
    """The rows of a table (also when it promises to keep none: an oracle needs them), and whether any ever arrived."""

    definition: TableDefinition
    rows: ZSet[Row]
    has_received_rows: bool = False

    def after(self, changes: Iterable[Change]) -> TableState:
        """The state after the changes of one transaction, in order.

        Raises:
            InvalidChange: the table cannot be in that state.
        """
        working = _WorkingTable(self)
        received = self.has_received_rows
        for change in changes:
            if change.rows.num_rows == 0:
                continue
            if self.definition.static and self.has_received_rows:
                raise static_changed(self.definition)
            working.take(change)
            received = True
        return replace(self, rows=working.settled(), has_received_rows=received)


class _WorkingTable:
    """A table in the middle of a transaction."""

    def __init__(self, state: TableState) -> None:
        self._table = state.definition
        self._key = state.definition.key_positions
        self._weights: Counter[Row] = Counter(state.rows)

    def take(self, change: Change) -> None:
        fields = self._table.key_fields if change.kind is ChangeKind.DELETE_KEYS else self._table.fields
        rows = canonical_rows(rows_from_arrow(change.rows, fields), fields)
        match change.kind:
            case ChangeKind.WEIGHTED:
                weights = [1] * len(rows) if change.weights is None else change.weights.to_pylist()
                for row, weight in zip(rows, weights, strict=True):
                    self._weights[row] += weight
            case ChangeKind.UPSERT:
                self._check_repeated("upsert", [self._key_of(r) for r in rows], rows)
                self._remove_keys({self._key_of(r) for r in rows})
                for row in rows:
                    self._weights[row] += 1
            case ChangeKind.DELETE_KEYS:
                self._check_repeated("delete_keys", rows, rows)
                removed = self._remove_keys(set(rows))
                if removed < set(rows):
                    raise absent_keys(self._table, [k for k in rows if k not in removed])

    def settled(self) -> ZSet[Row]:
        """The bag that the changes lead to, if there is one."""
        rows = {row: weight for row, weight in self._weights.items() if weight}
        missing = {row: -weight for row, weight in rows.items() if weight < 0}
        if missing:
            raise absent_rows(self._table, missing)
        if self._key:
            self._check_keys(rows)
        return rows

    def _check_keys(self, rows: ZSet[Row]) -> None:
        by_key: dict[Row, list[Row]] = {}
        for row, weight in rows.items():
            by_key.setdefault(self._key_of(row), []).extend([row] * min(weight, 2))
        several = [row for same in by_key.values() if len(same) > 1 for row in same]
        if several:
            raise duplicate_keys(self._table, several)

    def _check_repeated(self, kind: str, keys: list[Row], rows: list[Row]) -> None:
        counts = Counter(keys)
        repeated = [row for key, row in zip(keys, rows, strict=True) if counts[key] > 1]
        if repeated:
            fields = self._table.key_fields if kind == "delete_keys" else self._table.fields
            raise repeated_keys(self._table, kind, repeated, fields)

    def _remove_keys(self, keys: set[Row]) -> set[Row]:
        """Deletes the rows that have these keys now, and returns the keys that had one."""
        found = [row for row, weight in self._weights.items() if weight > 0 and self._key_of(row) in keys]
        for row in found:
            del self._weights[row]
        return {self._key_of(row) for row in found}

    def _key_of(self, row: Row) -> Row:
        return tuple(row[i] for i in self._key)
