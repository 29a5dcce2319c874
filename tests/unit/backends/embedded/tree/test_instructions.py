"""Instructions are declared once: words, places of operands and text follow, and the machine knows them all."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree import instructions
from everview.backends.embedded.tree.instruction import (
    INSTRUCTIONS,
    NONE,
    Instruction,
    assembled,
    decoded,
    instruction_at,
    places,
    size_of,
)
from everview.backends.embedded.tree.instructions import Upsert
from everview.backends.embedded.tree.kernels.dispatch import run
from everview.backends.embedded.tree.layout import (
    COUNTED,
    DONE,
    ENVIRONMENT_WORDS,
    NEED,
    PAUSED,
    UNKNOWN_OPCODE,
)
from everview.backends.embedded.tree.view_map import ViewMap

VIEWS = [f"V{i}" for i in range(100)]
declared = pytest.mark.parametrize("declared", INSTRUCTIONS, ids=[one.name for one in INSTRUCTIONS])


def example(declared: type[Instruction], *, lists: int = 2) -> Instruction:
    """An instruction whose operands all differ; kinds of payload parts are small numbers."""
    numbers = count(10)
    operands: list[Any] = []
    for i, (name, kind) in enumerate(declared.operands):
        if name.startswith("kind"):
            operands.append(i % 3)
        else:
            operands.append(tuple(next(numbers) for _ in range(lists)) if kind.is_list else next(numbers))
    return declared(*operands)


@declared
@pytest.mark.parametrize("lists", [0, 1, 3])
def test_what_is_assembled_is_decoded(declared: type[Instruction], lists: int) -> None:
    """Words and back: with lists of several lengths, alone and among other instructions."""
    one, other = example(declared, lists=lists), example(Upsert)
    code = [other, one, one, other]
    assert list(decoded(assembled(code))) == code
    assert len(assembled(code)) == size_of(code)
    assert instruction_at(assembled(code).tolist(), size_of([other])) == one


@declared
def test_places_are_where_the_words_are(declared: type[Instruction]) -> None:
    """The constants that kernels read operands by; a list is where its length is, the second after the first."""
    one, before = example(declared, lists=3), 0
    words, constants = one.words(), places(declared)
    assert words[0] == constants.opcode == INSTRUCTIONS.index(declared)
    for name, kind in declared.operands:
        at, operand = getattr(constants, name) + before, getattr(one, name)
        if kind.is_list:
            assert tuple(words[at : at + 4]) == (3, *operand)
            before += 3
        else:
            assert words[at] == operand


@declared
def test_the_text_names_every_operand(declared: type[Instruction]) -> None:
    """Nobody reads a listing that leaves out what an instruction works on, but for what its own kind does not use."""
    unused = set() if "known" in declared.template else {"known"}
    assert all(f"{{{name}}}" in declared.template for name, _ in declared.operands if name not in unused)
    one = example(declared)
    assert one.text(VIEWS).startswith(declared.name)
    assert one.text(VIEWS) == instruction_at(one.words(), 0).text(VIEWS)


def test_an_operand_that_is_not_there_is_not_written() -> None:
    """A sum without weights, a slice without a cursor."""
    one = instructions.SumGroups(0, 1, 2, COUNTED, 3, NONE, 4, NONE)
    assert one.text(VIEWS) == "sum       f1.r4 := Σ by r2 of f0.r3 (count)"
    sliced = instructions.SliceEntries(5, 0, 1, 2, 3, NONE, 0, (4,))
    assert sliced.text(VIEWS) == "slice     f1 := f0 * V5 index 0 by (r4), rows in r2, slots in r3"


def need(code: np.ndarray[Any, Any]) -> int:
    """Why the machine stops that is given some code over frames without rows, and a map with an index."""
    view = ViewMap(1, [COUNTED])
    view.build_index(view.index([0], is_kept=True))
    views = np.full(100, view.address, dtype=np.int64)
    column, rows, capacities = (np.zeros(100, dtype=np.int64) for _ in range(3))
    registers = np.full(100, address_of(column), dtype=np.int64)
    scratch, environment = np.zeros(8, dtype=np.int64), np.zeros(ENVIRONMENT_WORDS, dtype=np.int64)
    environment[:2] = address_of(scratch), len(scratch) - 1
    start = address_of(code)
    arguments = [address_of(a) for a in (registers, rows, capacities, views, environment)]
    run(start, start + 8 * len(code), *arguments)
    return int(environment[NEED])


@declared
def test_the_machine_knows_the_opcode(declared: type[Instruction]) -> None:
    """What is declared is dispatched."""
    one = example(declared, lists=1)
    if "index" in dict(declared.operands):
        one = instruction_at([0 if i == places(declared).index else w for i, w in enumerate(one.words())], 0)
    assert need(assembled([one])) == (PAUSED if declared is instructions.LeaveMachine else DONE)


def test_the_machine_stops_at_an_opcode_that_nobody_declared() -> None:
    """It does not pass over it in silence."""
    assert need(np.array([len(INSTRUCTIONS), 2], dtype=np.int64)) == UNKNOWN_OPCODE
