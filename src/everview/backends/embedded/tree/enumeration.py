"""Reads a factorized result off the stored views: cursors that list rows in pieces, and instructions that make rows of slots.

A row of the result is an entry of each step's view. A *cursor* goes through them in the order of the steps, so many rows at a
time; the *reader* then gathers the keys from the entries and multiplies the payloads of the factors, with the instructions of
the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree.block_layout import KIND_OF, key_layout, words_per_key
from everview.backends.embedded.tree.instruction import NONE, Instruction, assembled
from everview.backends.embedded.tree.instructions import Multiply, ReadEntry
from everview.backends.embedded.tree.kernels.dispatch import run
from everview.backends.embedded.tree.kernels.enumeration import (
    DEPTH,
    INDEX,
    LEVEL_WORDS,
    SOURCES,
    STATE_WORDS,
    STEPS,
    UNTRIED,
    VIEW,
    WIDTH,
    next_rows,
)
from everview.backends.embedded.tree.layout import DONE, ENVIRONMENT_WORDS, NEED, WORDS
from everview.backends.embedded.tree.machine import range_error
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Ints
from everview.planner.block import Monomial
from everview.trigger.lower_factorized import FactorizedProgram
from everview.trigger.lower_tree import restrict

CONSTANTS = -1
FIRST_PIECE = 64
"""Rows of the first piece; each further one is four times as large, up to what was asked for."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of the result: the words of their keys (in the layout of the free variables) and of their payloads."""

    keys: Ints
    payloads: Ints

    def __len__(self) -> int:
        return len(self.payloads)


class Enumeration:
    """The steps of a factorized result over its maps.

    Args:
        factorized: What to enumerate.
        maps: The stored views; the indexes that the steps need are made here.
        keys: The free variables in the order that rows have them.
    """

    def __init__(self, factorized: FactorizedProgram, maps: Mapping[str, ViewMap], keys: tuple[str, ...]) -> None:
        self.steps = factorized.steps
        self._maps = maps
        block = factorized.program.block
        self._words = {
            step.view: words_per_key(block, factorized.program.view(step.view).keys) for step in factorized.steps
        }
        self._reader = _Reader(factorized, maps, keys)
        self.offsets = self._reader.offsets
        """Where each monomial of the block begins in the payload of a row."""
        self.payload_words = self._reader.payload_words
        self.cursor({})

    def cursor(self, bound: Mapping[str, Ints]) -> Cursor:
        """A cursor over the rows in which some variables have the given words.

        A step by less than the whole key of its view needs an index, which is made on first use and kept. Variables bound from
        the first step on cost nothing but their rows; later ones leave choices of earlier steps without a row.
        """
        at = {v: [(CONSTANTS, i) for i in _places(bound, v)] for v in bound}
        levels = np.full((len(self.steps), LEVEL_WORDS), UNTRIED, dtype=np.int64)
        held: list[Ints] = []
        for number, step in enumerate(self.steps):
            view, words = self._maps[step.view], self._words[step.view]
            fixed = [v for v in words if v in at]
            sources = np.array([*(pair for v in fixed for pair in at[v]), (0, 0)], dtype=np.int64)
            held.append(sources)
            is_whole = len(fixed) == len(words)
            levels[number, VIEW], levels[number, WIDTH] = view.address, len(sources) - 1
            levels[number, INDEX] = -1 if is_whole else view.index([w for v in fixed for w in words[v]])
            levels[number, SOURCES] = address_of(sources)
            for v in step.new:
                at.setdefault(v, [(number, w) for w in words[v]])
        constants = np.array([*(w for words in bound.values() for w in words), 0], dtype=np.int64)
        # A product with an empty factor has no rows, which the steps before that factor would not know.
        is_empty = any(len(self._maps[step.view]) == 0 for step in self.steps)
        return Cursor(levels, constants, held, is_empty=is_empty)

    def pieces(self, bound: Mapping[str, Ints], size: int) -> Iterator[Piece]:
        """The rows in which some variables have the given words, up to ``size`` at a time; the first come at once."""
        cursor, room = self.cursor(bound), min(FIRST_PIECE, size)
        while True:
            piece = self._reader.read(cursor, room)
            if len(piece):
                yield piece
            if len(piece) < room:
                return
            room = min(4 * room, size)


def _places(bound: Mapping[str, Ints], variable: str) -> range:
    """Where the words of a bound variable are among the constants."""
    names = list(bound)
    start = sum(len(bound[v]) for v in names[: names.index(variable)])
    return range(start, start + len(bound[variable]))


