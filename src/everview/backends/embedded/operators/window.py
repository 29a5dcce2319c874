"""Window functions: the partitions that a change touches are computed anew, the others are left alone.

The child's rows are kept sliced by partition. For each touched partition the old rows (the new ones minus the delta) and
the new ones are evaluated, and the difference is the delta.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from everview.backends.embedded.arrow_columns import vector_from_arrow, vector_to_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Cost, Operator, consolidated
from everview.backends.embedded.operators.join import Side
from everview.backends.embedded.state.consolidate import consolidate
from everview.backends.embedded.vectors import Batch, Ints, concatenate
from everview.relational.arrow import column_to_arrow, rows_from_arrow
from everview.relational.definitions.windows import evaluate_window
from everview.relational.nodes import Window
from everview.relational.schema import schema
from everview.relational.types import Row


class WindowOperator(Operator):
    """Partition columns must be columns of the child (lowering sees to it)."""

    def __init__(self, node: Window, child: Operator, partition: tuple[int, ...], dictionary: Dictionary) -> None:
        super().__init__(schema(node), (child,))
        self._node = node
        self._dictionary = dictionary
        self._child = child
        self._side = Side(child, partition, (True,) * len(partition))

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        (delta,) = deltas
        if delta is None or not len(delta):
            return None
        delta = consolidated(delta, self._child.layout)
        if not len(delta):
            return None
        new = self._touched(delta)
        old = consolidated(concatenate([new, delta.negated()]), self._child.layout)
        change = consolidated(concatenate([self._evaluate(new), self._evaluate(old).negated()]), self.layout)
        return change if len(change) else None

    def load(self, contents: Sequence[Batch]) -> Batch:
        return self._evaluate(contents[0])

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self._evaluate(contents[0])

    def _touched(self, delta: Batch) -> Batch:
        """All current rows of the partitions that the delta touches."""
        arrangement = self._side.arrangement
        if not self._side.columns:
            return arrangement.content()
        keys, _ = self._side.probe_keys([delta.columns[c] for c in self._side.columns], len(delta))
        first, _ = consolidate(keys, np.ones(len(keys), dtype=np.int64))
        _, slots = arrangement.index(self._side.columns).expand(np.ascontiguousarray(keys[first]))
        return arrangement.at(slots)

    def _evaluate(self, batch: Batch) -> Batch:
        rows = evaluate_window(self._node, self._rows(batch))
        columns = tuple(
            vector_from_arrow(column_to_arrow([row[i] for row in rows], f.type), f.type, self._dictionary)
            for i, f in enumerate(self.fields)
        )
        return Batch(columns, np.ones(len(rows), dtype=np.int64))

    def _rows(self, batch: Batch) -> list[Row]:
        repeated = batch.take(_repeat(batch.weights))
        arrays = [vector_to_arrow(c, self._dictionary) for c in repeated.columns]
        names = [f"c{i}" for i in range(len(arrays))]
        return rows_from_arrow(pa.table(arrays, names=names), self._child.fields)

    def update_cost(self, side: int) -> Cost:
        return Cost.PARTITION if self._side.columns else Cost.LINEAR

    def describe(self) -> str:
        names = ", ".join(self._child.fields[c].name for c in self._side.columns)
        return f"window: slice of the touched partitions by [{names}], each computed anew"


def _repeat(weights: Ints) -> Ints:
    return np.repeat(np.arange(len(weights)), weights)
