"""Payloads of a map, as a matrix with a row for each of its slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.memory import reserve, resized
from everview.backends.embedded.vectors import Ints


class SlotArray:
    """A payload matrix ``data[capacity, columns]`` that follows a map: 0 in new slots and in removed ones."""

    def __init__(self, keymap: KeyMap, dtype: npt.DTypeLike, columns: int = 1) -> None:
        self.data: npt.NDArray[Any] = np.zeros((0, columns), dtype=dtype)
        self._keymap = keymap
        keymap.follow(self)

    @property
    def nbytes(self) -> int:
        """Memory of the matrix, as far as its slots have been used."""
        return int(self._keymap.used * self.data.itemsize * self.data.shape[1])

    def resize(self, capacity: int) -> None:
        """Have this many slots, new ones 0."""
        reserve((capacity - len(self.data)) * self.data.strides[0])
        self.data = resized(self.data, capacity, self._keymap.used, zeros=True)

    def vacate(self, slots: Ints) -> None:
        """Set removed slots to 0."""
        self.data[slots] = 0

    def reorder(self, live: Ints, capacity: int) -> None:
        """Keep the live slots only, in their new order."""
        kept = self.data[live]
        self.data = np.zeros((capacity, kept.shape[1]), dtype=kept.dtype)
        self.data[: len(kept)] = kept