class Cursor:
    """A place in the enumeration. It holds as long as nothing changes."""

    def __init__(self, levels: Ints, constants: Ints, held: list[Ints], *, is_empty: bool) -> None:
        self._levels = levels
        self._constants = constants
        self._held = held
        self._state = np.zeros(STATE_WORDS, dtype=np.int64)
        self._state[DEPTH] = -1 if is_empty else 0

    def next_slots(self, out: int, room: int) -> int:
        """Writes the slots of up to ``room`` more rows to an address, step after step; returns how many rows."""
        return next_rows(
            address_of(self._levels),
            len(self._levels),
            address_of(self._constants),
            address_of(self._state),
            out,
            room,
        )

    @property
    def steps(self) -> int:
        """How many entries, and ends of chains, it has visited."""
        return int(self._state[STEPS])


class _Reader:
    """From slots to rows. The registers are the slots of the steps, the words of the keys, and the words of the payloads."""

    def __init__(self, factorized: FactorizedProgram, maps: Mapping[str, ViewMap], keys: tuple[str, ...]) -> None:
        self._program = factorized.program
        self._maps = maps
        self._numbers = {name: i for i, name in enumerate(maps)}
        self._views = np.array([view.address for view in maps.values()], dtype=np.int64)
        self._code: list[Instruction] = []
        self._levels = self._count = len(factorized.steps)
        block = self._program.block
        level_of = {v: i for i, step in enumerate(factorized.steps) for v in step.new}
        for variable in keys:
            level = level_of[variable]
            name = factorized.steps[level].view
            for word in words_per_key(block, self._program.view(name).keys)[variable]:
                self._code.append(ReadEntry(0, self._numbers[name], level, word, self._registers(1)))
        parts = self._payloads([(i, step.view) for i, step in enumerate(factorized.steps) if step.is_factor])
        # The payload that counts is the last product; what comes before are the products on the way to it.
        self._payload_start = parts[frozenset()]
        self.offsets = tuple(parts[m] - self._payload_start for m in block.monomials)
        self.payload_words = self._count - self._payload_start
        self._instructions = assembled(self._code)
        self._rows = np.zeros(1, dtype=np.int64)
        self._environment = np.zeros(ENVIRONMENT_WORDS, dtype=np.int64)
        self._addresses = np.zeros(self._count + 1, dtype=np.int64)
        self._buffer: Ints = np.empty((self._count, 0), dtype=np.int64)
        self._has_keys = bool(keys)
        self._key_words = key_layout(block, keys).width if keys else 0

    def _registers(self, count: int) -> int:
        first = self._count
        self._count += count
        return first

    def _kind(self, monomial: Monomial) -> int:
        return KIND_OF[self._program.block.number_of(monomial)]

    def _payloads(self, factors: list[tuple[int, str]]) -> dict[Monomial, int]:
        (level, name), *others = factors
        view, held = self._program.view(name), self._maps[name]
        parts: dict[Monomial, int] = {}
        for monomial, offset in zip(view.payload, held.offsets, strict=True):
            words = WORDS[self._kind(monomial)]
            parts[monomial] = first = self._registers(words)
            for word in range(words):
                self._code.append(ReadEntry(0, self._numbers[name], level, offset + word, first + word))
        atoms = view.atoms
        for level, name in others:
            atoms |= self._program.view(name).atoms
            parts = self._product(parts, level, name, restrict(self._program.block.monomials, atoms))
        return parts

    def _product(
        self, parts: dict[Monomial, int], level: int, name: str, wanted: tuple[Monomial, ...]
    ) -> dict[Monomial, int]:
        view, held = self._program.view(name), self._maps[name]
        product: dict[Monomial, int] = {}
        for monomial in wanted:
            right = frozenset(p for p in monomial if p[0] in view.atoms)
            left = monomial - right
            product[monomial] = self._registers(WORDS[self._kind(monomial)])
            operands = self._kind(left), parts[left], self._kind(right), held.offsets[view.payload.index(right)]
            self._code.append(Multiply(0, NONE, self._numbers[name], level, *operands, product[monomial]))
        return product

    def read(self, cursor: Cursor, room: int) -> Piece:
        """The next rows, up to ``room``; fewer mean that there are no more."""
        if self._buffer.shape[1] != room:
            self._buffer = np.empty((self._count, room), dtype=np.int64)
            self._addresses[: self._count] = address_of(self._buffer) + 8 * room * np.arange(self._count)
        count = cursor.next_slots(address_of(self._buffer), room)
        self._rows[0] = count
        if count:
            self._run()
        keys = self._buffer[self._levels : self._levels + self._key_words, :count].T
        if not self._has_keys:
            keys = np.zeros((count, 1), dtype=np.int64)
        return Piece(keys, self._buffer[self._payload_start :, :count].T)

    def _run(self) -> None:
        start = address_of(self._instructions)
        run(
            start,
            start + 8 * len(self._instructions),
            address_of(self._addresses),
            address_of(self._rows),
            address_of(self._rows),
            address_of(self._views),
            address_of(self._environment),
        )
        if self._environment[NEED] != DONE:
            raise range_error(int(self._environment[NEED]))
