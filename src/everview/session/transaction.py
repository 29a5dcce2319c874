"""Transactions: changes to any number of tables, collected in a ``with`` block and committed as one.

Rows are checked against the table when they are given, so a mistake shows at its line; what depends on the tables'
content (absent rows, duplicate keys, assertions) is judged at the end, on the sum of all changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.backends.base import Change, Refresh, Suspension
from everview.errors import UnsupportedOperation
from everview.session.database_lock import DatabaseLock
from everview.session.rows.given_rows import Mode

if TYPE_CHECKING:
    from everview.session.core import Core


@dataclass(slots=True)
class Commit:
    """A committed transaction: the version it made, the delta of every view it moved, and how long it took.

    A delta has the view's columns and ``_weight``: how many times the row was added, or removed where it is negative.
    ``refreshed`` says of each view that was brought up to date how (``.how``: incremental or full) and why (``.reason``).
    ``is_repeat`` is True where the given batch of a source had been committed before, so that nothing was done.
    ``decomposed`` says of each table with ``decompose=True`` which columns its rows are a product of; one group: of none.
    ``suspended`` are the views that have no answer any more, and why. ``caught`` are the rows that assertions with
    ``on_violation`` ``drop`` or ``quarantine`` have kept out, by assertion.
    """

    version: int
    changes: Mapping[str, pa.Table]
    seconds: float
    refreshed: Mapping[str, Refresh] = field(default_factory=dict)
    is_repeat: bool = False
    decomposed: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    suspended: Mapping[str, Suspension] = field(default_factory=dict)
    caught: Mapping[str, pa.Table] = field(default_factory=dict)

    def __repr__(self) -> str:
        if self.is_repeat:
            return f"<Commit version {self.version}, nothing done: the batch is part of it already>"
        known = (
            self.changes.row_count if isinstance(self.changes, GuardedDeltas) else lambda n: self.changes[n].num_rows
        )
        moved = ", ".join(f"{name}: {known(name)} rows" for name in self.changes)
        failed = f", suspended: {', '.join(self.suspended)}" if self.suspended else ""
        caught = "".join(f", {rows.num_rows} rows caught by {name}" for name, rows in self.caught.items())
        return f"<Commit version {self.version}, {moved or 'no view changed'}{failed}{caught}, {self.seconds:.3f} s>"


class GuardedDeltas(Mapping[str, pa.Table]):
    """The deltas of a commit, read under the database's lock: a backend may compute them when they are looked at."""

    def __init__(self, deltas: Mapping[str, pa.Table], lock: DatabaseLock) -> None:
        self._deltas = deltas
        self._lock = lock

    def __getitem__(self, view: str) -> pa.Table:
        with self._lock:
            return self._deltas[view]

    def row_count(self, view: str) -> int:
        """How many rows a delta has; one that is on disk is not read for it, and may have a row more than once."""
        with self._lock:
            count = getattr(self._deltas, "row_count", None)
            return int(self._deltas[view].num_rows if count is None else count(view))

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(list(self._deltas))

    def __len__(self) -> int:
        with self._lock:
            return len(self._deltas)


class _Stage(Enum):
    NEW = "has not begun; use it in a with statement"
    OPEN = "is open"
    COMMITTED = "is committed"
    ABORTED = "was aborted"


class Transaction:
    """Several changes in one: ``with db.transaction() as tx: tx.insert("orders", rows)``.

    Nothing happens before the block ends; an exception inside aborts. Reads inside the block see the old version.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._changes: list[Change] = []
        self._stage = _Stage.NEW
        self._commit: Commit | None = None

    def insert(self, table: str, rows: Any, *, decompose: bool = False) -> None:
        """Adds rows, or an ``ev.Product``, to a table; ``decompose`` as for ``db.apply``."""
        self._add(table, rows, Mode.INSERT, decompose)

    def delete(self, table: str, rows: Any, *, decompose: bool = False) -> None:
        """Removes rows, each as often as it is given, from a table that has them."""
        self._add(table, rows, Mode.DELETE, decompose)

    def upsert(self, table: str, rows: Any) -> None:
        """Replaces the rows with the same primary key, as of the changes so far, or adds them."""
        self._add(table, rows, Mode.UPSERT)

    def delete_keys(self, table: str, keys: Any) -> None:
        """Removes the rows that have these primary keys, as of the changes so far."""
        self._add(table, keys, Mode.DELETE_KEYS)

    def apply(self, changes: Mapping[str, Any], *, decompose: bool = False) -> None:
        """Adds changes with weights or change types, as ``db.apply`` takes them."""
        self._check_open()
        self._changes += self._core.read_mapping(changes, decompose)

    @property
    def commit(self) -> Commit:
        """What the transaction did; there once the block has ended."""
        if self._commit is None:
            raise UnsupportedOperation(
                f"the transaction {self._stage.value}, so there is no commit to show.",
                hint="a transaction commits when its with block ends; read tx.commit after it.",
            )
        return self._commit

    def __enter__(self) -> Transaction:
        if self._stage is not _Stage.NEW:
            raise UnsupportedOperation(
                f"the transaction {self._stage.value}.", hint="begin another with db.transaction()."
            )
        self._core.check_open()
        self._stage = _Stage.OPEN
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stage = _Stage.ABORTED
        if kind is not None:
            return
        self._commit = self._core.commit(self._changes)
        self._stage = _Stage.COMMITTED
        self._core.subscriptions.deliver()

    def _add(self, table: str, rows: Any, mode: Mode, decompose: bool = False) -> None:
        self._check_open()
        self._changes.append(self._core.read_change(table, rows, mode, decompose))

    def _check_open(self) -> None:
        if self._stage is not _Stage.OPEN:
            raise UnsupportedOperation(
                f"the transaction {self._stage.value}.", hint="begin another with db.transaction()."
            )

    def __repr__(self) -> str:
        tables = sorted({change.table for change in self._changes})
        count = f"{len(self._changes)} changes to {', '.join(tables) or 'nothing'}"
        return f"<Transaction {self._stage.name.lower()}, {count}>"
