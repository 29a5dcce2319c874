"""The instructions of the machine, each declared once (``instruction`` says what follows from that).

    >>> FindEntries(map=0, frame=1, out=2, rows=7, slots=8, keys=(3, 4)).words()
    [2, 10, 0, 1, 2, 7, 8, 2, 3, 4]
    >>> LOOKUP.rows, LOOKUP.keys
    (5, 7)
    >>> print(FindEntries(0, 1, 2, 7, 8, (3, 4)).text(["V"]))
    lookup    f2 := f1 * V by (r3, r4), rows in r7, slots in r8

A register is a column of words, one word a row of its frame. A *part* is a part of a payload; it takes as many registers as its
kind has words, one after another, and is named by the first; moments have one register, with all words of a row side by side.
NONE stands for an operand that is not there.
"""

from __future__ import annotations

from typing import Final

from everview.backends.embedded.tree.instruction import (
    CursorFrame,
    FrameNumber,
    Frames,
    Instruction,
    MapNumber,
    Maps,
    PayloadKind,
    PayloadKinds,
    PlainNumber,
    PlainNumbers,
    Positions,
    RegisterNumber,
    Registers,
    Weights,
    instruction,
    places,
)

# Sums by key


@instruction("group", "{out} := {frame} by ({keys}), keys in ({new_keys}), group of each row in {numbers}")
class Group(Instruction):
    """Numbers the distinct keys of a frame's rows."""

    frame: FrameNumber
    out: FrameNumber
    numbers: RegisterNumber
    known: FrameNumber
    """For instructions that add to groups: the frame whose number of rows becomes that of the groups known before."""
    keys: Registers
    new_keys: Registers


@instruction("sum", "{out}.{target} := Σ by {numbers} of {frame}.{source}{weights} ({kind})")
class SumGroups(Instruction):
    """Adds a part up by group."""

    frame: FrameNumber
    out: FrameNumber
    numbers: RegisterNumber
    kind: PayloadKind
    source: RegisterNumber
    weights: Weights
    target: RegisterNumber
    known: FrameNumber


# Joins with entries


@instruction("lookup", "{out} := {frame} * {map} by ({keys}), rows in {rows}, slots in {slots}")
class FindEntries(Instruction):
    """Pairs each row with the entry of its key, if there is one."""

    map: MapNumber
    frame: FrameNumber
    out: FrameNumber
    rows: RegisterNumber
    slots: RegisterNumber
    keys: Registers


@instruction("slice", "{out} := {frame} * {map} index {index} by ({keys}), rows in {rows}, slots in {slots}{cursor}")
class SliceEntries(Instruction):
    """Pairs each row with all entries of its key in a secondary index; with a cursor, the next pairs of these."""

    map: MapNumber
    frame: FrameNumber
    out: FrameNumber
    rows: RegisterNumber
    slots: RegisterNumber
    cursor: CursorFrame
    index: PlainNumber
    keys: Registers


@instruction("scan", "{out} := {frame} * all of {map}, rows in {rows}, slots in {slots}{cursor}")
class ScanEntries(Instruction):
    """Pairs each row with every entry; with a cursor, the next pairs of these."""

    map: MapNumber
    frame: FrameNumber
    out: FrameNumber
    rows: RegisterNumber
    slots: RegisterNumber
    cursor: CursorFrame


# Words of rows and entries


@instruction("take", "{frame}.{target} := {source}[{rows}]")
class Take(Instruction):
    """target[i] = source[rows[i]]."""

    frame: FrameNumber
    rows: RegisterNumber
    source: RegisterNumber
    target: RegisterNumber


@instruction("key", "{frame}.{target} := {map}[{slots}] word {word}")
class ReadEntry(Instruction):
    """A word of the entries in some slots."""

    frame: FrameNumber
    map: MapNumber
    slots: RegisterNumber
    word: PlainNumber
    target: RegisterNumber


@instruction("multiply", "{frame}.{target} := {a}{rows} ({kind_a}) * {map}[{slots}] word {b} ({kind_b})")
class Multiply(Instruction):
    """The products of a part of the rows and a part of the entries, which begins at a word of theirs."""

    frame: FrameNumber
    rows: Positions
    map: MapNumber
    slots: RegisterNumber
    kind_a: PayloadKind
    a: RegisterNumber
    kind_b: PayloadKind
    b: PlainNumber
    target: RegisterNumber


