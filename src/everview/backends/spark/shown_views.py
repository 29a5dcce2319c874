"""The views of a database under their names in the user's Spark session, always at the current version.

A temporary view of Spark is a plan, bound when it is made; a commit would have to make every view it moved anew. So the plan's
scan has a file index of our own, which Spark asks for files whenever it plans a query: commits cost nothing, and each query
reads what is current then. What a name shows is the view's bag, the same rows as ``View.to_spark``.

Contract: a name that means something else in the session is left alone, with a warning; a name that the user has given
another meaning since is not dropped; after ``close`` no name of this database is left.
"""

from __future__ import annotations

import re
import uuid
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pyspark.java_gateway import ensure_callback_server_started

from everview.backends.spark.database_files import DatabaseFiles
from everview.backends.spark.spark_engine import decoded, stored_ddl
from everview.catalog import ViewDefinition
from everview.errors import UnknownName, ViewSuspended
from everview.relational.quoting import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MARK: Final = re.compile(r"everview_shown_[0-9a-f]{32}")
"""An alias in the plan of every temporary view that we make, by which it is known again."""

_OPEN: Final[weakref.WeakValueDictionary[str, ShownViews]] = weakref.WeakValueDictionary()

SessionOrNone = Callable[[], "SparkSession | None"]
ToBag = Callable[["DataFrame", ViewDefinition], "DataFrame"]


class ShownViews:
    """The temporary views of one database.

    Args:
        files: Where the views are.
        session_of: The session to show them in; None as long as there is none.
        to_bag: From a view's weighted rows to the rows that users see.
    """

    def __init__(self, files: DatabaseFiles, session_of: SessionOrNone, to_bag: ToBag) -> None:
        self._files = files
        self._session_of = session_of
        self._to_bag = to_bag
        self._mark = f"everview_shown_{uuid.uuid4().hex}"
        self._waiting: list[ViewDefinition] = []
        self._shown: dict[str, SparkSession] = {}
        _OPEN[self._mark] = self

    def add(self, view: ViewDefinition) -> None:
        """Shows a view; as soon as there is a session, if there is none."""
        if not view.is_assertion:
            self._waiting.append(view)
            self.settle()

    def settle(self) -> None:
        """Shows what has been waiting for a session."""
        session = self._session_of() if self._waiting else None
        if session is not None:
            waiting, self._waiting = self._waiting, []
            for view in waiting:
                self._show(view, session)

    def remove(self, name: str) -> None:
        """Takes a view's name away."""
        self._waiting = [v for v in self._waiting if v.name.lower() != name.lower()]
        session = self._shown.pop(name.lower(), None)
        if session is not None and _is_running(session) and self._owner(name, session) == self._mark:
            session.catalog.dropTempView(name)

    def close(self) -> None:
        """Takes all names away."""
        for name in list(self._shown):
            self.remove(name)
        _OPEN.pop(self._mark, None)

    def _show(self, view: ViewDefinition, session: SparkSession) -> None:
        if session.catalog.tableExists(quote(view.name)):
            owner = self._owner(view.name, session)
            if owner is None or owner in _OPEN:  # else it is left over from a database that nobody closed
                warnings.warn(
                    f"'{view.name}' is something else in the Spark session and stays that there; view '{view.name}' of "
                    f"everview can be shown as another name: db.view({view.name!r}).to_spark().createTempView(…).",
                    stacklevel=2,
                )
                return
        relation = self._files.relations[view.name.lower()]
        index = _CurrentFiles(self._files, view.name.lower(), session)
        frame = decoded(index.frame(stored_ddl(relation.stored)), relation.stored)
        self._to_bag(frame, view).alias(self._mark).createOrReplaceTempView(quote(view.name))
        self._shown[view.name.lower()] = session

    @staticmethod
    def _owner(name: str, session: SparkSession) -> str | None:
        """The mark of the database that shows this name; None if it is none of ours."""
        if not session.catalog.tableExists(quote(name)):
            return None
        found = _MARK.search(session.table(quote(name))._jdf.queryExecution().analyzed().toString())
        return None if found is None else found[0]


def _is_running(session: SparkSession) -> bool:
    return getattr(session.sparkContext, "_jsc", None) is not None


class _CurrentFiles:
    """A relation's files as a ``FileIndex`` of Spark: asked whenever a scan is planned, in a thread of Spark's.

    The names of its methods are Spark's. It takes no lock: a relation's segments are one list, replaced as a whole.
    """

    def __init__(self, files: DatabaseFiles, name: str, session: SparkSession) -> None:
        self._files = weakref.ref(files)  # Spark's references keep this object alive, which must not keep the database
        self._name = name
        self._session = session
        self._folder = files.relations[name].folder.absolute()
        self._jvm: Any = session._jvm
        self._gateway: Any = session.sparkContext._gateway

    def frame(self, ddl: str) -> DataFrame:
        """The rows of the files, whichever they are when it is computed."""
        ensure_callback_server_started(self._gateway)  # type: ignore[no-untyped-call]
        datasources = self._jvm.org.apache.spark.sql.execution.datasources
        nothing, options = self._jvm.scala.Option.empty(), self._jvm.scala.collection.immutable.HashMap()
        schema = self._jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)
        parquet = datasources.parquet.ParquetFileFormat()
        session = self._session._jsparkSession
        relation = datasources.HadoopFsRelation(
            self, self.partitionSchema(), schema, nothing, parquet, options, session
        )
        return type(self._session.range(0))(session.baseRelationToDataFrame(relation), self._session)

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
        return self._jvm.org.apache.spark.sql.types.StructType()

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
        files = self._files()
        relation = None if files is None else files.relations.get(self._name)
        if relation is None or relation.folder.absolute() != self._folder:
            raise UnknownName(f"view '{self._name}' was dropped, or its database closed.")
        why = None if files is None else files.last.suspended.get(self._name)
        if why is not None:
            raise ViewSuspended(self._name, why.version, why.reason, why.condition)
        return [(f"file:{self._folder / s.path}", s.size) for s in relation.segments]

    def _sequence(self, items: list[Any]) -> Any:
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(items)

    class Java:
        """What py4j makes of it."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)
