"""The machine that runs triggers, and the maps it works on: one unit of compiled code, the same for every query.

A map holds a view: entries (key words, then payload words) in slots that never move, a probe table, and secondary indexes,
each a probe table of chain heads with links between the slots. Every change is logged with what was there before; ``settle``
ends a transaction by removing entries that became zero, ``undo`` by restoring the log.

A probe table of 2^m places has half words: the m lower bits are a slot plus 1, the others those of the hash that its place
does not say, which tell most keys apart without a look at the entry. (In a secondary index, m is that of its map.) Removal
shifts the table back, so there are no tombstones; the places of what follows are hashed anew from their entries. Neither a
search nor a shift goes further than the longest way of an entry from its place: dense keys lie in long runs, without a gap to
stop at, but at their places.

The machine runs instructions (`instructions`) over registers: columns of words, one word a row of their frame. An
instruction first asks for what it needs (rows of a frame, room in a map) and stops if that is missing; it is then run
again from its start.
"""

from __future__ import annotations

from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.kernel_cache import IS_CHECKED
from everview.backends.embedded.state.memory import (
    fetch,
    fused,
    is_below,
    load,
    load_float,
    load_half,
    load_short,
    multiply_high,
    multiply_overflows,
    shift_right,
    store,
    store_float,
    store_short,
)
from everview.backends.embedded.tree.instructions import (
    APPEND,
    CLEAR,
    COMPACT,
    CROSS,
    EACH,
    GATHER,
    GROUP,
    HELD,
    JOIN,
    KEY,
    LOOKUP,
    MULTIPLY,
    MULTIPLY_ROWS,
    PAUSE,
    REPEAT,
    SCAN,
    SIZE,
    SLICE,
    SUM,
    SUM_MORE,
    TAKE,
    TURN,
    UPSERT,
)
from everview.backends.embedded.tree.layout import (
    AMOUNT,
    AT,
    BIG,
    CAPACITY,
    COUNT,
    COUNT_RANGE,
    COUNTED,
    DONE,
    ENTRIES,
    EXACT,
    EXACT_RANGE,
    FIRST_RING,
    FLOAT_LOST,
    FLOAT_RANGE,
    FLOATING,
    FREE,
    HUGE,
    INDEX_BUILT,
    INDEX_COUNT,
    INDEX_FIELDS,
    INDEX_IDLE,
    INDEX_KEYS,
    INDEX_LIMIT,
    INDEX_LINKS,
    INDEX_LONGEST,
    INDEX_MASK,
    INDEX_MODE,
    INDEX_SLOTS,
    INDEX_TABLE,
    INDEX_WIDTH,
    INDEX_WORDS,
    INDEXES,
    INT_VALUES,
    KEY_WORDS,
    KINDS,
    LIMIT,
    LOG,
    LOG_CAPACITY,
    LOG_COUNT,
    LONGEST,
    MASK,
    MINUS_UNIT,
    MODE,
    MOST_SPECIALS,
    NAN_UNIT,
    NEED,
    NEED_INDEX,
    NEED_MAP,
    NEED_ROWS,
    NEED_SCRATCH,
    PAIRS_AT_ONCE,
    PARTS,
    PAUSED,
    PLUS_UNIT,
    RING_INTS,
    RING_MASK,
    RING_PAIRS,
    RING_SHIFT,
    SCRATCH,
    SCRATCH_MASK,
    SPECIAL_BITS,
    STAMP,
    STRIDE,
    SUSPECT,
    TABLE,
    TOUCHED,
    UNKNOWN_OPCODE,
    USED,
    WHICH,
    WIDE_VALUES,
    WORK,
)

LOW = 0xFFFFFFFF
FACTOR = -7046029254386353131
BIG_EXPONENT = 1023 + 64
LOST_BITS = 70
"""A sum that is smaller than what has gone into it by so many bits, of 106, is not trusted any more."""
TOO_MANY = 1 << 51
"""A number of NaNs and infinities that cannot be counted."""
WORD_RANGE = 2.0**64
EXACT_LIMIT = 2.0**126.999
LONG_PROBE = 128
"""A probe this long means that the keys do not suit the plain hash."""
FEW = 4096
"""An index over fewer entries is not worth giving up."""
SPARSE = 64
"""Slots beyond twice the entries that are worth giving back."""
LARGE_LOG = 4096
"""Records of a log beyond a thirty-second of the entries that are worth giving back."""
FIRST_LOOK = 32
"""Rows after which it is known whether equal keys follow one another."""
BLOCK = 256
"""Rows whose probes are asked for together, before the first is made."""
AHEAD = 16
"""How far ahead a pass over entries, or over a probe table, asks for what it will touch."""
UNLIMITED = 1 << 62
NEAR = 1 << 15
"""The entries of a map with a probe table of so many places are in the processor's cache anyway."""


# Hashing and probing


@inlined
def _mix(hashed: Word, word: Word) -> Word:
    # The upper half goes down first: a product spreads bits upwards only, and doubles of whole numbers have them all on top.
    folded = hashed ^ word ^ shift_right(word, 32)
    mixed = folded * FACTOR
    return mixed ^ shift_right(mixed, 32)


@inlined
def _finish(hashed: Word) -> Word:
    return hashed & LOW


@inlined
def _hash_word(word: Word, mode: Word) -> Word:
    """The hash of a key of one word: in mode 0 the word itself, so that dense and sorted keys stay close."""
    if mode == 0:
        return _finish(word ^ shift_right(word, 32))
    return _finish(_mix(0, word))


@inlined
def _hash_row(code: Word, at: Word, width: Word, registers: Word, row: Word, mode: Word) -> Word:
    """The hash of a row's key."""
    if width == 1:
        return _hash_word(load(load(registers, load(code, at)), row), mode)
    hashed = 0
    for k in range(width):
        hashed = _mix(hashed, load(load(registers, load(code, at + k)), row))
    return _finish(hashed)


@inlined
def _hash_entry(entry: Word, words: Word, width: Word, mode: Word) -> Word:
    """The hash of some words of an entry, or with ``words`` 0 of its first ones, as ``_hash_row`` has it for a row."""
    if width == 1:
        return _hash_word(load(entry, load(words, 0) if words != 0 else 0), mode)
    hashed = 0
    for k in range(width):
        hashed = _mix(hashed, load(entry, load(words, k) if words != 0 else k))
    return _finish(hashed)


@inlined
def _entry(view: Word, slot: Word) -> Word:
    return load(view, ENTRIES) + slot * load(view, STRIDE) * 8


