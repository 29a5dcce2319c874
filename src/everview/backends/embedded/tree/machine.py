"""Runs an assembled trigger: keeps its registers, and gives the kernel what it stops to ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Protocol, TypeAlias

import numpy as np

from everview.algebra.registry import ring_named
from everview.algebra.ring import Payloads, Ring
from everview.backends.embedded.state.checks import OutOfBounds
from everview.backends.embedded.state.memory import address_of, addresses_of_rows, reserve
from everview.backends.embedded.tree.instruction import SIZE, instruction_at
from everview.backends.embedded.tree.kernels.dispatch import run
from everview.backends.embedded.tree.kernels.leaves import run_leaf
from everview.backends.embedded.tree.layout import (
    AMOUNT,
    AT,
    COUNT_RANGE,
    DONE,
    ENVIRONMENT_WORDS,
    EXACT_RANGE,
    FIRST_ROWS,
    FLOAT_LOST,
    FLOAT_RANGE,
    INT_VALUES,
    NEED,
    NEED_INDEX,
    NEED_MAP,
    NEED_ROWS,
    NEED_SCRATCH,
    PAUSED,
    SCRATCH,
    SCRATCH_MASK,
    STAMP,
    WATCHED_RANGE,
    WHICH,
    WIDE_VALUES,
)
from everview.backends.embedded.tree.leaf_program import LeafProgram
from everview.backends.embedded.tree.pauses import (
    CountPart,
    EntryPart,
    MaskPause,
    Pause,
    RangePause,
    RingPause,
    RowPart,
)
from everview.backends.embedded.tree.trigger_code import TriggerCode
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Batch, Ints
from everview.errors import EvaluationError, InternalError
from everview.relational.functions.failures import count_overflow

CHUNK = 4096
"""Rows of a change that are run at once, so that registers stay in the processor's cache."""


AfterChunk: TypeAlias = "Callable[[Machine], None]"


class Evaluations(Protocol):
    """What Python computes for machines from the words of variables."""

    def __call__(self, pause: MaskPause, columns: list[Ints]) -> Ints:
        """1 where a predicate holds, by row."""

    def sums(self, pause: RangePause, view: ViewMap, columns: list[Ints]) -> Ints:
        """The sums of ranges, a row of payload words each."""


class TreeOutgrown(EvaluationError):
    """A number is beyond what a view tree can sum; rows that are summed one by one may still have an answer."""


def range_error(need: int) -> EvaluationError:
    """The error for a machine that has stopped with a number out of range."""
    if need == COUNT_RANGE:
        return count_overflow()
    what = "a floating-point number takes part that is NaN, infinite, or too large for a product of sums."
    assert need in (FLOAT_RANGE, FLOAT_LOST, EXACT_RANGE, WATCHED_RANGE), f"a machine that asks for {need}"
    if need == EXACT_RANGE:
        what = "a sum, or a part of one, has outgrown the 128 bits that a view tree has for it."
    if need == WATCHED_RANGE:
        what = "a product or sum of columns of several tables could overflow its type, by the largest values that they hold."
    return TreeOutgrown(what, condition="ARITHMETIC_OVERFLOW")


class Scratch:
    """Memory for grouping rows, shared by the triggers of a tree."""

    def __init__(self) -> None:
        self.environment = np.zeros(ENVIRONMENT_WORDS, dtype=np.int64)
        self.words = self.environment.data
        """The same, as Python reads it soonest."""
        self.bears_loss = True
        """Whether to go on with float sums that have lost digits, as nothing can stand in for the tree."""
        self.address = address_of(self.environment)
        self._table: Ints = np.zeros(0, dtype=np.int64)
        self.grow(2 * FIRST_ROWS)

    def grow(self, wanted: int) -> None:
        """A table of at least so many words; a word with an old stamp is empty."""
        self._table = np.zeros(1 << int(wanted).bit_length(), dtype=np.int64)
        self.environment[SCRATCH], self.environment[SCRATCH_MASK] = address_of(self._table), len(self._table) - 1
        self.environment[STAMP] += 1  # groups that are to be added to are not in this table


