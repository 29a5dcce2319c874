"""The instructions of the machine, each declared once: its name, what it does, and its operands with their kinds.

From the declaration follow the words of an instruction (`Instruction.words`), the places of its operands, by which kernels read
them (``LOOKUP.frame``), the way back from words (`decoded`), and its text (`Instruction.text`).

An instruction is a row of words: the opcode, the number of words, then the operands in order. Lists of operands come last, each
with its length before it. The place of a second list is the one it has if the first list is empty.

    >>> FindEntries(map=0, frame=1, out=2, rows=7, slots=8, keys=(3, 4)).words()
    [2, 10, 0, 1, 2, 7, 8, 2, 3, 4]
    >>> LOOKUP.rows, LOOKUP.keys
    (5, 7)
    >>> print(FindEntries(0, 1, 2, 7, 8, (3, 4)).text(["V"]))
    lookup    f2 := f1 * V by (r3, r4), rows in r7, slots in r8

A register is a column of words, one word a row of its frame. A *part* is a part of a payload; it takes as many registers as its
kind has words, one after another, and is named by the first. NONE stands for an operand that is not there.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Final, TypeVar, dataclass_transform, get_type_hints

import numpy as np

from everview.backends.embedded.tree.layout import PAIRS_AT_ONCE, kind_text
from everview.backends.embedded.vectors import Ints

NONE: Final = -1
SIZE: Final = 1
"""The place of an instruction's number of words."""


@dataclass(frozen=True, slots=True)
class OperandKind:
    """How an operand is written, and whether it is a list of operands."""

    write: Callable[[int, Sequence[str]], str]
    is_list: bool = False

    def text(self, operand: Any, views: Sequence[str]) -> str:
        """The operand as text; nothing for one that is not there."""
        written = [self.write(o, views) for o in (operand if self.is_list else (operand,)) if o != NONE]
        return ", ".join(written)


def _shown(text: str, *, is_list: bool = False) -> OperandKind:
    return OperandKind(lambda operand, _views: text.format(operand), is_list)


FrameNumber = Annotated[int, _shown("f{}")]
RegisterNumber = Annotated[int, _shown("r{}")]
PlainNumber = Annotated[int, _shown("{}")]
MapNumber = Annotated[int, OperandKind(lambda operand, views: views[operand])]
PayloadKind = Annotated[int, OperandKind(lambda operand, _views: kind_text(operand))]
Positions = Annotated[int, _shown("[r{}]")]
"""The register of the rows that another register is read at, or NONE."""
Weights = Annotated[int, _shown(" * r{}")]
"""The register of the numbers that another register is multiplied by, or NONE."""
CursorFrame = Annotated[int, _shown(f", the next {PAIRS_AT_ONCE} from f{{}} on")]
"""The first of two frames that say how far an instruction has got (see ``PAIRS_AT_ONCE``), or NONE."""
Registers = Annotated[tuple[int, ...], _shown("r{}", is_list=True)]
Frames = Annotated[tuple[int, ...], _shown("f{}", is_list=True)]


class Instruction:
    """One instruction of the machine, with its operands."""

    name: ClassVar[str]
    opcode: ClassVar[int]
    template: ClassVar[str]
    operands: ClassVar[tuple[tuple[str, OperandKind], ...]]

    def words(self) -> list[int]:
        """The words that the machine reads."""
        words = [self.opcode, 0]
        for name, kind in self.operands:
            operand = getattr(self, name)
            if kind.is_list:
                words.append(len(operand))
                words.extend(operand)
            else:
                words.append(operand)
        words[SIZE] = len(words)
        return words

    def text(self, views: Sequence[str]) -> str:
        """The instruction as a line, over views with these names."""
        written = {name: kind.text(getattr(self, name), views) for name, kind in self.operands}
        return f"{self.name:<9} {self.template.format(**written)}"


I = TypeVar("I", bound=Instruction)  # noqa: E741  the letter is a type here
INSTRUCTIONS: list[type[Instruction]] = []
"""All instructions, by opcode."""


@dataclass_transform(frozen_default=True)
def instruction(name: str, template: str) -> Callable[[type[I]], type[I]]:
    """Declares an instruction: its name and its text, which names the operands."""

    def declare(declared: type[I]) -> type[I]:
        done = dataclass(frozen=True)(declared)
        hints = get_type_hints(done, include_extras=True)
        done.operands = tuple((f.name, hints[f.name].__metadata__[0]) for f in fields(done))  # type: ignore[arg-type]
        are_lists = [kind.is_list for _, kind in done.operands]
        assert are_lists == sorted(are_lists), "lists come last"
        done.name, done.template, done.opcode = name, template, len(INSTRUCTIONS)
        INSTRUCTIONS.append(done)
        return done

    return declare


def places(declared: type[Instruction]) -> Any:
    """The opcode, and by the name of each operand its place among the words: constants of kernels."""
    names = ["opcode", *(name for name, _ in declared.operands)]
    constants = namedtuple(f"{declared.__name__}Places", names)  # type: ignore[misc]  # its fields are the operands
    return constants._make((declared.opcode, *range(2, 1 + len(names))))


def assembled(code: Iterable[Instruction]) -> Ints:
    """The words of some instructions, one after another."""
    return np.array([word for one in code for word in one.words()], dtype=np.int64)


def size_of(code: Iterable[Instruction]) -> int:
    """How many words some instructions have."""
    return sum(len(one.words()) for one in code)


def decoded(code: Ints) -> Iterator[Instruction]:
    """The instructions that words stand for, in their order."""
    words, at = code.tolist(), 0
    while at < len(words):
        yield instruction_at(words, at)
        at += words[at + SIZE]


def instruction_at(words: Sequence[int], at: int) -> Instruction:
    """The instruction that begins at a word."""
    declared = INSTRUCTIONS[words[at]]
    operands: list[Any] = []
    at += 2
    for _, kind in declared.operands:
        operands.append(tuple(words[at + 1 : at + 1 + words[at]]) if kind.is_list else words[at])
        at += 1 + words[at] if kind.is_list else 1
    return declared(*operands)


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


GROUP: Final = places(Group)
SUM: Final = places(SumGroups)
LOOKUP: Final = places(FindEntries)
SLICE: Final = places(SliceEntries)
SCAN: Final = places(ScanEntries)
TAKE: Final = places(Take)
KEY: Final = places(ReadEntry)
MULTIPLY: Final = places(Multiply)
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
