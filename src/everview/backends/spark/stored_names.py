"""What the names of tables and views of the Spark backend show: their segments, summed up by weight."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from everview.backends.spark.database_files import DatabaseFiles
from everview.backends.spark.spark_engine import decoded
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import UnknownName, ViewSuspended
from everview.relational.clock import is_hidden
from everview.relational.nodes import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ToBag = Callable[["DataFrame", Schema], "DataFrame"]


def has_shown_name(definition: TableDefinition | ViewDefinition) -> bool:
    """Whether users read it by name: no assertion, no table without rows, no external table, which Spark reads anyway."""
    if is_hidden(definition.name):
        return False
    if isinstance(definition, ViewDefinition):
        return not definition.is_assertion and definition.part_of is None
    return definition.retain and definition.follows is None


class StoredName:
    """A table or view, as ``shown_names`` asks for it.

    It takes no lock: a relation's segments are one list, replaced as a whole.

    Args:
        definition: What it is.
        files: Where its segments are.
        to_bag: From weighted rows to the rows that users see.
    """

    def __init__(self, definition: TableDefinition | ViewDefinition, files: DatabaseFiles, to_bag: ToBag) -> None:
        relation = files.relations[definition.name.lower()]
        self.name = definition.name
        self.folder = relation.folder
        self.stored = relation.stored
        self.is_view = isinstance(definition, ViewDefinition)
        self._fields = definition.fields
        self._files = weakref.ref(files)
        self._to_bag = to_bag

    def files(self) -> list[tuple[str, int]]:
        """The segments of now."""
        files = self._files()
        relation = None if files is None else files.relations.get(self.name.lower())
        if files is None or relation is None or relation.folder != self.folder:
            raise UnknownName(f"'{self.name}' was dropped, or its database closed.")
        why = files.last.suspended.get(self.name.lower())
        if why is not None:
            raise ViewSuspended(self.name, why.version, why.reason, why.condition)
        return [(f"file:{self.folder.absolute() / s.path}", s.size) for s in relation.segments]

    def bag(self, frame: DataFrame) -> DataFrame:
        """The rows, each as often as its weights say."""
        return self._to_bag(decoded(frame, self.stored), self._fields)
