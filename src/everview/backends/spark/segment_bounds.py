"""Which row groups of a segment may have a key: by the least and the greatest value of each, which Parquet's footer has.

The driver asks before it sends a task to search a segment: keys that are greater than all stored ones, as those of new rows
mostly are, need no look-up. A task asks before it reads a row group.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from everview.backends.spark.packed_rows import Numbers, numbers_of
from everview.backends.spark.row_hashes import without_hash
from everview.backends.spark.segments import Segment, SegmentFile
from everview.relational.nodes import Schema

KEPT: Final = 4096
"""Of so many columns of segments the bounds are kept: two integers a row group."""


def groups_with(path: Path, segment: Segment, fields: Schema, by: int, keys: pa.ChunkedArray) -> list[int]:
    """The row groups that may have one of the keys in a column: all of them where nothing is known.

    Args:
        path: The segment's file, which never changes.
        segment: The segment.
        fields: What is in the file, and perhaps behind it the row's hash.
        by: The column, as a position in ``fields``.
        keys: At least one, of the column's type.

    Raises:
        CorruptDatabase: the file is missing or not what was written.
        UnsupportedOperation: the file is outside, and gone.
    """
    least, greatest = _bounds(path, segment, without_hash(fields), by)
    numbers = None if keys.null_count else numbers_of(keys.combine_chunks())
    if numbers is None:
        return list(range(len(least)))
    ordered = np.unique(numbers)
    some = np.searchsorted(ordered, least, "left") < np.searchsorted(ordered, greatest, "right")
    return [int(group) for group in np.flatnonzero(some)]


@lru_cache(maxsize=KEPT)
def _bounds(path: Path, segment: Segment, fields: Schema, by: int) -> tuple[Numbers, Numbers]:
    """The least and the greatest value of each row group, as wide as can be where they are not known to be integers."""
    with SegmentFile(path, segment, fields) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        name = file.schema.names[by]
    whole = np.iinfo(np.int64)
    found = np.tile(np.array([whole.min, whole.max]), (len(groups), 1))
    for number, group in enumerate(groups):
        columns = (group.column(i) for i in range(group.num_columns))
        known = next((c.statistics for c in columns if c.path_in_schema == name), None)
        if known is not None and known.has_min_max and type(known.min) is int:
            found[number] = known.min, known.max
    return found[:, 0], found[:, 1]
