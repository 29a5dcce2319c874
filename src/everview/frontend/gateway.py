"""Our door to Spark: one private session, the database's names as empty temp views, queries in, plans out.

Contract: Spark starts only when a method needs it; a session that the user gave is never stopped or configured: we work in
``newSession()``, which shares its context but has its own settings (ANSI on) and its own temp views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.relational.nodes import Relation, Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Translated:
    """A user's query as algebra over the scans of the database's tables and views."""

    plan: Relation
    text: str | None
    time_zone: str


class SparkGateway:
    """Translates and runs queries with Spark on behalf of one database."""

    def __init__(self, spark: SparkSession | None = None) -> None: ...

    @property
    def is_started(self) -> bool:
        """Whether this database has needed Spark so far."""

    def register(self, name: str, fields: Schema) -> None:
        """Makes a table or view known to queries (cheap: nothing happens in Spark until a query needs it)."""

    def unregister(self, name: str) -> None:
        """Forgets a table or view."""

    def table(self, name: str) -> DataFrame:
        """An empty DataFrame that stands for the table or view, to build queries with."""

    def translate(self, query: str | DataFrame) -> Translated:
        """Resolves a query with Spark and translates it.

        Raises:
            InvalidQuery: Spark cannot parse or resolve it (UnknownName for a missing table, view or column).
            UnsupportedQuery: it uses something we do not have.
        """

    def recompute(self, query: str | DataFrame, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Spark's own answer to a query when each named table holds the given rows."""

    def to_dataframe(self, rows: pa.Table) -> DataFrame:
        """The rows as a DataFrame of the user's session."""
