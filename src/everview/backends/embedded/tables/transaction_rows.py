"""The rows of one transaction on one table: gathered from its changes, and consolidated.

    δ = {row: Σ weight}                        rows whose weights sum up to 0 leave no trace

Two rows are equal when Spark groups them together. To decide it inside a transaction, strings get numbers that mean something
inside it only: the engine's dictionary, which never forgets, does not learn a column that no view reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.backends.base import Change
from everview.backends.embedded.arrow_columns import vector_from_arrow
from everview.backends.embedded.column_reader import Rows
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.state.consolidate import consolidate
from everview.backends.embedded.vectors import Ints, KeyLayout, Vector
from everview.relational.nodes import Schema
from everview.relational.types import Array, Binary, DataType, String, Struct, is_floating

Content = Callable[[Sequence[int]], tuple[pa.Table, Ints]]
"""Gives the rows of some columns, and their weights."""


@dataclass(slots=True)
class TableDelta:
    """What one transaction does to one table: its columns, and a weight for each row.

    With ``has_deletes``, each distinct row occurs once and no weight is 0. Without, all weights are positive, and rows stand as
    they were given.
    """

    rows: Rows
    weights: Ints
    has_deletes: bool


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Rows with weights; None where every weight is 1."""

    rows: Rows
    weights: Ints | None

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def has_deletes(self) -> bool:
        """Whether some weight is negative."""
        return self.weights is not None and len(self.weights) > 0 and int(self.weights.min()) < 0

    @property
    def has_inserts(self) -> bool:
        """Whether some weight is positive."""
        return len(self) > 0 if self.weights is None else len(self.weights) > 0 and int(self.weights.max()) > 0

    def each_weight(self) -> Ints:
        """The weights, also where every one is 1."""
        return np.ones(len(self), dtype=np.int64) if self.weights is None else self.weights


def rows_of(change: Change) -> WeightedRows:
    """The rows of a weighted change."""
    rows = change.given
    if change.weights is None:
        return WeightedRows(rows, None)
    weights: Ints = np.array(
        change.weights.to_numpy(zero_copy_only=False), dtype=np.int64
    )  # a copy that kernels may take
    return WeightedRows(rows, None if (weights == 1).all() else weights)


def joined(parts: Sequence[WeightedRows]) -> WeightedRows:
    """All rows of at least one part, in order."""
    if len(parts) == 1:
        return parts[0]
    rows = pa.Table.from_batches([batch for p in parts for batch in batches_of(p.rows)], parts[0].rows.schema)
    if all(p.weights is None for p in parts):
        return WeightedRows(rows, None)
    return WeightedRows(rows, np.concatenate([p.each_weight() for p in parts]))


def consolidated(given: WeightedRows, fields: Schema) -> WeightedRows:
    """Each distinct row once, in order of first occurrence, with its sum of weights; no sum is 0."""
    first, sums = sums_of_rows(given, fields)
    return WeightedRows(select_rows(given.rows, first), sums)


def sums_of_rows(given: WeightedRows, fields: Schema) -> tuple[Ints, Ints]:
    """The position of each distinct row's first occurrence, ascending, and the sum of its weights; no sum is 0."""
    if len(given) == 2 and _are_surely_different(given.rows, fields):
        return np.arange(2), given.each_weight()  # the update of one row, too small to be worth packing
    return consolidate(row_words(given.rows, fields), given.each_weight())


def batches_of(rows: Rows) -> list[pa.RecordBatch]:
    """The rows as batches."""
    return [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches()


def in_one_batch(rows: Rows) -> Rows:
    """The rows as one batch, unless a column has more text than an Arrow array can hold."""
    if isinstance(rows, pa.RecordBatch):
        return rows
    batches = rows.to_batches()
    if len(batches) > 1:
        batches = rows.combine_chunks().to_batches()
    return batches[0] if len(batches) == 1 else rows


def select_rows(rows: Rows, positions: Ints) -> Rows:
    """The rows at these positions; no copy where they are neighbours in order."""
    count = len(positions)
    if count == 0:
        return rows.slice(0, 0)
    start = int(positions[0])
    if int(positions[-1]) - start == count - 1 and (count < 3 or bool((np.diff(positions) == 1).all())):
        return rows.slice(start, count)
    return rows.take(pa.array(positions))


def are_distinct(keys: Ints) -> bool:
    """Whether no two keys are equal."""
    return len(keys) < 2 or len(consolidate(keys, np.ones(len(keys), dtype=np.int64))[0]) == len(keys)


def row_words(rows: Rows, fields: Schema) -> Ints:
    """A key for each row; equal rows of this table have equal keys."""
    layout = KeyLayout(tuple(f.type for f in fields), tuple(f.nullable for f in fields))
    columns = [_local_vector(c, f.type) for c, f in zip(rows.columns, fields, strict=True)]
    return layout.pack(columns, rows.num_rows)


def _local_vector(column: pa.ChunkedArray | pa.Array, data_type: DataType) -> Vector:
    match data_type:
        case String() | Binary():
            return _numbered(column, data_type)
        case _:
            return vector_from_arrow(
                column, data_type, Dictionary()
            )  # lists and structs: a dictionary for this column alone


def _numbered(column: pa.ChunkedArray | pa.Array, data_type: DataType) -> Vector:
    encoded = column.dictionary_encode()
    if isinstance(
        encoded, pa.ChunkedArray
    ):  # one dictionary for all chunks, whose text together may be too long for an array
        indices = pa.chunked_array([c.indices for c in encoded.chunks], pa.int32()).combine_chunks()
    else:
        indices = encoded.indices
    if indices.null_count == 0:
        return Vector(data_type, indices.to_numpy().astype(np.int64))
    nulls = indices.is_null().to_numpy(zero_copy_only=False)
    return Vector(data_type, indices.fill_null(0).to_numpy().astype(np.int64), nulls)


def are_surely_equal(left: Rows, right: Rows, fields: Schema) -> bool:
    """Whether two tables have equal rows at equal positions; a NaN inside a list or struct may make it say no."""
    columns = zip(_as_table(left).columns, _as_table(right).columns, fields, strict=True)
    return all(a.equals(b) or (is_floating(f.type) and _equal_floats(a, b, f.type)) for a, b, f in columns)


def _as_table(rows: Rows) -> pa.Table:
    return pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows


def _are_surely_different(pair: Rows, fields: Schema) -> bool:
    """Whether a table's two rows differ; a difference inside a list or struct, or from a NaN, may make it say no."""
    return any(_differ(column[0], column[1], f.type) for column, f in zip(pair.columns, fields, strict=True))


def _differ(left: pa.Scalar, right: pa.Scalar, data_type: DataType) -> bool:
    if isinstance(data_type, Array | Struct) or left == right:
        return False
    return not is_floating(data_type) or (left == left and right == right)  # noqa: PLR0124 -- only NaN differs from itself


def _equal_floats(left: pa.ChunkedArray, right: pa.ChunkedArray, data_type: DataType) -> bool:
    layout = KeyLayout((data_type,), (True,))
    ours, theirs = (layout.pack([vector_from_arrow(c, data_type, Dictionary())], len(c)) for c in (left, right))
    return bool(np.array_equal(ours, theirs))
