"""Products of payload parts: of rows with entries, and of rows with rows."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import (
    fused,
    load,
    load_float,
    multiply_high,
    multiply_overflows,
    shift_right,
    store,
    store_float,
)
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.tree.instructions import BY_TABLE, MULTIPLY, MULTIPLY_ROWS
from everview.backends.embedded.tree.kernels.numbers import (
    TOO_MANY,
    error_of_multiple,
    is_small_product,
    multiple_note,
    product_note,
    specials_of,
    sum_note,
)
from everview.backends.embedded.tree.kernels.probing import entry_at
from everview.backends.embedded.tree.layout import (
    BIG,
    COUNT_RANGE,
    COUNTED,
    ENTRIES,
    EXACT,
    EXACT_RANGE,
    FIRST_RING,
    FLOAT_RANGE,
    FLOATING,
    RING_INTS,
    RING_MASK,
    RING_PAIRS,
    RING_SHIFT,
    STRIDE,
)


@kernel
def _multiply_elements(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """``multiply_entries`` where one side are elements of a ring and the other numbers of rows."""
    count = load(rows, load(code, MULTIPLY.frame))
    origin = load(registers, load(code, MULTIPLY.rows)) if load(code, MULTIPLY.rows) >= 0 else 0
    view, slots = load(views, load(code, MULTIPLY.map)), load(registers, load(code, MULTIPLY.slots))
    a, b, target = load(code, MULTIPLY.a), load(code, MULTIPLY.b), load(code, MULTIPLY.target)
    is_left = load(code, MULTIPLY.kind_a) >= FIRST_RING
    kind = load(code, MULTIPLY.kind_a) if is_left else load(code, MULTIPLY.kind_b)
    how = kind & RING_MASK
    for k in range(shift_right(kind, RING_SHIFT)):
        if how == RING_PAIRS and k & 1 != 0:
            continue
        left, at = load(registers, a + k if is_left else a), b if is_left else b + k
        product = load(registers, target + k)
        lower = load(registers, target + k + 1) if how == RING_PAIRS else 0
        left_lower = load(registers, a + k + 1) if how == RING_PAIRS and is_left else 0
        for i in range(count):
            j = load(origin, i) if origin != 0 else i
            entry = entry_at(view, load(slots, i))
            if how == RING_INTS:
                store(product, i, load(left, j) * load(entry, at))
                continue
            if is_left:
                value, factor = load_float(left, j), float(load(entry, at))
            else:
                value, factor = load_float(entry, at), float(load(left, j))
            store_float(product, i, value * factor)
            if how == RING_PAIRS:
                error = load_float(left_lower, j) if is_left else load_float(entry, at + 1)
                store_float(lower, i, error_of_multiple(value, error, factor))


@kernel
def multiply_by_table(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """target[i] = a[rows[i]] * entries[slots[i]].b by the table of a finite algebra, as ``FiniteAlgebra.multiply`` does it."""
    count, target = load(rows, load(code, BY_TABLE.frame)), load(code, BY_TABLE.target)
    origin, slots = load(registers, load(code, BY_TABLE.rows)), load(registers, load(code, BY_TABLE.slots))
    view, a, b = load(views, load(code, BY_TABLE.map)), load(code, BY_TABLE.a), load(code, BY_TABLE.b)
    kind, terms = load(code, BY_TABLE.kind), load(code, BY_TABLE.terms) >> 2  # of four words each
    width = 2 if kind & RING_MASK == RING_PAIRS else 1
    for k in range(shift_right(kind, RING_SHIFT)):
        column = load(registers, target + k)
        for i in range(count):
            store(column, i, 0)  # which is 0.0 too
    for t in range(terms):
        at = BY_TABLE.terms + 1 + 4 * t
        mine, theirs = a + load(code, at) * width, b + load(code, at + 1) * width
        made, times = target + load(code, at + 2) * width, load(code, at + 3)
        left, product = load(registers, mine), load(registers, made)
        if width == 1:
            for i in range(count):
                term = load(left, load(origin, i)) * load(entry_at(view, load(slots, i)), theirs) * times
                store(product, i, load(product, i) + term)
            continue
        left_error, product_error = load(registers, mine + 1), load(registers, made + 1)
        for i in range(count):
            j, entry = load(origin, i), entry_at(view, load(slots, i))
            value, other = load_float(left, j), load_float(entry, theirs)
            lacking = value * load_float(entry, theirs + 1) + load_float(left_error, j) * other
            high, low = _pair_product(value, other, lacking)
            if times != 1:
                high, low = _pair_product(high, float(times), low * float(times))
            high, low = _pair_sum(load_float(product, i), load_float(product_error, i), high, low)
            store_float(product, i, high)
            store_float(product_error, i, low)


@inlined
def _pair_product(a: Word, b: Word, lacking: Word) -> Word:
    """The double-double a · b + lacking, where the second is small; what is not finite has no error."""
    product = a * b
    error = fused(a, b, -product) + lacking
    high = product + error
    is_finite = product - product == 0.0
    return (high, error - (high - product)) if is_finite else (product, 0.0)


@inlined
def _pair_sum(a: Word, a_error: Word, b: Word, b_error: Word) -> Word:
    """The sum of two double-doubles, as ``FloatRing.add`` computes it."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    low = a_error + b_error
    part = low - a_error
    lower = (a_error - (low - part)) + (b_error - part)
    error = error + low
    high = total + error
    error = (error - (high - total)) + lower
    both = high + error
    is_finite = total - total == 0.0
    return (both, error - (both - high)) if is_finite else (total, 0.0)


