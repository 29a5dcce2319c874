"""Labels in order: an integer for each value, increasing with the values, with room between neighbours.

This is the order-maintenance problem with rare relabelling: a new value takes a label inside the gap between its neighbours;
only when a gap is exhausted are all labels spread anew. Random insertions halve a gap, runs take a thousandth of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np

from everview.backends.embedded.vectors import Ints
from everview.relational.types import Value

_LABEL_LIMIT: Final = 2**61
_APPEND_STRIDE: Final = 2**36
_RUN_PART: Final = 1024
_FEW: Final = 32
"""Up to so many places, inserting into a list beats building a new one."""


class OrderLabels:
    """Labels for the values of one Python type that someone has asked for, increasing with the values."""

    def __init__(self) -> None:
        self.labels = np.zeros(0, dtype=np.int64)  # by code
        self._has_label = np.zeros(0, dtype=np.bool_)
        self._keys: list[Any] = []  # in order: what is compared, and the code of each value
        self._codes: list[int] = []
        self._first, self._last = -1, -1  # the positions of the latest insertion

    def insert(self, codes: Ints, decode: Callable[[Ints], list[Value]], key: Callable[[Value], Any] | None) -> bool:
        """Gives each of the codes (ascending, none 0) a label; whether earlier labels changed."""
        top = int(codes[-1])
        if top >= len(self.labels):
            more = max(top + 1, 2 * len(self.labels)) - len(self.labels)
            self.labels = np.concatenate([self.labels, np.zeros(more, dtype=np.int64)])
            self._has_label = np.concatenate([self._has_label, np.zeros(more, dtype=np.bool_)])
        new = codes[~self._has_label[codes]]
        if not len(new):
            return False
        self._has_label[new] = True
        values = decode(new) if key is None else [key(v) for v in decode(new)]
        pairs = sorted(zip(values, new.tolist(), strict=True), key=itemgetter(0))
        groups: list[tuple[int, list[tuple[Any, int]]]] = [
            (at, list(group)) for at, group in groupby(pairs, key=lambda pair: bisect_left(self._keys, pair[0]))
        ]
        labels = [self._labels_between(at, len(group)) for at, group in groups]
        had_labels = bool(self._keys)
        places = [at for at, _ in groups]
        self._keys = _with_inserted(self._keys, places, [[k for k, _ in group] for _, group in groups])
        self._codes = _with_inserted(self._codes, places, [[c for _, c in group] for _, group in groups])
        self._last = groups[-1][0] + len(new) - 1
        self._first = self._last - len(groups[-1][1]) + 1
        if not all(labels):
            self._spread()
            return had_labels
        for (_, group), given in zip(groups, labels, strict=True):
            self.labels[[c for _, c in group]] = given
        return False

    def code_of(self, label: int) -> int:
        """The code of the value that has a label."""
        return self._codes[bisect_left(self._codes, label, key=lambda code: int(self.labels[code]))]

    def forget(self, codes: Ints) -> None:
        """Takes the labels of these codes away; the others keep theirs."""
        has_label = self._has_label
        own = codes[codes < len(has_label)]
        own = own[has_label[own]]
        if not len(own):
            return
        has_label[own] = False
        kept = [i for i, code in enumerate(self._codes) if has_label[code]]
        self._keys, self._codes = [self._keys[i] for i in kept], [self._codes[i] for i in kept]
        self._first, self._last = -1, -1

    def _labels_between(self, at: int, count: int) -> list[int]:
        """Free labels for ``count`` values in front of position ``at``; none where the gap is too small.

        At the ends labels go on by strides. Values that follow the latest insertion, upward or downward, are taken for a run
        and get a small part of the gap, since more are to come; others share it evenly.
        """
        if not self._codes:
            return []
        low = int(self.labels[self._codes[at - 1]])
        if at == len(self._codes):
            step = min(_APPEND_STRIDE, (_LABEL_LIMIT - low) // (count + 1))
            return [low + step * i for i in range(1, count + 1)] if step > 0 else []
        high = int(self.labels[self._codes[at]])
        if at == 0:
            step = min(_APPEND_STRIDE, (high + _LABEL_LIMIT) // (count + 1))
            return [high - step * i for i in range(count, 0, -1)] if step > 0 else []
        if high - low <= count:
            return []
        is_run = at - 1 == self._last or at == self._first
        step = max((high - low) // (max(_RUN_PART, 2 * count) if is_run else count + 1), 1)
        if at == self._first:
            return [high - step * i for i in range(count, 0, -1)]
        return [low + step * i for i in range(1, count + 1)]

    def _spread(self) -> None:
        """Labels all values anew, evenly over the middle half of the range: the rest is for growth at both ends."""
        count = len(self._codes)
        step = _LABEL_LIMIT // (count + 1)
        first = -_LABEL_LIMIT // 2
        self.labels[self._codes] = first + step * np.arange(1, count + 1, dtype=np.int64)


def _with_inserted(items: list[Any], places: list[int], groups: list[list[Any]]) -> list[Any]:
    """The items with each group in front of the item at its place (places ascend)."""
    if len(places) <= _FEW:
        for at, group in zip(reversed(places), reversed(groups), strict=True):
            items[at:at] = group
        return items
    merged: list[Any] = []
    done = 0
    for at, group in zip(places, groups, strict=True):
        merged += items[done:at]
        merged += group
        done = at
    return merged + items[done:]


def tuple_key(values: tuple[Value, ...]) -> tuple[Any, ...]:
    """What tuples compare by: NULL elements first, NaN above all numbers."""
    return tuple([_element_key(v) for v in values])


def _element_key(value: Value) -> tuple[Any, ...]:
    match value:
        case None:
            return (0,)
        case tuple():
            return (4, tuple_key(value))
        case str():
            return (2, value)
        case bytes():
            return (3, value)
        case _:
            return (1, value != value, 0 if value != value else value)  # noqa: PLR0124 -- only NaN differs from itself
