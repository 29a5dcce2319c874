"""The words that kernels and Python agree on: the fields of a map, the kinds of payload parts, why the machine stops.

The operands of instructions are declared in ``instructions``.
"""

from __future__ import annotations

from typing import Final

from everview.backends.embedded.state.lanes import LANES

# Fields of a map, by word.
TABLE: Final = 0
MASK: Final = 1
ENTRIES: Final = 2
STRIDE: Final = 3
KEY_WORDS: Final = 4
COUNT: Final = 5
USED: Final = 6
FREE: Final = 7
CAPACITY: Final = 8
LIMIT: Final = 9
MODE: Final = 10
KINDS: Final = 11
PARTS: Final = 12
LOG: Final = 13
LOG_CAPACITY: Final = 14
LOG_COUNT: Final = 15
INDEXES: Final = 16
INDEX_COUNT: Final = 17
TOUCHED: Final = 18
"""One bit a slot that is set while the log has it, for maps that log an entry once a transaction; otherwise 0."""
LONGEST: Final = 19
"""No entry lies further than this from its place in the probe table."""
SUSPECT: Final = 20
"""1 if a sum of the result has left 64 bits, or a float is not finite, in this transaction."""
MAP_FIELDS: Final = 21

# Fields of a secondary index, by word.
INDEX_TABLE: Final = 0
INDEX_MASK: Final = 1
INDEX_KEYS: Final = 2
INDEX_WORDS: Final = 3
INDEX_WIDTH: Final = 4
INDEX_LINKS: Final = 5
INDEX_MODE: Final = 6
INDEX_BUILT: Final = 7
"""1 if the index holds all entries; 0 if it is to be built when somebody slices."""
INDEX_IDLE: Final = 8
"""Entries linked since the last slice; below 0 for an index that is never given up."""
INDEX_LIMIT: Final = 9
"""The most keys its table is to hold."""
INDEX_LONGEST: Final = 10
INDEX_SLOTS: Final = 11
"""The bits of its table's words that are slots: the table may have fewer places than its map."""
INDEX_FIELDS: Final = 12

# Kinds of payload parts, and how many words each has.
COUNTED: Final = 0
"""An integer of 64 bits, multiplicities and indicators; the machine stops where one would leave them."""
EXACT: Final = 1
"""An integer of 128 bits, low word first: sums of integers and decimals; the machine stops where one would leave them."""
FLOATING: Final = 2
"""A sum of floats: the sum, its rounding error, and a note, which is 0 for ordinary numbers."""
WORDS: Final = (1, 2, 3)

# Elements of registered rings are parts too: their kind is 8 * words + how the words are added.
FIRST_RING: Final = 8
RING_SHIFT: Final = 3
RING_MASK: Final = 7
RING_INTS: Final = 0
"""Each word an integer modulo 2^64."""
RING_FLOATS: Final = 1
"""Each word a float."""
RING_PAIRS: Final = 2
"""Each two words a double-double."""

# Moments (`planner.moments_block`) are parts, too: their kind is 8 * features + which sums there are. In an entry they are the
# sums, then the rounding error of each, then for each feature the largest that its squares (or its sum) have been. Rows of a
# frame have sums and errors only, row by row in one register, with some room to spare (``room_for``).
MOMENTS: Final = 3
"""Sums of features, and of their products: row by row from the diagonal on."""
FIRST_MOMENTS: Final = 4
"""Sums of features only."""


def moments_kind(features: int, degree: int) -> int:
    """The kind of the moments of so many features."""
    return features << RING_SHIFT | (MOMENTS if degree == 2 else FIRST_MOMENTS)


def is_moments(kind: int) -> bool:
    """Whether a kind is one of moments."""
    return kind >= FIRST_RING and kind & RING_MASK >= MOMENTS


def moments_of(kind: int) -> int:
    """How many sums moments have."""
    features = kind >> RING_SHIFT
    return features if kind & RING_MASK == FIRST_MOMENTS else features + features * (features + 1) // 2


def room_for(sums: int) -> int:
    """How many sums, and as many errors, a row of a frame has room for: whole lanes, and some to spare after the last."""
    return (sums + 2 * LANES - 2) // LANES * LANES


