"""What can be read: the ways out that tables, views and the answers of ``db.sql`` share, and the deltas of views.

Contract: a bag is given as rows repeated by multiplicity, in no particular order; all ways out show the same rows.
"""

from __future__ import annotations

import datetime
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import VersionedDelta
from everview.errors import UnsupportedOperation
from everview.relational.arrow import arrow_schema, public_rows, python_values
from everview.relational.column_names import WEIGHT
from everview.relational.display import html_table, show_table
from everview.relational.nodes import Schema
from everview.session.database_lock import DatabaseLock
from everview.session.feeds.lake_storage import DeltasOnDisk
from everview.session.rows.change_weights import CHANGE_TYPE
from everview.session.rows.changes import COMMIT_TIMESTAMP, COMMIT_VERSION

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


class Shown(ABC):
    """Rows that people look at, and that other libraries take as Arrow: ``pa.table(view)``, ``duckdb.sql("from view")``."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows by Arrow's C interface, as whatever takes Arrow asks for them."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def head(self, n: int = 5) -> list[tuple[Any, ...]]:
        """The first ``n`` rows, as tuples of Python values."""
        return public_rows(self.to_arrow().slice(0, _count_of_rows(n)))

    def show(self, n: int = 20) -> None:
        """Prints the first ``n`` rows under their column names."""
        print(show_table(self.to_arrow(), limit=_count_of_rows(n)))

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        return html_table(self.to_arrow())


def _count_of_rows(n: Any) -> int:
    """A number of rows to show, of whatever type of integers.

    Raises:
        UnsupportedOperation: it is none.
    """
    count = operator.index(n) if hasattr(n, "__index__") else -1
    if count < 0:
        raise UnsupportedOperation(f"{n!r} is no number of rows.", hint="rows() and to_arrow() give all of them.")
    return count


class _NamedRow(tuple[Any, ...]):
    """A tuple that says what its values are called, as named tuples do; pickled, it is a tuple."""

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]]

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return tuple, (tuple(self),)


def named_rows(rows: Iterable[tuple[Any, ...]], names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """The rows as tuples from which pandas and PySpark take the names of columns, whatever characters these have.

    >>> [(row, row._fields) for row in named_rows([(1, 2)], ["id", "count(1)"])]
    [((1, 2), ('id', 'count(1)'))]
    """
    return map(type("Row", (_NamedRow,), {"__slots__": (), "_fields": tuple(names)}), rows)


class Readable(Shown):
    """A bag of rows with the usual ways out."""

    @abstractmethod
    def to_spark(self) -> DataFrame:
        """The rows as a DataFrame of the user's Spark session; starts one if there is none."""

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        rows = self.to_arrow()
        with python_values():
            frame: pd.DataFrame = rows.to_pandas()
        return frame

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        return public_rows(self.to_arrow())

    def head(self, n: int = 5) -> list[tuple[Any, ...]]:
        """The first ``n`` rows, as tuples of Python values; no more are enumerated where the backend can."""
        return list(islice(self, _count_of_rows(n)))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples that know their columns' names, which ``pd.DataFrame(view)`` reads."""
        rows = self.to_arrow()
        return named_rows(public_rows(rows), rows.column_names)

    def __len__(self) -> int:
        count: int = self.to_arrow().num_rows
        return count

    def __bool__(self) -> bool:
        """True, also when there are no rows: a handle is there or is not."""
        return True


class Result(Readable):
    """The answer of a SELECT. Its ``repr`` is a table of the first rows."""

    def __init__(
        self, table: pa.Table, to_spark: Callable[[pa.Table], DataFrame], why_spark: str | None = None
    ) -> None:
        self._table = table
        self._to_spark = to_spark
        self.why_spark = why_spark
        """Why Spark has computed the answer, over the current tables; None for an answer of our own engine."""

    @property
    def computed_by(self) -> str:
        """Who has computed the answer: ``"everview"``, or ``"spark"`` where we cannot."""
        return "everview" if self.why_spark is None else "spark"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._table.column_names)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._table

    def to_spark(self) -> DataFrame:
        """The rows as a DataFrame of the user's Spark session."""
        return self._to_spark(self._table)

    def __repr__(self) -> str:
        shown = show_table(self._table)
        return shown if self.why_spark is None else f"{shown}\n(computed by Spark: {self.why_spark})"


