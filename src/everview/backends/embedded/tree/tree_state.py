"""The stored views of a program and the machines of its triggers: what every operator over a view tree has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.factorized_batch import FactorizedBatch, expand
from everview.backends.embedded.operators.base import Operator, listed_columns
from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree.assemble import Assembler
from everview.backends.embedded.tree.block_layout import key_layout, part_kind
from everview.backends.embedded.tree.heavy_light import HeavyLightState
from everview.backends.embedded.tree.kernels.transactions import settle, undo
from everview.backends.embedded.tree.layout import WORK
from everview.backends.embedded.tree.leaf_program import LeafProgram, NoLeafProgram, leaf_program
from everview.backends.embedded.tree.leaf_rows import LeafBatch, Masks
from everview.backends.embedded.tree.machine import AfterChunk, Machine, Scratch
from everview.backends.embedded.tree.take_products import ProductTriggers, Surroundings
from everview.backends.embedded.tree.trigger_code import TriggerCode
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Batch, concatenate
from everview.planner.moments_block import packed
from everview.trigger.tree_program import (
    Add,
    AddIndicator,
    Compute,
    CountDegrees,
    LiftRows,
    SeeAs,
    Split,
    TreeProgram,
    TreeStatement,
    Trigger,
    TurnKeys,
)

FEW_AT_ONCE = 512
"""A change that is joined with itself is taken in by so many rows, or by N^max(ε, 1-ε) where that is more."""


class TreeState:
    """A program made ready to run over its inputs, one a block's atom.

    Args:
        program: The program.
        inputs: One for each atom.
        dictionary: That of the engine.
        maps: Views that are filled already.
        borrowed: Those of them that somebody else writes, and commits.
    """

    def __init__(
        self,
        program: TreeProgram,
        inputs: Sequence[Operator],
        dictionary: Dictionary,
        maps: Mapping[str, ViewMap] | None = None,
        borrowed: frozenset[str] = frozenset(),
    ) -> None:
        self.program = program
        self.borrowed = borrowed
        block = program.block
        stored = [v for v in program.views if v.name in program.stored]
        known = maps or {}
        counts = {*program.sizes, *(p.degrees for p in program.partitions)}  # they log what each number was before
        self.maps = {
            v.name: known[v.name]
            if v.name in known
            else ViewMap(
                key_layout(block, v.keys).width if v.keys else 0,
                [part_kind(block, p) for p in packed(block, v.payload)],
                is_result=v.name == program.result or v.name in counts,
            )
            for v in stored
        }
        for name, view in self.maps.items():
            view.name = name
        self._views = np.array([*(self.maps[v.name].address for v in stored), 0], dtype=np.int64)
        self._own_views = [self.maps[v.name] for v in stored if v.name not in borrowed]
        self._owned = np.array([*(view.address for view in self._own_views), 0], dtype=np.int64)
        self._settled = (address_of(self._owned), len(self._own_views))
        numbers = {v.name: i for i, v in enumerate(stored)}
        numbers |= {twin: numbers[name] for twin, name in program.twins}
        seen = self.maps | {twin: self.maps[name] for twin, name in program.twins}
        passing = [self.maps[name].address for name in sorted(program.passing)]
        self._passing = np.array([*passing, 0], dtype=np.int64)
        self.scratch = scratch = Scratch()
        self.masks = masks = Masks(program, dictionary)
        held = list(self.maps.values())
        self.machines: list[Machine] = []
        self.dictionary = dictionary
        self.triggers = triggers = [
            without_writes(program, t, borrowed) for t in sorted(program.triggers, key=lambda t: t.atom)
        ]
        for trigger in triggers:
            code = Assembler(program, seen, numbers.__getitem__).assemble(trigger)
            leaf = leaf_program_of(self, trigger.atom, code)
            self.machines.append(Machine(code, held, self._views, scratch, masks, leaf))
        self._is_idle = [t.atom in program.followers or (bool(borrowed) and len(t.statements) == 1) for t in triggers]
        self.leaves = [LeafBatch(program, i, operator.fields, dictionary) for i, operator in enumerate(inputs)]
        self._products = ProductTriggers(
            Surroundings(program, triggers, self.maps, self._views, numbers.__getitem__, scratch, masks, dictionary)
        )
        self.partitions: HeavyLightState | None = None
        if program.partitions:

            def machine_of(trigger: Trigger) -> Machine:
                code = Assembler(program, seen, numbers.__getitem__).assemble(trigger)
                return Machine(code, held, self._views, scratch, masks)

            self.partitions = HeavyLightState(program, self.maps, machine_of)
        self._is_moved = False
        atoms = block.query.atoms
        self._turns = sorted(range(len(atoms)), key=lambda i: atoms[i].updatable)

    def take(self, deltas: Sequence[Batch | None], after_chunk: AfterChunk | None = None) -> None:
        """Runs the triggers of the changed atoms, one after another; ``after_chunk`` may read the machine's registers.

        Atoms that only the first load changes are first: what they meet is then empty.
        """
        for atom in self._turns:
            delta = deltas[atom]
            if delta is not None:
                self.take_atom(atom, delta, after_chunk)

    def take_atom(self, atom: int, delta: Batch, after_chunk: AfterChunk | None = None) -> None:
        """Runs the trigger of one atom."""
        self.begin()
        if self._is_idle[atom]:
            return
        rows: Batch | None = delta
        if isinstance(delta, FactorizedBatch) and after_chunk is None and self.partitions is None:
            rows = self._take_products(atom, delta)
        if self.program.passing:
            assert self.partitions is not None, "changes that are joined with themselves are those of parts"
            self._take_in_pieces(atom, delta, self.partitions)
            return
        if rows is not None and len(rows):
            self.run_rows(self.machines[atom], atom, rows, after_chunk)
        if self.partitions is not None:
            self.partitions.rebalance(atom)

    def _take_in_pieces(self, atom: int, delta: Batch, partitions: HeavyLightState) -> None:
        """A change that is joined with itself, and with parts that it goes into: few rows at a time, so these are small."""
        start = 0
        while start < len(delta):
            end = min(len(delta), start + max(FEW_AT_ONCE, partitions.cost_of_a_row))
            piece = delta if (start, end) == (0, len(delta)) else delta.take(np.arange(start, end))
            self.run_rows(self.machines[atom], atom, piece, lambda _: undo(address_of(self._passing), 1))
            partitions.rebalance(atom)
            start = end

    def run_rows(self, machine: Machine, atom: int, rows: Batch, after_chunk: AfterChunk | None) -> None:
        """Runs a machine over a change of an atom, by its leaf program as far as that can."""
        done = machine.run_batch(rows, after_chunk)
        if done < len(rows):
            rest = rows.take(np.arange(done, len(rows))) if done else rows
            given, count = self.leaves[atom].registers(rest, machine.trigger.leaf)
            if count:
                machine.run(given, count, after_chunk)

    def begin(self) -> None:
        """The views are about to change."""
        self._is_moved = True

    def is_idle(self, atom: int) -> bool:
        """Whether somebody else does all that a change of the atom asks for."""
        return self._is_idle[atom]

    def loaded(
        self, loading: TreeProgram, inputs: Sequence[Operator], dictionary: Dictionary, contents: Sequence[Batch | None]
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
            if self.partitions is not None:
                self.partitions.commit()
            for view in self._ordered():
                view.settle_orders()
            if settle(*self._settled):
                for view in self.maps.values():
                    with suppress(MemoryError):  # a map that cannot be tidied stays as it is, for the next time
                        view.end_transaction()
            self._is_moved = False

    def rollback(self) -> None:
        """Takes the changes since the last commit back."""
        if self._is_moved:
            for view in self._ordered():
                view.undo_orders()
            undo(*self._settled)
            if self.partitions is not None:
                self.partitions.rollback()
            self._is_moved = False

    def _ordered(self) -> list[ViewMap]:
        """The views of its own that are kept in some order, too."""
        return [view for view in self._own_views if view.orders]

    def nbytes(self) -> dict[str, int]:
        """Bytes of each stored view and of its indexes, but for those borrowed."""
        sizes = {}
        for name, view in self.maps.items():
            if name in self.borrowed:
                continue
            sizes[name] = view.nbytes
            for i, words in enumerate(view.index_words):
                sizes[f"{name}.index{listed_columns(words)}"] = view.index_nbytes(i)
            for by, order in view.orders.items():
                sizes[f"{name}.order{listed_columns(by)}"] = order.nbytes
        return sizes

    def python_parts(self) -> list[str]:
        """The sub-expressions that Python computes."""
        return [part for leaf in self.leaves for part in leaf.python_parts()]


def leaf_program_of(state: TreeState, atom: int, code: TriggerCode) -> LeafProgram | None:
    """The program that puts a change of an atom into the first registers of some code, if there is one."""
    program, trigger = state.program, state.triggers[atom]
    lift = next(s for s in trigger.statements if isinstance(s, LiftRows))
    keys = program.view(lift.target).keys
    try:
        return leaf_program(program.block, trigger.atom, keys, code.leaf, code.registers, state.dictionary)
    except NoLeafProgram:
        return None


def without_writes(program: TreeProgram, trigger: Trigger, borrowed: frozenset[str]) -> Trigger:
    """The trigger without additions to borrowed views, nor what is computed for nothing else."""
    if not borrowed:
        return trigger
    needed = {program.result} - program.stored  # a result that is not stored is passed on
    kept: list[TreeStatement] = []
    for statement in reversed(trigger.statements):
        match statement:
            case Add(target=target):
                if target in borrowed:
                    continue
                needed.add(target)
            case Compute(target=target, source=source):
                if target not in needed:
                    continue
                needed.add(source)
            case AddIndicator(source=source):
                needed.add(source)
            case LiftRows():
                pass
            case SeeAs() | Split() | CountDegrees() | TurnKeys():
                raise AssertionError("trees with parts share no views")
        kept.append(statement)
    return Trigger(trigger.atom, tuple(reversed(kept)))
