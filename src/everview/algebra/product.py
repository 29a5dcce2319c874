"""Products of rings: several payloads side by side, each operation component by component.

Its payloads are int64 words whatever the components are; a float's word is its bit pattern, and the word 0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from everview.algebra.ring import INT64, Addition, Bools, Column, Ints, Payloads, Ring


class ProductRing(Ring):
    """Component-wise operations on the payloads of several rings, side by side."""

    dtype = INT64

    def __init__(self, components: Sequence[Ring]) -> None:
        self.components = tuple(components)
        self.width = sum(c.width for c in self.components)
        self.is_commutative = all(c.is_commutative for c in self.components)
        ends = np.cumsum([c.width for c in self.components]).tolist()
        self._places = [slice(end - c.width, end) for c, end in zip(self.components, ends, strict=True)]

    def __str__(self) -> str:
        return " x ".join(str(c) for c in self.components)

    def component(self, payloads: Payloads, index: int) -> Payloads:
        """The payloads of one component, in its own type."""
        part = np.ascontiguousarray(payloads[:, self._places[index]])
        return part.view(self.components[index].dtype)

    def assemble(self, parts: Sequence[Payloads], count: int) -> Payloads:
        """Payloads from those of the components."""
        whole = np.empty((count, self.width), dtype=np.int64)
        for place, part in zip(self._places, parts, strict=True):
            whole[:, place] = np.ascontiguousarray(part).view(np.int64)
        return whole

    def ones(self, count: int) -> Payloads:
        """(1, 1, …)."""
        return self.assemble([c.ones(count) for c in self.components], count)

    def add(self, a: Payloads, b: Payloads) -> Payloads:
        """Each component's sum."""
        return self._pairwise("add", a, b)

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        """Each component's product."""
        return self._pairwise("multiply", a, b)

    def negate(self, a: Payloads) -> Payloads:
        """Each component's negative."""
        parts = [c.negate(self.component(a, i)) for i, c in enumerate(self.components)]
        return self.assemble(parts, len(a))

    def scale(self, a: Payloads, weights: Ints) -> Payloads:
        """Each component's multiple."""
        parts = [c.scale(self.component(a, i), weights) for i, c in enumerate(self.components)]
        return self.assemble(parts, len(a))

    @property
    def addition(self) -> Addition:
        """Word by word, if that is how all components add, and their words are integers."""
        is_inherited = type(self).add is ProductRing.add and type(self).scale is ProductRing.scale
        is_plain = all(c.addition is Addition.WORDS and c.dtype == INT64 for c in self.components)
        return Addition.WORDS if is_inherited and is_plain else Addition.OWN

    def sum_by(self, payloads: Payloads, group_of_row: Ints, groups: int) -> Payloads:
        """Each component's sums."""
        parts = [c.sum_by(self.component(payloads, i), group_of_row, groups) for i, c in enumerate(self.components)]
        return self.assemble(parts, groups)

    def is_zero(self, a: Payloads) -> Bools:
        """Zero in every component."""
        zero = np.ones(len(a), dtype=np.bool_)
        for i, component in enumerate(self.components):
            zero &= component.is_zero(self.component(a, i))
        return zero

    def lift(self, position: int, column: Column) -> Payloads:
        """The value lifted in every component."""
        return self.assemble([c.lift(position, column) for c in self.components], len(column))

    def values(self, payloads: Payloads) -> list[Any]:
        """Tuples of the components' values."""
        parts = [c.values(self.component(payloads, i)) for i, c in enumerate(self.components)]
        columns = [p.tolist() if isinstance(p, np.ndarray) else p for p in parts]
        return list(zip(*columns, strict=True)) if columns else [()] * len(payloads)

    def _pairwise(self, operation: str, a: Payloads, b: Payloads) -> Payloads:
        parts = [
            getattr(c, operation)(self.component(a, i), self.component(b, i)) for i, c in enumerate(self.components)
        ]
        return self.assemble(parts, len(a))