class Changes(Sequence[VersionedDelta], Shown):
    """The deltas of a view, oldest first: a sequence of them, or all their rows together in one table.

    The one table has the columns of the deltas, and ``_commit_version`` and ``_commit_timestamp``.
    """

    def __init__(
        self,
        deltas: Sequence[VersionedDelta],
        fields: Schema,
        format: str,  # noqa: A002 -- as in View.changes
        lock: DatabaseLock,
        to_spark: Callable[[pa.Table], DataFrame],
    ) -> None:
        self._deltas = deltas
        self._fields = fields
        self._format = format
        self._lock = lock
        self._to_spark = to_spark

    @cached_property
    def _all(self) -> list[VersionedDelta]:
        with self._lock:  # a backend may read them from disk now
            found = list(self._deltas)
        return [as_change_feed(change) for change in found] if self._format == "cdf" else found

    @overload
    def __getitem__(self, index: int) -> VersionedDelta: ...
    @overload
    def __getitem__(self, index: slice) -> list[VersionedDelta]: ...
    def __getitem__(self, index: int | slice) -> VersionedDelta | list[VersionedDelta]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all == list(other)

    __hash__ = None  # type: ignore[assignment]  # like a list

    def to_arrow(self) -> pa.Table:
        """All rows, oldest first."""
        parts = [c.delta if self._format == "cdf" else _with_commit(c.delta, c) for c in self._all]
        if parts:
            return pa.concat_tables(parts)
        weight = pa.array([], pa.int64())
        empty = arrow_schema(self._fields).empty_table().append_column(pa.field(WEIGHT, pa.int64(), False), weight)
        none = VersionedDelta(0, empty, datetime.datetime.fromtimestamp(0, datetime.UTC))
        return as_change_feed(none).delta if self._format == "cdf" else _with_commit(empty, none)

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas DataFrame."""
        rows = self.to_arrow()
        with python_values():
            frame: pd.DataFrame = rows.to_pandas()
        return frame

    def to_spark(self) -> DataFrame:
        """The same as a DataFrame of the user's Spark session, in no particular order; on the Spark backend over its files."""
        if isinstance(self._deltas, DeltasOnDisk):
            with self._lock:
                return self._deltas.to_spark(self._format)
        return self._to_spark(self.to_arrow())

    def __repr__(self) -> str:
        return f"<Changes of {len(self)} versions>"


def as_change_feed(change: VersionedDelta) -> VersionedDelta:
    """The delta in the form of Delta's change feed.

    Rows are repeated by the size of their weight; instead of the weight they have ``_change_type`` (insert or delete: a
    view has no key by which two rows would be the before and after of one update), ``_commit_version`` and
    ``_commit_timestamp``.
    """
    weights = change.delta.column(WEIGHT).to_numpy()
    repeated = pa.array(np.repeat(np.arange(len(weights)), np.abs(weights)))
    rows = change.delta.take(repeated)
    kind = pc.if_else(pc.greater(rows.column(WEIGHT), 0), "insert", "delete")
    feed = rows.drop_columns([WEIGHT]).append_column(pa.field(CHANGE_TYPE, pa.string(), nullable=False), kind)
    return VersionedDelta(change.version, _with_commit(feed, change), change.committed_at)


def _with_commit(rows: pa.Table, change: VersionedDelta) -> pa.Table:
    at = pa.scalar(change.committed_at, pa.timestamp("us", tz="UTC"))
    version = pa.repeat(pa.scalar(change.version, pa.int64()), rows.num_rows)
    numbered = rows.append_column(pa.field(COMMIT_VERSION, pa.int64(), nullable=False), version)
    return numbered.append_column(pa.field(COMMIT_TIMESTAMP, at.type, nullable=False), pa.repeat(at, rows.num_rows))
