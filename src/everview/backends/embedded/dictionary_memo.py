"""Functions of a dictionary's values as array look-ups by code: each distinct value is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from everview.backends.embedded.state.memory import reserve
from everview.backends.embedded.vectors import AnyArray, Bools, Ints
from everview.relational.types import Value

CodeFunction: TypeAlias = Callable[[Ints], tuple[AnyArray, Bools | None]]
"""From distinct codes to results and the mask of those that are NULL."""


def value_by_value(
    function: Callable[[Value], Any], decode: Callable[[Ints], list[Value]], dtype: np.dtype[Any], *, wide: bool
) -> CodeFunction:
    """Computes a function of a value (None for code 0) whose result is a word: a number, or None for NULL.

    Args:
        function: The function; what it raises is raised.
        decode: From codes to values.
        dtype: The type of words.
        wide: Whether a word is an integer of 128 bits.
    """

    def compute(codes: Ints) -> tuple[AnyArray, Bools | None]:
        results: AnyArray = np.zeros((len(codes), 2) if wide else len(codes), dtype)
        nulls: Bools | None = None
        for i, value in enumerate(decode(codes)):
            word = function(value)
            if word is not None:
                results[i] = _halves(word) if wide else word
                continue
            if nulls is None:
                nulls = np.zeros(len(codes), dtype=np.bool_)
            nulls[i] = True
        return results, nulls

    return compute


class MemoisedFunction:
    """A function of values, computed once for each distinct code. It takes memory up to the greatest code it has met.

    Args:
        compute: The function, of whole columns. What it raises is raised, and nothing is remembered of that batch.
        dtype: The type of its results.
        wide: Whether a result has two words.
    """

    def __init__(self, compute: CodeFunction, dtype: np.dtype[Any], *, wide: bool) -> None:
        self.compute = compute
        self._is_wide = wide
        self._dtype = dtype
        self.forget()

    def forget(self) -> None:
        """Forgets all results: codes may mean other values from now on."""
        self._results: AnyArray = np.zeros((0, 2) if self._is_wide else 0, self._dtype)
        self._state = np.zeros(0, dtype=np.int8)  # what is known about a code: nothing, a value, or NULL
        self._has_nulls = False

    @property
    def nbytes(self) -> int:
        """The memory of the results."""
        return self._results.nbytes + self._state.nbytes

    def __call__(self, codes: Ints) -> tuple[AnyArray, Bools | None]:
        """The results, 0 beneath NULL, and the mask of NULLs.

        Raises:
            EvaluationError: the function has no value for one of these codes.
        """
        if len(codes) == 0:
            return self._results[:0], None
        if len(codes) == 1:
            return self._one(codes.item())
        if int(codes.max()) >= len(self._state):
            self._grow(int(codes.max()) + 1)
        state = self._state[codes]
        if not state.all():
            new = codes[state == 0]
            # Values that are new to the dictionary too come in the order of their codes.
            self._learn(new if bool((new[1:] > new[:-1]).all()) else np.unique(new))
            state = self._state[codes]
        return self._results[codes], state == 2 if self._has_nulls else None

    def _one(self, code: int) -> tuple[AnyArray, Bools | None]:
        if code >= len(self._state):
            self._grow(code + 1)
        if not self._state[code]:
            self._learn(np.array([code], dtype=np.int64))
        return self._results[code : code + 1], self._state[code : code + 1] == 2 if self._has_nulls else None

    def _grow(self, least: int) -> None:
        size = max(least, 2 * len(self._state), 64)
        reserve((size - len(self._state)) * (self._results.strides[0] + 1))
        results = np.zeros((size, 2) if self._is_wide else size, self._results.dtype)
        state = np.zeros(size, dtype=np.int8)
        results[: len(self._results)], state[: len(self._state)] = self._results, self._state
        self._results, self._state = results, state

    def _learn(self, codes: Ints) -> None:
        results, nulls = self.compute(codes)
        self._results[codes] = results
        self._state[codes] = 1
        if nulls is not None and nulls.any():
            absent = codes[nulls]
            self._results[absent] = 0
            self._state[absent] = 2
            self._has_nulls = True


def _halves(word: int) -> tuple[int, int]:
    low = word & (2**64 - 1)
    return low - 2**64 if low >= 2**63 else low, word >> 64
