"""The numbers that payloads are made of: exact sums of 128 bits, double-doubles, and the notes of float sums.

The note of a float sum (see ``layout``) counts what is not finite in it, and says how large the largest number in it was.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import (
    fused,
    is_below,
    load,
    load_float,
    shift_right,
    store,
    store_float,
)
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.lanes import LANES
from everview.backends.embedded.tree.layout import (
    FIRST_MOMENTS,
    FIRST_RING,
    MINUS_UNIT,
    MOMENTS,
    MOST_SPECIALS,
    NAN_UNIT,
    PLUS_UNIT,
    RING_MASK,
    RING_SHIFT,
    SPECIAL_BITS,
)

BIG_EXPONENT = 1023 + 64
LOST_BITS = 70
"""A sum that is smaller than what has gone into it by so many bits, of 106, is not trusted any more."""
TOO_MANY = 1 << 51
"""A number of NaNs and infinities that cannot be counted."""
WORD_RANGE = 2.0**64
EXACT_LIMIT = 2.0**126.999


@inlined
def sums_of_kind(kind: Word) -> Word:
    """How many sums moments of this kind have."""
    features = shift_right(kind, RING_SHIFT)
    return features if kind & RING_MASK == FIRST_MOMENTS else features + features * (features + 1) // 2


@inlined
def room_of(sums: Word) -> Word:
    """How many sums a row of a frame has room for that has moments of so many (``layout.room_for``)."""
    return (sums + 2 * LANES - 2) // LANES * LANES


@inlined
def words_of_kind(kind: Word) -> Word:
    """How many words a part of this kind has in an entry."""
    if kind < FIRST_RING:
        return kind + 1
    if kind & RING_MASK >= MOMENTS:
        return 2 * sums_of_kind(kind) + shift_right(kind, RING_SHIFT)
    return shift_right(kind, RING_SHIFT)


@inlined
def add_exact(at: Word, low: Word, high: Word) -> None:
    """Adds an integer of 128 bits to the one at the address."""
    total = load(at, 0) + low
    store(at, 1, load(at, 1) + high + is_below(total, low))
    store(at, 0, total)


@kernel
def is_small_product(low: Word, high: Word, other: Word, other_high: Word) -> bool:
    """Whether the product of two 128-bit integers surely has less than 128 bits."""
    one = float(high) * WORD_RANGE + float(shift_right(low, 1)) * 2.0
    two = float(other_high) * WORD_RANGE + float(shift_right(other, 1)) * 2.0
    return abs(one * two) < EXACT_LIMIT


@inlined
def add_float(at: Word, value: Word, error: Word) -> None:
    """Adds a double-double to the one at the address."""
    total = load_float(at, 0)
    new = total + value
    part = new - total
    rest = load_float(at, 1) + error + ((total - (new - part)) + (value - part))
    total = new + rest
    store_float(at, 0, total)
    store_float(at, 1, rest - (total - new))


@inlined
def add_pair(high: Word, low: Word, value: Word, error: Word) -> None:
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
def error_of_multiple(value: Word, error: Word, factor: Word) -> Word:
    """What value * factor lacks to be the multiple of a double-double."""
    product = value * factor
    lacking = fused(value, factor, -product) + error * factor
    return lacking if product - product == 0.0 else 0.0


@inlined
def _exponent_of(bits: Word) -> Word:
    """The exponent of a float, as it stands in its bits."""
    return shift_right(bits, 52) & 2047


@inlined
def specials_of(note: Word) -> Word:
    """The part of a note that counts what is not finite."""
    return (note << (64 - SPECIAL_BITS)) >> (64 - SPECIAL_BITS)


@inlined
def _top_of(note: Word) -> Word:
    return shift_right(note, SPECIAL_BITS)


@inlined
def note_of(specials: Word, top: Word) -> Word:
    """The note of these counts and this exponent."""
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
def value_note(bits: Word, value: Word) -> Word:
    """The note of a single float that is not below BIG."""
    if value != value:
        return NAN_UNIT
    if value - value != 0:
        return PLUS_UNIT if value > 0 else MINUS_UNIT
    return note_of(0, _exponent_of(bits))


@kernel
def multiple_note(note: Word, factor: Word) -> Word:
    """The note of a multiple of a sum."""
    top, rest = _top_of(note), abs(factor)
    while top > 0 and rest > 1:
        top += 1
        rest >>= 1
    return note_of(_multiplied_specials(specials_of(note), factor), min(top, 2046))


@kernel
def sum_note(one: Word, other: Word, bits: Word) -> Word:
    """The note of the sum of two noted numbers, whose bits are given."""
    top = max(_exponent_of(bits), _top_of(one), _top_of(other))
    specials = specials_of(one) + specials_of(other)
    if _multiplied_specials(specials, 1) == TOO_MANY:
        specials = TOO_MANY
    return note_of(specials, top if top >= BIG_EXPONENT else 0)


@kernel
def product_note(one: Word, bits: Word, other: Word, other_bits: Word) -> Word:
    """The note of a product of two sums of floats. What is not finite counts as what cannot be counted."""
    if specials_of(one) != 0 or specials_of(other) != 0:
        return note_of(TOO_MANY, 0)
    # The error of one side, 106 bits below its top, times the other side.
    top, other_top = max(_top_of(one), BIG_EXPONENT), max(_top_of(other), BIG_EXPONENT)
    size, other_size = max(_exponent_of(bits), top - 106), max(_exponent_of(other_bits), other_top - 106)
    reach = max(top + other_size, size + other_top) - 1023
    return note_of(0, min(reach, 2046) if reach >= BIG_EXPONENT else 0)


@kernel
def has_lost(note: Word, bits: Word) -> bool:
    """Whether a noted sum has too few correct digits left."""
    return bool(_top_of(note) >= BIG_EXPONENT and _exponent_of(bits) + LOST_BITS < _top_of(note))
