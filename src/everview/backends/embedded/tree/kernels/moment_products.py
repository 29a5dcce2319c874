"""Products of moments: of rows with entries, and of rows with rows, as ``moments_shape`` says.

What is multiplied are *factors*: the addresses of their sums and errors, their numbers of rows, and how many sums they have, in
a scratch area. The product is summed up there, too, and then moved to its place.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import fused, load, load_float, store, store_float
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.lanes import (
    LANES,
    add_last_product_lanes,
    add_product_lanes,
    multiply_lanes,
    settle_lanes,
)
from everview.backends.embedded.tree.instructions import MULTIPLY_MOMENT_ROWS, MULTIPLY_MOMENTS
from everview.backends.embedded.tree.kernels.moments import add_pairs
from everview.backends.embedded.tree.kernels.numbers import room_of, sums_of_kind
from everview.backends.embedded.tree.kernels.probing import entry_at, fetch_entry
from everview.backends.embedded.tree.layout import (
    COUNTED,
    CROSSING_WORDS,
    FACTOR_WORDS,
    KEY_WORDS,
    MOVE_WORDS,
    SCALING_WORDS,
    SHAPE_HEADS,
    STRIDE,
)

EXACT_COUNT = 2.0**53
"""Integers below it are exact as floats."""


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
            add_pairs(to, less, at, rest, length)
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