@instruction(
    "lift",
    "{out}.{target} := Σ by {numbers} of {frame}.({values}) and their products{weights} ({kind}), rows in {rows}",
)
class LiftMoments(Instruction):
    """Sums the moments of features up by group; ``rows`` is a register to lay the features of some rows side by side in."""

    frame: FrameNumber
    out: FrameNumber
    numbers: RegisterNumber
    weights: Weights
    kind: PayloadKind
    rows: RegisterNumber
    target: RegisterNumber
    values: Registers


@instruction(
    "moments",
    "{out}.{target} := Σ by {numbers} of {frame}.{counts}, {a}[{rows}] ({kind_a}) * ({maps})[{slots}] words {offsets} "
    "({held}), {kind} in {scratch} as {shape}",
)
class MultiplyMoments(Instruction):
    """The products of the moments of rows and of some entries each, summed up by group; without ``numbers`` each for itself.

    Some of the factors may have none, but numbers of rows only; ``counts`` are those of the rows. ``shape`` says how the
    product is put together (``moments_shape``), ``scratch`` is a register to do it in.
    """

    frame: FrameNumber
    out: FrameNumber
    rows: RegisterNumber
    counts: RegisterNumber
    kind_a: PayloadKind
    a: RegisterNumber
    kind: PayloadKind
    target: RegisterNumber
    scratch: RegisterNumber
    numbers: RegisterNumber
    known: FrameNumber
    maps: Maps
    slots: Registers
    offsets: PlainNumbers
    held: PayloadKinds
    shape: PlainNumbers


@instruction(
    "moment_rows",
    "{frame}.{target} := {counts_a}, {a}[{rows_a}] ({kind_a}) * {counts_b}, {b}[{rows_b}] ({kind_b}), {kind} in {scratch} "
    "as {shape}",
)
class MultiplyMomentRows(Instruction):
    """The products of the moments of two frames' rows, one of which may have none, but numbers of rows only."""

    frame: FrameNumber
    rows_a: RegisterNumber
    counts_a: RegisterNumber
    kind_a: PayloadKind
    a: RegisterNumber
    rows_b: RegisterNumber
    counts_b: RegisterNumber
    kind_b: PayloadKind
    b: RegisterNumber
    kind: PayloadKind
    target: RegisterNumber
    scratch: RegisterNumber
    shape: PlainNumbers


@instruction("take_moments", "{frame}.{target} := {source}[{rows}] ({kind})")
class TakeMoments(Instruction):
    """target[i] = source[rows[i]], of moments."""

    frame: FrameNumber
    rows: RegisterNumber
    kind: PayloadKind
    source: RegisterNumber
    target: RegisterNumber


@instruction("upsert", "{map}[{keys}] += {frame} ({parts}), slots in {slots}")
class Upsert(Instruction):
    """Adds the parts of rows to the entries of their keys."""

    map: MapNumber
    frame: FrameNumber
    slots: RegisterNumber
    keys: Registers
    parts: Registers


@instruction("compact", "{out} := {frame} where {mask}, rows in {rows}")
class Compact(Instruction):
    """The positions of the rows where the mask is not 0."""

    frame: FrameNumber
    mask: RegisterNumber
    out: FrameNumber
    rows: RegisterNumber


# The course of the code


@instruction("pause", "Python computes what pause {number} says")
class LeaveMachine(Instruction):
    """Leaves the machine, so that Python computes something in between."""

    number: PlainNumber


@instruction("cross", "{out} := {a} * {b}, rows in {rows_a} and {rows_b}{cursor}")
class Cross(Instruction):
    """Pairs each row of a frame with each of another; with a cursor, the next pairs of these."""

    a: FrameNumber
    b: FrameNumber
    out: FrameNumber
    rows_a: RegisterNumber
    rows_b: RegisterNumber
    cursor: CursorFrame


@instruction("clear", "{frames} := no rows")
class Clear(Instruction):
    """Makes frames have no rows."""

    frames: Frames


@instruction("repeat", "goes {back} words back until {cursor} is through")
class Repeat(Instruction):
    """Goes so many words back while the cursor is not through all pairs."""

    cursor: FrameNumber
    back: PlainNumber


@instruction(
    "join", "{out} := {a} * {b} where ({keys_a}) = ({keys_b}), rows in {rows_a} and {rows_b}, chains in {links}"
)
class JoinRows(Instruction):
    """Pairs the rows of two frames that have equal keys."""

    a: FrameNumber
    b: FrameNumber
    out: FrameNumber
    rows_a: RegisterNumber
    rows_b: RegisterNumber
    links: RegisterNumber
    keys_a: Registers
    keys_b: Registers


