"""Tables and views of a database under their names in the user's Spark session, always at the current version.

A temporary view of Spark is a plan, bound when it is made; a commit would have to make every view it moved anew. So the plan's
scan has a file index of our own, which Spark asks for files whenever it plans a query: commits cost nothing, and each query
reads what is current then. What a name shows is the bag, the same rows as ``to_spark``.

Contract: a name that means something else in the session is left alone, of a view with a warning; a name that the user has
given another meaning since is not dropped; after ``close`` no name of this database is left.
"""

from __future__ import annotations

import re
import uuid
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame

from everview.backends.spark.spark_engine import stored_ddl
from everview.errors import UnknownName
from everview.relational.nodes import Schema
from everview.relational.quoting import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARK: Final = re.compile(r"everview_shown_[0-9a-f]{32}")
"""An alias in the plan of every temporary view that we make, by which it is known again."""

_OPEN: Final[weakref.WeakValueDictionary[str, ShownNames]] = weakref.WeakValueDictionary()

SessionOrNone = Callable[[], "SparkSession | None"]


class ShownSource(Protocol):
    """The rows of one name."""

    name: str
    folder: Path
    """Where its files are."""
    stored: Schema
    """The columns in them."""
    is_view: bool

    def files(self) -> list[tuple[str, int]]:
        """The URIs and sizes of the files that hold the rows of now.

        Raises:
            EverviewError: it has no rows to read.
        """

    def bag(self, frame: DataFrame) -> DataFrame:
        """From what stands in the files to the rows that users see."""


class ShownNames:
    """The names of one database.

    Args:
        session_of: The session to show them in; None as long as there is none.
    """

    def __init__(self, session_of: SessionOrNone) -> None:
        self._session_of = session_of
        self._waiting: dict[str, ShownSource] = {}
        self._shown: dict[str, tuple[ShownSource, SparkSession, str]] = {}
        self._parts: tuple[SparkSession, _Parts] | None = None

    def add(self, source: ShownSource) -> None:
        """Shows a table or view; as soon as there is a session, if there is none."""
        self._waiting[source.name.lower()] = source
        self.settle()

    def settle(self) -> None:
        """Shows what has been waiting for a session."""
        session = self._session_of() if self._waiting else None
        if session is not None:
            waiting, self._waiting = self._waiting, {}
            for source in waiting.values():
                self._show(source, session)

    def remove(self, name: str) -> None:
        """Takes a name away."""
        self._waiting.pop(name.lower(), None)
        shown = self._shown.pop(name.lower(), None)
        if shown is not None:
            _, session, mark = shown
            _OPEN.pop(mark, None)
            if _is_running(session) and mark_of_view(name, session) == mark:
                session._jsparkSession.sessionState().catalog().dropTempView(name)

    def close(self) -> None:
        """Takes all names away."""
        for name in list(self._shown):
            self.remove(name)

    def marks(self) -> dict[str, str]:
        """By name in small letters, the alias in the plan that stands for a table or view of now."""
        return {name: mark for name, (_, _, mark) in self._shown.items()}

    def _show(self, source: ShownSource, session: SparkSession) -> None:
        name = source.name
        if not _is_running(session):
            return
        if session._jsparkSession.catalog().tableExists(quote(name)):
            owner = mark_of_view(name, session)
            # One of a database that nobody closed is left over.
            if owner is None or _OPEN.get(owner) not in (None, self):
                if source.is_view:  # rows of a table often come from what has its name in the session
                    warnings.warn(
                        f"'{name}' is something else in the Spark session and stays that there; view '{name}' of everview can "
                        f"be shown as another name: db.view({name!r}).to_spark().createTempView(…).",
                        stacklevel=2,
                    )
                return
        mark = f"everview_shown_{uuid.uuid4().hex}"
        frame = source.bag(_CurrentFiles(source, session, self._parts_of(session)).frame())
        frame.alias(mark).createOrReplaceTempView(quote(name))
        self._shown[name.lower()] = source, session, mark
        _OPEN[mark] = self

    def _parts_of(self, session: SparkSession) -> _Parts:
        if self._parts is None or self._parts[0] is not session:
            jvm: Any = session._jvm
            datasources, struct = (
                jvm.org.apache.spark.sql.execution.datasources,
                jvm.org.apache.spark.sql.types.StructType,
            )
            nothing, no_options = jvm.scala.Option.empty(), jvm.scala.collection.immutable.HashMap()
            parquet = datasources.parquet.ParquetFileFormat()
            self._parts = session, _Parts(datasources.HadoopFsRelation, struct, parquet, struct(), nothing, no_options)
        return self._parts[1]