def lift_room(features: int) -> int:
    """The words for each row of a frame in which moments of so many features are lifted.

    In all that is, for ``ROWS_AT_ONCE`` rows, values, weighted values, errors and weights; a zero; for each row of the frame
    its place in the order of groups, and for each group and one more where it begins.
    """
    return -(-3 * ROWS_AT_ONCE // FIRST_ROWS) * room_for(features) + 4


def ring_kind(words: int, how: int) -> int:
    """The kind of an element of so many words."""
    return words << RING_SHIFT | how


def words_of(kind: int) -> int:
    """How many words a part of this kind has in an entry."""
    if is_moments(kind):
        return 2 * moments_of(kind) + (kind >> RING_SHIFT)
    return kind >> RING_SHIFT if kind >= FIRST_RING else WORDS[kind]


# What the values of a leaf are, besides the kinds above.
INT_VALUES: Final = 3
WIDE_VALUES: Final = 4
FLOAT_VALUES: Final = 5

_KIND_TEXTS: Final = ("count", "exact", "float", "integers", "wide integers", "floats")
_RING_TEXTS: Final = ("integers", "floats", "double-doubles")


def kind_text(kind: int) -> str:
    """A kind in words."""
    if kind < FIRST_RING:
        return _KIND_TEXTS[kind]
    if is_moments(kind):
        what = "sums and products" if kind & RING_MASK == MOMENTS else "sums"
        return f"{what} of {kind >> RING_SHIFT} features"
    return f"element of {words_of(kind)} words, {_RING_TEXTS[kind & RING_MASK]}"


# The note of a FLOATING part: its lower bits count what is not finite, its upper bits are the exponent (as floats have it) of
# the largest number that has gone into the sum, or 0 below BIG. That is the scale of the error that the sum may have.
NAN_UNIT: Final = 1
PLUS_UNIT: Final = 1 << 17
MINUS_UNIT: Final = 1 << 34
"""What a NaN, an infinity and a minus infinity add to the lower bits."""
MOST_SPECIALS: Final = 1 << 15
"""So many of a kind cannot be counted."""
SPECIAL_BITS: Final = 53
BIG: Final = 2.0**64
"""Below it, numbers have no note: what they leave behind in a sum is far below the digits that anybody looks at."""
HUGE: Final = 2.0**100
"""The size from which on a tree takes no float: products of as many smaller ones as a block may have cannot overflow."""

# What a machine that stops asks for.
DONE: Final = 0
NEED_ROWS: Final = 1
NEED_MAP: Final = 2
NEED_SCRATCH: Final = 3
FLOAT_RANGE: Final = 4
PAUSED: Final = 5
EXACT_RANGE: Final = 6
NEED_INDEX: Final = 7
COUNT_RANGE: Final = 8
FLOAT_LOST: Final = 9
"""A float sum has lost digits. The instruction is done: whoever bears that goes on with the next."""
WATCHED_RANGE: Final = 10
UNKNOWN_OPCODE: Final = 11

# Words of the machine's environment.
SCRATCH: Final = 0
SCRATCH_MASK: Final = 1
STAMP: Final = 2
NEED: Final = 3
WHICH: Final = 4
AMOUNT: Final = 5
WORK: Final = 6
"""Rows that instructions have read or made so far."""
AT: Final = 7
"""In checked mode, the address of the instruction under way."""
ENVIRONMENT_WORDS: Final = 8

# Of the shape of a product of moments (moments_shape.py), words for each record:
SCALING_WORDS: Final = 5
"""The place of C(k, l) among all pairs, l, the first feature of l, how many, the place in the rows u."""
CROSSING_WORDS: Final = 5
"""k, its feature, the place in the rows u, how many, the place in the sums."""
SHAPE_HEADS: Final = 5
"""Room for sums and for the rows u, and how many records of each kind there are."""
FACTOR_WORDS: Final = 4
"""Of each factor of a product, in the scratch area: the addresses of its sums and of their errors, its count, how many sums."""
MOVE_WORDS: Final = 3
"""The place in the sums, the place in the product, how many."""

FIRST_ROWS: Final = 64
"""Rows that a frame has room for from the beginning."""
ROWS_AT_ONCE: Final = 32
"""Rows whose moments are lifted together: no more than ``FIRST_ROWS``, so that a register of the rows has room for them."""
PAIRS_AT_ONCE: Final = 1 << 14
"""Pairs of rows and entries that are made before they are summed up, and the next ones made.

How far an instruction has got is kept by its *cursor*: two frames without registers. The number of rows of the first is 0
before the first pair and after the last one, otherwise it says where to go on; the second one's where within that."""
