"""Runs the triggers of several trees for one atom as one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.tree.assemble_step import TreeTrigger, assemble_step
from everview.backends.embedded.tree.leaf_rows import Masks
from everview.backends.embedded.tree.machine import AfterChunk, Machine
from everview.backends.embedded.tree.pauses import MaskPause, RangePause
from everview.backends.embedded.tree.tree_state import TreeState, leaf_program_of
from everview.backends.embedded.tree.trigger_code import ResultRegisters
from everview.backends.embedded.tree.view_identity import AtomIdentity
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Batch, Ints


class StepMachine:
    """The triggers of one atom in several trees that have no indicators to keep or to meet.

    Args:
        runs: The state of each tree, its atoms, and which of them has changed.
    """

    def __init__(self, runs: Sequence[tuple[TreeState, Sequence[AtomIdentity], int]]) -> None:
        (self._first, _, self._atom), *_ = runs
        held = list({id(m): m for state, _, _ in runs for m in state.maps.values()}.values())
        place = {id(m): i for i, m in enumerate(held)}
        triggers = [TreeTrigger(state.program, state.maps, atoms, state.triggers[a]) for state, atoms, a in runs]
        assembled = assemble_step(triggers, lambda m: place[id(m)])
        self._views = np.array([*(m.address for m in held), 0], dtype=np.int64)
        self._ends = assembled.ends
        self.results: tuple[tuple[ResultRegisters, ...], ...] = assembled.results
        """Of each tree, where its result stands after a chunk."""
        code = assembled.code
        masks = _StepMasks(code.pauses, assembled.pauses, [state.masks for state, _, _ in runs])
        leaf = leaf_program_of(self._first, self._atom, code)
        self.machine = Machine(code, held, self._views, self._first.scratch, masks, leaf)

    def take(self, delta: Batch, after_chunk: AfterChunk | None) -> None:
        """Runs all triggers over a change."""
        self.machine.failed_at = 0
        self._first.run_rows(self.machine, self._atom, delta, after_chunk)

    @property
    def failed(self) -> int:
        """The number of the tree whose part of the code could not go on."""
        return min(bisect_right(self._ends, self.machine.failed_at), len(self._ends) - 1)


class _StepMasks:
    """Evaluates the predicates of each tree as that tree has them."""

    def __init__(self, pauses: Sequence[object], ends: Sequence[int], masks: Sequence[Masks]) -> None:
        starts = (0, *ends[:-1])
        self._masks = {
            id(pause): own for start, end, own in zip(starts, ends, masks, strict=True) for pause in pauses[start:end]
        }

    def __call__(self, pause: MaskPause, columns: list[Ints]) -> Ints:
        return self._masks[id(pause)](pause, columns)

    def sums(self, pause: RangePause, view: ViewMap, columns: list[Ints]) -> Ints:
        return self._masks[id(pause)].sums(pause, view, columns)
