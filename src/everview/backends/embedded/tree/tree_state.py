"""The stored views of a program and the machines of its triggers: what every operator over a view tree has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.factorized_batch import FactorizedBatch, expand
from everview.backends.embedded.operators.base import Cost, Operator
from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree import view_kernels as kernels
from everview.backends.embedded.tree.assemble import Assembler, LeafRegisters, key_layout, part_kind
from everview.backends.embedded.tree.layout import WORK
from everview.backends.embedded.tree.leaf_program import LeafProgram, NoLeafProgram, leaf_program
from everview.backends.embedded.tree.leaf_rows import Leaf, Masks
from everview.backends.embedded.tree.machine import Machine, Scratch
from everview.backends.embedded.tree.take_products import ProductTriggers, Surroundings
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Batch, concatenate
from everview.planner.block import Block
from everview.trigger.program import AccessKind, Compute, Lift, Program, Trigger


class TreeState:
    """A program made ready to run over its inputs, one a block's atom; ``maps`` are views that are filled already."""

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Operator],
        dictionary: Dictionary,
        maps: Mapping[str, ViewMap] | None = None,
    ) -> None:
        self.program = program
        block = program.block
        stored = [v for v in program.views if v.name in program.stored]
        known = maps or {}
        self.maps = {
            v.name: known[v.name]
            if v.name in known
            else ViewMap(
                key_layout(block, v.keys).width if v.keys else 0,
                [part_kind(block, m) for m in v.payload],
                is_result=v.name == program.result,
            )
            for v in stored
        }
        self._views = np.array([*(self.maps[v.name].address for v in stored), 0], dtype=np.int64)
        self._settled = (address_of(self._views), len(stored))
        numbers = {v.name: i for i, v in enumerate(stored)}
        self.scratch = scratch = Scratch()
        masks, held = Masks(program, dictionary), list(self.maps.values())
        self.machines: list[Machine] = []
        for trigger in sorted(program.triggers, key=lambda t: t.atom):
            code = Assembler(program, self.maps, numbers.__getitem__).assemble(trigger)
            leaf = _leaf_program(block, trigger, program, code.leaf, code.registers, dictionary)
            self.machines.append(Machine(code, held, self._views, scratch, masks, leaf))
        self.leaves = [Leaf(program, i, operator.fields, dictionary) for i, operator in enumerate(inputs)]
        self._products = ProductTriggers(
            Surroundings(program, self.maps, self._views, numbers.__getitem__, scratch, masks, dictionary)
        )
        self._is_moved = False

    def take(self, deltas: Sequence[Batch | None], after_chunk: Callable[[Machine], None] | None = None) -> None:
        """Runs the triggers of the changed atoms, one after another; ``after_chunk`` may read the machine's registers."""
        self._is_moved = True
        for atom, (leaf, machine, delta) in enumerate(zip(self.leaves, self.machines, deltas, strict=True)):
            if isinstance(delta, FactorizedBatch) and after_chunk is None:
                delta = self._take_products(atom, delta)  # noqa: PLW2901 -- what is left of it
            if delta is None or not len(delta):
                continue
            done = machine.run_batch(delta, after_chunk)
            if done < len(delta):
                rest = delta.take(np.arange(done, len(delta))) if done else delta
                given, count = leaf.registers(rest, machine.trigger.leaf)
                if count:
                    machine.run(given, count, after_chunk)

    def loaded(
        self, loading: Program, inputs: Sequence[Operator], dictionary: Dictionary, contents: Sequence[Batch]
    ) -> TreeState:
        """This program's state after all contents were taken in by one that stores more views."""
        full = TreeState(loading, inputs, dictionary)
        full.take(contents)
        full.commit()
        return TreeState(self.program, inputs, dictionary, full.maps)

    def _take_products(self, atom: int, delta: FactorizedBatch) -> Batch | None:
        """Runs the trigger over the products of a change; returns what has to be taken in as rows."""
        rows = [] if delta.rest is None else [delta.rest]
        rows.extend(expand(product).batch for product in delta.products if not self._products.run(atom, product))
        return concatenate(rows) if rows else None

    @property
    def work(self) -> int:
        """Rows that the machines have read or made so far."""
        return int(self.scratch.environment[WORK])

    def commit(self) -> None:
        """Makes the changes since the last commit final, and removes entries that became zero."""
        if self._is_moved:
            if kernels.settle(*self._settled):
                for view in self.maps.values():
                    view.end_transaction()
            self._is_moved = False

    def rollback(self) -> None:
        """Takes the changes since the last commit back."""
        if self._is_moved:
            kernels.undo(*self._settled)
            self._is_moved = False

    def nbytes(self) -> dict[str, int]:
        """Bytes of each stored view and of its indexes."""
        sizes = {}
        for name, view in self.maps.items():
            sizes[f"view {name}"] = view.nbytes
            for i, words in enumerate(view.index_words):
                sizes[f"view {name}, index by words {list(words)}"] = view.index_nbytes(i)
        return sizes

    def update_cost(self, side: int) -> Cost:
        """What one changed row of an atom costs, by the access paths of its trigger."""
        trigger = next(t for t in self.program.triggers if t.atom == side)
        accesses = [j.kind for s in trigger.statements if isinstance(s, Compute) for j in s.joins]
        if AccessKind.SCAN in accesses:
            return Cost.LINEAR
        return Cost.MATCHES if AccessKind.SLICE in accesses else Cost.CONSTANT

    def python_parts(self) -> list[str]:
        """The sub-expressions that Python computes."""
        return [part for leaf in self.leaves for part in leaf.python_parts()]


def _leaf_program(
    block: Block, trigger: Trigger, program: Program, registers: LeafRegisters, first: int, dictionary: Dictionary
) -> LeafProgram | None:
    lift = next(s for s in trigger.statements if isinstance(s, Lift))
    try:
        return leaf_program(block, trigger.atom, program.view(lift.target).keys, registers, first, dictionary)
    except NoLeafProgram:
        return None
