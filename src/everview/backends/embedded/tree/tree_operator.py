"""A join-aggregate block as one operator: a view tree whose triggers run on the machine.

The inputs are the block's atoms. A change of an atom is filtered, its key variables and lifts are computed, and its trigger carries
it up the tree; the result view logs each group that it touches with what it was before, from which the delta of the answers is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate, compile_projection
from everview.backends.embedded.operators.base import Cost, Operator
from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree import view_kernels as kernels
from everview.backends.embedded.tree.answers import always_fit, finishers
from everview.backends.embedded.tree.assemble import KIND_OF, Assembler, Pause, key_layout
from everview.backends.embedded.tree.leaf_program import NoLeafProgram, leaf_program
from everview.backends.embedded.tree.machine import Machine, Scratch
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Batch, Bools, DeferredBatch, Ints, KeyLayout, Vector, concatenate
from everview.planner.block import BlockAtom, Variable
from everview.planner.plan_tree import TreePlan
from everview.relational.expressions import TRUE
from everview.relational.nodes import Schema
from everview.trigger.program import AccessKind, Compute, Lift, Program


class TreeOperator(Operator):
    """The groups of a block and their aggregates, maintained by a view tree."""

    def __init__(
        self,
        fields: Schema,
        program: Program,
        inputs: tuple[Operator, ...],
        dictionary: Dictionary,
        *,
        plan: TreePlan | None = None,
    ) -> None:
        super().__init__(fields, inputs)
        self.program = program
        self.plan = plan
        block = program.block
        self._is_global = not block.keys
        stored = [v for v in program.views if v.name in program.stored]
        self.maps = {
            v.name: ViewMap(
                key_layout(block, v.keys).width if v.keys else 0,
                [KIND_OF[block.number_of(m)] for m in v.payload],
                is_result=v.name == program.result,
            )
            for v in stored
        }
        self._views = np.array([self.maps[v.name].address for v in stored], dtype=np.int64)
        self._views_address = address_of(self._views)
        numbers = {v.name: i for i, v in enumerate(stored)}
        scratch = Scratch()
        masks = _Masks(program, dictionary)
        triggers = {t.atom: t for t in program.triggers}
        self._machines = []
        for i in range(len(block.atoms)):
            code = Assembler(program, self.maps, numbers.__getitem__).assemble(triggers[i])
            leaf_view = program.view(next(s for s in triggers[i].statements if isinstance(s, Lift)).target)
            try:
                leaf = leaf_program(block, i, leaf_view.keys, code.leaf, code.registers, dictionary)
            except NoLeafProgram:
                leaf = None
            self._machines.append(Machine(code, list(self.maps.values()), self._views, scratch, masks, leaf))
        self._leaves = [
            _Leaf(program, i, operator, dictionary) for i, operator in enumerate(inputs)
        ]
        result = program.view(program.result)
        self._result = self.maps[program.result]
        self._result_layout = key_layout(block, result.keys)
        self._key_places = tuple(result.keys.index(k) for k in block.keys)
        self._finish = finishers(block, result.payload, self._result.offsets)
        self._is_safe = always_fit(block)
        self._is_moved = False

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        self._take(deltas)
        return self._delta()

    def load(self, contents: Sequence[Batch]) -> Batch:
        self._take(contents)
        return self.content()

    def _take(self, deltas: Sequence[Batch | None]) -> None:
        self._is_moved = True
        for leaf, machine, delta in zip(self._leaves, self._machines, deltas, strict=True):
            if delta is not None and len(delta):
                done = machine.run_batch(delta)
                if done == len(delta):
                    continue
                if done:
                    delta = delta.take(np.arange(done, len(delta)))
                given, count = leaf.registers(delta, machine.trigger.leaf)
                if count:
                    machine.run(given, count)

    def _delta(self) -> Batch | None:
        log = self._result.logged()
        if not len(log):
            return None
        now, log = self._result.entries[log[:, 0]], log.copy()
        deferred = DeferredBatch(lambda: self._compare(log, now) or self.nothing())
        if self._result.is_suspect or not self._is_safe:
            return deferred.made
        return deferred

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
        if self._is_moved:
            kernels.settle(self._views_address, len(self._views))
            for view in self.maps.values():
                view.end_transaction()
            self._is_moved = False

    def rollback(self) -> None:
        if self._is_moved:
            kernels.undo(self._views_address, len(self._views))
            self._is_moved = False

    def nbytes(self) -> dict[str, int]:
        sizes = {}
        for name, view in self.maps.items():
            sizes[f"view {name}"] = view.nbytes
            for i, words in enumerate(view.index_words):
                sizes[f"view {name}, index by words {list(words)}"] = view.index_nbytes(i)
        return sizes

    def update_cost(self, side: int) -> Cost:
        accesses = [
            join.kind
            for statement in self.program.triggers[side].statements
            if isinstance(statement, Compute)
            for join in statement.joins
        ]
        if AccessKind.SCAN in accesses:
            return Cost.LINEAR
        return Cost.MATCHES if AccessKind.SLICE in accesses else Cost.CONSTANT

    def python_parts(self) -> list[str]:
        return [part for leaf in self._leaves for part in leaf.python_parts()]

    def describe(self) -> str:
        names = ", ".join(v.name for v in self.program.views if v.name in self.program.stored)
        keys = ", ".join(self.program.block.keys)
        return f"view tree of [{keys}] over {len(self.program.block.atoms)} relations, storing {names}"


class _Leaf:
    """What a change of an atom becomes before its trigger runs: key words, lifted values and weights."""

    def __init__(self, program: Program, number: int, operator: Operator, dictionary: Dictionary) -> None:
        atom: BlockAtom = program.block.atoms[number]
        self._names = tuple(f.name for f in operator.fields)
        self._where = None if atom.condition == TRUE else compile_predicate(atom.condition, dictionary)
        self._expressions = (*(e for _, e in atom.variables), *(lift.value for lift in atom.lifts))
        self._project = compile_projection(self._expressions, dictionary)
        view = next(v for v in program.views if v.atoms == frozenset({number}) and set(v.keys) == {n for n, _ in atom.variables})
        order = [n for n, _ in atom.variables]
        self._key_places = tuple(order.index(k) for k in view.keys)
        self._layouts = tuple(_layout_of(program.block.variable(k)) for k in view.keys)
        self._first_lift = len(order)

    def registers(self, delta: Batch, leaf: object) -> tuple[list[tuple[int, Ints]], int]:
        """The arrays for the registers of the leaf, and how many rows they have."""
        if self._where is not None:
            mask = self._where(delta.columns, len(delta))
            if not mask.all():
                delta = delta.take(mask)
        count = len(delta)
        if not count:
            return [], 0
        vectors = self._project(delta.columns, count)
        given: list[tuple[int, Ints]] = []
        for place, layout, registers in zip(self._key_places, self._layouts, leaf.keys, strict=True):
            for register, words in zip(registers, _key_words(vectors[place], layout), strict=True):
                given.append((register, words))
        for lift, register in leaf.lifts:
            given.append((register, _words(vectors[self._first_lift + lift])))
        given.append((leaf.weights, np.ascontiguousarray(delta.weights)))
        return given, count

    def python_parts(self) -> list[str]:
        """The sub-expressions that Python computes."""
        return list(self._project.definitions(self._names))


def _layout_of(variable: Variable) -> KeyLayout:
    return KeyLayout((variable.type,), (variable.nullable,))


def _key_words(vector: Vector, layout: KeyLayout) -> list[Ints]:
    packed = layout.pack((vector,), len(vector))
    if layout.width == 1:
        return [packed.reshape(-1)]
    return [np.ascontiguousarray(packed[:, w]) for w in range(layout.width)]


def _words(vector: Vector) -> Ints:
    """The values as words; a NULL is 0."""
    values = vector.values
    if vector.nulls is not None and vector.nulls.any():
        values = values.copy()
        values[vector.nulls] = 0
    values = np.ascontiguousarray(values)
    return values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64, copy=False)


class _Masks:
    """Evaluates predicates over several atoms, for the rows of a frame."""

    def __init__(self, program: Program, dictionary: Dictionary) -> None:
        block = program.block
        self._predicates = {r: compile_predicate(r.condition, dictionary) for r in block.residuals}
        self._layouts = {r: key_layout(block, r.variables) for r in block.residuals}

    def __call__(self, pause: Pause, columns: list[Ints]) -> Ints:
        keys = np.stack(columns, axis=1)
        vectors = self._layouts[pause.residual].unpack(keys)
        return self._predicates[pause.residual](vectors, len(keys)).astype(np.int64)
