"""What the backends of databases on disk answer from their engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from everview.backends.base import Refresh, Suspension, VersionedDelta
from everview.backends.embedded.matrix.stored_matrix import Floats
from everview.backends.embedded.vectors import Ints
from everview.catalog import Definition, TableDefinition, ViewDefinition
from everview.relational.nodes import Relation
from everview.relational.types import Value
from everview.session.durable.recovery import RecoveredEngine


class EngineReads:
    """The part of ``backends.base.Backend`` that changes nothing."""

    name = "embedded"

    def __init__(self, recovered: RecoveredEngine) -> None:
        self._recovered = recovered

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """Tables, views and assertions, in order of creation."""
        return self._recovered.definitions

    @property
    def version(self) -> int:
        """The number of transactions committed."""
        return self._recovered.engine.version

    def suspensions(self) -> Mapping[str, Suspension]:
        """The views that have no answer."""
        return self._recovered.engine.suspensions()

    def heal(self) -> Mapping[str, pa.Table]:
        """Tries suspended views again whose tables have changed."""
        return self._recovered.engine.heal()

    def last_batch(self, source: str) -> int | None:
        """The last committed batch of a source."""
        return self._recovered.engine.last_batch(source)

    def refreshed(self) -> Mapping[str, Refresh]:
        """How the views over what the last transaction changed were brought up to date."""
        return self._recovered.engine.refreshed()

    def read(self, name: str) -> pa.Table:
        """The bag of a table or view."""
        return self._recovered.engine.read(name)

    def iterate(self, name: str) -> Iterator[tuple[Any, ...]]:
        """The same, row by row."""
        return self._recovered.engine.iterate(name)

    def lookup(self, name: str, key: Mapping[str, Value]) -> pa.Table:
        """The rows with these values."""
        return self._recovered.engine.lookup(name, key)

    def query(self, plan: Relation) -> pa.Table:
        """Evaluates a plan once."""
        return self._recovered.engine.query(plan)

    def holding(self, table: TableDefinition, rows: pa.Table) -> AbstractContextManager[None]:
        """Lets queries read these rows as a table, for as long as the context lasts."""
        return self._recovered.engine.holding(table, rows)

    def changes(self, view: str, since: int) -> Sequence[VersionedDelta]:
        """The non-empty deltas of the versions after ``since``."""
        return self._recovered.engine.changes(view, since)

    def changes_kept_since(self, view: str) -> int:
        """The smallest ``since`` that ``changes`` takes: not before the checkpoint that the database was opened from."""
        return self._recovered.engine.changes_kept_since(view)

    def explain(self, view: str, mode: str) -> str:
        """How the view is maintained."""
        return self._recovered.engine.explain(view, mode)

    def cost_lines(self, view: ViewDefinition) -> list[str]:
        """What a changed row of each table would cost a view that is not there."""
        return self._recovered.engine.cost_lines(view)

    def matrix(self, view: str) -> tuple[Ints, Ints, Floats]:
        """The indexes and cells of a product of matrices that is kept in arrays."""
        return self._recovered.engine.matrix(view)

    def numbers(self, view: str, key: Mapping[str, Value]) -> Floats | None:
        """The row of a group as it is kept, if it is nothing but numbers of rows and sums of floats."""
        return self._recovered.engine.numbers(view, key)

    def stats(self, view: str) -> dict[str, Any]:
        """Rows, bytes by structure, updates and seconds."""
        return self._recovered.engine.stats(view)
