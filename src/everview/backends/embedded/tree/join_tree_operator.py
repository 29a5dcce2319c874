"""A join without an aggregate as one operator: a view tree whose result is not stored but passed on as deltas.

The delta of the root view is a bag of keys with counts; the output columns are computed from the keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.operators.base import Cost, Operator
from everview.backends.embedded.tree.assemble import key_layout
from everview.backends.embedded.tree.machine import Machine
from everview.backends.embedded.tree.plan_block import Lowered
from everview.backends.embedded.tree.tree_state import TreeState
from everview.backends.embedded.vectors import Batch, Ints
from everview.relational.expressions import Expression
from everview.relational.nodes import Schema


class JoinTreeOperator(Operator):
    """The rows of a join, maintained by a view tree."""

    def __init__(
        self,
        fields: Schema,
        lowered: Lowered,
        outputs: tuple[Expression, ...],
        inputs: tuple[Operator, ...],
        dictionary: Dictionary,
    ) -> None:
        super().__init__(fields, inputs)
        self.program = program = lowered.program
        self.plan = lowered.plan
        self._loading = lowered.loading
        self._dictionary = dictionary
        self.state = TreeState(program, inputs, dictionary)
        block, result = program.block, program.view(program.result)
        self._result_layout = key_layout(block, result.keys)
        self._places = tuple(result.keys.index(k) for k in block.keys)
        self._project = compile_projection(outputs, dictionary)
        self._outputs = outputs
        self._lowered = lowered

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        return self._taken(deltas, self.state)

    def load(self, contents: Sequence[Batch]) -> Batch:
        if self._loading is None:
            return self._taken(contents, self.state) or self.nothing()
        loading = TreeState(self._loading, self.inputs, self._dictionary)
        rows = self._taken(contents, loading)
        loading.commit()
        self.state = TreeState(self.program, self.inputs, self._dictionary, loading.maps)
        return rows or self.nothing()

    def _taken(self, deltas: Sequence[Batch | None], state: TreeState) -> Batch | None:
        keys: list[Ints] = []
        weights: list[Ints] = []

        def collect(machine: Machine) -> None:
            for at in machine.trigger.results:
                words = machine.registers(at.frame, at.keys)
                (counts,) = machine.registers(at.frame, at.parts[:1])
                if len(counts):
                    weights.append(counts.copy())
                    keys.append(np.stack(words, axis=1) if words else np.zeros((len(counts), 1), dtype=np.int64))

        state.take(deltas, collect)
        if not keys:
            return None
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

    def commit(self) -> None:
        self.state.commit()

    def rollback(self) -> None:
        self.state.rollback()

    def nbytes(self) -> dict[str, int]:
        return self.state.nbytes()

    def update_cost(self, side: int) -> Cost:
        return self.state.update_cost(side)

    def python_parts(self) -> list[str]:
        names = tuple(self.program.block.keys)
        return [*self.state.python_parts(), *self._project.definitions(names)]

    def describe(self) -> str:
        names = ", ".join(self.state.maps)
        return f"join tree over {len(self.program.block.atoms)} relations, storing {names}"