@kernel
def _hash_and_fetch(
    view: Word, code: Word, at: Word, width: Word, registers: Word, start: Word, end: Word, out: Word
) -> None:
    """The hashes of some rows' keys, and a hint to the processor which places and entries their probes will read."""
    table, mask, mode = load(view, TABLE), load(view, MASK), load(view, MODE)
    if width == 1:
        key = load(registers, load(code, at))
        for i in range(start, end):
            hashed = _hash_word(load(key, i), mode)
            store(out, i, hashed)
            fetch(table + (hashed & mask) * 4, 0)
    else:
        for i in range(start, end):
            hashed = _hash_row(code, at, width, registers, i, 1)
            store(out, i, hashed)
            fetch(table + (hashed & mask) * 4, 0)
    if mask > NEAR:
        entries, stride = load(view, ENTRIES), load(view, STRIDE) * 8
        for i in range(start, end):
            fetch(entries + ((load_half(table, load(out, i) & mask) & mask) - 1) * stride, 0)


@inlined
def _find(
    table: Word,
    mask: Word,
    longest: Word,
    entries: Word,
    stride: Word,
    hashed: Word,
    code: Word,
    at: Word,
    width: Word,
    registers: Word,
    row: Word,
) -> Word:
    """The slot with the row's key, or -1; ``stride`` is in bytes."""
    position = hashed & mask
    tag = hashed - position
    last = position + longest
    while True:
        word = load_half(table, position & mask)
        if word == 0:
            return -1
        slot = word & mask
        if word - slot == tag:
            entry = entries + (slot - 1) * stride
            same = True
            for k in range(width):
                if load(entry, k) != load(load(registers, load(code, at + k)), row):
                    same = False
                    break
            if same:
                return slot - 1
        if position == last:
            return -1
        position += 1


@inlined
def _place(table: Word, mask: Word, bits: Word, hashed: Word, slot: Word) -> Word:
    """Puts a slot into a probe table, whose words have slots in these bits; returns how far from its place."""
    home = hashed & mask
    position = home
    while load_half(table, position) != 0:
        position = (position + 1) & mask
    store_short(table, position, hashed - (hashed & bits) + slot + 1)
    return (position - home) & mask


@kernel
def _erase(view: Word, index: Word, table: Word, mask: Word, hashed: Word, slot: Word) -> None:
    """Takes a slot out of the probe table of an index, or with ``index`` 0 of its map, and moves what follows back."""
    if index != 0:
        words, width, mode = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_MODE)
        longest, bits = load(index, INDEX_LONGEST), load(index, INDEX_SLOTS)
    else:
        words, width, mode, longest, bits = 0, load(view, KEY_WORDS), load(view, MODE), load(view, LONGEST), mask
    hole = hashed & mask
    wanted = hashed - (hashed & bits) + slot + 1
    while load_half(table, hole) != wanted:
        hole = (hole + 1) & mask
    position = (hole + 1) & mask
    while ((position - hole) & mask) <= longest:
        word = load_half(table, position)
        if word == 0:
            break
        home = _hash_entry(_entry(view, (word & bits) - 1), words, width, mode) & mask
        if ((position - home) & mask) >= ((position - hole) & mask):
            store_short(table, hole, word)
            hole = position
        position = (position + 1) & mask
    store_short(table, hole, 0)


# Secondary indexes


@inlined
def _same_words(one: Word, other: Word, words: Word, width: Word) -> Word:
    for k in range(width):
        word = load(words, k)
        if load(one, word) != load(other, word):
            return False
    return True


@kernel
def _link(view: Word, index: Word, slot: Word) -> None:
    """Puts a slot at the head of the chain of its index key."""
    table, mask, links = load(index, INDEX_TABLE), load(index, INDEX_MASK), load(index, INDEX_LINKS)
    words, width, bits = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_SLOTS)
    entry = _entry(view, slot)
    hashed = _hash_entry(entry, words, width, load(index, INDEX_MODE))
    home, tag = hashed & mask, hashed - (hashed & bits)
    position = home
    store_short(links, 2 * slot + 1, -1)
    while True:
        word = load_half(table, position)
        if word == 0:
            store_short(links, 2 * slot, -1)
            store(index, INDEX_KEYS, load(index, INDEX_KEYS) + 1)
            break
        if word - (word & bits) == tag:
            head = (word & bits) - 1
            if _same_words(entry, _entry(view, head), words, width):
                store_short(links, 2 * slot, head)
                store_short(links, 2 * head + 1, slot)
                break
        position = (position + 1) & mask
    store_short(table, position, tag + slot + 1)
    distance = (position - home) & mask
    if distance > load(index, INDEX_LONGEST):
        store(index, INDEX_LONGEST, distance)


@kernel
def _unlink(view: Word, index: Word, slot: Word) -> None:
    links = load(index, INDEX_LINKS)
    after, before = load_short(links, 2 * slot), load_short(links, 2 * slot + 1)
    if after >= 0:
        store_short(links, 2 * after + 1, before)
    if before >= 0:
        store_short(links, 2 * before, after)
        return
    table, mask = load(index, INDEX_TABLE), load(index, INDEX_MASK)
    words, width = load(index, INDEX_WORDS), load(index, INDEX_WIDTH)
    hashed = _hash_entry(_entry(view, slot), words, width, load(index, INDEX_MODE))
    if after < 0:
        store(index, INDEX_KEYS, load(index, INDEX_KEYS) - 1)
        _erase(view, index, table, mask, hashed, slot)
        return
    position = hashed & mask
    tag = hashed - (hashed & load(index, INDEX_SLOTS))
    while load_half(table, position) != tag + slot + 1:
        position = (position + 1) & mask
    store_short(table, position, tag + after + 1)


# Entries


@inlined
def _new_slot(view: Word) -> Word:
    free = load(view, FREE)
    if free >= 0:
        store(view, FREE, load(_entry(view, free), 0))
        slot = free
    else:
        slot = load(view, USED)
        store(view, USED, slot + 1)
    store(view, COUNT, load(view, COUNT) + 1)
    return slot


@kernel
def _drop(view: Word, slot: Word) -> None:
    """Removes an entry from the map and all its indexes."""
    entry = _entry(view, slot)
    indexes = load(view, INDEXES)
    for i in range(load(view, INDEX_COUNT)):
        if load(load(indexes, i), INDEX_BUILT) != 0:
            _unlink(view, load(indexes, i), slot)
    hashed = _hash_entry(entry, 0, load(view, KEY_WORDS), load(view, MODE))
    _erase(view, 0, load(view, TABLE), load(view, MASK), hashed, slot)
    store(entry, 0, load(view, FREE))
    store(view, FREE, slot)
    store(view, COUNT, load(view, COUNT) - 1)


@inlined
def _words(kind: Word) -> Word:
    return shift_right(kind, RING_SHIFT) if kind >= FIRST_RING else kind + 1


@inlined
def _add_float(at: Word, value: Word, error: Word) -> None:
    """Adds a double-double to the one at the address."""
    total = load_float(at, 0)
    new = total + value
    part = new - total
    rest = load_float(at, 1) + error + ((total - (new - part)) + (value - part))
    total = new + rest
    store_float(at, 0, total)
    store_float(at, 1, rest - (total - new))


