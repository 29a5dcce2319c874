"""Moments of features: lifting rows and adding, as ``planner.moments_block`` says.

Of m features they are m sums and, row by row from the diagonal on, m (m + 1) / 2 sums of products, each a double-double: first
all sums, then all errors. So every step is a loop over neighbouring numbers, which the compiler makes vector instructions of.

An entry has besides, for each feature, the largest that the sum of its squares has ever been (of first moments: its sum). What
is left of a sum that has been 2^66 times larger has too few digits, and the machine stops.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import fused, load, load_float, shift_right, store, store_float
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.lanes import LANES, add_lanes, sum_row_lanes
from everview.backends.embedded.tree.instructions import LIFT_MOMENTS, SUM, TAKE_MOMENTS
from everview.backends.embedded.tree.kernels.numbers import room_of, sums_of_kind
from everview.backends.embedded.tree.layout import FIRST_MOMENTS, FLOAT_RANGE, HUGE, RING_MASK, RING_SHIFT, ROWS_AT_ONCE

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
def add_pairs(at: Word, low: Word, given: Word, more: Word, count: Word) -> None:
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
    add_pairs(at, at + count * 8, given, given + room_of(count) * 8, count)
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
def _group_starts(numbers: Word, count: Word, groups: Word, starts: Word, order: Word) -> Word:
    """Lists the rows of each group one after another; returns 0 if they already are so, and lists nothing."""
    is_sorted = 1
    for i in range(1, count):
        is_sorted &= load(numbers, i - 1) <= load(numbers, i)
    if is_sorted != 0:
        return 0
    for g in range(groups + 1):
        store(starts, g, 0)
    for i in range(count):
        g = load(numbers, i) + 1
        store(starts, g, load(starts, g) + 1)
    for g in range(groups):
        store(starts, g + 1, load(starts, g + 1) + load(starts, g))
    for i in range(count):
        g = load(numbers, i)
        store(order, load(starts, g), i)
        store(starts, g, load(starts, g) + 1)
    return order


@inlined
def _sum_row(
    at: Word,
    low: Word,
    values: Word,
    step: Word,
    factors: Word,
    factor_step: Word,
    errors: Word,
    error_step: Word,
    rows: Word,
    is_new: Word,
    count: Word,
) -> None:
    """Adds up values of rows times a factor of each. What follows the values is 0, so that whole lanes may reach beyond."""
    k = 0
    while k < count * 8:
        sum_row_lanes(at + k, low + k, values + k, step, factors, factor_step, errors, error_step, rows, is_new)
        k += LANES * 8


@kernel
def lift_moments(code: Word, registers: Word, rows: Word) -> Word:
    """Sums the moments of rows up by group; returns what went wrong, or 0.

    Rows of one group, some at a time, are laid side by side with their weighted values and the rounding errors of these; each
    vector of sums then stays in a register until it is through them.
    """
    count, groups = load(rows, load(code, LIFT_MOMENTS.frame)), load(rows, load(code, LIFT_MOMENTS.out))
    if count == 0:
        return 0
    features, size = load(code, LIFT_MOMENTS.values), sums_of_kind(load(code, LIFT_MOMENTS.kind))
    is_first, room = load(code, LIFT_MOMENTS.kind) & RING_MASK == FIRST_MOMENTS, room_of(size)
    numbers, weights = (
        load(registers, load(code, LIFT_MOMENTS.numbers)),
        load(registers, load(code, LIFT_MOMENTS.weights)),
    )
    given, sums = load(registers, load(code, LIFT_MOMENTS.rows)), load(registers, load(code, LIFT_MOMENTS.target))
    step = room_of(features) * 8
    weighted, lacking = given + ROWS_AT_ONCE * step, given + 2 * ROWS_AT_ONCE * step
    ones = given + 3 * ROWS_AT_ONCE * step
    zero = ones + ROWS_AT_ONCE * 8
    starts = zero + 8
    order = _group_starts(numbers, count, groups, starts, starts + (groups + 1) * 8)
    for k in range(ROWS_AT_ONCE * (step // 8)):
        store(given, k, 0)
    store(zero, 0, 0)
    is_range, last = 0, -1
    for begin in range(0, count, ROWS_AT_ONCE):
        some, is_one = min(ROWS_AT_ONCE, count - begin), 1
        for r in range(some):
            weight = load(weights, load(order, begin + r) if order != 0 else begin + r)
            is_one &= weight == 1
            store_float(ones, r, float(weight))
        for f in range(features):
            column = load(registers, load(code, LIFT_MOMENTS.values + 1 + f))
            for r in range(some):
                value = load_float(column, load(order, begin + r) if order != 0 else begin + r)
                is_range |= not abs(value) < HUGE
                store_float(given + r * step, f, value)
            if is_one == 0:
                for r in range(some):
                    value, weight = load_float(given + r * step, f), load_float(ones, r)
                    product = value * weight
                    store_float(weighted + r * step, f, product)
                    store_float(lacking + r * step, f, fused(value, weight, -product))
        if is_range != 0:
            return FLOAT_RANGE
        r = 0
        while r < some:
            group = load(numbers, load(order, begin + r) if order != 0 else begin + r)
            end = r + 1
            while end < some and load(numbers, load(order, begin + end) if order != 0 else begin + end) == group:
                end += 1
            at, is_new = sums + group * room * 16, group != last
            low, values, length = at + room * 8, given + r * step, end - r
            if is_new:
                for k in range(size, room):
                    store(at, k, 0)
                    store(low, k, 0)
            _sum_row(at, low, values, step, ones + r * 8, 8, zero, 0, length, is_new, features)
            factors, errors, error_step, place = values, zero, 0, features * 8
            if is_one == 0:
                factors, errors, error_step = weighted + r * step, lacking + r * step, step
            for f in range(0 if is_first else features):
                own, rest = values + f * 8, features - f
                error = errors + (f * 8 if error_step != 0 else 0)
                _sum_row(
                    at + place, low + place, own, step, factors + f * 8, step, error, error_step, length, is_new, rest
                )
                place += rest * 8
            last, r = group, end
    return 0


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
