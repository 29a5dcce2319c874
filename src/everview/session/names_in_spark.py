"""The names of tables and views of the embedded backend in the Spark session that ``connect`` was given.

Their rows are in this process, so what Spark reads is a Parquet file that is written when Spark plans a query over the name,
unless one is there of the same rows. Contract: a query reads the version that is current when it is planned; a commit writes
nothing. Files are removed once two newer ones of the same name have been written.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import weakref
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from everview.backends.spark.segments import decode_sql, encode, stored_fields
from everview.backends.spark.shown_names import ShownNames
from everview.backends.spark.stored_names import has_shown_name
from everview.catalog import Definition, ViewDefinition
from everview.errors import UnknownName, UnsupportedOperation, UnsupportedQuery, ViewSuspended
from everview.relational.nodes import Schema
from everview.relational.quoting import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.session.core import Core

_KEPT_FILES: Final = 3
_PATIENCE: Final = 60.0
"""Seconds that a query waits for a database that is at work. If it is its own caller that works, it would wait for ever."""


class NamesInSpark:
    """The names of one database.

    Args:
        core: The database.
        session: Where they are shown. Executors read the files, so it is a session of this machine, or nothing is shown.
    """

    def __init__(self, core: Core, session: SparkSession) -> None:
        is_here = (session.sparkContext.master or "").startswith("local")
        self.shown = ShownNames(lambda: session if is_here else None)
        self._core = core
        self.folder = Path(tempfile.mkdtemp(prefix="everview-names-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def add(self, definition: Definition) -> None:
        """Shows a table or view that can be read, under its name."""
        if has_shown_name(definition) and _fits_files(definition.fields):
            self.shown.add(RowsOnDemand(self._core, definition, self.folder))

    def close(self) -> None:
        """Takes all names away, and the files."""
        self.shown.close()
        self._remove()


def _fits_files(fields: Schema) -> bool:
    try:
        stored_fields(fields)
    except UnsupportedQuery:  # variants, and intervals inside arrays
        return False
    return True


class RowsOnDemand:
    """A table or view, as ``shown_names`` asks for it."""

    _numbers = itertools.count()

    def __init__(self, core: Core, definition: Definition, folder: Path) -> None:
        self.name = definition.name
        self.folder = folder / str(next(self._numbers))
        self.stored = definition.fields
        self._core = weakref.ref(core)
        self.is_view = isinstance(definition, ViewDefinition)
        self._written: list[tuple[int, Path]] = []

    def files(self) -> list[tuple[str, int]]:
        """One file with the rows of now."""
        core = self._core()
        if core is None:
            raise UnknownName(f"the database of '{self.name}' is gone.")
        with core.lock.within(_PATIENCE) as is_ours:
            if not is_ours:
                raise UnsupportedOperation(
                    f"'{self.name}' cannot be read now: its database is at work, perhaps for the caller of this query.",
                    hint="read it before the call that changes the database, or give that call to_spark() of it.",
                )
            core.check_not_closed()
            core.heal()
            if self.is_view and self.name in (suspended := core.backend.suspensions()):
                raise ViewSuspended(self.name, *astuple(suspended[self.name]))
            if not self._is_current(core):
                self._write(core)
            path = self._written[-1][1]
            return [(f"file:{path.absolute()}", path.stat().st_size)]

    def _is_current(self, core: Core) -> bool:
        if not self._written:
            return False
        version = self._written[-1][0]
        if version == core.backend.version or not self.is_view:
            return version == core.backend.version
        try:
            return not core.backend.changes(self.name, version)
        except UnsupportedOperation:  # they are not kept for so long, or not at all
            return False

    def _write(self, core: Core) -> None:
        rows = core.backend.read(self.name)
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{core.backend.version}.parquet"
        pq.write_table(encode(rows, self.stored), path, compression="lz4", store_decimal_as_integer=True)
        self._written.append((core.backend.version, path))
        for _, old in self._written[:-_KEPT_FILES]:
            old.unlink(missing_ok=True)
        del self._written[:-_KEPT_FILES]

    def bag(self, frame: DataFrame) -> DataFrame:
        """The rows under their columns' names; a projection in any case, because Spark would INSERT INTO bare files."""
        named = zip(stored_fields(self.stored), self.stored, strict=True)
        return frame.selectExpr(*(f"{decode_sql(quote(s.name), f.type)} AS {quote(f.name)}" for s, f in named))
