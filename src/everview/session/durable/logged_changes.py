"""Changes of tables as records of the log, and back.

A batch is written as an Arrow message without its schema, which is that of its table at that point of the log; weights are
written as they lie in memory. Products of factors (``ev.Product``) are written by factor. Contract: the change that is read
acts on the tables as the one that was written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.factorized_rows import FactorizedChange, FactorRows
from everview.catalog import TableDefinition
from everview.errors import CorruptDatabase
from everview.relational.arrow import arrow_schema
from everview.storage.records import Bytes

Segments = list[Bytes]
LARGEST_EXPANDED: Final = 1 << 22
"""Rows of a product of factors that a checkpoint may write as rows."""


def is_too_large_to_expand(change: Change) -> bool:
    """Whether a change is a product of more rows than a checkpoint may write as rows."""
    if not isinstance(change, FactorizedChange):
        return False
    return sum(math.prod(len(f) for f in product) for product in change.products) > LARGEST_EXPANDED


def changes_to_log(changes: Sequence[Change]) -> tuple[list[dict[str, Any]], Segments]:
    """What the header of a record says of changes, and the segments of its body."""
    segments: Segments = []
    return [_change_to_log(change, segments) for change in changes], segments


def _change_to_log(change: Change, segments: Segments) -> dict[str, Any]:
    if isinstance(change, FactorizedChange):
        return {"table": change.table, "products": [[_factor(f, segments) for f in p] for p in change.products]}
    given = change.given
    batches = [given] if isinstance(given, pa.RecordBatch) else given.to_batches()
    said: dict[str, Any] = {"table": change.table, "kind": change.kind.name, "batches": []}
    for batch in batches:
        said["batches"].append(_add(batch.serialize(), segments))
    if change.weights is not None:
        said["weights"] = _add_weights(change.weights.to_numpy(zero_copy_only=False), segments)
    return said


def _factor(factor: FactorRows, segments: Segments) -> dict[str, Any]:
    said: dict[str, Any] = {"columns": list(factor.columns), "batch": _add(factor.rows.serialize(), segments)}
    if factor.weights is not None:
        said["weights"] = _add_weights(factor.weights, segments)
    return said


def _add(data: Any, segments: Segments) -> int:
    segments.append(memoryview(data))
    return len(segments[-1])


def _add_weights(weights: Any, segments: Segments) -> int:
    return _add(np.ascontiguousarray(weights, dtype="<i8").tobytes(), segments)


def changes_from_log(
    said: Sequence[dict[str, Any]], body: memoryview, table_named: Callable[[str], TableDefinition]
) -> list[Change]:
    """The changes of a record.

    Raises:
        CorruptDatabase: the record is none of changes to these tables.
    """
    reader = _Reader(body)
    try:
        changes = [_change_from_log(each, reader, table_named(each["table"])) for each in said]
        reader.check_done()
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException, OSError) as error:
        raise CorruptDatabase(f"a transaction of the log cannot be read: {error!r}.") from error
    return changes


def _change_from_log(said: dict[str, Any], reader: _Reader, table: TableDefinition) -> Change:
    schema = arrow_schema(table.fields)
    if "products" in said:
        products = [
            tuple(
                FactorRows(
                    tuple(f["columns"]),
                    reader.batch(f["batch"], pa.schema([schema.field(c) for c in f["columns"]])),
                    reader.weights(f["weights"]) if "weights" in f else None,
                )
                for f in product
            )
            for product in said["products"]
        ]
        return FactorizedChange(table, products)
    kind = ChangeKind[said["kind"]]
    if kind is ChangeKind.DELETE_KEYS:
        schema = arrow_schema(table.key_fields)
    batches = [reader.batch(length, schema) for length in said["batches"]]
    weights = pa.array(reader.weights(said["weights"])) if "weights" in said else None
    given = batches[0] if len(batches) == 1 else pa.Table.from_batches(batches, schema)
    return Change(table.name, kind, given, weights)


class _Reader:
    """Goes through the segments of a body."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._at = 0

    def _take(self, length: int) -> memoryview:
        if not 0 <= length <= len(self._body) - self._at:
            raise ValueError(f"a segment of {length} bytes at {self._at} of {len(self._body)}")
        taken = self._body[self._at : self._at + length]
        self._at += length
        return taken

    def batch(self, length: int, schema: pa.Schema) -> pa.RecordBatch:
        """The batch that comes next."""
        return pa.ipc.read_record_batch(pa.py_buffer(self._take(length)), schema)

    def weights(self, length: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The weights that come next."""
        return np.frombuffer(self._take(length), dtype="<i8").astype(np.int64)

    def check_done(self) -> None:
        """Raises if something is left."""
        if self._at != len(self._body):
            raise ValueError(f"{len(self._body) - self._at} bytes are left")
