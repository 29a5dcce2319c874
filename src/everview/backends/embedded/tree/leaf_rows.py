"""What a change of an atom becomes before its trigger runs, in the general way: with NULLs, and numbers of any width.

Also the predicates over several atoms, which a machine leaves to the same evaluator.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from everview.algebra.registry import ring_named
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate, compile_projection
from everview.backends.embedded.operators.ring_sums import lifted_column
from everview.backends.embedded.tree.block_layout import key_layout
from everview.backends.embedded.tree.pauses import MaskPause, RangePause
from everview.backends.embedded.tree.range_sums import RangeSums
from everview.backends.embedded.tree.trigger_code import LeafRegisters
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Batch, Ints, KeyLayout, Vector
from everview.planner.block import BlockAtom, RingLift, Variable
from everview.relational.expressions import TRUE
from everview.relational.nodes import Schema
from everview.trigger.tree_program import TreeProgram


class LeafBatch:
    """What a change of an atom becomes before its trigger runs: key words, lifted values and weights."""

    def __init__(self, program: TreeProgram, number: int, fields: Schema, dictionary: Dictionary) -> None:
        atom: BlockAtom = program.block.atoms[number]
        self._names = tuple(f.name for f in fields)
        self._where = None if atom.condition == TRUE else compile_predicate(atom.condition, dictionary)
        lifted = [lift.expressions for lift in atom.lifts]
        self._expressions = (*(e for _, e in atom.variables), *(e for own in lifted for e in own))
        self._project = compile_projection(self._expressions, dictionary)
        view = next(
            v for v in program.views if v.atoms == frozenset({number}) and set(v.keys) == {n for n, _ in atom.variables}
        )
        order = [n for n, _ in atom.variables]
        self._key_places = tuple(order.index(k) for k in view.keys)
        self._layouts = tuple(key_layout_of(program.block.variable(k)) for k in view.keys)
        ends = np.cumsum([len(order), *(len(own) for own in lifted)]).tolist()
        self._places = [slice(start, end) for start, end in pairwise(ends)]
        self._lifts = atom.lifts
        self._dictionary = dictionary

    def registers(self, delta: Batch, leaf: LeafRegisters) -> tuple[list[tuple[int, Ints]], int]:
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
            for register, words in zip(registers, key_words(vectors[place], layout), strict=True):
                given.append((register, words))
        for lift, register in leaf.lifts:
            given.append((register, lifted_words(*vectors[self._places[lift]])))
        for lift, registers in leaf.elements:
            found = self._lifts[lift]
            assert isinstance(found, RingLift), "elements are those of rings"
            words = element_words(found, vectors[self._places[lift]], count, self._dictionary)
            given += zip(registers, words, strict=True)
        given.append((leaf.weights, np.ascontiguousarray(delta.weights)))
        return given, count

    def python_parts(self) -> list[str]:
        """The sub-expressions that Python computes."""
        return list(self._project.definitions(self._names))


def key_layout_of(variable: Variable) -> KeyLayout:
    """How one variable lies in a key."""
    return KeyLayout((variable.type,), (variable.nullable,))


def key_words(vector: Vector, layout: KeyLayout) -> list[Ints]:
    """The words of a variable, each as an array."""
    packed = layout.pack((vector,), len(vector))
    if layout.width == 1:
        return [packed.reshape(-1)]
    return [np.ascontiguousarray(packed[:, w]) for w in range(layout.width)]


def lifted_words(vector: Vector) -> Ints:
    """The values as words; a NULL is 0."""
    values = vector.values
    if vector.nulls is not None and vector.nulls.any():
        values = values.copy()
        values[vector.nulls] = 0
    values = np.ascontiguousarray(values)
    return values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64, copy=False)


def element_words(lift: RingLift, arguments: Sequence[Vector], count: int, dictionary: Dictionary) -> Ints:
    """The elements of ``count`` rows, word by word: [words of an element, rows]; where an argument is NULL, 0."""
    entry = ring_named(lift.ring)
    missing = np.zeros(count, dtype=np.bool_)
    for vector in arguments:
        if vector.nulls is not None:
            missing |= vector.nulls
    kept = None if not missing.any() else np.flatnonzero(~missing)
    given = [v if kept is None else v.take(kept) for v in arguments]
    product = entry.product([lifted_column(v, dictionary) for v in given], lift.positions)
    words = np.zeros((entry.ring.width, count), dtype=np.int64)
    words[:, slice(None) if kept is None else kept] = product.view(np.int64).T
    return words


class Masks:
    """Evaluates predicates over several atoms, for the rows of a frame, and sums the ranges that they cut out of a view."""

    def __init__(self, program: TreeProgram, dictionary: Dictionary) -> None:
        block = program.block
        self._block, self._program, self._dictionary = block, program, dictionary
        self._ranges: dict[RangePause, RangeSums] = {}
        self._predicates = {r: compile_predicate(r.condition, dictionary) for r in block.residuals}
        self._layouts = {r: key_layout(block, r.variables) for r in block.residuals}

    def __call__(self, pause: MaskPause, columns: list[Ints]) -> Ints:
        """1 where the predicate holds, by row."""
        keys = np.stack(columns, axis=1)
        vectors = self._layouts[pause.residual].unpack(keys)
        return self._predicates[pause.residual](vectors, len(keys)).astype(np.int64)

    def sums(self, pause: RangePause, view: ViewMap, columns: list[Ints]) -> Ints:
        """The sums of ranges of a view, a row of payload words each."""
        known = self._ranges.get(pause)
        if known is None or known.view is not view:
            known = self._ranges[pause] = RangeSums(self._block, self._program, pause, view, self._dictionary)
        return known.sums(columns)
