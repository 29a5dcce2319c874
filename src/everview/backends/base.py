"""The protocol every backend implements: tables and views in, atomic transactions, reads out.

The session above it resolves names, checks column names and types, and turns whatever the user gave into Arrow; the
backend owns the state. Contract: a call that raises has changed nothing; after ``apply`` returns, all views answer for the
same version; the delta of a view is strongly minimal (no row in it twice, no weight 0, nothing deleted that was not there).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.catalog import Definition, TableDefinition, ViewDefinition
from everview.relational.expressions import Literal
from everview.relational.nodes import Relation
from everview.relational.types import Value


class ChangeKind(Enum):
    """How the rows of a change act on the table."""

    WEIGHTED = "weighted"
    """Each row is added ``weight`` times; negative weights delete."""
    UPSERT = "upsert"
    """Each row replaces the row with the same primary key, or is new."""
    DELETE_KEYS = "delete keys"
    """Each row holds a primary key; the row with that key is deleted."""


@dataclass(slots=True)
class Change:
    """Rows for one table, checked against its schema: the table's columns in order (DELETE_KEYS: its key columns).

    Nobody changes one; that it is not frozen saves half of the time it takes to make it, like ``Commit`` and ``Batch``.

    ``given`` is the rows as they came, a table or one batch. ``weights`` is an int64 array without nulls and zeros, or None
    when every weight is 1. ``decomposed`` is there if the caller asked whether the rows are a product: the columns by factor.
    """

    table: str
    kind: ChangeKind
    given: pa.Table | pa.RecordBatch
    weights: pa.Array | None = None
    decomposed: tuple[tuple[str, ...], ...] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self.given.schema

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return int(self.given.num_rows)

    @property
    def rows(self) -> pa.Table:
        """The rows as a table."""
        return self.given if isinstance(self.given, pa.Table) else pa.Table.from_batches([self.given])


@dataclass(frozen=True, slots=True)
class VersionedDelta:
    """What one transaction did to one view: the view's columns and ``_weight``; ``committed_at`` is in UTC."""

    version: int
    delta: pa.Table
    committed_at: datetime.datetime


@dataclass(frozen=True, slots=True)
class Refresh:
    """How one transaction brought a view up to date: ``incremental`` or ``full``, and why that way."""

    how: str
    reason: str

    def __str__(self) -> str:
        return f"{self.how} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Suspension:
    """Why a view has no answer, and since which version; ``condition`` is Spark's, of the error in it or in a view below."""

    version: int
    reason: str
    condition: str

    def __str__(self) -> str:
        return f"suspended since version {self.version}: {self.reason}"


def source_of_table(origin: str, table: str) -> str:
    """The name of a source that feeds one table only."""
    return f"{origin}>{table.lower()}"


def without_sources_of(table: str, batches: Mapping[str, int]) -> dict[str, int]:
    """The recorded batches that stay when a table is dropped: a table made anew must not go on where the old one was.

    >>> without_sources_of("T", {"queue": 3, source_of_table("stream:7", "t"): 5})
    {'queue': 3}
    """
    ending = source_of_table("", table)
    return {source: number for source, number in batches.items() if not source.endswith(ending)}


def sources_moved(before: str, after: str, batches: Mapping[str, int]) -> dict[str, int]:
    """The recorded batches when a table gets another name: what feeds it goes on where it was.

    >>> sources_moved("T", "u", {"queue": 3, source_of_table("stream:7", "t"): 5})
    {'queue': 3, 'stream:7>u': 5}
    """
    ending = source_of_table("", before)
    return {
        source_of_table(source.removesuffix(ending), after) if source.endswith(ending) else source: number
        for source, number in batches.items()
    }


@dataclass(frozen=True, slots=True)
class AlteredTable:
    """What becomes of a table: its new definition, and for each column its place before, None for a new one.

    ``filling`` is what the rows that are there get in the new columns.
    """

    definition: TableDefinition
    columns: tuple[int | None, ...]
    filling: Literal

    def undone(self, before: TableDefinition) -> AlteredTable:
        """What leads back to the definition before."""
        return AlteredTable(before, tuple(self.columns.index(i) for i in range(len(before.fields))), self.filling)


