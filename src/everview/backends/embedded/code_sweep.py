"""When the dictionary's codes are gathered in, and which of them are still in use.

Between two transactions a code is in use if some structure of the engine may hold it. Structures keep codes as words of 64 bits
among others, and do not say which words are codes. So every word counts that could be one: marking is *conservative*, like the
collection of garbage for C. That is safe whatever operators there are, and a number that merely looks like a code keeps at most
one value alive: what is kept beyond need is bounded by the words of the live state. The large structures say which words may be
codes (``words_in_use``): not those of removed entries, nor row numbers, weights and links, which are as small as codes are.

Marking follows Python's own references from the views and tables on, through containers, closures and the engine's objects,
and reads every array on the way. What is found by the *position* of a code is forgotten: results of memoised functions, labels
of order (by the dictionary), and what operators forget in ``forget_codes``.

A sweep costs as much as reading the state and the dictionary. It is due when there are twice as many values, or bytes of them,
as it left the last time; when as many rows have changed as there are values; and once more when the deltas that were kept then
are kept no longer. It is not done before ten times its own duration has passed: at most a tenth of the time goes into it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from time import perf_counter
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType
from typing import Any, Final

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.dictionary_memo import MemoisedFunction
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.ordered import OrderedIndex
from everview.backends.embedded.tables.row_log import RowLog
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Bools

LEAST_VALUES: Final = 1 << 16
LEAST_BYTES: Final = 1 << 24
"""Up to so many values and bytes a dictionary is not worth a sweep."""
PAUSE: Final = 10.0
"""How many times its own duration passes between two sweeps."""
_PIECE: Final = 1 << 20
"""Words that are read at a time."""
_PLAIN: Final = (str, bytes, float, bool, type(None), type)
_KNOWN: Final = (KeyMap, OrderedIndex, RowLog, ViewMap)
"""Structures that say which of their words may be codes; the rest of their own arrays is not looked at."""
_OWN: Final = "everview.backends."
"""Where the classes are whose objects may lead to codes."""


class CodeSweep:
    """Gathers in the codes of one dictionary.

    Args:
        dictionary: The engine's.
        history: For how many versions deltas are kept.
    """

    def __init__(self, dictionary: Dictionary, history: int) -> None:
        self._dictionary = dictionary
        self._history = history
        self._values, self._bytes = LEAST_VALUES, LEAST_BYTES
        """How many there must be for the next sweep."""
        self._changed = 0
        """Rows that have changed since the last sweep."""
        self._again_in: int | None = None
        """After how many transactions to sweep once more."""
        self._not_before = 0.0
        self.sweeps = 0
        """How many there were."""

    def is_due(self, changed: int) -> bool:
        """Whether it is time for a sweep, after a transaction that has changed so many rows."""
        dictionary = self._dictionary
        if len(dictionary) < LEAST_VALUES and len(dictionary.heap) < LEAST_BYTES:
            return False
        self._changed += changed
        if self._again_in is not None:
            self._again_in -= 1
        values = dictionary.count
        return (
            values >= self._values
            or dictionary.string_bytes >= self._bytes
            or self._changed >= max(values, LEAST_VALUES)
            or (self._again_in is not None and self._again_in < 0)
        ) and perf_counter() >= self._not_before

    def run(self, roots: Iterable[object]) -> None:
        """Takes back the codes that cannot be reached from the roots; no transaction is under way."""
        began = perf_counter()
        dictionary = self._dictionary
        dictionary.keep_only(_codes_in_use(roots, len(dictionary)))
        self._values = max(LEAST_VALUES, 2 * dictionary.count)
        self._bytes = max(LEAST_BYTES, 2 * dictionary.string_bytes)
        self._changed = 0
        self._again_in = self._history if self._again_in is None or self._again_in >= 0 else None
        now = perf_counter()
        self._not_before = now + PAUSE * (now - began)
        self.sweeps += 1


def _codes_in_use(roots: Iterable[object], greatest: int) -> Bools:
    """Per code up to the greatest whether some object that can be reached from the roots may hold it.

    What is found by the position of a code is forgotten on the way, before it could keep its codes alive.
    """
    is_used: Bools = np.zeros(greatest + 1, dtype=np.bool_)
    seen: set[int] = set()
    stack: list[Any] = list(roots)
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is int:
            if 0 < item <= greatest:
                is_used[item] = True
            continue
        if kind in _PLAIN or id(item) in seen:
            continue
        seen.add(id(item))
        if kind is np.ndarray:
            _mark(item, is_used)
            if item.dtype.hasobject:
                stack += item.reshape(-1).tolist()
        elif kind is FunctionType:  # not its globals: they lead everywhere, and to no code
            stack += (item.__closure__, item.__defaults__, item.__kwdefaults__)
        elif kind is MethodType or kind is BuiltinFunctionType or kind is MethodWrapperType:
            stack += (item.__self__, getattr(item, "__func__", None))
        elif kind is MemoisedFunction:
            item.forget()
            stack.append(item.compute)
        elif kind.__module__.startswith(_OWN):
            if isinstance(item, Operator):
                item.forget_codes()
            if isinstance(item, _KNOWN):
                for words in item.words_in_use(_PIECE):
                    _mark(words, is_used)
                seen.update(id(part) for part in vars(item).values() if type(part) is np.ndarray)
            if kind is not Dictionary:
                stack += gc.get_referents(item)
        elif kind.__module__ in ("builtins", "collections", "functools", "itertools") and kind.__name__ != "module":
            stack += gc.get_referents(item)
    return is_used


def _mark(array: Any, is_used: Bools) -> None:
    """Marks the words of an array that may be codes."""
    if array.dtype.itemsize != 8 or array.dtype.kind not in "iuf" or not array.size:
        return
    greatest, rows = len(is_used) - 1, array.reshape(1) if array.ndim == 0 else array
    step = max(1, _PIECE * len(rows) // rows.size)
    for start in range(0, len(rows), step):
        words = np.ascontiguousarray(rows[start : start + step]).reshape(-1).view(np.int64)
        is_used[words[(words > 0) & (words <= greatest)]] = True
