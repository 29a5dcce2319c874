"""Moments of features: lifting rows, adding, and multiplying them, as ``planner.moments_block`` says.

Of m features they are m sums and, row by row from the diagonal on, m (m + 1) / 2 sums of products, each a double-double: first
all sums, then all errors. So every step is a loop over neighbouring numbers, which the compiler makes vector instructions of.

An entry has besides, for each feature, the largest that the sum of its squares has ever been (of first moments: its sum). What
is left of a sum that has been 2^66 times larger has too few digits, and the machine stops.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import fused, load, load_float, shift_right, store, store_float
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.lanes import LANES, accumulate_lanes, add_lanes, multiply_lanes, scale_lanes
from everview.backends.embedded.tree.instructions import LIFT_MOMENTS, MULTIPLY_MOMENTS, SUM, TAKE_MOMENTS
from everview.backends.embedded.tree.kernels.numbers import room_of, sums_of_kind
from everview.backends.embedded.tree.kernels.probing import entry_at
from everview.backends.embedded.tree.layout import (
    COUNTED,
    FIRST_MOMENTS,
    FLOAT_RANGE,
    HUGE,
    KEY_WORDS,
    RING_MASK,
    RING_SHIFT,
)

LOST_SHARE = 2.0**-66
"""A sum that is smaller than it has been by this factor is not trusted any more."""
LEAST_SQUARE = 2.0**40
LEAST_SUM = 2.0**64
"""Below these, what sums leave behind is far below the digits that anybody looks at."""


@inlined
def _row_start(features: Word, row: Word) -> Word:
    """Where the products of a feature with itself and those after it begin."""
    return features + row * features - row * (row - 1) // 2


@kernel
def _add_all(at: Word, low: Word, given: Word, more: Word, count: Word) -> None:
    """Adds so many double-doubles, whole lanes of them."""
    for k in range(0, count * 8, LANES * 8):
        add_lanes(at + k, low + k, given + k, more + k)


@kernel
def _add(at: Word, low: Word, given: Word, more: Word, count: Word) -> None:
    """Adds so many double-doubles."""
    whole = count // LANES * LANES
    _add_all(at, low, given, more, whole)
    for k in range(whole, count):
        total, value = load_float(at, k), load_float(given, k)
        new = total + value
        part = new - total
        rest = load_float(low, k) + load_float(more, k) + ((total - (new - part)) + (value - part))
        total = new + rest
        store_float(at, k, total)
        store_float(low, k, rest - (total - new))


@kernel
def add_moments(kind: Word, at: Word, given: Word, has_rows: Word) -> Word:
    """Adds the moments of a row to those of an entry; returns 1 if a sum has lost its digits, else 0."""
    count, features = sums_of_kind(kind), shift_right(kind, RING_SHIFT)
    is_first = kind & RING_MASK == FIRST_MOMENTS
    _add(at, at + count * 8, given, given + room_of(count) * 8, count)
    marks, lost = at + 2 * count * 8, 0
    least = LEAST_SUM if is_first else LEAST_SQUARE
    for i in range(features):
        place = i if is_first else _row_start(features, i)
        now, most = abs(load_float(at, place)), max(load_float(marks, i), abs(load_float(given, place)))
        if now > most:
            most = now
        if most >= least and now < most * LOST_SHARE and has_rows != 0:
            lost, most = 1, now
        store_float(marks, i, most)
    return lost


@kernel
def sum_moments(code: Word, registers: Word, rows: Word, known: Word) -> None:
    """Adds the moments of rows up by group; the groups that were known have sums already."""
    count, groups = load(rows, load(code, SUM.frame)), load(rows, load(code, SUM.out))
    numbers, room = load(registers, load(code, SUM.numbers)), room_of(sums_of_kind(load(code, SUM.kind)))
    given, sums = load(registers, load(code, SUM.source)), load(registers, load(code, SUM.target))
    for k in range(2 * room * known, 2 * room * groups):
        store(sums, k, 0)
    for i in range(count):
        at, row = sums + load(numbers, i) * room * 16, given + i * room * 16
        _add_all(at, at + room * 8, row, row + room * 8, room)


@inlined
def _accumulate(at: Word, low: Word, values: Word, factor: Word, error: Word, count: Word) -> None:
    """Adds a double-double times some values. What follows these is 0, so that whole lanes may reach beyond."""
    for k in range(0, count * 8, LANES * 8):
        accumulate_lanes(at + k, low + k, values + k, factor, error)


@kernel
def lift_moments(code: Word, registers: Word, rows: Word) -> Word:
    """Sums the moments of rows up by group; returns what went wrong, or 0."""
    count, groups = load(rows, load(code, LIFT_MOMENTS.frame)), load(rows, load(code, LIFT_MOMENTS.out))
    features, room = load(code, LIFT_MOMENTS.values), room_of(sums_of_kind(load(code, LIFT_MOMENTS.kind)))
    is_first = load(code, LIFT_MOMENTS.kind) & RING_MASK == FIRST_MOMENTS
    numbers, weights = (
        load(registers, load(code, LIFT_MOMENTS.numbers)),
        load(registers, load(code, LIFT_MOMENTS.weights)),
    )
    by_row, sums = load(registers, load(code, LIFT_MOMENTS.rows)), load(registers, load(code, LIFT_MOMENTS.target))
    is_range, width = 0, room_of(features)
    for f in range(features):
        column = load(registers, load(code, LIFT_MOMENTS.values + 1 + f))
        for i in range(count):
            value = load_float(column, i)
            is_range |= not abs(value) < HUGE
            store_float(by_row, i * width + f, value)
    if is_range != 0:
        return FLOAT_RANGE
    for i in range(count):
        for f in range(features, width):
            store(by_row, i * width + f, 0)
    for k in range(2 * room * groups):
        store(sums, k, 0)
    for i in range(count):
        at, values = sums + load(numbers, i) * room * 16, by_row + i * width * 8
        low, weight = at + room * 8, float(load(weights, i))
        _accumulate(at, low, values, weight, 0.0, features)
        if is_first:
            continue
        place = features * 8
        for f in range(features):
            value = load_float(values, f)
            factor = value * weight
            error = fused(value, weight, -factor)
            _accumulate(at + place, low + place, values + f * 8, factor, error, features - f)
            place += (features - f) * 8
    return 0


@kernel
def _scale(target: Word, low: Word, values: Word, errors: Word, factor: Word, count: Word) -> None:
    """Double-doubles times a number of rows."""
    whole = count // LANES * LANES
    for k in range(0, whole * 8, LANES * 8):
        scale_lanes(target + k, low + k, values + k, errors + k, factor)
    for k in range(whole, count):
        value = load_float(values, k)
        product = value * factor
        store_float(target, k, product)
        store_float(low, k, fused(load_float(errors, k), factor, fused(value, factor, -product)))


@kernel
def _multiply(target: Word, low: Word, values: Word, errors: Word, factor: Word, error: Word, count: Word) -> None:
    """Double-doubles times one of them."""
    whole = count // LANES * LANES
    for k in range(0, whole * 8, LANES * 8):
        multiply_lanes(target + k, low + k, values + k, errors + k, factor, error)
    for k in range(whole, count):
        value = load_float(values, k)
        product = value * factor
        store_float(target, k, product)
        rest = fused(value, error, fused(value, factor, -product))
        store_float(low, k, fused(load_float(errors, k), factor, rest))


@kernel
def _multiply_row(
    code: Word, target: Word, features: Word, is_first: Word, a: Word, count_a: Word, b: Word, count_b: Word
) -> None:
    """The product of the moments at two addresses; of 0 where there are none."""
    features_a = shift_right(load(code, MULTIPLY_MOMENTS.kind_a), RING_SHIFT) if a != 0 else 0
    features_b = features - features_a
    size, size_a, size_b = features, features_a, features_b
    if not is_first:
        size += features * (features + 1) // 2
        size_a += features_a * (features_a + 1) // 2
        size_b += features_b * (features_b + 1) // 2
    run_count, runs = load(code, MULTIPLY_MOMENTS.runs), code + (MULTIPLY_MOMENTS.runs + 1) * 8
    low, low_a, low_b = target + room_of(size) * 8, a + room_of(size_a) * 8, b + size_b * 8
    done, done_a, done_b, place = 0, 0, 0, features
    for r in range(run_count):
        is_a, length = r & 1 == 0, load(runs, r)
        own, own_low, own_features = (a, low_a, features_a) if is_a else (b, low_b, features_b)
        other, other_low = (b, low_b) if is_a else (a, low_a)
        factor, begun = (count_b, done_a) if is_a else (count_a, done_b)
        _scale(target + done * 8, low + done * 8, own + begun * 8, own_low + begun * 8, factor, length)
        if not is_first:
            for i in range(begun, begun + length):
                value, error = load_float(own, i), load_float(own_low, i)
                row = _row_start(own_features, i)
                next_own, next_other = i, (done_b if is_a else done_a)
                for s in range(r, run_count):
                    is_own, more = (s - r) & 1 == 0, load(runs, s)
                    at, at_low = target + place * 8, low + place * 8
                    if is_own:
                        if s == r:
                            more -= i - begun
                        start = (row + next_own - i) * 8
                        _scale(at, at_low, own + start, own_low + start, factor, more)
                        next_own += more
                    else:
                        start = next_other * 8
                        _multiply(at, at_low, other + start, other_low + start, value, error, more)
                        next_other += more
                    place += more
        done += length
        if is_a:
            done_a += length
        else:
            done_b += length


@kernel
def multiply_moments(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """target[i] = a[rows[i]] · entries[slots[i]].b."""
    count = load(rows, load(code, MULTIPLY_MOMENTS.frame))
    origin = load(registers, load(code, MULTIPLY_MOMENTS.rows)) if load(code, MULTIPLY_MOMENTS.rows) >= 0 else 0
    view = load(views, load(code, MULTIPLY_MOMENTS.map))
    slots, counts = (
        load(registers, load(code, MULTIPLY_MOMENTS.slots)),
        load(registers, load(code, MULTIPLY_MOMENTS.counts)),
    )
    kind_a, kind_b = load(code, MULTIPLY_MOMENTS.kind_a), load(code, MULTIPLY_MOMENTS.kind_b)
    left = load(registers, load(code, MULTIPLY_MOMENTS.a)) if kind_a != COUNTED else 0
    at = load(code, MULTIPLY_MOMENTS.b) * 8
    target, features = load(registers, load(code, MULTIPLY_MOMENTS.target)), 0
    for r in range(load(code, MULTIPLY_MOMENTS.runs)):
        features += load(code, MULTIPLY_MOMENTS.runs + 1 + r)
    is_first = (kind_a if kind_a != COUNTED else kind_b) & RING_MASK == FIRST_MOMENTS
    step_a = 16 * room_of(sums_of_kind(kind_a)) if kind_a != COUNTED else 0
    size = features if is_first else features + features * (features + 1) // 2
    step, held = 16 * room_of(size), load(view, KEY_WORDS)
    for i in range(count):
        j, entry = load(origin, i) if origin != 0 else i, entry_at(view, load(slots, i))
        count_a, count_b = float(load(counts, j)), float(load(entry, held))
        a, b = left + j * step_a if kind_a != COUNTED else 0, entry + at if kind_b != COUNTED else 0
        _multiply_row(code, target + i * step, features, is_first, a, count_a, b, count_b)
        for k in range(size, room_of(size)):
            store(target + i * step, k, 0)
            store(target + i * step, room_of(size) + k, 0)


@kernel
def take_moments(code: Word, registers: Word, rows: Word) -> None:
    """target[i] = source[rows[i]]."""
    count, origin = load(rows, load(code, TAKE_MOMENTS.frame)), load(registers, load(code, TAKE_MOMENTS.rows))
    source, target = load(registers, load(code, TAKE_MOMENTS.source)), load(registers, load(code, TAKE_MOMENTS.target))
    words = 2 * room_of(sums_of_kind(load(code, TAKE_MOMENTS.kind)))
    for i in range(count):
        start = load(origin, i) * words
        for k in range(words):
            store(target, i * words + k, load(source, start + k))
