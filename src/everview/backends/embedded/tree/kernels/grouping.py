"""Sums by key: numbering the distinct keys of rows, and adding parts up by group."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import (
    fused,
    is_below,
    load,
    load_float,
    multiply_high,
    shift_right,
    store,
    store_float,
)
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.probing import LOW
from everview.backends.embedded.tree.instructions import GROUP, SUM
from everview.backends.embedded.tree.kernels.moments import sum_moments
from everview.backends.embedded.tree.kernels.numbers import (
    TOO_MANY,
    add_pair,
    error_of_multiple,
    is_small_product,
    multiple_note,
    specials_of,
    sum_note,
    value_note,
)
from everview.backends.embedded.tree.kernels.probing import hash_row
from everview.backends.embedded.tree.layout import (
    BIG,
    COUNT_RANGE,
    COUNTED,
    EXACT,
    EXACT_RANGE,
    FIRST_RING,
    FLOAT_RANGE,
    FLOATING,
    HUGE,
    INT_VALUES,
    MOMENTS,
    RING_INTS,
    RING_MASK,
    RING_PAIRS,
    RING_SHIFT,
    SCRATCH,
    SCRATCH_MASK,
    STAMP,
    WIDE_VALUES,
)

FIRST_LOOK = 32
"""Rows after which it is known whether equal keys follow one another."""


@kernel
def group_rows(code: Word, registers: Word, rows: Word, environment: Word) -> None:
    """Numbers the distinct keys of rows, in the order in which they are met."""
    count, out = load(rows, load(code, GROUP.frame)), load(code, GROUP.out)
    numbers = load(registers, load(code, GROUP.numbers))
    width = load(code, GROUP.keys)
    at, to, known = GROUP.keys + 1, GROUP.new_keys + 1 + width, load(code, GROUP.known)
    groups = 0
    if known >= 0:
        groups = load(rows, out)
        store(rows, known, groups)
    if width == 0:
        for i in range(count):
            store(numbers, i, 0)
        store(rows, out, 1 if count + groups > 0 else 0)
        return
    table, mask, stamp = load(environment, SCRATCH), load(environment, SCRATCH_MASK), load(environment, STAMP)
    if groups == 0 or load(rows, known + 1) != stamp:  # the table has been used for something else
        stamp += 1
        store(environment, STAMP, stamp)
        for g in range(groups):
            position = hash_row(code, to, width, registers, g, 1) & mask
            while shift_right(load(table, position), 32) == stamp:
                position = (position + 1) & mask
            store(table, position, (stamp << 32) | g)
    if known >= 0:
        store(rows, known + 1, stamp)
    key, kept = load(registers, load(code, at)), load(registers, load(code, to))
    group, repeats, has_runs = 0, 0, False
    for i in range(count):
        # A row like the one before is in its group: sorted rows need no probing.
        if has_runs or 0 < i < FIRST_LOOK:
            differ = load(kept, group) ^ load(key, i)
            for k in range(1, width):
                differ |= load(load(registers, load(code, to + k)), group) ^ load(
                    load(registers, load(code, at + k)), i
                )
            if differ == 0:
                store(numbers, i, group)
                repeats += 1
                has_runs = 2 * repeats > FIRST_LOOK
                continue
        position = hash_row(code, at, width, registers, i, 1) & mask
        while True:
            word = load(table, position)
            if shift_right(word, 32) != stamp:
                store(table, position, (stamp << 32) | groups)
                for k in range(width):
                    store(load(registers, load(code, to + k)), groups, load(load(registers, load(code, at + k)), i))
                group = groups
                groups += 1
                break
            group = word & LOW
            if load(kept, group) == load(key, i) and _has_key(code, at, to, width, registers, i, group):
                break
            position = (position + 1) & mask
        store(numbers, i, group)
    store(rows, out, groups)


@kernel
def number_rows(code: Word, registers: Word, rows: Word) -> None:
    """Makes each row a group of its own."""
    count, out = load(rows, load(code, GROUP.frame)), load(code, GROUP.out)
    numbers, width = load(registers, load(code, GROUP.numbers)), load(code, GROUP.keys)
    at, to, known, groups = GROUP.keys + 1, GROUP.new_keys + 1 + width, load(code, GROUP.known), 0
    if known >= 0:
        groups = load(rows, out)
        store(rows, known, groups)
    for i in range(count):
        store(numbers, i, groups + i)
    for k in range(width):
        source, target = load(registers, load(code, at + k)), load(registers, load(code, to + k))
        for i in range(count):
            store(target, groups + i, load(source, i))
    store(rows, out, groups + count)


@inlined
def _has_key(code: Word, at: Word, to: Word, width: Word, registers: Word, row: Word, group: Word) -> Word:
    """Whether a row has the key of a group, in all words but the first."""
    for k in range(1, width):
        if load(load(registers, load(code, to + k)), group) != load(load(registers, load(code, at + k)), row):
            return False
    return True


@kernel
def _sum_elements(code: Word, registers: Word, rows: Word, known: Word) -> None:
    """``sum_groups`` for the elements of a ring."""
    count, groups = load(rows, load(code, SUM.frame)), load(rows, load(code, SUM.out))
    numbers = load(registers, load(code, SUM.numbers))
    width, how = shift_right(load(code, SUM.kind), RING_SHIFT), load(code, SUM.kind) & RING_MASK
    source, target = load(code, SUM.source), load(code, SUM.target)
    weights = load(registers, load(code, SUM.weights)) if load(code, SUM.weights) >= 0 else 0
    for k in range(width):
        sums = load(registers, target + k)
        for g in range(known, groups):
            store(sums, g, 0)
    for k in range(width):
        given, sums = load(registers, source + k), load(registers, target + k)
        if how == RING_INTS:
            for i in range(count):
                g = load(numbers, i)
                weight = load(weights, i) if weights != 0 else 1
                store(sums, g, load(sums, g) + load(given, i) * weight)
        elif how == RING_PAIRS:
            if k & 1 == 0:
                errors, lower = load(registers, source + k + 1), load(registers, target + k + 1)
                for i in range(count):
                    at = load(numbers, i) * 8
                    factor = float(load(weights, i)) if weights != 0 else 1.0
                    value = load_float(given, i)
                    error = error_of_multiple(value, load_float(errors, i), factor)
                    add_pair(sums + at, lower + at, value * factor, error)
        else:
            for i in range(count):
                g = load(numbers, i)
                factor = float(load(weights, i)) if weights != 0 else 1.0
                store_float(sums, g, load_float(sums, g) + load_float(given, i) * factor)


@kernel
def sum_groups(code: Word, registers: Word, rows: Word) -> Word:
    """Adds to the sums of groups that were known, and makes those of the others; returns what went wrong, or 0."""
    known = load(rows, load(code, SUM.known)) if load(code, SUM.known) >= 0 else 0
    if load(code, SUM.kind) >= FIRST_RING:
        if load(code, SUM.kind) & RING_MASK >= MOMENTS:
            sum_moments(code, registers, rows, known)
            return 0
        _sum_elements(code, registers, rows, known)
        return 0
    count, groups = load(rows, load(code, SUM.frame)), load(rows, load(code, SUM.out))
    numbers, kind = load(registers, load(code, SUM.numbers)), load(code, SUM.kind)
    source = load(registers, load(code, SUM.source))
    weights = load(registers, load(code, SUM.weights)) if load(code, SUM.weights) >= 0 else 0
    target = load(code, SUM.target)
    first = load(registers, target)
    for g in range(known, groups):
        store(first, g, 0)
    if count == 0:
        return 0
    # Sums are written when the group changes: rows of one group, one after another, need not wait for memory.
    group = load(numbers, 0)
    if kind == COUNTED:
        sum_so_far, wrapped = load(first, group), 0
        for i in range(count):
            g = load(numbers, i)
            if g != group:
                store(first, group, sum_so_far)
                sum_so_far, group = load(first, g), g
            more = load(source, i)
            if weights != 0:  # what is weighted is 0 or 1
                more *= load(weights, i)
            after = sum_so_far + more
            wrapped |= (sum_so_far ^ after) & (more ^ after)
            sum_so_far = after
        store(first, group, sum_so_far)
        return COUNT_RANGE if wrapped < 0 else 0
    second = load(registers, target + 1)
    for g in range(known, groups):
        store(second, g, 0)
    if kind == EXACT or kind == INT_VALUES or kind == WIDE_VALUES:
        upper = load(registers, load(code, SUM.source) + 1) if kind == EXACT else 0
        outgrown, total, before = 0, load(first, group), load(second, group)
        for i in range(count):
            g = load(numbers, i)
            if g != group:
                store(first, group, total)
                store(second, group, before)
                total, before, group = load(first, g), load(second, g), g
            if kind == INT_VALUES:
                low = load(source, i)
                high = low >> 63
            elif kind == WIDE_VALUES:
                low, high = load(source, 2 * i), load(source, 2 * i + 1)
            else:
                low, high = load(source, i), load(upper, i)
            if weights != 0:
                weight = load(weights, i)
                if weight != 1:
                    if high != low >> 63 and not is_small_product(low, high, weight, weight >> 63):
                        outgrown = -1
                    product = low * weight
                    high = multiply_high(low, weight) + high * weight - (low if weight < 0 else 0)
                    low = product
            total += low
            after = before + high + is_below(total, low)
            outgrown |= (before ^ after) & (high ^ after)
            before = after
        store(first, group, total)
        store(second, group, before)
        return EXACT_RANGE if outgrown < 0 else 0
    third = load(registers, target + 2)
    for g in range(known, groups):
        store(third, g, 0)
    is_range = 0
    summed, rest, note = load_float(first, group), load_float(second, group), load(third, group)
    for i in range(count):
        g = load(numbers, i)
        if g != group:
            store_float(first, group, summed)
            store_float(second, group, rest)
            store(third, group, note)
            summed, rest, note, group = load_float(first, g), load_float(second, g), load(third, g), g
        if kind == FLOATING:
            value, error = load_float(source, i), load_float(load(registers, load(code, SUM.source) + 1), i)
            given = load(load(registers, load(code, SUM.source) + 2), i)
        else:
            value, error, given = load_float(source, i), 0.0, 0
            if not abs(value) < BIG:
                given = value_note(load(source, i), value)
                if specials_of(given) != 0:
                    value = 0.0
                elif not abs(value) < HUGE:
                    is_range, value = 1, 0.0
        if weights != 0:
            weight = load(weights, i)
            if weight != 1:
                factor = float(weight)
                product = value * factor
                error = error * factor + fused(value, factor, -product)
                value = product
                if given != 0:
                    given = multiple_note(given, weight)
        new = summed + value
        part = new - summed
        rest = rest + error + ((summed - (new - part)) + (value - part))
        summed = new + rest
        rest -= summed - new
        if given != 0:
            note = sum_note(note, given, 0)
            is_range |= specials_of(note) == TOO_MANY
    store_float(first, group, summed)
    store_float(second, group, rest)
    store(third, group, note)
    return FLOAT_RANGE if is_range != 0 else 0
