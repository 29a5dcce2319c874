"""The protocol every backend implements: tables and views in, atomic transactions, reads out.

The session above it resolves names, checks column names and types, and turns whatever the user gave into Arrow; the
backend owns the state. Contract: a call that raises has changed nothing; after ``apply`` returns, all views answer for the
same version; the delta of a view is strongly minimal (no row in it twice, no weight 0, nothing deleted that was not there).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import pyarrow as pa

from everview.catalog import TableDefinition, ViewDefinition
from everview.relational.nodes import Relation
from everview.relational.types import Value

WEIGHT = "_weight"


class ChangeKind(Enum):
    """How the rows of a change act on the table."""

    WEIGHTED = "weighted"
    """Each row is added ``weight`` times; negative weights delete."""
    UPSERT = "upsert"
    """Each row replaces the row with the same primary key, or is new."""
    DELETE_KEYS = "delete keys"
    """Each row holds a primary key; the row with that key is deleted."""


@dataclass(frozen=True, slots=True)
class Change:
    """Rows for one table, checked against its schema: the table's columns in order (DELETE_KEYS: its key columns).

    ``weights`` is an int64 array without nulls and zeros, or None when every weight is 1.
    """

    table: str
    kind: ChangeKind
    rows: pa.Table
    weights: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class VersionedDelta:
    """What one transaction did to one view: the view's columns and ``_weight``; ``committed_at`` is in UTC."""

    version: int
    delta: pa.Table
    committed_at: datetime.datetime


class Backend(Protocol):
    """What the session asks of an engine."""

    name: str

    @property
    def version(self) -> int:
        """The number of transactions committed."""

    def create_table(self, table: TableDefinition) -> None:
        """Adds an empty table."""

    def create_view(self, view: ViewDefinition) -> None:
        """Adds a view (or assertion) and takes in the rows that its inputs hold.

        Raises:
            UnsupportedQuery: the plan has something this backend cannot maintain.
            EvaluationError: the plan fails on rows that are already there.
            AssertionViolated: an assertion does not hold on them.
        """

    def drop(self, name: str) -> None:
        """Removes a table, view or assertion that nothing depends on."""

    def apply(self, changes: Sequence[Change]) -> Mapping[str, pa.Table]:
        """Commits one transaction and returns the delta of every view it moved (perhaps computed on access).

        Changes to one table act in order: an upsert sees the changes before it. Strictness is judged on the sum.

        Raises:
            InvalidChange: an absent row is deleted, a key is NULL or duplicate, a static table is changed after its load.
            EvaluationError: some view's arithmetic fails.
            AssertionViolated: an assertion would become non-empty.
        """

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

    def stats(self, view: str) -> dict[str, Any]:
        """Rows, bytes of state, updates and seconds of a view."""

    def checkpoint(self) -> None:
        """Makes the state durable."""

    def close(self) -> None:
        """Releases everything; further calls are errors."""
