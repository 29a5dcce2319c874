"""The arguments of window functions, evaluated where the definition evaluates them.

An expression that cannot fail is computed once for all sorted rows. One that can is computed on the rows that some frame
reaches (and the filter keeps) alone: the definition never looks at the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.vectors import Bools, Ints, Vector, empty_values
from everview.backends.embedded.windows.partitions import Partitions
from everview.relational.expressions import Expression


class Arguments:
    """Some expressions over the rows of a view."""

    def __init__(self, expressions: Sequence[Expression], dictionary: Dictionary) -> None:
        self._project = compile_projection(tuple(expressions), dictionary)
        self.can_fail = self._project.can_fail
        """Whether some row may have no value."""

    def definitions(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The sub-expressions that Python computes."""
        return self._project.definitions(names)

    def __call__(self, view: Partitions, needed: Bools | None = None) -> tuple[Vector, ...]:
        """The values for each row of the view; anything where they are not needed (None: all are)."""
        source = view.source
        if not self.can_fail:
            if self not in source.known:
                source.known[self] = self._project(source.columns, source.count)
            return tuple(view.spread(v) for v in source.known[self])
        where = view.positions if needed is None else np.flatnonzero(needed)
        rows = view.rows[where]
        values = self._project([c.take(rows) for c in source.columns], len(rows))
        if len(where) == view.count:
            return values
        return tuple(_scattered(v, where, view.count) for v in values)


def _scattered(vector: Vector, where: Ints, count: int) -> Vector:
    values = empty_values(vector.type, count)
    values[where] = vector.values
    if vector.nulls is None:
        return Vector(vector.type, values)
    nulls = np.zeros(count, dtype=np.bool_)
    nulls[where] = vector.nulls
    return Vector(vector.type, values, nulls)


def reached(start: Ints, end: Ints) -> Bools:
    """The positions that lie in at least one frame."""
    size = len(start) + 1
    depth = np.cumsum(np.bincount(start, minlength=size) - np.bincount(end, minlength=size))
    return depth[:-1] > 0
