"""A join-aggregate block as one operator: a view tree whose triggers run on the machine.

The inputs are the block's atoms. A change of an atom is filtered, its key variables and lifts are computed, and its
trigger carries it up the tree; the result view logs each group that it touches with what it was before, from which
the delta of the answers is read.

Where numbers are beyond what a tree can sum, push operators over the same inputs stand in for it (``row_by_row``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from everview.algebra.moments import Floats
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator, consolidated
from everview.backends.embedded.row_by_row import MakeRows, RowByRow
from everview.backends.embedded.tree.answers import always_fit, finishers, number_reader, row_finishers
from everview.backends.embedded.tree.block_layout import key_layout
from everview.backends.embedded.tree.machine import TreeOutgrown
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked
from everview.backends.embedded.tree.tree_state import TreeState
from everview.backends.embedded.tree.watched_numbers import WatchedNumbers
from everview.backends.embedded.vectors import Batch, Bools, DeferredBatch, Ints, Vector, concatenate
from everview.planner.moments_block import packed
from everview.relational.nodes import Schema
from everview.relational.types import Row
from everview.trigger.plan_block import Lowered


class TreeOperator(TreeBacked):
    """The groups of a block and their aggregates, maintained by a view tree.

    Args:
        fields: Of the output.
        lowered: The program.
        inputs: One for each atom.
        dictionary: That of the engine.
        make_rows: Makes the operators that stand in for the tree; without it, numbers out of range are an error.
    """

    def __init__(
        self,
        fields: Schema,
        lowered: Lowered,
        inputs: tuple[Operator, ...],
        dictionary: Dictionary,
        make_rows: MakeRows | None = None,
    ) -> None:
        super().__init__(fields, inputs, lowered.program, lowered.loading, lowered.plan, dictionary)
        self._make_rows = make_rows
        self.skew = lowered.skew
        """The plan of heavy and light parts, if it has them."""
        self.note = lowered.note
        """Why the tree is the way it is, where several were compared."""
        self.rows: RowByRow | None = None
        """What stands in for the tree, which then holds nothing."""
        self._before: tuple[RowByRow | None, TreeState] | None = None
        """What a failed transaction goes back to, if this one has changed from the tree to rows or back."""
        self._changed = 0
        block = self.program.block
        self._watched = WatchedNumbers(block) if block.watches else None
        self._is_global = not block.keys
        self._is_safe = always_fit(block)
        self._bind()

    def _bind(self) -> None:
        """Reads answers off the result view of the state."""
        self.state.scratch.bears_loss = self._make_rows is None
        program = self.state.program
        block, result = program.block, program.view(program.result)
        self._result = self.state.maps[program.result]
        self._result_layout = key_layout(block, result.keys)
        self._key_places = tuple(result.keys.index(k) for k in block.keys)
        parts = packed(block, result.payload)
        self._failures = [self._result.offsets[parts.index(f.count)] for f in block.failures]
        self._finish = finishers(
            block, result.payload, self._result.offsets, self._dictionary, bears_loss=self._make_rows is None
        )
        self._read_numbers = number_reader(block, result.payload, self._result.offsets)
        self._finish_row = row_finishers(block, result.payload, self._result.offsets) if self._is_global else None

    def adopt(self, state: TreeState) -> None:
        super().adopt(state)
        self._bind()

    def load(self, contents: Sequence[Batch | None]) -> Batch:
        try:
            self._fill(contents)
            return self.content()
        except TreeOutgrown:
            if self._make_rows is None:
                raise
            rows = [i.content() if c is None else c for i, c in zip(self.inputs, contents, strict=True)]
            self.adopt(self._empty_state())
            self.rows = self._make_rows(rows)
            return self.content()

    def take(self, deltas: Sequence[Batch | None]) -> None:
        if self._watched is not None:
            self._watched.admit(deltas)
        super().take(deltas)
        if self._failures:
            self._check_failures(self._result.logged()[:, 0])

    def _check_failures(self, slots: Ints) -> None:
        """Raises if an expression fails for a joined row of these groups; the rows then say which error Spark raises."""
        if any(self._result.entries[slots, offset].any() for offset in self._failures):
            raise TreeOutgrown("an expression fails for a joined row.", condition="ARITHMETIC_OVERFLOW")

    def _fill(self, contents: Sequence[Batch | None]) -> None:
        if self._watched is not None:
            self._watched = WatchedNumbers(self.program.block)
            self._watched.admit(contents)
        if self.loading is not None:
            self.adopt(self.state.loaded(self.loading, self.inputs, self._dictionary, contents))
        else:
            self.take(contents)
        if self._failures:
            self._check_failures(self._result.live_slots())

    def _empty_state(self) -> TreeState:
        return self.state_over(self.program, {}, frozenset())

    @property
    def survives_lack_of_memory(self) -> bool:  # type: ignore[override]  # others know it when they are written
        """Whether it can be rolled back after a failure for memory: the operators that stand in for the tree may not."""
        return self.rows is None

    @property
    def may_leave_tree(self) -> bool:
        """Whether rows can stand in for the tree."""
        return self._make_rows is not None

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        if self.rows is not None:
            return self._push_rows(self.rows, deltas)
        try:
            if self.group is None:
                self.take(deltas)
            elif not self.group.has_run_for(self):
                return None
            return self.moved()
        except TreeOutgrown:
            if self._make_rows is None or self.group is not None:
                raise  # a group lets the tree go first
            self.rollback()
            old, before = self.content(), self.state
            contents = [i.content() for i in self.inputs]
            if self.program.block.moments is None or not self._is_filled_anew(contents):
                self.rows = self._make_rows(contents)
            self._before = None, before
            return self._since(old)

    def _is_filled_anew(self, contents: Sequence[Batch]) -> bool:
        """Whether the tree could be filled again: what it holds now has not seen the numbers that have gone."""
        before = self.state
        self.adopt(self._empty_state())
        try:
            self._fill(contents)
        except TreeOutgrown:
            self.adopt(before)
            return False
        self.state.commit()
        return True

    def _push_rows(self, rows: RowByRow, deltas: Sequence[Batch | None]) -> Batch | None:
        self._changed += sum(len(delta) for delta in deltas if delta is not None)
        if self._changed >= rows.size:
            self._changed = 0
            before = self.state
            self.adopt(self._empty_state())
            try:
                self._fill([i.content() for i in self.inputs])
                self.rows = None
                delta = self._since(rows.content())
            except TreeOutgrown:
                self.rows = rows
                self.adopt(before)
            else:
                self.state.commit()
                self._before = rows, before
                return delta
        return rows.push(deltas)

    def _since(self, old: Batch) -> Batch | None:
        """The change from an old content to that of now."""
        delta = consolidated(concatenate([self.content(), old.negated()]), self.layout)
        return delta if len(delta) else None

    def commit(self) -> None:
        if self._watched is not None:
            self._watched.commit()
        if self.rows is not None:
            if self._before is not None:
                self.adopt(self._empty_state())
            self.rows.commit()
        self._before = None
        self.state.commit()

    def rollback(self) -> None:
        if self._watched is not None:
            self._watched.rollback()
        if self._before is not None:
            self.rows, state = self._before
            self._before = None
            self.adopt(state)
        if self.rows is not None:
            self.rows.rollback()
        super().rollback()

    def nbytes(self) -> dict[str, int]:
        return super().nbytes() if self.rows is None else self.rows.nbytes()

    def moved(self) -> Batch | None:
        log = self._result.logged()
        if not len(log):
            return None
        now, log = self._result.entries.take(log[:, 0], axis=0), log.copy()
        compare = lambda: self._compare(log, now) or self.nothing()  # noqa: E731
        deferred = DeferredBatch(compare, log.size + now.size, self._arriving(now))
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
        """The answers that went, and those that came; both are computed in one go, first the former, then the latter."""
        entries = np.concatenate((before.compress(existed, axis=0), now.compress(exists, axis=0)))
        answers, olds = self._answers(entries), int(existed.sum())
        weights = np.ones(len(entries), dtype=np.int64)
        weights[:olds] = -1
        both = existed & exists
        difference = Batch(answers, weights)
        if not both.any():
            return difference if len(entries) else None
        old, new = (np.cumsum(existed) - 1)[both], (np.cumsum(exists) - 1 + olds)[both]
        packed = self.layout.pack(answers, len(entries))
        same = (packed.take(old, axis=0) == packed.take(new, axis=0)).all(axis=1)
        if not same.any():
            return difference
        moved = np.ones(len(entries), dtype=np.bool_)
        moved[old[same]] = moved[new[same]] = False
        return difference.take(moved) if moved.any() else None

    def _answers(self, entries: Ints) -> tuple[Vector, ...]:
        keys = self._result_layout.unpack(entries[:, : self._result.key_words]) if self._key_places else ()
        return (*(keys[p] for p in self._key_places), *(finish(entries) for finish in self._finish))

    def content(self) -> Batch:
        if self.rows is not None:
            return self.rows.content()
        entries = self._result.entries[self._result.live_slots()]
        entries = entries[self._exists(entries)]
        if self._is_global and not len(entries):
            entries = np.zeros((1, self._result.stride), dtype=np.int64)
        return Batch(self._answers(entries), np.ones(len(entries), dtype=np.int64))

    def numbers(self, key: Sequence[Vector]) -> Floats | None:
        """The row of a group as it is kept, where it has nothing but numbers of rows and sums of floats; else None."""
        if self.rows is not None or self._read_numbers is None:
            return None
        if not self._key_places:
            return self._read_numbers(self._result.entries[self._result.live_slots()])
        in_order = tuple(key[self._key_places.index(k)] for k in range(len(key)))
        slots = self._result.slots_of(np.ascontiguousarray(self._result_layout.pack(in_order, 1)[0]))
        return self._read_numbers(self._result.entries[slots])

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self.content()

    def describe(self) -> str:
        names = ", ".join(v.name for v in self.program.views if v.name in self.program.stored)
        keys = ", ".join(self.program.block.keys)
        atoms = len(self.program.block.atoms)
        if self.rows is not None:
            return f"summed row by row, for now, in place of the view tree of [{keys}]"
        if self.skew is not None:
            return f"heavy and light parts for [{keys}] over {atoms} relations, storing {names}"
        return f"view tree of [{keys}] over {atoms} relation{'s' if atoms > 1 else ''}, storing {names}"
