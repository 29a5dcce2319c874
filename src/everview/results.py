"""What can be read: the ways out that tables, views and the answers of ``db.sql`` share, and the change feed's form.

Contract: a bag is given as rows repeated by multiplicity, in no particular order; all ways out show the same rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import WEIGHT, VersionedDelta
from everview.change_weights import CHANGE_TYPE
from everview.changes import COMMIT_TIMESTAMP, COMMIT_VERSION
from everview.relational.arrow import public_rows
from everview.relational.display import show_table

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


class Readable(ABC):
    """A bag of rows with the usual ways out."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""

    @abstractmethod
    def to_spark(self) -> DataFrame:
        """The rows as a DataFrame of the user's Spark session; starts one if there is none."""

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        return public_rows(self.to_arrow())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def __len__(self) -> int:
        count: int = self.to_arrow().num_rows
        return count

    def __bool__(self) -> bool:
        """True, also when there are no rows: a handle is there or is not."""
        return True


class Result(Readable):
    """The answer of a SELECT. Its ``repr`` is a table of the first rows."""

    def __init__(self, table: pa.Table, to_spark: Callable[[pa.Table], DataFrame]) -> None:
        self._table = table
        self._to_spark = to_spark

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
        return show_table(self._table)


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
    count = rows.num_rows
    at = pa.scalar(change.committed_at, pa.timestamp("us", tz="UTC"))
    feed = (
        rows.drop_columns([WEIGHT])
        .append_column(pa.field(CHANGE_TYPE, pa.string(), nullable=False), kind)
        .append_column(
            pa.field(COMMIT_VERSION, pa.int64(), nullable=False), pa.repeat(pa.scalar(change.version), count)
        )
        .append_column(pa.field(COMMIT_TIMESTAMP, at.type, nullable=False), pa.repeat(at, count))
    )
    return VersionedDelta(change.version, feed, change.committed_at)
