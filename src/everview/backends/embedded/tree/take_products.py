"""Runs the triggers of a program over products: one assembled trigger for each shape of product that has come so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from everview.algebra.registry import ring_named
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate, compile_projection
from everview.backends.embedded.factorized_batch import FactorBatch, FactorProduct, expand
from everview.backends.embedded.state.accumulate import joined_weights, total_weight
from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree.assemble_product import NeedsRows, ProductAssembler, ProductCode
from everview.backends.embedded.tree.factor_plan import FactorPlan, Partition, ProductPlan, plan_factors
from everview.backends.embedded.tree.leaf_rows import element_words, key_layout_of, key_words, lifted_words
from everview.backends.embedded.tree.machine import Evaluations, RegisterMachine, Scratch
from everview.backends.embedded.tree.trigger_code import LeafRegisters
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Batch, Ints
from everview.planner.block import Number, RingLift
from everview.planner.moments_part import MomentsShape
from everview.relational.expressions import TRUE, Expression, remap_columns
from everview.relational.functions.failures import count_overflow
from everview.trigger.tree_program import LiftRows, TreeProgram, Trigger

LARGEST_SPLIT = 2.0**32
"""Floats below this have a product that a tree takes; larger ones, and those that are not finite, are multiplied row by row."""
MOST_SHAPES = 64
"""Shapes of products for which assembled triggers are kept."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the machines of a tree share."""

    program: TreeProgram
    triggers: Sequence[Trigger]
    maps: Mapping[str, ViewMap]
    views: Ints
    number_of: Callable[[str], int]
    scratch: Scratch
    masks: Evaluations
    dictionary: Dictionary


