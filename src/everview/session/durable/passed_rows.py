"""What has passed through tables that keep no rows (``retain=False``), for a checkpoint: the sum of all changes.

    passed(T)  =  π[columns that views read] (passed(T) in the checkpoint before  +  every change of T in the log behind it)

Views over such a table are functions of this bag, as those over any other are of its rows, so they can be made anew from it by
any planner. It is as large as the rows that are not deleted again, in the columns that are read; it is on disk only. Contract:
what is given is the state at one piece of the log, whatever is appended meanwhile; it may be asked in another thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.state.accumulate import total_weight
from everview.backends.embedded.tables.stored_table import TableContent
from everview.backends.embedded.tables.transaction_rows import WeightedRows, consolidated, joined, rows_of
from everview.catalog import Catalog, TableDefinition
from everview.relational.arrow import arrow_schema
from everview.relational.columns_used import columns_used
from everview.relational.nodes import Relation, Scan
from everview.relational.traverse import nodes_of
from everview.session.durable.logged_alterations import altered_from_log
from everview.session.durable.logged_changes import changes_from_log
from everview.session.durable.recovery import manifest_in_force, read_content
from everview.storage.change_log import ChangeLog
from everview.storage.definitions import definition_from_json
from everview.storage.records import LogRecord

_SUMMED_AT_ONCE: Final = 1 << 20
"""Rows that are gathered before they are summed up; more, where as many are summed up already."""


def columns_read(catalog: Catalog, tables: Sequence[TableDefinition]) -> dict[str, tuple[int, ...]]:
    """The columns of some tables that views, assertions and constraints read; no entry for tables that none reads."""
    wanted = {t.name.lower(): t.name for t in tables}
    found: dict[str, set[int]] = {}
    for plan in _plans(catalog):
        used = columns_used(plan)
        for node in nodes_of(plan):
            if isinstance(node, Scan) and node.table.lower() in wanted:
                found.setdefault(wanted[node.table.lower()], set()).update(used[id(node)])
    return {name: tuple(sorted(columns)) for name, columns in found.items()}


def _plans(catalog: Catalog) -> Iterable[Relation]:
    for table in catalog.tables:
        yield from (c.plan for c in catalog.constraint_views(table))
    yield from (v.plan for v in catalog.computed)


class PassedRows:
    """The sums of the changes of some tables up to one piece of the log, made when the first of them is asked for.

    Args:
        folder: That of the database.
        tables: The tables, as they are at that piece.
        columns: Those that are read, by table; tables that nobody reads have none.
        up_to: The number of the piece.
    """

    def __init__(
        self,
        folder: Path,
        tables: Sequence[TableDefinition],
        columns: Mapping[str, tuple[int, ...]],
        up_to: int,
    ) -> None:
        self._folder = folder
        self._sums = {t.name.lower(): _Sum(t, columns[t.name]) for t in tables if t.name in columns}
        self._up_to = up_to
        self._is_read = False

    def content(self, table: TableDefinition) -> TableContent:
        """What has passed through one of the tables, which have all received rows."""
        own = self._sums.get(table.name.lower())
        if own is None:  # nobody reads it, and no view can be made over it any more
            return TableContent(table.name, arrow_schema(table.fields).empty_table(), None, received=True)
        if not self._is_read:
            self._read()
            self._is_read = True
        summed = own.result()
        rows = summed.rows if isinstance(summed.rows, pa.Table) else pa.Table.from_batches([summed.rows])
        return TableContent(table.name, rows, pa.array(summed.each_weight()), received=True)

    def _read(self) -> None:
        """Reads along with a connection of its own, so that transactions do not wait."""
        log = ChangeLog(self._folder, read_only=True)
        try:
            manifest = manifest_in_force(log)
            catalog = Catalog()
            for definition in manifest.definitions:
                catalog.add(definition)
            for file in manifest.tables:
                own = self._sums.get(file.table.lower())
                if own is not None and file.rows:
                    content = read_content(self._folder, manifest, file, catalog.table(file.table))
                    own.add(Change(content.table, ChangeKind.WEIGHTED, content.rows, content.weights))
            for record in log.records(manifest.log_number):
                if record.number > self._up_to:
                    break
                self._take(record, catalog)
        finally:
            log.close()

    def _take(self, record: LogRecord, catalog: Catalog) -> None:
        header = record.header
        match header["kind"]:
            case "apply":
                for change in changes_from_log(header["changes"], record.body, catalog.table):
                    own = self._sums.get(change.table.lower())
                    if own is not None:
                        own.add(change)
            case "together":
                for said in header["records"]:
                    self._redefine(said, catalog)
            case _:
                self._redefine(header, catalog)

    def _redefine(self, said: dict[str, Any], catalog: Catalog) -> None:
        """Follows the catalog; a table that is dropped or altered is read by nobody, so that what has passed is over."""
        match said["kind"]:
            case "define":
                catalog.add(definition_from_json(said["definition"]))
            case "drop":
                catalog.remove(catalog.get(said["name"]))
                self._forget(said["name"])
            case "alter":
                catalog.exchange(catalog.table(said["name"]), altered_from_log(said).definition)
                self._forget(said["name"])

    def _forget(self, name: str) -> None:
        if name.lower() in self._sums:
            self._sums[name.lower()].clear()


class _Sum:
    """The sum of the changes of one table, in some of its columns."""

    def __init__(self, table: TableDefinition, columns: Sequence[int]) -> None:
        self._fields = tuple(table.fields[c] for c in columns)
        self._schema = arrow_schema(self._fields)
        self.clear()

    def clear(self) -> None:
        """Nothing has passed."""
        self._parts: list[WeightedRows] = []
        self._waiting = 0
        self._summed = 0

    def add(self, change: Change) -> None:
        """Adds a change of the table."""
        given = rows_of(change)
        if self._fields:
            given = WeightedRows(given.rows.select(self._schema.names), given.weights)
        else:  # rows are only counted: one without columns, as often as there are
            given = WeightedRows(given.rows.slice(0, 1).select([]), np.array([total_weight(given.each_weight())]))
        self._parts.append(given)
        self._waiting += len(given)
        if self._waiting > max(_SUMMED_AT_ONCE, self._summed):
            self.result()

    def result(self) -> WeightedRows:
        """Each distinct row once, with its weight, which is not 0."""
        if not self._parts:
            return WeightedRows(self._schema.empty_table(), None)
        if self._fields:
            summed = consolidated(joined(self._parts), self._fields)
        else:
            count = np.array([sum(int(p.each_weight()[0]) for p in self._parts)], dtype=np.int64)
            summed = WeightedRows(self._parts[0].rows.slice(0, int(count[0] != 0)), count[count != 0])
        self._parts, self._waiting, self._summed = [summed], 0, len(summed)
        return summed
