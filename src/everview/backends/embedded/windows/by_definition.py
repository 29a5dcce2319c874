"""A window function by its definition, row by row in Python: what the others leave to it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from everview.backends.embedded.arrow_columns import vector_from_arrow, vector_to_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.backends.embedded.windows.function import WindowFunction
from everview.backends.embedded.windows.partitions import Partitions
from everview.relational.arrow import column_to_arrow, rows_from_arrow
from everview.relational.definitions.windows import evaluate_window
from everview.relational.nodes import Window, WindowCall
from everview.relational.schema import schema
from everview.relational.sql_text import sql_text
from everview.relational.types import Row, Value


class ByDefinition(WindowFunction):
    """One call of a window node."""

    def __init__(self, node: Window, call: WindowCall, dictionary: Dictionary) -> None:
        self._node = Window(node.child, node.partition, node.order, (call,), ("value",))
        self._call = call
        self._dictionary = dictionary

    def definitions(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The whole function."""
        args = ", ".join(sql_text(a, names) for a in self._call.args)
        return (f"{self._call.function}({args}) over each frame",)

    def _values(self, view: Partitions) -> Vector:
        return self._at(view, view.positions)

    def replace(self, view: Partitions, vector: Vector, where: Bools) -> Vector:
        """The vector with the values of the definition under the mask, which must hold whole partitions."""
        if not where.any():
            return vector
        places = np.flatnonzero(where)
        defined = self._at(view, places)
        vector.values[places] = defined.values
        nulls = np.zeros(view.count, dtype=np.bool_) if vector.nulls is None else vector.nulls
        nulls[places] = False if defined.nulls is None else defined.nulls
        return Vector(vector.type, vector.values, nulls if nulls.any() else None)

    def _at(self, view: Partitions, places: Ints) -> Vector:
        values: list[Value] = []
        for start, end in pairwise(np.searchsorted(places, view.worlds)):
            # Rows come back as they went in: partitions in the order of their first rows, each of them sorted already.
            rows = self._rows(view, view.rows[places[start:end]])
            values += [row[-1] for row in evaluate_window(self._node, rows)]
        return vector_from_arrow(column_to_arrow(values, self._call.type), self._call.type, self._dictionary)

    def _rows(self, view: Partitions, rows: Ints) -> list[Row]:
        fields = schema(self._node.child)
        if not fields:
            return [()] * len(rows)
        arrays = [vector_to_arrow(c.take(rows), self._dictionary) for c in view.source.columns]
        return rows_from_arrow(pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))]), fields)
