"""Semi- and anti-joins on one comparison: a row has a partner if the extreme row of the other side is one.

    EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND s.a > r.a)        r has a partner if the greatest s.a of its k is above r.a

With the extreme of a group before and after a change, the rows of the left side whose answer turns are those between two ranks
of its order: O(log N + rows that turn), for one changed row or many.

What the extreme was is read off the new content and the change. A row was there before if it weighs more than the change added,
and so were the rows that the change has taken away. From the end of the order on, rows are looked at until one of them was
there: as many as the change has brought, and one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everview.backends.embedded.operators.join import Side
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.vectors import Batch, Bools, Ints, concatenate


class Extremes(NamedTuple):
    """Of groups whose extreme may have moved: their keys, their extreme rows now, and rows with what was the extreme before."""

    groups: KeyMap
    new: Batch
    old: Batch


def extremes(side: Side, change: Batch) -> Extremes:
    """The extremes of a side, new and old, for a change that it has taken in."""
    index, takes_last = side.order, side.is_from
    changed = side.of_change(change).rows.whole
    content = changed.content()
    keys, kept = side.probe_keys([content.columns[c] for c in side.columns], len(content))
    content = content if kept is None else content.take(kept)
    groups, numbers = _grouped(keys)
    first, last = index.group(index.prefix(groups.keys[: len(groups)]))
    rows = np.flatnonzero(first < last)
    ends = last[rows] - 1 if takes_last else first[rows]
    new = side.rows.at(index.some(ends, ends + 1)[1])
    gone = content.take(content.weights < 0)
    old = [gone]
    brought = np.bincount(numbers[content.weights > 0], minlength=len(groups))
    most = np.ones(len(groups), dtype=np.int64)  # most changes are not at the end of the order
    while len(rows):
        counts = np.minimum(most[rows], last[rows] - first[rows])
        starts = last[rows] - counts if takes_last else first[rows]
        met, slots = index.some(starts, starts + counts)
        found = side.rows.at(slots)
        was_there = _were_there(side.operator.layout.pack(found.columns, len(found)), found.weights, changed.rows)
        old.append(found.take(was_there))
        is_open = counts < last[rows] - first[rows]
        is_open[met[was_there]] = False
        rows = rows[is_open]
        most[rows] = np.maximum(4 * most[rows], brought[rows] + 1)
        if not len(rows) and not len(gone) and len(old) == 2 and was_there.all():
            return Extremes(KeyMap(groups.width), found, found)  # all groups have the extreme that they had
    return Extremes(groups, new, concatenate(old))


def _grouped(keys: Ints) -> tuple[KeyMap, Ints]:
    """The distinct keys, and the number of each key among them."""
    groups = KeyMap(keys.shape[1])
    return groups, groups.upsert(keys)


def _were_there(keys: Ints, weights: Ints, changed: WeightMap) -> Bools:
    """Whether rows weigh more than a change has added to them; they may repeat, and weigh together."""
    held = WeightMap(keys.shape[1])
    held.add_weights(keys, weights)
    were: Bools = held.weights_of(keys) > changed.weights_of(keys)
    return were


def turned(left: Side, right: Side, found: Extremes) -> Batch:
    """The left rows that have got their first partner (their weights), or have lost their last (negated)."""
    index, is_from = left.order, left.is_from
    rows = concatenate([found.new, found.old])
    stretches, kept = left.stretches(rows, right.columns)
    keys, _ = left.probe_keys([rows.columns[c] for c in right.columns], len(rows))
    groups, numbers = _grouped(keys)
    first, last = index.group(index.prefix(groups.keys[: len(groups)]))
    is_new = np.arange(len(rows)) < len(found.new)
    is_new = is_new if kept is None else is_new[kept]
    places = []
    for some in (is_new, ~is_new):
        at = (last if is_from else first).copy()
        if is_from:
            np.minimum.at(at, numbers[some], stretches.first[some])
        else:
            np.maximum.at(at, numbers[some], stretches.last[some])
        places.append(at)
    new, old = places
    met, slots = index.some(np.minimum(new, old), np.maximum(new, old))
    gains = (new < old) == is_from
    turning = left.rows.at(slots)
    return Batch(turning.columns, np.where(gains[met], turning.weights, -turning.weights))


def had_partner(left: Batch, own: Side, other: Side, found: Extremes, has: Bools) -> Bools:
    """Whether rows of the left side had a partner before the change, given whether they have one now."""
    keys, kept = other.probe_keys([left.columns[c] for c in own.columns], len(left))
    is_touched = found.groups.find(keys) >= 0
    touched = np.arange(len(left))[is_touched] if kept is None else kept[is_touched]
    before = other.of_change(Batch(found.old.columns, np.ones(len(found.old), dtype=np.int64)))
    one = np.ones(len(touched), dtype=np.int64)
    had = has.copy()
    had[touched] = before.count(left.take(touched), own.columns, one, lambda rows, _: np.ones_like(rows)) > 0
    return had
