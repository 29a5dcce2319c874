"""Heavy and light parts while tables change: thresholds, and moves of rows whose keys turn (section 4 of IVM^ε).

With N the *threshold base* and θ = N^ε, between transactions it holds that

    size invariant    ⌊N/4⌋ ≤ |D| < N        for |D|, the number of keys of all relations
    light part        a light key has less than 3θ/2 rows
    heavy part        a heavy key has θ/2 rows or more

A key that breaks its condition moves, with all its rows (*minor* rebalancing). When |D| leaves its range, N is doubled or
halved until it does not, and all keys move that are then in the wrong part by θ itself (*major* rebalancing). Both run the
program's internal triggers on the machine. They log what they change as all triggers do, so a failed transaction restores the
parts, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from time import perf_counter

import numpy as np

from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree.kernels.parts import all_turned_keys, grown_by, turned_keys
from everview.backends.embedded.tree.machine import Machine
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Ints
from everview.trigger.tree_program import KeyMoves, Partition, TreeProgram, Trigger

ROWS_AT_ONCE = 4096
"""About so many rows move at once, so that what they are joined with stays small."""


@dataclass(frozen=True, slots=True)
class Rebalancing:
    """What rebalancing has been done: how often, how many keys have moved, and the seconds of the longest of it."""

    minor: int = 0
    major: int = 0
    moved_keys: int = 0
    largest_pause: float = 0.0


@dataclass(frozen=True, slots=True)
class _Balance:
    """What thresholds depend on: the threshold base, and the sizes of the relations."""

    base: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Mover:
    """The machines of an internal trigger."""

    gain: Machine
    loss: Machine


class HeavyLightState:
    """The partitions of a tree's atoms.

    Args:
        program: The program; it has partitions.
        maps: Its stored views.
        machine_of: Makes a machine for a trigger.
    """

    def __init__(
        self, program: TreeProgram, maps: dict[str, ViewMap], machine_of: Callable[[Trigger], Machine]
    ) -> None:
        self.program = program
        self._maps = maps
        self._sizes = [maps[name] for name in program.sizes]
        self._split = [
            _SplitAtom(
                p, maps[p.degrees], maps[p.heavy], _mover(p.to_heavy, machine_of), _mover(p.to_light, machine_of)
            )
            for p in program.partitions
        ]
        self._of_atom = [[s for s in self._split if s.partition.atom == i] for i in range(len(program.sizes))]
        self._now = self._before = _Balance(1, (0,) * len(self._sizes))
        self.done = Rebalancing()
        self._done_before = self.done

    @property
    def base(self) -> int:
        """N, the threshold base."""
        return self._now.base

    @property
    def size(self) -> int:
        """|D|, the number of keys of all relations."""
        return sum(self._now.sizes)

    def threshold(self, partition: Partition) -> float:
        """θ."""
        return float(np.power(float(self.base), partition.epsilon))

    @property
    def cost_of_a_row(self) -> int:
        """About how many rows a changed row may touch: N^max(ε, 1-ε)."""
        exponents = (max(p.epsilon, 1 - p.epsilon) for p in self.program.partitions)
        return int(np.power(float(self.base), max(exponents)))

    def rebalance(self, atom: int) -> None:
        """Restores the invariants after a change of an atom."""
        sizes = list(self._now.sizes)
        sizes[atom] = self._before.sizes[atom] + int(grown_by(self._sizes[atom].address))
        base = self._now.base
        self._now = _Balance(_fitting(base, sum(sizes)), tuple(sizes))
        if self._now.base != base:
            self._move_all()
        else:
            self._move_touched(atom)

    def _move_touched(self, atom: int) -> None:
        for split in self._of_atom[atom]:
            theta = self.threshold(split.partition)
            turned, slots = split.touched(ceil(1.5 * theta), ceil(theta / 2))
            if len(slots):
                started = perf_counter()
                split.move(turned, slots)
                self._note(len(slots), len(slots), 0, started)

    def _move_all(self) -> None:
        """HeavyLightState all relations strictly by the new threshold, by moving the keys that are on the wrong side of it."""
        started, moved = perf_counter(), 0
        for split in self._split:
            theta = ceil(self.threshold(split.partition))
            turned, slots = split.all_turned(theta)
            moved += len(slots)
            if len(slots):
                split.move(turned, slots)
        self._note(moved, 0, 1, started)

    def _note(self, moved: int, minor: int, major: int, started: float) -> None:
        done = self.done
        pause = max(done.largest_pause, perf_counter() - started)
        self.done = replace(
            done,
            minor=done.minor + minor,
            major=done.major + major,
            moved_keys=done.moved_keys + moved,
            largest_pause=pause,
        )

    def commit(self) -> None:
        """The transaction has succeeded."""
        self._before, self._done_before = self._now, self.done

    def rollback(self) -> None:
        """The transaction has failed; the maps are restored by their logs."""
        self._now, self.done = self._before, self._done_before


class _SplitAtom:
    """One partition: its maps, and the machines that move rows."""

    def __init__(
        self, partition: Partition, degrees: ViewMap, heavy: ViewMap, to_heavy: _Mover, to_light: _Mover
    ) -> None:
        self.partition = partition
        self._degrees, self._heavy = degrees, heavy
        self._to_heavy, self._to_light = to_heavy, to_light
        self._found = np.zeros((2, 0), dtype=np.int64)

    def touched(self, heavy_from: int, light_below: int) -> tuple[Ints, Ints]:
        """How keys that the transaction has touched turn (1: heavy, -1: light), and their slots."""
        return self._search(turned_keys, len(self._degrees.logged()), heavy_from, light_below)

    def all_turned(self, threshold: int) -> tuple[Ints, Ints]:
        """The same of all keys."""
        return self._search(all_turned_keys, len(self._degrees), threshold, threshold)

    def _search(self, search: Callable[..., int], most: int, heavy_from: int, light_below: int) -> tuple[Ints, Ints]:
        if self._found.shape[1] < most:
            self._found = np.zeros((2, 2 * most), dtype=np.int64)
        turned, slots = self._found
        addresses = address_of(turned), address_of(slots)
        count = search(self._degrees.address, self._heavy.address, heavy_from, light_below, *addresses)
        return turned[:count], slots[:count]

    def move(self, turned: Ints, slots: Ints) -> None:
        """Moves the rows of keys to the parts where they now belong."""
        for mover, chosen in ((self._to_heavy, turned > 0), (self._to_light, turned < 0)):
            self._move(mover, slots[chosen])

    def _move(self, mover: _Mover, slots: Ints) -> None:
        if not len(slots):
            return
        width = self._degrees.key_words
        entries = self._degrees.entries[slots]
        ends = np.cumsum(entries[:, width])
        start = 0
        while start < len(slots):
            rows = ends[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(ends, rows + ROWS_AT_ONCE, side="right")))
            keys = np.ascontiguousarray(entries[start:end, :width].T)
            for machine, weight in ((mover.gain, 1), (mover.loss, -1)):
                registers = [r for words in machine.trigger.leaf.keys for r in words]
                weights = np.full(end - start, weight, dtype=np.int64)
                given: Sequence[tuple[int, Ints]] = list(zip(registers, keys, strict=True))
                machine.run([*given, (machine.trigger.leaf.weights, weights)], end - start)
            start = end


def _mover(moves: KeyMoves, machine_of: Callable[[Trigger], Machine]) -> _Mover:
    return _Mover(machine_of(moves.gain), machine_of(moves.loss))


def _fitting(base: int, size: int) -> int:
    """The threshold base, doubled or halved until ⌊N/4⌋ ≤ size < N."""
    while size >= base:
        base *= 2
    while size < base // 4:
        base = base // 2 - 1
    return base