class RegisterMachine:
    """Instructions, ready to run over registers; those not ``given`` have memory here, which grows as the kernel asks for it.

    Args:
        code: What to run.
        frames: The registers of each frame.
        registers: How many registers there are.
        given: Those that point into the caller's arrays.
        pauses: Where Python computes something.
        maps: The views it works on, in the order that its instructions number them.
        views: Their addresses.
        scratch: Shared memory.
        masks: Computes the mask of a pause from its columns of words.
        long_rows: The registers that have more than a word for a row, and how many.
    """

    def __init__(
        self,
        code: Ints,
        frames: Sequence[Sequence[int]],
        registers: int,
        given: Set[int],
        pauses: Sequence[Pause],
        maps: Sequence[ViewMap],
        views: Ints,
        scratch: Scratch,
        masks: Evaluations,
        long_rows: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._maps = maps
        self._views_address = address_of(views)
        self._scratch = scratch
        self._masks = masks
        self._pauses = pauses
        self._registers = np.zeros(registers + 1, dtype=np.int64)
        self._rows = np.zeros(len(frames) + 1, dtype=np.int64)
        self._capacities = np.zeros(len(frames) + 1, dtype=np.int64)
        words = dict(long_rows)
        self._owned = [[r for r in frame if r not in given and r not in words] for frame in frames]
        self._long = [[(r, words[r]) for r in frame if r in words] for frame in frames]
        self._long_buffers: dict[int, Ints] = {r: np.zeros((0, w), dtype=np.int64) for r, w in long_rows}
        self._buffers: list[Ints] = [np.zeros((len(f), 0), dtype=np.int64) for f in self._owned]
        self._addresses = tuple(address_of(a) for a in (self._registers, self._rows, self._capacities))
        self._register_words, self._row_words = self._registers.data, self._rows.data
        self.failed_at = 0
        """The word of the code at which the last failure was."""
        self._code = code
        self._start = address_of(code)
        self._end = self._start + 8 * len(code)
        for frame in range(len(frames)):
            self._grow(frame, FIRST_ROWS)

    def _grow(self, frame: int, rows: int) -> None:
        capacity = max(int(rows), int(self._capacities[frame]) * 3 // 2)
        old = self._buffers[frame]
        reserve(8 * len(old) * (capacity - old.shape[1]))
        grown = np.empty((len(old), capacity), dtype=np.int64)
        kept = min(old.shape[1], int(self._rows[frame]))
        grown[:, :kept] = old[:, :kept]
        self._buffers[frame] = grown
        self._capacities[frame] = capacity
        for register, address in zip(self._owned[frame], addresses_of_rows(grown), strict=True):
            self._registers[register] = address
        for register, words in self._long[frame]:
            longer = np.empty((capacity, words), dtype=np.int64)
            longer[:kept] = self._long_buffers[register][:kept]
            self._long_buffers[register] = longer
            self._registers[register] = address_of(longer)

    def _run(self) -> None:
        at, environment = self._start, self._scratch.words
        registers, rows, capacities = self._addresses
        while True:
            try:
                at = run(at, self._end, registers, rows, capacities, self._views_address, self._scratch.address)
            except OutOfBounds as error:
                raise self._broken(error) from error
            need = environment[NEED]
            if need == DONE:
                return
            which, amount = environment[WHICH], environment[AMOUNT]
            if need == NEED_ROWS:
                self._grow(which, amount)
            elif need == NEED_MAP:
                self._maps[which].reserve(amount)
            elif need == NEED_INDEX:
                self._maps[which].build_index(amount)
            elif need == NEED_SCRATCH:
                self._scratch.grow(amount)
            elif need == PAUSED:
                self._compute(self._pauses[which])
            else:
                self.failed_at = (at - self._start) // 8
                if need != FLOAT_LOST or not self._scratch.bears_loss:
                    raise range_error(need)
                at += 8 * int(self._code[self.failed_at + SIZE])

    def _broken(self, error: OutOfBounds) -> InternalError:
        """In checked mode, what an instruction would have done, and which it is."""
        at = (int(self._scratch.environment[AT]) - self._start) // 8
        names = [view.name for view in self._maps]
        text = " ".join(instruction_at(self._code.tolist(), at).text(names).split())
        return InternalError(f"{error.message} It is in word {at} of a trigger: {text}.")

    def _compute(self, pause: Pause) -> None:
        rows = int(self._rows[pause.frame])
        if not rows:
            return
        if isinstance(pause, MaskPause):
            self._compute_mask(pause, rows)
        elif isinstance(pause, RangePause):
            self._sum_ranges(pause, rows)
        else:
            self._multiply(pause, rows)

    def _multiply(self, pause: RingPause, rows: int) -> None:
        entry = ring_named(pause.ring)
        left = self._row_part(pause.left, pause.frame, rows, entry.ring)
        match pause.right:
            case EntryPart() as right:
                product = entry.multiply(left, self._entry_part(right, pause.frame, rows, entry.ring))
            case RowPart() as right:
                product = entry.multiply(left, self._row_part(right, pause.frame, rows, entry.ring))
            case CountPart(frame=frame, rows=origin, register=register):
                counts = self._words(register, frame, 1)[0, self._register(origin, pause.frame, rows)]
                product = np.ascontiguousarray(entry.ring.scale(left, counts))
        self._words(pause.target, pause.frame, entry.ring.width)[:, :rows] = product.view(np.int64).T

    def _row_part(self, part: RowPart, frame: int, rows: int, ring: Ring) -> Payloads:
        words = self._words(part.register, part.frame, ring.width)[:, self._register(part.rows, frame, rows)]
        return np.ascontiguousarray(words.T).view(ring.dtype)

    def _entry_part(self, part: EntryPart, frame: int, rows: int, ring: Ring) -> Payloads:
        words = self._maps[part.view].entries[self._register(part.slots, frame, rows)]
        return np.ascontiguousarray(words[:, part.place : part.place + ring.width]).view(ring.dtype)

    def _compute_mask(self, pause: MaskPause, rows: int) -> None:
        columns = [self._register(r, pause.frame, rows) for words in pause.columns for r in words]
        mask = self._masks(pause, columns)
        self._register(pause.mask, pause.frame, rows)[:] = mask

    def _sum_ranges(self, pause: RangePause, rows: int) -> None:
        columns = [self._register(r, pause.frame, rows) for words in pause.known for r in words]
        sums = self._masks.sums(pause, self._maps[pause.view], columns)
        self._words(pause.target, pause.frame, sums.shape[1])[:, :rows] = sums.T
        self._register(pause.rows, pause.frame, rows)[:] = np.arange(rows)

    def registers(self, frame: int, wanted: Sequence[int]) -> list[Ints]:
        """What some registers of a frame hold, until the next run."""
        rows = int(self._rows[frame])
        return [self._register(r, frame, rows) for r in wanted]

    def _register(self, register: int, frame: int, rows: int) -> Ints:
        return self._words(register, frame, 1)[0, :rows]

    def _words(self, register: int, frame: int, width: int) -> Ints:
        """Registers that follow one another, and so do in memory."""
        first = self._owned[frame].index(register)
        return self._buffers[frame][first : first + width]


class Machine(RegisterMachine):
    """One trigger, ready to run; ``leaf`` computes its first registers where the atom has such a program."""

    def __init__(
        self,
        trigger: TriggerCode,
        maps: Sequence[ViewMap],
        views: Ints,
        scratch: Scratch,
        masks: Evaluations,
        leaf: LeafProgram | None = None,
    ) -> None:
        registers = trigger.registers if leaf is None else leaf.registers
        super().__init__(
            trigger.code,
            trigger.frames,
            registers,
            trigger.given,
            trigger.pauses,
            maps,
            views,
            scratch,
            masks,
            trigger.long_rows,
        )
        self.trigger = trigger
        self._leaf = leaf
        self._wide_kind = WIDE_VALUES
        self._leaf_rows = np.zeros(2, dtype=np.int64)
        self._leaf_row_words = self._leaf_rows.data
        self._leaf_room = 0
        self._leaf_buffers: Ints = np.zeros((0, 0), dtype=np.int64)
        if leaf is not None:
            start = address_of(leaf.code)
            self._has_leaf_code = len(leaf.code) > 0
            self._leaf_code = (start, start + 8 * len(leaf.code), self._addresses[0], address_of(self._leaf_rows))

    def run(self, given: Sequence[tuple[int, Ints]], count: int, after_chunk: AfterChunk | None = None) -> None:
        """Runs the trigger over rows whose registers are given as contiguous arrays of words, in chunks."""
        self._expect_wide(WIDE_VALUES)
        self._leaf_room = 0  # its registers are taken; the next program has to claim them again
        places = [(register, address_of(array), 16 if array.ndim == 2 else 8) for register, array in given]
        for start in range(0, count, CHUNK):
            size = min(CHUNK, count - start)
            for register, address, width in places:
                self._registers[register] = address + start * width
            self._rows[0] = size
            if size > self._capacities[0]:
                self._grow(0, min(CHUNK, count))
            self._run()
            if after_chunk is not None:
                after_chunk(self)

    @property
    def leaf(self) -> LeafProgram | None:
        """The program that its leaf runs, if it has one."""
        return self._leaf

    def run_batch(self, batch: Batch, after_chunk: AfterChunk | None = None) -> int:
        """Runs the leaf program and the trigger over as many rows of a change as the program can take; returns how many."""
        leaf = self._leaf
        if leaf is None:
            return 0
        columns, count = batch.columns, len(batch)
        for c in leaf.columns:
            if columns[c].nulls is not None:
                return 0
        places, kept_alive = [], []
        for i in leaf.inputs:
            if i.evaluate is not None:
                vector = i.evaluate(columns, count)
                if vector.nulls is not None:
                    return 0
                kept_alive.append(np.ascontiguousarray(vector.values))
                places.append((i.register, address_of(kept_alive[-1])))
            elif i.column == -1:
                places.append((i.register, batch.weights_address))
            else:
                places.append((i.register, columns[i.column].address))
        self._expect_wide(INT_VALUES)
        registers, rows = self._register_words, self._leaf_row_words
        for start in range(0, count, CHUNK):
            size = min(CHUNK, count - start)
            if size > self._leaf_room:
                self._grow_leaf(leaf, size)
            for register, address in places:
                registers[register] = address + 8 * start
            rows[0] = rows[1] = size
            if self._has_leaf_code and run_leaf(*self._leaf_code):
                return start
            kept = rows[1]
            if kept:
                self._row_words[0] = kept
                if kept > self._capacities[0]:
                    self._grow(0, size)
                self._run()
                if after_chunk is not None:
                    after_chunk(self)
        return count

    def _expect_wide(self, kind: int) -> None:
        if self._wide_kind != kind:
            self.trigger.code[list(self.trigger.wide_sums)] = kind
            self._wide_kind = kind

    def _grow_leaf(self, leaf: LeafProgram, rows: int) -> None:
        room = min(CHUNK, max(rows, FIRST_ROWS) * 3 // 2)
        self._leaf_buffers = np.empty((len(leaf.buffers), room), dtype=np.int64)
        self._leaf_room = room
        for register, address in zip(leaf.buffers, addresses_of_rows(self._leaf_buffers), strict=True):
            self._registers[register] = address
