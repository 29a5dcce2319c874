"""A join-aggregate block as one operator: a view tree whose triggers run on the machine.

The inputs are the block's atoms. A change of an atom is filtered, its key variables and lifts are computed, and its
trigger carries it up the tree; the result view logs each group that it touches with what it was before, from which
the delta of the answers is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Cost, Operator
from everview.backends.embedded.tree.answers import always_fit, finishers, row_finishers
from everview.backends.embedded.tree.assemble import key_layout
from everview.backends.embedded.tree.plan_block import Lowered
from everview.backends.embedded.tree.tree_state import TreeState
from everview.backends.embedded.vectors import Batch, Bools, DeferredBatch, Ints, Vector, concatenate
from everview.relational.nodes import Schema
from everview.relational.types import Row


class TreeOperator(Operator):
    """The groups of a block and their aggregates, maintained by a view tree."""

    def __init__(
        self,
        fields: Schema,
        lowered: Lowered,
        inputs: tuple[Operator, ...],
        dictionary: Dictionary,
    ) -> None:
        super().__init__(fields, inputs)
        self.program = program = lowered.program
        self.plan = lowered.plan
        self._loading = lowered.loading
        self._dictionary = dictionary
        self.state = TreeState(program, inputs, dictionary)
        block = program.block
        self._is_global = not block.keys
        result = program.view(program.result)
        self._result = self.state.maps[program.result]
        self._result_layout = key_layout(block, result.keys)
        self._key_places = tuple(result.keys.index(k) for k in block.keys)
        self._finish = finishers(block, result.payload, self._result.offsets, dictionary)
        self._finish_row = row_finishers(block, result.payload, self._result.offsets) if self._is_global else None
        self._is_safe = always_fit(block)

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        self.state.take(deltas)
        return self._delta()

    def load(self, contents: Sequence[Batch]) -> Batch:
        if self._loading is not None:
            self.state = self.state.loaded(self._loading, self.inputs, self._dictionary, contents)
            self._result = self.state.maps[self.program.result]
        else:
            self.state.take(contents)
        return self.content()

    def _delta(self) -> Batch | None:
        log = self._result.logged()
        if not len(log):
            return None
        now, log = self._result.entries[log[:, 0]], log.copy()
        deferred = DeferredBatch(lambda: self._compare(log, now) or self.nothing(), self._arriving(now))
        if self._result.is_suspect or not self._is_safe:
            return deferred.made
        return deferred

    def _arriving(self, now: Ints) -> Callable[[], Row] | None:
        finish = self._finish_row
        if finish is None:
            return None
        return lambda: tuple(f(words) for words in now.tolist() for f in finish)

    def _compare(self, log: Ints, now: Ints) -> Batch | None:
        """What the answers of the logged groups were, taken back, and what they are."""
        words = self._result.key_words
        before = now.copy()
        before[:, words:] = log[:, 1 + words :]
        existed, exists = self._exists(before), self._exists(now)
        return self._difference(before, existed, now, exists)

    def _exists(self, entries: Ints) -> Bools:
        if self._is_global:
            return np.ones(len(entries), dtype=np.bool_)
        found: Bools = entries[:, self._result.offsets[0]] != 0
        return found

    def _difference(self, before: Ints, existed: Bools, now: Ints, exists: Bools) -> Batch | None:
        old, new = self._answers(before[existed]), self._answers(now[exists])
        both = existed & exists
        packed_old = self.layout.pack(old, int(existed.sum()))
        packed_new = self.layout.pack(new, int(exists.sum()))
        same = np.zeros(len(existed), dtype=np.bool_)
        same[both] = (packed_old[both[existed]] == packed_new[both[exists]]).all(axis=1)
        gone, come = ~same[existed], ~same[exists]
        parts = []
        if gone.any():
            parts.append(Batch(tuple(v.take(gone) for v in old), np.full(int(gone.sum()), -1, dtype=np.int64)))
        if come.any():
            parts.append(Batch(tuple(v.take(come) for v in new), np.ones(int(come.sum()), dtype=np.int64)))
        return concatenate(parts) if parts else None

    def _answers(self, entries: Ints) -> tuple[Vector, ...]:
        keys = self._result_layout.unpack(entries[:, : self._result.key_words]) if self._key_places else ()
        return (*(keys[p] for p in self._key_places), *(finish(entries) for finish in self._finish))

    def content(self) -> Batch:
        entries = self._result.entries[self._result.live_slots()]
        entries = entries[self._exists(entries)]
        if self._is_global and not len(entries):
            entries = np.zeros((1, self._result.stride), dtype=np.int64)
        return Batch(self._answers(entries), np.ones(len(entries), dtype=np.int64))

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self.content()

    def commit(self) -> None:
        self.state.commit()

    def rollback(self) -> None:
        self.state.rollback()

    def nbytes(self) -> dict[str, int]:
        return self.state.nbytes()

    def update_cost(self, side: int) -> Cost:
        return self.state.update_cost(side)

    def python_parts(self) -> list[str]:
        return self.state.python_parts()

    def describe(self) -> str:
        names = ", ".join(v.name for v in self.program.views if v.name in self.program.stored)
        keys = ", ".join(self.program.block.keys)
        atoms = len(self.program.block.atoms)
        return f"view tree of [{keys}] over {atoms} relation{'s' if atoms > 1 else ''}, storing {names}"