class Backend(Protocol):
    """What the session asks of an engine."""

    name: str

    @property
    def definitions(self) -> Sequence[Definition]:
        """What a database on disk held when it was opened, in order of creation; nothing for one in memory."""

    @property
    def version(self) -> int:
        """The number of transactions committed."""

    def create_table(self, table: TableDefinition) -> None:
        """Adds an empty table."""

    def create_view(self, view: ViewDefinition) -> None:
        """Adds a view (or assertion) and takes in the rows that its inputs hold.

        Raises:
            UnsupportedQuery: the plan has something this backend cannot maintain.
            EvaluationError: the plan fails on rows that are there, and the view may not be suspended.
            AssertionViolated: an assertion does not hold on them.
        """

    def drop(self, name: str) -> None:
        """Removes a table, view or assertion that nothing depends on; of a table also the batches recorded for it alone."""

    def apply(self, changes: Sequence[Change], *, source: tuple[str, int] | None = None) -> Mapping[str, pa.Table]:
        """Commits one transaction and returns the delta of every view it moved (perhaps computed on access).

        Changes to one table act in order: an upsert sees the changes before it. Strictness is judged on the sum.

        Args:
            changes: What to change.
            source: Which batch of which source the changes are; recorded in the same transaction for ``last_batch``. The
                session has made sure that it is a later batch than the recorded one.

        Raises:
            InvalidChange: an absent row is deleted, a key is NULL or duplicate, a static table is changed after its load.
            EvaluationError: the arithmetic of an assertion fails, or of a view with ``on_error="reject"``.
            AssertionViolated: an assertion would become non-empty.
        """

    def suspensions(self) -> Mapping[str, Suspension]:
        """The views that have no answer, by name, and why; reading one of them raises ``ViewSuspended``."""

    def heal(self) -> Mapping[str, pa.Table]:
        """Tries suspended views again whose tables have changed since; of those that answer, what changed since they did.

        ``apply`` tries too, as far as that is cheap. After this call a view is suspended only if its query fails now.
        """

    def last_batch(self, source: str) -> int | None:
        """The last batch of this source whose transaction is committed; None if there is none."""

    def refreshed(self) -> Mapping[str, Refresh]:
        """How the last transaction brought each view up to date that it touched, by the view's name."""

    def read(self, name: str) -> pa.Table:
        """The bag of a table or view, rows repeated by multiplicity."""

    def iterate(self, name: str) -> Iterator[tuple[Any, ...]]:
        """The same rows one by one, as Arrow's Python values, without building the listing."""

    def lookup(self, name: str, key: Mapping[str, Value]) -> pa.Table:
        """The rows whose columns have these values (None matches NULL); values as in ``relational.types``."""

    def query(self, plan: Relation) -> pa.Table:
        """Evaluates an ad-hoc plan over tables and views once."""

    def changes(self, view: str, since: int) -> Sequence[VersionedDelta]:
        """The non-empty deltas of the versions after ``since``, oldest first.

        Raises:
            UnsupportedOperation: the backend no longer keeps them all, or the view is younger.
        """

    def changes_kept_since(self, view: str) -> int:
        """The smallest ``since`` that ``changes`` takes."""

    def explain(self, view: str, mode: str) -> str:
        """How the view is maintained, in one of the modes of ``interface.md``."""

    def cost_lines(self, view: ViewDefinition) -> list[str]:
        """What a changed row of each table would cost a view that is not there, in words, and advice; nothing is made."""

    def stats(self, view: str) -> dict[str, Any]:
        """Rows, bytes of state, updates and seconds of a view."""

    def checkpoint(self) -> None:
        """Makes the state durable."""

    def close(self) -> None:
        """Releases everything; further calls are errors."""


@runtime_checkable
class KeepsMatrices(Protocol):
    """A backend that can keep products of matrices in arrays."""

    def matrix(self, view: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The values of i and of j of a product, and its cells."""


@runtime_checkable
class KeepsNumbers(Protocol):
    """A backend that can hand out sums as it keeps them, without making columns of them."""

    def numbers(self, view: str, key: Mapping[str, Value]) -> npt.NDArray[np.float64] | None:
        """The row of a group, of a view of nothing but groups, numbers of rows and sums of floats; None of any other view.

        Each is a double-double, [row, column, 2]; a group that is not there has no row. A sum of no rows is 0. ``key`` has the
        group's columns, all of them.
        """


@runtime_checkable
class HoldsRows(Protocol):
    """A backend whose queries can read rows that are no table of the database."""

    def holding(self, table: TableDefinition, rows: pa.Table) -> AbstractContextManager[None]:
        """Lets queries read these rows as a table, for as long as the context lasts; its name is free."""


@runtime_checkable
class AltersTables(Protocol):
    """A backend whose tables can get other columns and names."""

    def alter_table(self, name: str, altered: AlteredTable) -> None:
        """Alters a table that no view reads, and no constraint; its rows stay, and the version."""


class InMemory:
    """A backend whose databases end with the process, so that none is ever opened with something in it."""

    definitions: tuple[Definition, ...] = ()