class ProductTriggers:
    """The triggers of a tree, for products."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._in = surroundings
        self._triggers = {t.atom: t for t in surroundings.triggers}
        self._made: dict[tuple[int, Partition], _ProductTrigger | None] = {}

    def run(self, atom: int, product: FactorProduct) -> bool:
        """Takes a product in as a change of an atom; False if it has to be expanded, and nothing has happened."""
        factors = sorted(_without_scalars(product), key=len)
        if len(factors) < 2:
            return False
        shape = (atom, tuple(frozenset(f.columns) for f in factors))
        if shape not in self._made:
            if len(self._made) >= MOST_SHAPES:
                self._made.clear()
            self._made[shape] = self._make(self._triggers[atom], shape[1])
        trigger = self._made[shape]
        return trigger is not None and trigger.run(factors)

    def _make(self, trigger: Trigger, partition: Partition) -> _ProductTrigger | None:
        """The machine for products over these columns; None if the tree needs their rows."""
        block = self._in.program.block
        if self._in.program.has_indicators(trigger):
            return None  # an indicator closes a cycle, and so connects the factors
        together: list[frozenset[int]] = []
        moments = block.moments or MomentsShape((), 1, ())
        features, made = moments.read_of(trigger.atom), moments.made_of(trigger.atom)
        while True:
            plan = plan_factors(block.atoms[trigger.atom], partition, together, features, made)
            if len(plan.factors) < 2:
                return None
            assembler = ProductAssembler(self._in.program, dict(self._in.maps), self._in.number_of)
            try:
                code = assembler.assemble_product(trigger, plan)
            except NeedsRows as needs:
                if len(needs.factors) < 2:
                    return None
                together.append(frozenset(m for f in needs.factors for m in plan.factors[f].members))
                continue
            return _ProductTrigger(self._in, trigger, plan, code)


class _ProductTrigger:
    """One trigger for products of one shape."""

    def __init__(self, surroundings: Surroundings, trigger: Trigger, plan: ProductPlan, code: ProductCode) -> None:
        program = surroundings.program
        lift = next(s for s in trigger.statements if isinstance(s, LiftRows))
        keys = program.view(lift.target).keys
        self._leaves = [_FactorLeaf(program, f, keys, plan.split, surroundings.dictionary) for f in plan.factors]
        self._plan = plan
        self._code = code
        maps = list(surroundings.maps.values())
        self._machine = ProductMachine(code, maps, surroundings.views, surroundings.scratch, surroundings.masks)

    def run(self, factors: Sequence[FactorBatch]) -> bool:
        given: list[tuple[int, Ints]] = []
        counts: list[tuple[int, int]] = []
        for plan, leaf, registers in zip(self._plan.factors, self._leaves, self._code.factors, strict=True):
            own = expand([factors[m] for m in plan.members])
            found = leaf.registers(own, registers.leaf)
            if found is None:
                return False
            arrays, count = found
            if not count:
                return True
            given += arrays
            counts.append((registers.frame, count))
        if self._code.unit is not None:
            given.append((self._code.unit.leaf.weights, np.ones(1, dtype=np.int64)))
            counts.append((self._code.unit.frame, 1))
        self._machine.run_factors(given, counts)
        return True


class ProductMachine(RegisterMachine):
    """Runs an assembled product trigger."""

    def __init__(
        self, code: ProductCode, maps: Sequence[ViewMap], views: Ints, scratch: Scratch, masks: Evaluations
    ) -> None:
        super().__init__(
            code.code, code.frames, code.registers, code.given, code.pauses, maps, views, scratch, masks, code.long_rows
        )
        self._kept = code

    def run_factors(self, given: Sequence[tuple[int, Ints]], counts: Sequence[tuple[int, int]]) -> None:
        """Runs over factors whose registers are given as contiguous arrays, with the rows of each frame."""
        for register, array in given:
            self._registers[register] = address_of(array)
        for frame, count in counts:
            if count > self._capacities[frame]:
                self._grow(frame, count)
            self._rows[frame] = count
        self._run()


class _FactorLeaf:
    """What a factor becomes before the trigger runs: key words, pieces of lifts, and weights."""

    def __init__(
        self,
        program: TreeProgram,
        plan: FactorPlan,
        keys: Sequence[str],
        split: frozenset[int],
        dictionary: Dictionary,
    ) -> None:
        place = {c: i for i, c in enumerate(plan.columns)}

        def moved(e: Expression) -> Expression:
            return remap_columns(e, lambda c: place[c])

        self._where = None if plan.condition == TRUE else compile_predicate(moved(plan.condition), dictionary)
        values = dict(plan.variables)
        own = [k for k in keys if k in values]
        self._pieces = dict(plan.pieces)
        expressions = [moved(values[k]) for k in own]
        self._place_of: dict[int, slice] = {}
        for lift, piece in self._pieces.items():
            start = len(expressions)
            expressions += map(moved, piece.expressions)
            self._place_of[lift] = slice(start, len(expressions))
        self._project = compile_projection(expressions, dictionary)
        self._layouts = tuple(key_layout_of(program.block.variable(k)) for k in own)
        self._split = frozenset(i for i, p in self._pieces.items() if i in split and p.number is not Number.COUNT)
        self._dictionary = dictionary

    def registers(self, factor: FactorBatch, leaf: LeafRegisters) -> tuple[list[tuple[int, Ints]], int] | None:
        """The arrays for the factor's registers and its number of rows; None if its floats must not be multiplied apart."""
        batch = factor.batch
        if self._where is not None:
            mask = self._where(batch.columns, len(batch))
            if not mask.all():
                batch = batch.take(mask)
        if not len(batch):
            return [], 0
        vectors = self._project(batch.columns, len(batch))
        given: list[tuple[int, Ints]] = []
        for vector, layout, registers in zip(vectors, self._layouts, leaf.keys, strict=False):
            given += zip(registers, key_words(vector, layout), strict=True)
        for lift, register in leaf.lifts:
            (vector,) = vectors[self._place_of[lift]]
            if lift in self._split and not _is_moderate(vector.values):
                return None
            given.append((register, lifted_words(vector)))
        for lift, words_of_element in leaf.elements:
            piece = self._pieces[lift]
            assert isinstance(piece, RingLift), "elements are those of rings"
            words = element_words(piece, vectors[self._place_of[lift]], len(batch), self._dictionary)
            if lift in self._split and not _is_moderate(words.view(ring_named(piece.ring).ring.dtype)):
                return None
            given += zip(words_of_element, words, strict=True)
        given.append((leaf.weights, np.ascontiguousarray(batch.weights)))
        return given, len(batch)


def _is_moderate(values: npt.NDArray[np.float64] | Ints) -> bool:
    """Whether a product of sums is the sum of the products; integers wrap around, in whatever order."""
    return values.dtype == np.int64 or bool((np.abs(values) < LARGEST_SPLIT).all())


def _without_scalars(product: FactorProduct) -> list[FactorBatch]:
    """The factors that have columns; what the others weigh goes to the first of them."""
    scalar, factors = 1, []
    for factor in product:
        if factor.columns:
            factors.append(factor)
        else:
            scalar *= total_weight(factor.batch.weights)
    if factors and scalar != 1:
        if abs(scalar) >= 1 << 63:
            raise count_overflow()
        first = factors[0]
        weights = joined_weights(first.batch.weights, np.full(len(first), scalar, dtype=np.int64))
        factors[0] = FactorBatch(first.columns, Batch(first.batch.columns, weights))
    return factors
