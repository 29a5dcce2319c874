"""A join without an aggregate as one operator: a view tree whose result is not stored but passed on as deltas.

The delta of the root view is a bag of keys with counts; the output columns are computed from the keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.block_layout import key_layout
from everview.backends.embedded.tree.machine import AfterChunk, Machine
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked
from everview.backends.embedded.tree.tree_state import TreeState
from everview.backends.embedded.tree.trigger_code import ResultRegisters
from everview.backends.embedded.vectors import Batch, Ints
from everview.relational.expressions import Expression
from everview.relational.nodes import Schema
from everview.trigger.plan_block import Lowered


class JoinTreeOperator(TreeBacked):
    """The rows of a join, maintained by a view tree."""

    def __init__(
        self,
        fields: Schema,
        lowered: Lowered,
        outputs: tuple[Expression, ...],
        inputs: tuple[Operator, ...],
        dictionary: Dictionary,
    ) -> None:
        super().__init__(fields, inputs, lowered.program, lowered.loading, lowered.plan, dictionary)
        program = self.program
        block, result = program.block, program.view(program.result)
        self._result_layout = key_layout(block, result.keys)
        self._places = tuple(result.keys.index(k) for k in block.keys)
        self._project = compile_projection(outputs, dictionary)
        self._outputs = outputs
        self._lowered = lowered
        self._found: list[tuple[Ints, Ints]] = []

    def load(self, contents: Sequence[Batch | None]) -> Batch:
        if self.loading is None:
            self.take(contents)
        else:
            loading = TreeState(self.loading, self.inputs, self._dictionary)
            loading.take(contents, self._collect)
            loading.commit()
            self.state = TreeState(self.program, self.inputs, self._dictionary, loading.maps)
        return self.moved() or self.nothing()

    @property
    def after_chunk(self) -> AfterChunk:
        return self._collect

    def _collect(self, machine: Machine) -> None:
        self.collect(machine, machine.trigger.results)

    def collect(self, machine: Machine, results: Sequence[ResultRegisters]) -> None:
        for at in results:
            words = machine.registers(at.frame, at.keys)
            (counts,) = machine.registers(at.frame, at.parts[:1])
            if len(counts):
                keys = np.stack(words, axis=1) if words else np.zeros((len(counts), 1), dtype=np.int64)
                self._found.append((keys, counts.copy()))

    def moved(self) -> Batch | None:
        if not self._found:
            return None
        keys, weights = zip(*self._found, strict=True)
        self._found = []
        return self._rows(np.concatenate(keys), np.concatenate(weights))

    def _rows(self, keys: Ints, weights: Ints) -> Batch:
        live = weights != 0
        if not live.all():
            keys, weights = keys[live], weights[live]
        vectors = self._result_layout.unpack(keys)
        columns = tuple(vectors[p] for p in self._places)
        return Batch(self._project(columns, len(weights)), weights)

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        """The whole join: built in a tree of its own, since this one has already taken its inputs in."""
        return JoinTreeOperator(self.fields, self._lowered, self._outputs, self.inputs, self._dictionary).load(contents)

    def rollback(self) -> None:
        self._found = []
        super().rollback()

    def python_parts(self) -> list[str]:
        names = tuple(self.program.block.keys)
        return [*super().python_parts(), *self._project.definitions(names)]

    def describe(self) -> str:
        names = ", ".join(self.state.maps)
        return f"join tree over {len(self.program.block.atoms)} relations, storing {names}"