@kernel
def multiply_entries(code: Word, registers: Word, rows: Word, views: Word) -> Word:
    """target[i] = a[rows[i]] · entries[slots[i]].b, in the ring of the two kinds; returns what went wrong, or 0."""
    if load(code, MULTIPLY.kind_a) >= FIRST_RING or load(code, MULTIPLY.kind_b) >= FIRST_RING:
        _multiply_elements(code, registers, rows, views)
        return 0
    count, target = load(rows, load(code, MULTIPLY.frame)), load(code, MULTIPLY.target)
    origin = load(registers, load(code, MULTIPLY.rows)) if load(code, MULTIPLY.rows) >= 0 else 0
    view, slots = load(views, load(code, MULTIPLY.map)), load(registers, load(code, MULTIPLY.slots))
    kind_a, a, kind_b = load(code, MULTIPLY.kind_a), load(code, MULTIPLY.a), load(code, MULTIPLY.kind_b)
    right = load(view, ENTRIES) + load(code, MULTIPLY.b) * 8
    step = load(view, STRIDE)
    return _multiply(count, registers, origin, kind_a, a, slots, step, kind_b, right, right + 8, right + 16, target)


@kernel
def multiply_rows(code: Word, registers: Word, rows: Word) -> Word:
    """target[i] = a[rows_a[i]] · b[rows_b[i]], as ``multiply_entries`` does with entries; returns what went wrong, or 0."""
    count, target = load(rows, load(code, MULTIPLY_ROWS.frame)), load(code, MULTIPLY_ROWS.target)
    from_a, from_b = (
        load(registers, load(code, MULTIPLY_ROWS.rows_a)),
        load(registers, load(code, MULTIPLY_ROWS.rows_b)),
    )
    kind_a, a = load(code, MULTIPLY_ROWS.kind_a), load(code, MULTIPLY_ROWS.a)
    kind_b, b = load(code, MULTIPLY_ROWS.kind_b), load(code, MULTIPLY_ROWS.b)
    right = load(registers, b)
    second = load(registers, b + 1) if kind_b != COUNTED else 0
    third = load(registers, b + 2) if kind_b == FLOATING else 0
    return _multiply(count, registers, from_a, kind_a, a, from_b, 1, kind_b, right, second, third, target)


@kernel
def _multiply(
    count: Word,
    registers: Word,
    origin: Word,
    kind_a: Word,
    a: Word,
    others: Word,
    step: Word,
    kind_b: Word,
    right: Word,
    right_second: Word,
    right_third: Word,
    target: Word,
) -> Word:
    """The products of parts of rows with others, of which the words lie ``step`` words apart, from three addresses on."""
    left, first = load(registers, a), load(registers, target)
    if kind_a == COUNTED and kind_b == COUNTED:
        wrapped = 0
        for i in range(count):
            j = load(origin, i) if origin != 0 else i
            mine, theirs = load(left, j), load(right, load(others, i) * step)
            wrapped |= multiply_overflows(mine, theirs)
            store(first, i, mine * theirs)
        return COUNT_RANGE if wrapped != 0 else 0
    second = load(registers, target + 1)
    if kind_a != FLOATING and kind_b != FLOATING:
        upper = load(registers, a + 1) if kind_a == EXACT else 0
        outgrown = 0
        for i in range(count):
            j, k = (load(origin, i) if origin != 0 else i), load(others, i) * step
            low, other = load(left, j), load(right, k)
            high = load(upper, j) if kind_a == EXACT else low >> 63
            other_high = load(right_second, k) if kind_b == EXACT else other >> 63
            store(first, i, low * other)
            store(second, i, multiply_high(low, other) + low * other_high + high * other)
            is_wide = (high ^ (low >> 63)) | (other_high ^ (other >> 63))
            if is_wide != 0 and not is_small_product(low, high, other, other_high):
                outgrown = EXACT_RANGE
        return outgrown
    third, is_range = load(registers, target + 2), 0
    for i in range(count):
        j, k = (load(origin, i) if origin != 0 else i), load(others, i) * step
        if kind_a == FLOATING:
            value, error = load_float(left, j), load_float(load(registers, a + 1), j)
            note = load(load(registers, a + 2), j)
        else:
            value, error, note = float(load(left, j)), 0.0, 0
        if kind_b == FLOATING:
            other, other_error = load_float(right, k), load_float(right_second, k)
            other_note = load(right_third, k)
        else:
            other, other_error, other_note = float(load(right, k)), 0.0, 0
        product = value * other
        store_float(first, i, product)
        store_float(second, i, fused(value, other, -product) + (value * other_error + error * other))
        if note | other_note != 0 or not abs(product) < BIG:
            if kind_a == FLOATING and kind_b == FLOATING:
                note = product_note(note, load(left, j), other_note, load(right, k))
            else:  # one side is a number of rows
                note = multiple_note(note | other_note, load(right, k) if kind_a == FLOATING else load(left, j))
                note = sum_note(note, 0, load(first, i))
            is_range |= specials_of(note) == TOO_MANY
        store(third, i, note)
    return FLOAT_RANGE if is_range != 0 else 0