@instruction("multiply_rows", "{frame}.{target} := {a}[{rows_a}] ({kind_a}) * {b}[{rows_b}] ({kind_b})")
class MultiplyRows(Instruction):
    """The products of parts of two frames' rows."""

    frame: FrameNumber
    rows_a: RegisterNumber
    rows_b: RegisterNumber
    kind_a: PayloadKind
    a: RegisterNumber
    kind_b: PayloadKind
    b: RegisterNumber
    target: RegisterNumber


# Indicators


@instruction("held", "{frame} := {frame} where {map}[{slots}] has a count, rows in {rows}, slots in {slots}")
class KeepHeld(Instruction):
    """Drops the pairs with entries whose count is 0, which a map keeps to the end of a transaction."""

    frame: FrameNumber
    map: MapNumber
    rows: RegisterNumber
    slots: RegisterNumber


@instruction(
    "turn",
    "{frame}.{target} := what adding {counts} has made of {map}[{slots}]: 1 there now, -1 no more, else 0",
)
class Turn(Instruction):
    """Says what adding counts has done to the entries: 1 where a count has left 0, -1 where it has reached 0, else 0."""

    frame: FrameNumber
    map: MapNumber
    slots: RegisterNumber
    counts: RegisterNumber
    target: RegisterNumber


# Sums by key that are made in several turns


@instruction("each", "{out} := {frame} row by row, ({keys}) in ({new_keys}), number of each row in {numbers}")
class Each(Group):
    """Makes each row a group of its own."""


@instruction(
    "gather",
    "{out} += {frame} by ({keys}), keys in ({new_keys}), group of each row in {numbers}, beside the {known} that there are",
)
class Gather(Group):
    """Numbers the distinct keys, beside those of the groups that there are."""


@instruction(
    "append",
    "{out} += {frame} row by row, ({keys}) in ({new_keys}), number of each row in {numbers}, after the {known} that there are",
)
class Append(Group):
    """Makes each row a new group, after those that there are."""


@instruction("sum_more", "{out}.{target} += Σ by {numbers} of {frame}.{source}{weights} ({kind})")
class SumMore(SumGroups):
    """Adds a part up by group, to the sums of the groups that were known."""


# Parts


@instruction("part", "{frame}.{inside} := 1 where {map} by ({keys}) has a count, else 0; {outside} := the opposite")
class TellParts(Instruction):
    """Says of each row whether the entry of its key has a count other than 0."""

    frame: FrameNumber
    map: MapNumber
    inside: RegisterNumber
    outside: RegisterNumber
    keys: Registers


# Products in rings


@instruction(
    "by_table", "{frame}.{target} := {a}[{rows}] * {map}[{slots}] word {b} ({kind}), e_i * e_j += c e_k: {terms}"
)
class MultiplyByTable(Instruction):
    """The products of elements of the rows and of the entries, in a ring that multiplies by a table.

    ``terms`` are i, j, k and c for each term e_i * e_j = … + c·e_k, one after another.
    """

    frame: FrameNumber
    rows: RegisterNumber
    map: MapNumber
    slots: RegisterNumber
    kind: PayloadKind
    a: RegisterNumber
    b: PlainNumber
    target: RegisterNumber
    terms: PlainNumbers


GROUP: Final = places(Group)
SUM: Final = places(SumGroups)
LOOKUP: Final = places(FindEntries)
SLICE: Final = places(SliceEntries)
SCAN: Final = places(ScanEntries)
TAKE: Final = places(Take)
KEY: Final = places(ReadEntry)
MULTIPLY: Final = places(Multiply)
LIFT_MOMENTS: Final = places(LiftMoments)
MULTIPLY_MOMENTS: Final = places(MultiplyMoments)
MULTIPLY_MOMENT_ROWS: Final = places(MultiplyMomentRows)
TAKE_MOMENTS: Final = places(TakeMoments)
UPSERT: Final = places(Upsert)
COMPACT: Final = places(Compact)
PAUSE: Final = places(LeaveMachine)
CROSS: Final = places(Cross)
CLEAR: Final = places(Clear)
REPEAT: Final = places(Repeat)
JOIN: Final = places(JoinRows)
MULTIPLY_ROWS: Final = places(MultiplyRows)
HELD: Final = places(KeepHeld)
TURN: Final = places(Turn)
EACH: Final = places(Each)
GATHER: Final = places(Gather)
APPEND: Final = places(Append)
SUM_MORE: Final = places(SumMore)
PART: Final = places(TellParts)
BY_TABLE: Final = places(MultiplyByTable)