@inlined
def _add_pair(high: Word, low: Word, value: Word, error: Word) -> None:
    """Adds a double-double to the one at two addresses, as ``algebra.floats`` does: to the last of 106 bits."""
    mine, rest = load_float(high, 0), load_float(low, 0)
    total = mine + value
    part = total - mine
    lost = (mine - (total - part)) + (value - part)
    lower = rest + error
    part = lower - rest
    least = (rest - (lower - part)) + (error - part)
    lost += lower
    nearly = total + lost
    lost = lost - (nearly - total) + least
    result = nearly + lost
    is_finite = total - total == 0.0
    store_float(high, 0, result if is_finite else total)
    store_float(low, 0, lost - (result - nearly) if is_finite else 0.0)


@inlined
def _error_of_multiple(value: Word, error: Word, factor: Word) -> Word:
    """What value * factor lacks to be the multiple of a double-double."""
    product = value * factor
    lacking = fused(value, factor, -product) + error * factor
    return lacking if product - product == 0.0 else 0.0


# Notes of float sums


@inlined
def _exponent(bits: Word) -> Word:
    """The exponent of a float, as it stands in its bits."""
    return shift_right(bits, 52) & 2047


@inlined
def _specials(note: Word) -> Word:
    return (note << (64 - SPECIAL_BITS)) >> (64 - SPECIAL_BITS)


@inlined
def _top(note: Word) -> Word:
    return shift_right(note, SPECIAL_BITS)


@inlined
def _note(specials: Word, top: Word) -> Word:
    return (top << SPECIAL_BITS) | (specials & ((1 << SPECIAL_BITS) - 1))


