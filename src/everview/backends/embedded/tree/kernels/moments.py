"""Moments of features: lifting rows, adding, and multiplying them, as ``planner.moments_block`` says.

Of m features they are m sums and, row by row from the diagonal on, m (m + 1) / 2 sums of products, each a double-double: first
all sums, then all errors. So every step is a loop over neighbouring numbers, which the compiler makes vector instructions of.

An entry has besides, for each feature, the largest that the sum of its squares has ever been (of first moments: its sum). What
is left of a sum that has been 2^66 times larger has too few digits, and the machine stops.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import fused, load, load_float, shift_right, store, store_float
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.lanes import (
    LANES,
    add_lanes,
    add_last_product_lanes,
    add_product_lanes,
    multiply_lanes,
    settle_lanes,
    sum_row_lanes,
)
from everview.backends.embedded.tree.instructions import (
    LIFT_MOMENTS,
    MULTIPLY_MOMENT_ROWS,
    MULTIPLY_MOMENTS,
    SUM,
    TAKE_MOMENTS,
)
from everview.backends.embedded.tree.kernels.numbers import room_of, sums_of_kind
from everview.backends.embedded.tree.kernels.probing import entry_at, fetch_entry
from everview.backends.embedded.tree.layout import (
    COUNTED,
    CROSSING_WORDS,
    FACTOR_WORDS,
    FIRST_MOMENTS,
    FLOAT_RANGE,
    HUGE,
    KEY_WORDS,
    MOVE_WORDS,
    RING_MASK,
    RING_SHIFT,
    ROWS_AT_ONCE,
    SCALING_WORDS,
    SHAPE_HEADS,
    STRIDE,
)

LOST_SHARE = 2.0**-66
"""A sum that is smaller than it has been by this factor is not trusted any more."""
EXACT_COUNT = 2.0**53
"""Integers below it are exact as floats."""
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


@inlined
def _multiply_pair(at: Word, low: Word, a: Word, rest: Word, b: Word, more: Word) -> None:
    """Stores the product of two double-doubles."""
    product = a * b
    store_float(at, 0, product)
    store_float(low, 0, fused(a, more, fused(rest, b, fused(a, b, -product))))


@inlined
def _multiply_counts(factors: Word, before: Word, pairs: Word, number: Word) -> None:
    """``_count_products`` of counts whose product is exact as a float."""
    after = before + (number + 1) * 8
    store_float(before, 0, 1.0)
    store_float(after, number, 1.0)
    for i in range(number):
        k = number - 1 - i
        store_float(before, i + 1, load_float(before, i) * load_float(factors, FACTOR_WORDS * i + 2))
        store_float(after, k, load_float(after, k + 1) * load_float(factors, FACTOR_WORDS * k + 2))
    for k in range(number):
        value = load_float(before, k)
        for i in range(k, number):
            at = pairs + (k * number + i) * 16
            store_float(at, 0, value * load_float(after, i + 1))
            store_float(at, 1, 0.0)
            if i > k:
                value *= load_float(factors, FACTOR_WORDS * i + 2)


@kernel
def _count_products(factors: Word, before: Word, pairs: Word, number: Word) -> None:
    """Of some factors with their counts: pairs[k, l] := the product of all counts but those of k <= l, as double-doubles."""
    after = before + 2 * (number + 1) * 8  # the products of all before each, and of it and all after
    store_float(before, 0, 1.0)
    store_float(before, 1, 0.0)
    store_float(after, 2 * number, 1.0)
    store_float(after, 2 * number + 1, 0.0)
    for i in range(number):
        k, at = number - 1 - i, before + 16 * i
        _multiply_pair(
            at + 16, at + 24, load_float(at, 0), load_float(at, 1), load_float(factors, FACTOR_WORDS * i + 2), 0.0
        )
        at = after + 16 * k
        _multiply_pair(at, at + 8, load_float(at, 2), load_float(at, 3), load_float(factors, FACTOR_WORDS * k + 2), 0.0)
    for k in range(number):
        value, error = load_float(before, 2 * k), load_float(before, 2 * k + 1)
        for i in range(k, number):
            at, other = pairs + (k * number + i) * 16, after + 16 * (i + 1)
            _multiply_pair(at, at + 8, value, error, load_float(other, 0), load_float(other, 1))
            if i > k:
                count = load_float(factors, FACTOR_WORDS * i + 2)
                product = value * count
                error = fused(error, count, fused(value, count, -product))
                value = product


@inlined
def _add_products(at: Word, low: Word, values: Word, errors: Word, count: Word, factor: Word, error: Word) -> None:
    """Adds so many double-doubles times one to sums that have whole lanes."""
    k, whole = 0, count // LANES * LANES * 8
    while k < whole:
        add_product_lanes(at + k, low + k, values + k, errors + k, factor, error)
        k += LANES * 8
    if k < count * 8:
        add_last_product_lanes(at + k, low + k, values + k, errors + k, count - whole // 8, factor, error)


@kernel
def _move(moves: Word, number: Word, sums: Word, total: Word, target: Word, low: Word, is_added: Word) -> None:
    """Moves what was summed to its place, or adds it to what is there, and begins anew."""
    for m in range(number):
        source, place, length = (
            load(moves, MOVE_WORDS * m),
            load(moves, MOVE_WORDS * m + 1),
            load(moves, MOVE_WORDS * m + 2),
        )
        at, rest, to, less = sums + source * 8, sums + (total + source) * 8, target + place * 8, low + place * 8
        if is_added:
            _add(to, less, at, rest, length)
            continue
        whole = length // LANES * LANES
        for k in range(0, whole * 8, LANES * 8):
            settle_lanes(to + k, less + k, at + k, rest + k)
        for k in range(whole, length):
            value, error = load_float(at, k), load_float(rest, k)
            new = value + error
            part = new - value
            store_float(to, k, new)
            store_float(less, k, (value - (new - part)) + (error - part))
    for k in range(2 * total):
        store(sums, k, 0)


@inlined
def _place_moments(factors: Word, k: Word, sums: Word, room: Word, count: Word) -> None:
    """Says where the moments of a factor are, and of how many rows they are."""
    at = factors + k * FACTOR_WORDS * 8
    store(at, 0, sums)
    store(at, 1, sums + room * 8)
    store_float(at, 2, count)


@inlined
def _sums_in(factors: Word, k: Word, kind: Word) -> Word:
    """Says how many sums a factor has, none if it has numbers of rows only; returns it."""
    size = sums_of_kind(kind) if kind != COUNTED else 0
    store(factors, FACTOR_WORDS * k + 3, size)
    return size


@kernel
def _multiply_factors(shape: Word, factors: Word, number: Word, largest: Word) -> None:
    """Adds the product of the factors to the sums of the scratch area, which begins with them.

    ``largest``: no product of their counts is larger.
    """
    total, scaled, scaling_count, crossing_count = load(shape, 0), load(shape, 1), load(shape, 2), load(shape, 3)
    owns = shape + SHAPE_HEADS * 8
    scalings = owns + number * 8
    crossings = scalings + scaling_count * SCALING_WORDS * 8
    before = factors + FACTOR_WORDS * number * 8
    pairs = before + 4 * (number + 1) * 8
    met = pairs + 2 * number * number * 8
    less, sums = met + scaled * 8, met + 2 * scaled * 8
    if largest < EXACT_COUNT:
        _multiply_counts(factors, before, pairs, number)
    else:
        _count_products(factors, before, pairs, number)
    for x in range(scaling_count):
        at = scalings + x * SCALING_WORDS * 8
        pair, other, first, length, place = load(at, 0), load(at, 1), load(at, 2), load(at, 3), load(at, 4)
        given, lacking = load(factors, FACTOR_WORDS * other), load(factors, FACTOR_WORDS * other + 1)
        factor, error = load_float(pairs, 2 * pair), load_float(pairs, 2 * pair + 1)
        done = 0
        while done < length:
            start = (first + done) * 8
            at, low, rest = met + (place + done) * 8, less + (place + done) * 8, min(LANES, length - done)
            multiply_lanes(at, low, given + start, lacking + start, rest, factor, error)
            done += LANES
    for k in range(number):
        at, pair = sums + load(owns, k) * 8, pairs + (k * number + k) * 16
        held, low, own = (
            load(factors, FACTOR_WORDS * k),
            load(factors, FACTOR_WORDS * k + 1),
            load(factors, FACTOR_WORDS * k + 3),
        )
        _add_products(at, at + total * 8, held, low, own, load_float(pair, 0), load_float(pair, 1))
    for x in range(crossing_count):
        at = crossings + x * CROSSING_WORDS * 8
        k, feature, place, length, to = (
            load(at, 0),
            load(at, 1),
            load(at, 2) * 8,
            load(at, 3),
            sums + load(at, 4) * 8,
        )
        value = load_float(load(factors, FACTOR_WORDS * k), feature)
        error = load_float(load(factors, FACTOR_WORDS * k + 1), feature)
        done = 0
        while done < length * 8:
            add_product_lanes(to + done, to + total * 8 + done, met + place + done, less + place + done, value, error)
            done += LANES * 8


@inlined
def _move_words(shape: Word, number: Word) -> Word:
    """Where the moves of a shape are."""
    words = load(shape, 2) * SCALING_WORDS + load(shape, 3) * CROSSING_WORDS
    return shape + (SHAPE_HEADS + number + words) * 8


@inlined
def _clear_products(shape: Word, factors: Word, number: Word) -> Word:
    """Makes the scratch area of products 0; returns where its sums are."""
    met = factors + (FACTOR_WORDS * number + 4 * (number + 1) + 2 * number * number) * 8
    for k in range(2 * load(shape, 1) + 2 * load(shape, 0)):
        store(met, k, 0)
    return met + 2 * load(shape, 1) * 8


@kernel
def multiply_moments(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """target[numbers[i]] += rows[i] · entries · entries …, or without numbers target[i] := that; ``moments_shape`` says how."""
    count, entries = load(rows, load(code, MULTIPLY_MOMENTS.frame)), load(code, MULTIPLY_MOMENTS.maps)
    if count == 0:
        return
    kind_a, kind, number = load(code, MULTIPLY_MOMENTS.kind_a), load(code, MULTIPLY_MOMENTS.kind), entries + 1
    origin = load(registers, load(code, MULTIPLY_MOMENTS.rows))
    counts, left = load(registers, load(code, MULTIPLY_MOMENTS.counts)), 0
    if kind_a != COUNTED:
        left = load(registers, load(code, MULTIPLY_MOMENTS.a))
    maps, slots = MULTIPLY_MOMENTS.maps + 1, MULTIPLY_MOMENTS.slots + 1 + entries
    words, kinds = MULTIPLY_MOMENTS.offsets + 1 + 2 * entries, MULTIPLY_MOMENTS.held + 1 + 3 * entries
    shape = code + (MULTIPLY_MOMENTS.shape + 1 + 4 * entries) * 8
    moves, move_count, total = _move_words(shape, number), load(shape, 4), load(shape, 0)
    factors = load(registers, load(code, MULTIPLY_MOMENTS.scratch))
    sums = _clear_products(shape, factors, number)
    room_a = room_of(_sums_in(factors, 0, kind_a))
    step_a = room_a * 16 if kind_a != COUNTED else 0
    for k in range(entries):
        _sums_in(factors, k + 1, load(code, kinds + k))
    target, groups = load(registers, load(code, MULTIPLY_MOMENTS.target)), 0
    size, numbers = sums_of_kind(kind), 0
    room = room_of(size)
    if load(code, MULTIPLY_MOMENTS.numbers) >= 0:
        numbers, groups = (
            load(registers, load(code, MULTIPLY_MOMENTS.numbers)),
            load(rows, load(code, MULTIPLY_MOMENTS.out)),
        )
        known = load(rows, load(code, MULTIPLY_MOMENTS.known)) if load(code, MULTIPLY_MOMENTS.known) >= 0 else 0
        for k in range(2 * room * known, 2 * room * groups):
            store(target, k, 0)
    group = -1
    for i in range(count):
        if numbers != 0 and load(numbers, i) != group:
            if group >= 0:
                at = target + group * room * 16
                _move(moves, move_count, sums, total, at, at + room * 8, True)
            group = load(numbers, i)
        j = load(origin, i)
        own = float(load(counts, j))
        _place_moments(factors, 0, left + j * step_a, room_a, own)
        largest = max(1.0, abs(own))
        for k in range(entries):
            view = load(views, load(code, maps + k))
            slot = load(registers, load(code, slots + k))
            if i + 1 < count:
                fetch_entry(entry_at(view, load(slot, i + 1)), load(view, STRIDE))
            entry = entry_at(view, load(slot, i))
            held = float(load(entry, load(view, KEY_WORDS)))
            place = entry + load(code, words + k) * 8
            _place_moments(factors, k + 1, place, load(factors, FACTOR_WORDS * (k + 1) + 3), held)
            largest *= max(1.0, abs(held))
        _multiply_factors(shape, factors, number, largest)
        if numbers == 0:
            _store_product(moves, move_count, sums, total, target + i * room * 16, size)
    if group >= 0:
        at = target + group * room * 16
        _move(moves, move_count, sums, total, at, at + room * 8, True)


@inlined
def _store_product(moves: Word, move_count: Word, sums: Word, total: Word, at: Word, size: Word) -> None:
    """Makes what was summed the moments of a row."""
    room = room_of(size)
    _move(moves, move_count, sums, total, at, at + room * 8, False)
    for k in range(size, room):
        store(at, k, 0)
        store(at, room + k, 0)


@inlined
def _place_row(
    code: Word, registers: Word, factors: Word, k: Word, counts: Word, kind: Word, moments: Word, j: Word
) -> Word:
    """Says where the moments of a row of a frame are; returns how many rows they are of."""
    held, sums, room = float(load(load(registers, load(code, counts)), j)), 0, 0
    if load(code, kind) != COUNTED:
        room = room_of(sums_of_kind(load(code, kind)))
        sums = load(registers, load(code, moments)) + j * room * 16
    _place_moments(factors, k, sums, room, held)
    return held


@kernel
def multiply_moment_rows(code: Word, registers: Word, rows: Word) -> None:
    """target[i] := a[rows_a[i]] · b[rows_b[i]], as ``multiply_moments`` does with entries."""
    count, kind = load(rows, load(code, MULTIPLY_MOMENT_ROWS.frame)), load(code, MULTIPLY_MOMENT_ROWS.kind)
    if count == 0:
        return
    from_a = load(registers, load(code, MULTIPLY_MOMENT_ROWS.rows_a))
    from_b = load(registers, load(code, MULTIPLY_MOMENT_ROWS.rows_b))
    shape = code + (MULTIPLY_MOMENT_ROWS.shape + 1) * 8
    factors = load(registers, load(code, MULTIPLY_MOMENT_ROWS.scratch))
    sums = _clear_products(shape, factors, 2)
    moves, move_count, total = _move_words(shape, 2), load(shape, 4), load(shape, 0)
    target, size = load(registers, load(code, MULTIPLY_MOMENT_ROWS.target)), sums_of_kind(kind)
    _sums_in(factors, 0, load(code, MULTIPLY_MOMENT_ROWS.kind_a))
    _sums_in(factors, 1, load(code, MULTIPLY_MOMENT_ROWS.kind_b))
    at_a = MULTIPLY_MOMENT_ROWS.counts_a, MULTIPLY_MOMENT_ROWS.kind_a, MULTIPLY_MOMENT_ROWS.a
    at_b = MULTIPLY_MOMENT_ROWS.counts_b, MULTIPLY_MOMENT_ROWS.kind_b, MULTIPLY_MOMENT_ROWS.b
    for i in range(count):
        mine = _place_row(code, registers, factors, 0, at_a[0], at_a[1], at_a[2], load(from_a, i))
        theirs = _place_row(code, registers, factors, 1, at_b[0], at_b[1], at_b[2], load(from_b, i))
        _multiply_factors(shape, factors, 2, max(1.0, abs(mine)) * max(1.0, abs(theirs)))
        _store_product(moves, move_count, sums, total, target + i * room_of(size) * 16, size)


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
