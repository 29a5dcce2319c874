"""What an instruction of the machine is: a name, what it does, and operands with their kinds (all are in ``instructions``).

From the declaration follow the words of an instruction (`Instruction.words`), the places of its operands, by which kernels read
them (``LOOKUP.frame``), the way back from words (`decoded`), and its text (`Instruction.text`).

An instruction is a row of words: the opcode, the number of words, then the operands in order. Lists of operands come last, each
with its length before it. The place of a second list is the one it has if the first list is empty.
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
Maps = Annotated[tuple[int, ...], OperandKind(lambda operand, views: views[operand], is_list=True)]
PayloadKinds = Annotated[tuple[int, ...], OperandKind(lambda operand, _views: kind_text(operand), is_list=True)]
PlainNumbers = Annotated[tuple[int, ...], _shown("{}", is_list=True)]


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