@inlined
def _lowest_digit(specials: Word) -> Word:
    return ((specials + PLUS_UNIT // 2) & (PLUS_UNIT - 1)) - PLUS_UNIT // 2


@kernel
def _multiplied_specials(specials: Word, factor: Word) -> Word:
    """Counts of NaNs and infinities as often as a factor says, or more than can be counted."""
    nans = _lowest_digit(specials)
    rest = (specials - nans) // PLUS_UNIT
    plus = _lowest_digit(rest)
    minus = (rest - plus) // PLUS_UNIT
    most = max(abs(nans), abs(plus), abs(minus))
    if most >= MOST_SPECIALS or (most > 0 and (abs(factor) >= MOST_SPECIALS or most * abs(factor) >= MOST_SPECIALS)):
        return TOO_MANY
    return specials * factor


@kernel
def _value_note(bits: Word, value: Word) -> Word:
    """The note of a single float that is not below BIG."""
    if value != value:
        return NAN_UNIT
    if value - value != 0:
        return PLUS_UNIT if value > 0 else MINUS_UNIT
    return _note(0, _exponent(bits))


@kernel
def _multiple_note(note: Word, factor: Word) -> Word:
    """The note of a multiple of a sum."""
    top, rest = _top(note), abs(factor)
    while top > 0 and rest > 1:
        top += 1
        rest >>= 1
    return _note(_multiplied_specials(_specials(note), factor), min(top, 2046))


@kernel
def _sum_note(one: Word, other: Word, bits: Word) -> Word:
    """The note of the sum of two noted numbers, whose bits are given."""
    top = max(_exponent(bits), _top(one), _top(other))
    specials = _specials(one) + _specials(other)
    if _multiplied_specials(specials, 1) == TOO_MANY:
        specials = TOO_MANY
    return _note(specials, top if top >= BIG_EXPONENT else 0)


@kernel
def _product_note(one: Word, bits: Word, other: Word, other_bits: Word) -> Word:
    """The note of a product of two sums of floats. What is not finite counts as what cannot be counted."""
    if _specials(one) != 0 or _specials(other) != 0:
        return _note(TOO_MANY, 0)
    # The error of one side, 106 bits below its top, times the other side.
    top, other_top = max(_top(one), BIG_EXPONENT), max(_top(other), BIG_EXPONENT)
    size, other_size = max(_exponent(bits), top - 106), max(_exponent(other_bits), other_top - 106)
    reach = max(top + other_size, size + other_top) - 1023
    return _note(0, min(reach, 2046) if reach >= BIG_EXPONENT else 0)


@kernel
def _has_lost(note: Word, bits: Word) -> bool:
    """Whether a noted sum has too few correct digits left."""
    return bool(_top(note) >= BIG_EXPONENT and _exponent(bits) + LOST_BITS < _top(note))


@inlined
def _add_exact(at: Word, low: Word, high: Word) -> None:
    total = load(at, 0) + low
    store(at, 1, load(at, 1) + high + is_below(total, low))
    store(at, 0, total)


@kernel
def _is_zero(view: Word, entry: Word) -> bool:
    """Whether all that is exact in the payload is 0; what a float sum then holds is rounding."""
    kinds = load(view, KINDS)
    at = load(view, KEY_WORDS)
    for p in range(load(view, PARTS)):
        kind = load(kinds, p)
        if kind >= FIRST_RING:
            if kind & RING_MASK == RING_INTS:
                for k in range(_words(kind)):
                    if load(entry, at + k) != 0:
                        return False
        elif kind == FLOATING:
            if _specials(load(entry, at + 2)) != 0:
                return False
        elif load(entry, at) != 0 or (kind == EXACT and load(entry, at + 1) != 0):
            return False
        at += _words(kind)
    return True


@inlined
def _is_untidy(view: Word) -> Word:
    """Whether a map wants housekeeping: it probes for long, keeps an index that is not used, or has much room to spare.

    Half of an index's entries have come since somebody last sliced: keeping it up then costs as building it does.
    """
    live = load(view, COUNT)
    if load(view, LONGEST) > LONG_PROBE and load(view, MODE) == 0:
        return True
    most = live // 2
    if most < FEW:
        most = FEW
    for i in range(load(view, INDEX_COUNT)):
        index = load(load(view, INDEXES), i)
        if load(index, INDEX_BUILT) != 0:
            if load(index, INDEX_IDLE) > most:
                return True
            if load(index, INDEX_LONGEST) > LONG_PROBE and load(index, INDEX_MODE) == 0:
                return True
    return load(view, USED) > 2 * live + SPARSE or load(view, LOG_CAPACITY) > live // 32 + LARGE_LOG


@kernel
def settle(views: Word, count: Word) -> Word:
    """Ends a transaction: entries that became zero go, the logs are emptied; returns how many maps want housekeeping."""
    untidy = 0
    for v in range(count):
        view = load(views, v)
        logged = load(view, LOG_COUNT)
        if logged == 0:
            continue
        log, stride, width = load(view, LOG), load(view, STRIDE), load(view, KEY_WORDS)
        entries, touched = load(view, ENTRIES), load(view, TOUCHED)
        for i in range(logged):
            slot = load(log, i * (stride + 1))
            entry = entries + slot * stride * 8
            if touched != 0:
                store(touched, slot >> 6, 0)
            if load(entry, width) == 0 and _is_zero(view, entry) and _is_held(view, slot):
                _drop(view, slot)
        store(view, LOG_COUNT, 0)
        store(view, SUSPECT, 0)
        if _is_untidy(view):
            untidy += 1
    return untidy


@inlined
def _is_held(view: Word, slot: Word) -> Word:
    """Whether the slot is in the probe table: it may have been logged, and dropped, twice."""
    hashed = _hash_entry(_entry(view, slot), 0, load(view, KEY_WORDS), load(view, MODE))
    table, mask = load(view, TABLE), load(view, MASK)
    position = hashed & mask
    wanted = hashed - position + slot + 1
    for _ in range(load(view, LONGEST) + 1):
        if load_half(table, position) == wanted:
            return True
        position = (position + 1) & mask
    return False


@kernel
def undo(views: Word, count: Word) -> None:
    """Takes a transaction back: entries get their old payloads, new ones go."""
    for v in range(count):
        view = load(views, v)
        log, stride, width, touched = load(view, LOG), load(view, STRIDE), load(view, KEY_WORDS), load(view, TOUCHED)
        for j in range(load(view, LOG_COUNT)):
            i = load(view, LOG_COUNT) - 1 - j
            record = log + i * (stride + 1) * 8
            slot = load(record, 0)
            entry = _entry(view, slot)
            if touched != 0:
                store(touched, slot >> 6, 0)
            if load(record, 1) == 0:
                _drop(view, slot)
                continue
            for k in range(width, stride):
                store(entry, k, load(record, 1 + k))
        store(view, LOG_COUNT, 0)
        store(view, SUSPECT, 0)


@kernel
def rehash(view: Word, index: Word, old: Word, length: Word, table: Word, mask: Word) -> None:
    """Moves the slots of an index's probe table, or with ``index`` 0 of the map's, into another, which is empty."""
    words, width, mode, old_bits, bits = 0, load(view, KEY_WORDS), load(view, MODE), length - 1, mask
    if index != 0:
        words, width, mode = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_MODE)
        old_bits, bits = load(index, INDEX_SLOTS), load(view, MASK)
        store(index, INDEX_SLOTS, bits)
    longest = 0
    for i in range(length):
        if i + AHEAD < length:
            fetch(_entry(view, (load_half(old, i + AHEAD) & old_bits) - 1), 0)
        word = load_half(old, i)
        if word != 0:
            slot = (word & old_bits) - 1
            distance = _place(table, mask, bits, _hash_entry(_entry(view, slot), words, width, mode), slot)
            if distance > longest:
                longest = distance
    if index != 0:
        store(index, INDEX_LONGEST, longest)
    else:
        store(view, LONGEST, longest)


@kernel
def hash_again(view: Word, slots: Word, count: Word) -> None:
    """Fills the empty probe table of a map with some slots, or with ``slots`` 0 with the first."""
    table, mask, width, mode = load(view, TABLE), load(view, MASK), load(view, KEY_WORDS), load(view, MODE)
    longest = 0
    for i in range(count):
        if slots == 0 and i + AHEAD < count:
            fetch(table + (_hash_entry(_entry(view, i + AHEAD), 0, width, mode) & mask) * 4, 0)
        slot = load(slots, i) if slots != 0 else i
        distance = _place(table, mask, mask, _hash_entry(_entry(view, slot), 0, width, mode), slot)
        if distance > longest:
            longest = distance
    store(view, LONGEST, longest)


@kernel
def link_all(view: Word, index: Word, slots: Word, count: Word) -> None:
    """Fills a new secondary index."""
    for i in range(count):
        _link(view, index, load(slots, i))


@kernel
def live_slots(view: Word, slots: Word) -> Word:
    """Writes the slots in use, in the order of the probe table; returns how many."""
    table, mask, found = load(view, TABLE), load(view, MASK), 0
    for i in range(mask + 1):
        word = load_half(table, i)
        if word != 0:
            store(slots, found, (word & mask) - 1)
            found += 1
    return found


# Instructions


@kernel
def _group(code: Word, registers: Word, rows: Word, environment: Word) -> None:
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
            position = _hash_row(code, to, width, registers, g, 1) & mask
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
        position = _hash_row(code, at, width, registers, i, 1) & mask
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
def _each(code: Word, registers: Word, rows: Word) -> None:
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
def _is_small_product(low: Word, high: Word, other: Word, other_high: Word) -> bool:
    """Whether the product of two 128-bit integers surely has less than 128 bits."""
    one = float(high) * WORD_RANGE + float(shift_right(low, 1)) * 2.0
    two = float(other_high) * WORD_RANGE + float(shift_right(other, 1)) * 2.0
    return abs(one * two) < EXACT_LIMIT


@kernel
def _sum_elements(code: Word, registers: Word, rows: Word, known: Word) -> None:
    """``_sum`` for the elements of a ring."""
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
                    error = _error_of_multiple(value, load_float(errors, i), factor)
                    _add_pair(sums + at, lower + at, value * factor, error)
        else:
            for i in range(count):
                g = load(numbers, i)
                factor = float(load(weights, i)) if weights != 0 else 1.0
                store_float(sums, g, load_float(sums, g) + load_float(given, i) * factor)


@kernel
def _sum(code: Word, registers: Word, rows: Word) -> Word:
    """Adds to the sums of groups that were known, and makes those of the others; returns what went wrong, or 0."""
    known = load(rows, load(code, SUM.known)) if load(code, SUM.known) >= 0 else 0
    if load(code, SUM.kind) >= FIRST_RING:
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
                    if high != low >> 63 and not _is_small_product(low, high, weight, weight >> 63):
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
                given = _value_note(load(source, i), value)
                if _specials(given) != 0:
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
                    given = _multiple_note(given, weight)
        new = summed + value
        part = new - summed
        rest = rest + error + ((summed - (new - part)) + (value - part))
        summed = new + rest
        rest -= summed - new
        if given != 0:
            note = _sum_note(note, given, 0)
            is_range |= _specials(note) == TOO_MANY
    store_float(first, group, summed)
    store_float(second, group, rest)
    store(third, group, note)
    return FLOAT_RANGE if is_range != 0 else 0


@kernel
def _lookup(code: Word, registers: Word, rows: Word, views: Word) -> None:
    view = load(views, load(code, LOOKUP.map))
    count, out = load(rows, load(code, LOOKUP.frame)), load(code, LOOKUP.out)
    found, slots = load(registers, load(code, LOOKUP.rows)), load(registers, load(code, LOOKUP.slots))
    width = load(code, LOOKUP.keys)
    table, mask, longest = load(view, TABLE), load(view, MASK), load(view, LONGEST)
    entries, stride = load(view, ENTRIES), load(view, STRIDE) * 8
    pairs = 0
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        _hash_and_fetch(view, code, LOOKUP.keys + 1, width, registers, start, end, slots)
        for i in range(start, end):
            hashed = load(slots, i)
            slot = _find(table, mask, longest, entries, stride, hashed, code, LOOKUP.keys + 1, width, registers, i)
            if slot >= 0:
                store(found, pairs, i)
                store(slots, pairs, slot)
                pairs += 1
    store(rows, out, pairs)


@kernel
def _slice(code: Word, registers: Word, rows: Word, capacities: Word, views: Word) -> Word:
    """Returns the number of rows that the frame would have needed, or 0; a cursor has the row and the entry to go on with."""
    view = load(views, load(code, SLICE.map))
    count, out = load(rows, load(code, SLICE.frame)), load(code, SLICE.out)
    found, slots = load(registers, load(code, SLICE.rows)), load(registers, load(code, SLICE.slots))
    index, width = load(load(view, INDEXES), load(code, SLICE.index)), load(code, SLICE.keys)
    table, mask, links = load(index, INDEX_TABLE), load(index, INDEX_MASK), load(index, INDEX_LINKS)
    words, mode, room = load(index, INDEX_WORDS), load(index, INDEX_MODE), load(capacities, out)
    bits, longest = load(index, INDEX_SLOTS), load(index, INDEX_LONGEST)
    if load(index, INDEX_IDLE) > 0:
        store(index, INDEX_IDLE, 0)
    cursor, limit, first, slot = load(code, SLICE.cursor), UNLIMITED, 0, -1
    if cursor >= 0:
        limit = PAIRS_AT_ONCE
        if load(rows, cursor) != 0:
            first, slot = load(rows, cursor) - 1, load(rows, cursor + 1) - 1
    pairs = 0
    stopped = 0
    for i in range(first, count):
        if pairs == limit:
            stopped = i + 1
            break
        hashed = _hash_row(code, SLICE.keys + 1, width, registers, i, mode)
        position = hashed & mask
        tag = hashed - (hashed & bits)
        for _ in range(longest + 1 if slot < 0 else 0):
            word = load_half(table, position)
            if word == 0:
                break
            if word - (word & bits) == tag:
                head = (word & bits) - 1
                entry = _entry(view, head)
                same = True
                for k in range(width):
                    if load(entry, load(words, k)) != load(load(registers, load(code, SLICE.keys + 1 + k)), i):
                        same = False
                        break
                if same:
                    slot = head
                    break
            position = (position + 1) & mask
        while slot >= 0 and pairs < limit:
            if pairs < room:
                store(found, pairs, i)
                store(slots, pairs, slot)
            pairs += 1
            slot = load_short(links, 2 * slot)
        if slot >= 0:
            stopped = i + 1
            break
    if pairs > room:
        return pairs
    store(rows, out, pairs)
    if cursor >= 0:
        store(rows, cursor, stopped)
        store(rows, cursor + 1, slot + 1)
    return 0


@kernel
def _scan(code: Word, registers: Word, rows: Word, views: Word) -> None:
    view = load(views, load(code, SCAN.map))
    count, out = load(rows, load(code, SCAN.frame)), load(code, SCAN.out)
    found, slots = load(registers, load(code, SCAN.rows)), load(registers, load(code, SCAN.slots))
    table = load(view, TABLE)
    mask, pairs = load(view, MASK), 0
    cursor, limit, first, row, stopped = load(code, SCAN.cursor), UNLIMITED, 0, 0, 0
    if cursor >= 0:
        limit = PAIRS_AT_ONCE
        if load(rows, cursor) != 0:
            first, row = load(rows, cursor) - 1, load(rows, cursor + 1)
    for p in range(first, mask + 1):
        word = load_half(table, p)
        if word != 0:
            end = min(count, row + limit - pairs)
            for i in range(row, end):
                store(found, pairs, i)
                store(slots, pairs, (word & mask) - 1)
                pairs += 1
            row = end
            if row < count:
                stopped = p + 1
                break
            row = 0
    store(rows, out, pairs)
    if cursor >= 0:
        store(rows, cursor, stopped)
        store(rows, cursor + 1, row)


@kernel
def _multiply_elements(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """``_multiply`` where one side are elements of a ring and the other numbers of rows."""
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
            entry = _entry(view, load(slots, i))
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
                store_float(lower, i, _error_of_multiple(value, error, factor))


@kernel
def _multiply(code: Word, registers: Word, rows: Word, views: Word) -> Word:
    """target[i] = a[rows[i]] · entries[slots[i]].b, in the ring of the two kinds; returns what went wrong, or 0."""
    if load(code, MULTIPLY.kind_a) >= FIRST_RING or load(code, MULTIPLY.kind_b) >= FIRST_RING:
        _multiply_elements(code, registers, rows, views)
        return 0
    count = load(rows, load(code, MULTIPLY.frame))
    origin = load(registers, load(code, MULTIPLY.rows)) if load(code, MULTIPLY.rows) >= 0 else 0
    view, slots = load(views, load(code, MULTIPLY.map)), load(registers, load(code, MULTIPLY.slots))
    kind_a, a, kind_b = load(code, MULTIPLY.kind_a), load(code, MULTIPLY.a), load(code, MULTIPLY.kind_b)
    b = load(code, MULTIPLY.b)
    target = load(code, MULTIPLY.target)
    left, first = load(registers, a), load(registers, target)
    entries, stride = load(view, ENTRIES), load(view, STRIDE) * 8
    if kind_a == COUNTED and kind_b == COUNTED:
        wrapped = 0
        for i in range(count):
            j = load(origin, i) if origin != 0 else i
            mine, theirs = load(left, j), load(entries + load(slots, i) * stride, b)
            wrapped |= multiply_overflows(mine, theirs)
            store(first, i, mine * theirs)
        return COUNT_RANGE if wrapped != 0 else 0
    second = load(registers, target + 1)
    if kind_a != FLOATING and kind_b != FLOATING:
        upper = load(registers, a + 1) if kind_a == EXACT else 0
        outgrown = 0
        for i in range(count):
            j = load(origin, i) if origin != 0 else i
            entry = entries + load(slots, i) * stride
            low = load(left, j)
            high = load(upper, j) if kind_a == EXACT else low >> 63
            other = load(entry, b)
            other_high = load(entry, b + 1) if kind_b == EXACT else other >> 63
            store(first, i, low * other)
            store(second, i, multiply_high(low, other) + low * other_high + high * other)
            is_wide = (high ^ (low >> 63)) | (other_high ^ (other >> 63))
            if is_wide != 0 and not _is_small_product(low, high, other, other_high):
                outgrown = EXACT_RANGE
        return outgrown
    third, is_range = load(registers, target + 2), 0
    for i in range(count):
        j = load(origin, i) if origin != 0 else i
        entry = entries + load(slots, i) * stride
        if kind_a == FLOATING:
            value, error = load_float(left, j), load_float(load(registers, a + 1), j)
            note = load(load(registers, a + 2), j)
        else:
            value, error, note = float(load(left, j)), 0.0, 0
        if kind_b == FLOATING:
            other, other_error, other_note = load_float(entry, b), load_float(entry, b + 1), load(entry, b + 2)
        else:
            other, other_error, other_note = float(load(entry, b)), 0.0, 0
        product = value * other
        store_float(first, i, product)
        store_float(second, i, fused(value, other, -product) + (value * other_error + error * other))
        if note | other_note != 0 or not abs(product) < BIG:
            if kind_a == FLOATING and kind_b == FLOATING:
                note = _product_note(note, load(left, j), other_note, load(entry, b))
            else:  # one side is a number of rows
                note = _multiple_note(note | other_note, load(entry, b) if kind_a == FLOATING else load(left, j))
                note = _sum_note(note, 0, load(first, i))
            is_range |= _specials(note) == TOO_MANY
        store(third, i, note)
    return FLOAT_RANGE if is_range != 0 else 0


@kernel
def _multiply_rows(code: Word, registers: Word, rows: Word) -> Word:
    """target[i] = a[rows_a[i]] · b[rows_b[i]], as ``_multiply`` does with entries; returns what went wrong, or 0."""
    count, from_a = load(rows, load(code, MULTIPLY_ROWS.frame)), load(registers, load(code, MULTIPLY_ROWS.rows_a))
    from_b = load(registers, load(code, MULTIPLY_ROWS.rows_b))
    kind_a, a = load(code, MULTIPLY_ROWS.kind_a), load(code, MULTIPLY_ROWS.a)
    kind_b, b = load(code, MULTIPLY_ROWS.kind_b), load(code, MULTIPLY_ROWS.b)
    target = load(code, MULTIPLY_ROWS.target)
    left, right, first = load(registers, a), load(registers, b), load(registers, target)
    if kind_a == COUNTED and kind_b == COUNTED:
        wrapped = 0
        for i in range(count):
            mine, theirs = load(left, load(from_a, i)), load(right, load(from_b, i))
            wrapped |= multiply_overflows(mine, theirs)
            store(first, i, mine * theirs)
        return COUNT_RANGE if wrapped != 0 else 0
    second = load(registers, target + 1)
    if kind_a != FLOATING and kind_b != FLOATING:
        upper = load(registers, a + 1) if kind_a == EXACT else 0
        other_upper = load(registers, b + 1) if kind_b == EXACT else 0
        outgrown = 0
        for i in range(count):
            j, k = load(from_a, i), load(from_b, i)
            low, other = load(left, j), load(right, k)
            high = load(upper, j) if kind_a == EXACT else low >> 63
            other_high = load(other_upper, k) if kind_b == EXACT else other >> 63
            store(first, i, low * other)
            store(second, i, multiply_high(low, other) + low * other_high + high * other)
            is_wide = (high ^ (low >> 63)) | (other_high ^ (other >> 63))
            if is_wide != 0 and not _is_small_product(low, high, other, other_high):
                outgrown = EXACT_RANGE
        return outgrown
    third, is_range = load(registers, target + 2), 0
    for i in range(count):
        j, k = load(from_a, i), load(from_b, i)
        if kind_a == FLOATING:
            value, error = load_float(left, j), load_float(load(registers, a + 1), j)
            note = load(load(registers, a + 2), j)
        else:
            value, error, note = float(load(left, j)), 0.0, 0
        if kind_b == FLOATING:
            other, other_error = load_float(right, k), load_float(load(registers, b + 1), k)
            other_note = load(load(registers, b + 2), k)
        else:
            other, other_error, other_note = float(load(right, k)), 0.0, 0
        product = value * other
        store_float(first, i, product)
        store_float(second, i, fused(value, other, -product) + (value * other_error + error * other))
        if note | other_note != 0 or not abs(product) < BIG:
            if kind_a == FLOATING and kind_b == FLOATING:
                note = _product_note(note, load(left, j), other_note, load(right, k))
            else:  # one side is a number of rows
                note = _multiple_note(note | other_note, load(right, k) if kind_a == FLOATING else load(left, j))
                note = _sum_note(note, 0, load(first, i))
            is_range |= _specials(note) == TOO_MANY
        store(third, i, note)
    return FLOAT_RANGE if is_range != 0 else 0


@kernel
def _cross(code: Word, registers: Word, rows: Word, start: Word, size: Word) -> None:
    """Makes ``size`` pairs of the product of two frames, from pair ``start`` on."""
    others, cursor = load(rows, load(code, CROSS.b)), load(code, CROSS.cursor)
    from_a, from_b = load(registers, load(code, CROSS.rows_a)), load(registers, load(code, CROSS.rows_b))
    j = start // others if others > 0 else 0
    k = start - j * others
    for i in range(size):
        store(from_a, i, j)
        store(from_b, i, k)
        k += 1
        if k == others:
            k = 0
            j += 1
    store(rows, load(code, CROSS.out), size)
    if cursor >= 0:
        is_through = start + size == load(rows, load(code, CROSS.a)) * others
        store(rows, cursor, 0 if is_through else start + size)


@inlined
def _same_keys(code: Word, at: Word, to: Word, width: Word, registers: Word, one: Word, other: Word) -> Word:
    for k in range(width):
        if load(load(registers, load(code, at + k)), one) != load(load(registers, load(code, to + k)), other):
            return False
    return True


@kernel
def _join(code: Word, registers: Word, rows: Word, capacities: Word, environment: Word) -> Word:
    """Returns the number of rows that the frame would have needed, or 0."""
    count, others, out = load(rows, load(code, JOIN.a)), load(rows, load(code, JOIN.b)), load(code, JOIN.out)
    from_a, from_b = load(registers, load(code, JOIN.rows_a)), load(registers, load(code, JOIN.rows_b))
    links, width, room = load(registers, load(code, JOIN.links)), load(code, JOIN.keys_a), load(capacities, out)
    at, to = JOIN.keys_a + 1, JOIN.keys_b + 1 + width
    table, mask = load(environment, SCRATCH), load(environment, SCRATCH_MASK)
    stamp = load(environment, STAMP) + 1
    store(environment, STAMP, stamp)
    for k in range(others):  # chains of b's rows with equal keys, their heads in the table
        position = _hash_row(code, to, width, registers, k, 1) & mask
        while True:
            word = load(table, position)
            if shift_right(word, 32) != stamp:
                store(links, k, -1)
                break
            if _same_keys(code, to, to, width, registers, k, word & LOW):
                store(links, k, word & LOW)
                break
            position = (position + 1) & mask
        store(table, position, (stamp << 32) | k)
    pairs = 0
    for i in range(count):
        position = _hash_row(code, at, width, registers, i, 1) & mask
        k = -1
        while True:
            word = load(table, position)
            if shift_right(word, 32) != stamp:
                break
            if _same_keys(code, at, to, width, registers, i, word & LOW):
                k = word & LOW
                break
            position = (position + 1) & mask
        while k >= 0:
            if pairs < room:
                store(from_a, pairs, i)
                store(from_b, pairs, k)
            pairs += 1
            k = load(links, k)
    if pairs > room:
        return pairs
    store(rows, out, pairs)
    return 0


@kernel
def _add_element(kind: Word, at: Word, registers: Word, register: Word, row: Word) -> None:
    """Adds the element of a row to the one at an address."""
    width, how = _words(kind), kind & RING_MASK
    if how == RING_PAIRS:
        for k in range(0, width, 2):
            value = load_float(load(registers, register + k), row)
            error = load_float(load(registers, register + k + 1), row)
            _add_pair(at + k * 8, at + k * 8 + 8, value, error)
        return
    for k in range(width):
        given = load(registers, register + k)
        if how == RING_INTS:
            store(at, k, load(at, k) + load(given, row))
        else:
            store_float(at, k, load_float(at, k) + load_float(given, row))


@kernel
def _upsert(code: Word, registers: Word, rows: Word, views: Word) -> Word:
    """Returns what went wrong, or 0."""
    view = load(views, load(code, UPSERT.map))
    count, slots = load(rows, load(code, UPSERT.frame)), load(registers, load(code, UPSERT.slots))
    width = load(code, UPSERT.keys)
    at_keys, at_parts, kinds = UPSERT.keys + 1, UPSERT.parts + 1 + width, load(view, KINDS)
    table, mask, stride = load(view, TABLE), load(view, MASK), load(view, STRIDE)
    entries, log, logged, touched = load(view, ENTRIES), load(view, LOG), load(view, LOG_COUNT), load(view, TOUCHED)
    part_count, keys, indexes = load(view, PARTS), load(view, KEY_WORDS), load(view, INDEXES)
    index_count, longest, suspect = load(view, INDEX_COUNT), load(view, LONGEST), load(view, SUSPECT)
    outgrown, wrapped, is_range, is_lost = 0, 0, 0, 0
    for i in range(count):
        if i & (BLOCK - 1) == 0:
            _hash_and_fetch(view, code, at_keys, width, registers, i, min(i + BLOCK, count), slots)
        hashed = load(slots, i)
        slot = _find(table, mask, longest, entries, stride * 8, hashed, code, at_keys, width, registers, i)
        is_new = slot < 0
        if is_new:
            slot = _new_slot(view)
            entry = entries + slot * stride * 8
            store(entry, 0, 0)
            for k in range(width):
                store(entry, k, load(load(registers, load(code, at_keys + k)), i))
            for k in range(keys, stride):
                store(entry, k, 0)
            longest = max(longest, _place(table, mask, mask, hashed, slot))
            for x in range(index_count):
                index = load(indexes, x)
                if load(index, INDEX_BUILT) != 0:
                    _link(view, index, slot)
                    if load(index, INDEX_IDLE) >= 0:
                        store(index, INDEX_IDLE, load(index, INDEX_IDLE) + 1)
        else:
            entry = entries + slot * stride * 8
        store(slots, i, slot)
        bit = 1 << (slot & 63)
        if touched == 0 or load(touched, slot >> 6) & bit == 0:
            record = log + logged * (stride + 1) * 8
            store(record, 0, slot)
            store(record, 1, 0 if is_new else 1)
            for k in range(keys, stride):
                store(record, 1 + k, load(entry, k))
            logged += 1
            if touched != 0:
                store(touched, slot >> 6, load(touched, slot >> 6) | bit)
        at = keys
        for p in range(part_count):
            kind, register = load(kinds, p), load(code, at_parts + p)
            if kind == COUNTED:
                held, added = load(entry, at), load(load(registers, register), i)
                wrapped |= (held ^ (held + added)) & (added ^ (held + added))
                store(entry, at, held + added)
                at += 1
            elif kind == EXACT:
                before, more = load(entry, at + 1), load(load(registers, register + 1), i)
                _add_exact(entry + at * 8, load(load(registers, register), i), more)
                outgrown |= (before ^ load(entry, at + 1)) & (more ^ load(entry, at + 1))
                if load(entry, at + 1) != load(entry, at) >> 63:
                    suspect = 1
                at += 2
            elif kind >= FIRST_RING:
                _add_element(kind, entry + at * 8, registers, register, i)
                at += _words(kind)
            else:
                value, error = load_float(load(registers, register), i), load_float(load(registers, register + 1), i)
                _add_float(entry + at * 8, value, error)
                note, given = load(entry, at + 2), load(load(registers, register + 2), i)
                if note | given != 0 or not abs(load_float(entry, at)) < BIG:
                    note = _sum_note(note, given, load(entry, at))
                    is_range |= _specials(note) == TOO_MANY
                    # Without rows there is no sum, and so nothing that it could have lost.
                    if load(entry, keys) != 0 and _has_lost(note, load(entry, at)):
                        is_lost = 1
                        note = _note(_specials(note), 0)
                    store(entry, at + 2, note)
                at += 3
    store(view, LOG_COUNT, logged)
    store(view, LONGEST, longest)
    store(view, SUSPECT, suspect)
    if wrapped < 0:
        return COUNT_RANGE
    if outgrown < 0:
        return EXACT_RANGE
    if is_range != 0:
        return FLOAT_RANGE
    return FLOAT_LOST if is_lost != 0 else 0


@kernel
def _keep_held(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """Pairs of rows and slots, without those of entries that have become 0."""
    frame, view = load(code, HELD.frame), load(views, load(code, HELD.map))
    found, slots = load(registers, load(code, HELD.rows)), load(registers, load(code, HELD.slots))
    at = load(view, KEY_WORDS)
    kept = 0
    for i in range(load(rows, frame)):
        slot = load(slots, i)
        if load(_entry(view, slot), at) != 0:
            store(found, kept, load(found, i))
            store(slots, kept, slot)
            kept += 1
    store(rows, frame, kept)


@kernel
def _turn(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """What adding counts has done to an indicator, which is 1 where a count differs from 0."""
    view, slots = load(views, load(code, TURN.map)), load(registers, load(code, TURN.slots))
    counts, target = load(registers, load(code, TURN.counts)), load(registers, load(code, TURN.target))
    at = load(view, KEY_WORDS)
    for i in range(load(rows, load(code, TURN.frame))):
        now, added = load(_entry(view, load(slots, i)), at), load(counts, i)
        turned = 0
        if now != 0:
            turned += 1
        if now != added:
            turned -= 1
        store(target, i, turned)


@inlined
def _stop(environment: Word, need: Word, which: Word, amount: Word) -> None:
    store(environment, NEED, need)
    store(environment, WHICH, which)
    store(environment, AMOUNT, amount)


@inlined
def _has_room(view: Word, more: Word) -> Word:
    count = load(view, COUNT) + more
    if count > load(view, CAPACITY) or count > load(view, LIMIT):
        return False
    for i in range(load(view, INDEX_COUNT)):
        index = load(load(view, INDEXES), i)
        if load(index, INDEX_BUILT) != 0 and load(index, INDEX_KEYS) + more > load(index, INDEX_LIMIT):
            return False
    return load(view, LOG_COUNT) + more <= load(view, LOG_CAPACITY)


@kernel
def run(start: Word, end: Word, registers: Word, rows: Word, capacities: Word, views: Word, environment: Word) -> Word:
    """Runs the instructions from one address to another; returns the address at which it stopped, saying why."""
    code = start
    store(environment, NEED, DONE)
    while code < end:
        if IS_CHECKED:
            store(environment, AT, code)
        op, work, trouble = load(code, 0), -1, 0
        if op == GROUP.opcode or op == EACH.opcode or op == GATHER.opcode or op == APPEND.opcode:
            out, more = load(code, GROUP.out), load(rows, load(code, GROUP.frame))
            wanted = more + (load(rows, out) if load(code, GROUP.known) >= 0 else 0)
            if wanted > load(capacities, out):
                _stop(environment, NEED_ROWS, out, wanted)
                return code
            if op == GROUP.opcode or op == GATHER.opcode:
                if 2 * wanted > load(environment, SCRATCH_MASK):
                    _stop(environment, NEED_SCRATCH, 0, 2 * wanted)
                    return code
                _group(code, registers, rows, environment)
            else:
                _each(code, registers, rows)
            work = load(code, GROUP.frame)
        elif op == SUM.opcode or op == SUM_MORE.opcode:
            trouble = _sum(code, registers, rows)
        elif op == LOOKUP.opcode:
            work, wanted = load(code, LOOKUP.out), load(rows, load(code, LOOKUP.frame))
            if wanted > load(capacities, work):
                _stop(environment, NEED_ROWS, work, wanted)
                return code
            _lookup(code, registers, rows, views)
        elif op == SLICE.opcode:
            work, number, index = load(code, SLICE.out), load(code, SLICE.map), load(code, SLICE.index)
            if load(load(load(load(views, number), INDEXES), index), INDEX_BUILT) == 0:
                _stop(environment, NEED_INDEX, number, index)
                return code
            wanted = _slice(code, registers, rows, capacities, views)
            if wanted > 0:
                _stop(environment, NEED_ROWS, work, wanted)
                return code
        elif op == SCAN.opcode:
            work = load(code, SCAN.out)
            wanted = load(rows, load(code, SCAN.frame)) * load(load(views, load(code, SCAN.map)), COUNT)
            if load(code, SCAN.cursor) >= 0 and wanted > PAIRS_AT_ONCE:
                wanted = PAIRS_AT_ONCE
            if wanted > load(capacities, work):
                _stop(environment, NEED_ROWS, work, wanted)
                return code
            _scan(code, registers, rows, views)
        elif op == TAKE.opcode:
            count, origin = load(rows, load(code, TAKE.frame)), load(registers, load(code, TAKE.rows))
            source, target = load(registers, load(code, TAKE.source)), load(registers, load(code, TAKE.target))
            for i in range(count):
                store(target, i, load(source, load(origin, i)))
        elif op == KEY.opcode:
            count, view = load(rows, load(code, KEY.frame)), load(views, load(code, KEY.map))
            slots, target = load(registers, load(code, KEY.slots)), load(registers, load(code, KEY.target))
            word = load(code, KEY.word)
            for i in range(count):
                store(target, i, load(_entry(view, load(slots, i)), word))
        elif op == MULTIPLY.opcode:
            trouble = _multiply(code, registers, rows, views)
        elif op == UPSERT.opcode:
            work, number = load(code, UPSERT.frame), load(code, UPSERT.map)
            if not _has_room(load(views, number), load(rows, work)):
                _stop(environment, NEED_MAP, number, load(rows, work))
                return code
            trouble = _upsert(code, registers, rows, views)
        elif op == COMPACT.opcode:
            out, count = load(code, COMPACT.out), load(rows, load(code, COMPACT.frame))
            if count > load(capacities, out):
                _stop(environment, NEED_ROWS, out, count)
                return code
            mask, chosen, kept = load(registers, load(code, COMPACT.mask)), load(registers, load(code, COMPACT.rows)), 0
            for i in range(count):
                if load(mask, i) != 0:
                    store(chosen, kept, i)
                    kept += 1
            store(rows, out, kept)
        elif op == CROSS.opcode:
            work, cursor, first = load(code, CROSS.out), load(code, CROSS.cursor), 0
            if cursor >= 0:
                first = load(rows, cursor)
            wanted = load(rows, load(code, CROSS.a)) * load(rows, load(code, CROSS.b)) - first
            if cursor >= 0 and wanted > PAIRS_AT_ONCE:
                wanted = PAIRS_AT_ONCE
            if wanted > load(capacities, work):
                _stop(environment, NEED_ROWS, work, wanted)
                return code
            _cross(code, registers, rows, first, wanted)
        elif op == CLEAR.opcode:
            for k in range(load(code, CLEAR.frames)):
                store(rows, load(code, CLEAR.frames + 1 + k), 0)
        elif op == REPEAT.opcode:
            if load(rows, load(code, REPEAT.cursor)) != 0:
                code -= load(code, REPEAT.back) * 8
                continue
        elif op == JOIN.opcode:
            work, wanted = load(code, JOIN.out), 2 * load(rows, load(code, JOIN.b))
            if wanted > load(environment, SCRATCH_MASK):
                _stop(environment, NEED_SCRATCH, 0, wanted)
                return code
            wanted = _join(code, registers, rows, capacities, environment)
            if wanted > 0:
                _stop(environment, NEED_ROWS, work, wanted)
                return code
        elif op == MULTIPLY_ROWS.opcode:
            trouble = _multiply_rows(code, registers, rows)
        elif op == HELD.opcode:
            _keep_held(code, registers, rows, views)
        elif op == TURN.opcode:
            _turn(code, registers, rows, views)
        elif op == PAUSE.opcode:
            _stop(environment, PAUSED, load(code, PAUSE.number), 0)
            return code + load(code, SIZE) * 8
        else:
            trouble = UNKNOWN_OPCODE
        if trouble != 0:
            _stop(environment, trouble, 0, 0)
            return code
        if work >= 0:  # the frame whose rows the instruction has read or made
            store(environment, WORK, load(environment, WORK) + load(rows, work))
        code += load(code, SIZE) * 8
    return code


__all__ = ["INDEX_FIELDS", "hash_again", "link_all", "live_slots", "rehash", "run", "settle", "undo"]