@dataclass(frozen=True, slots=True)
class _Parts:
    """What all scans of a session have: found once, because the JVM is asked for each word of the name of a class."""

    relation: Any
    struct: Any
    parquet: Any
    no_columns: Any
    nothing: Any
    no_options: Any


def mark_of_view(name: str, session: SparkSession) -> str | None:
    """The mark in the temporary view of this name; None if that is none of ours, or there is none."""
    view = session._jsparkSession.sessionState().catalog().getTempView(name)
    found = None if view.isEmpty() else _MARK.search(view.get().child().toString())
    return None if found is None else found[0]


def _is_running(session: SparkSession) -> bool:
    return getattr(session.sparkContext, "_jsc", None) is not None


class _CurrentFiles:
    """A source's files as a ``FileIndex`` of Spark: asked whenever a scan is planned, in a thread of Spark's.

    The names of its methods are Spark's.
    """

    def __init__(self, source: ShownSource, session: SparkSession, parts: _Parts) -> None:
        self._source = weakref.ref(
            source
        )  # Spark's references keep this object alive, which must not keep the database
        self._name, self._folder = source.name, source.folder.absolute()
        self._ddl = stored_ddl(source.stored)
        self._parts = parts
        self._session = session
        self._jvm: Any = session._jvm
        self._gateway: Any = session.sparkContext._gateway

    def frame(self) -> DataFrame:
        """The rows of the files, whichever they are when it is computed."""
        ensure_callback_server_started(self._gateway)  # type: ignore[no-untyped-call]
        parts, session = self._parts, self._session._jsparkSession
        schema = parts.struct.fromDDL(self._ddl)
        relation = parts.relation(
            self, parts.no_columns, schema, parts.nothing, parts.parquet, parts.no_options, session
        )
        return DataFrame(session.baseRelationToDataFrame(relation), self._session)

    def listFiles(self, _partition_filters: Any, _data_filters: Any) -> Any:  # noqa: N802
        """The files to read, in one partition."""
        datasources = self._jvm.org.apache.spark.sql.execution.datasources
        listed = self._listed()
        statuses = self._gateway.new_array(self._jvm.org.apache.hadoop.fs.FileStatus, len(listed))
        for i, (path, size) in enumerate(listed):
            place = self._jvm.org.apache.hadoop.fs.Path(path)
            statuses[i] = self._jvm.org.apache.hadoop.fs.FileStatus(size, False, 1, size, 0, place)
        whole = datasources.PartitionDirectory.apply(
            self._jvm.org.apache.spark.sql.catalyst.InternalRow.empty(), statuses
        )
        return self._sequence([whole])

    def inputFiles(self) -> Any:  # noqa: N802
        """The paths of the files."""
        listed = self._listed()
        paths = self._gateway.new_array(self._jvm.java.lang.String, len(listed))
        for i, (path, _) in enumerate(listed):
            paths[i] = path
        return paths

    def sizeInBytes(self) -> int:  # noqa: N802
        """How much there is to read; Spark decides by it what to broadcast."""
        return sum(size for _, size in self._listed())

    def rootPaths(self) -> Any:  # noqa: N802
        """Where the files are, to be shown in plans."""
        return self._sequence([self._jvm.org.apache.hadoop.fs.Path(f"file:{self._folder}")])

    def partitionSchema(self) -> Any:  # noqa: N802
        """No columns: the folders have no meaning."""
        return self._parts.no_columns

    def metadataOpsTimeNs(self) -> Any:  # noqa: N802
        """How long listing took: not measured."""
        return self._jvm.scala.Option.empty()

    def refresh(self) -> None:
        """Nothing is remembered, so nothing needs to be forgotten."""

    def equals(self, other: Any) -> bool:
        """An index is equal to itself."""
        return other is self

    def hashCode(self) -> int:  # noqa: N802
        """For Spark's comparison of plans."""
        return hash((self._name, str(self._folder))) & 0x7FFFFFFF

    def toString(self) -> str:  # noqa: N802
        """For Spark's printed plans."""
        return f"everview({self._name})"

    def _listed(self) -> list[tuple[str, int]]:
        source = self._source()
        if source is None:
            raise UnknownName(f"'{self._name}' was dropped, or its database closed.")
        return source.files()

    def _sequence(self, items: list[Any]) -> Any:
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(items)

    class Java:
        """What py4j makes of it."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)
