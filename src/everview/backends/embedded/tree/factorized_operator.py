"""A result that stays factorized: the views at the top of a free-top tree are the result, and rows are listed when asked for.

An update costs what the tree costs, whatever the number of result rows it changes; so there is no delta to pass on. Rows come
from the tree one after another with a delay that does not depend on how many there are (section 7.1 of F-IVM), bound to values
of some columns or not. A sum that does not fit its type fails when it is read: no single view holds it before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import prod

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.operators.base import Arrangement, Operator
from everview.backends.embedded.state.accumulate import total_weight
from everview.backends.embedded.tree.answers import finishers
from everview.backends.embedded.tree.block_layout import key_layout
from everview.backends.embedded.tree.enumeration import Enumeration, Piece
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked
from everview.backends.embedded.tree.tree_state import TreeState
from everview.backends.embedded.vectors import Batch, Ints, KeyLayout, Vector, concatenate
from everview.errors import InternalError, UnsupportedOperation
from everview.planner.block import Block
from everview.relational.expressions import Column, Expression
from everview.relational.nodes import Schema
from everview.trigger.plan_factorized import FactorizedPlan

PIECE = 16_384
"""Rows of a batch of the enumeration, at most."""


class FactorizedOperator(TreeBacked):
    """The rows of a join, or the groups of an aggregate over one, kept as a tree of views."""

    def __init__(
        self, fields: Schema, plan: FactorizedPlan, inputs: tuple[Operator, ...], dictionary: Dictionary
    ) -> None:
        factorized = plan.factorized
        super().__init__(fields, inputs, factorized.program, factorized.loading, plan.plan, dictionary)
        self._factorized = factorized
        self.skew = plan.skew
        """The plan of heavy and light parts, if it has them."""
        block = plan.block
        self._keys = tuple(dict.fromkeys(block.keys))
        self._enumerate()
        self._layout = key_layout(block, self._keys)
        self._places = tuple(self._keys.index(k) for k in block.keys)
        self._is_aggregate = plan.is_aggregate
        self._finish = finishers(block, block.monomials, self.enumeration.offsets, dictionary, bears_loss=True)
        self._project = compile_projection(plan.outputs, dictionary)
        self._variables = tuple(_variable(e, block) for e in plan.outputs)
        self._version = 0
        self._is_moved = False

    def begin(self) -> None:
        self._version, self._is_moved = self._version + 1, True
        super().begin()

    def moved(self) -> Batch | None:
        """There is no delta of the listing."""
        return None

    def adopt(self, state: TreeState) -> None:
        is_other = any(self.state.maps[name] is not view for name, view in state.maps.items())
        super().adopt(state)
        if is_other:
            self._version += 1
            self._enumerate()

    def ask_for_indexes(self) -> None:
        self._enumerate()

    def _enumerate(self) -> None:
        """Reads rows off the views of the state."""
        program = self.state.program
        self.enumerations = [
            Enumeration(replace(self._factorized, program=program, steps=b.steps), self.state.maps, self._keys)
            for b in self._factorized.branches
        ]
        self.enumeration = self.enumerations[0]
        assert all(e.offsets == self.enumeration.offsets for e in self.enumerations), "branches have one payload"

    def load(self, contents: Sequence[Batch | None]) -> Batch:
        """Takes in the inputs; the result is not listed."""
        if self.loading is None:
            self.take(contents)
        else:
            self._version += 1
            self.state = self.state.loaded(self.loading, self.inputs, self._dictionary, contents)
            self._enumerate()
        return self.nothing()

    def iterate(self, size: int = PIECE) -> Iterator[Batch]:
        """The rows in batches of up to ``size``, the first of them at once; a row occurs in one place, with its multiplicity.

        Raises:
            UnsupportedOperation: if the view changes before the last batch.
        """
        return self._batches({}, size)

    def _batches(self, bound: dict[str, Ints], size: int) -> Iterator[Batch]:
        started, found = self._version, False
        for piece in chain.from_iterable(e.pieces(bound, size) for e in self.enumerations):
            batch = self._rows(piece)
            if len(batch):
                found = True
                yield batch
            if self._version != started:
                raise UnsupportedOperation(
                    "the view has changed while its rows were being listed.", hint="List them again, or use rows()."
                )
        if self._is_aggregate and not self._keys and not found:
            # Without keys there is always one group, also an empty one.
            width = self.enumeration.payload_words
            yield self._answers(np.zeros((1, 1), dtype=np.int64), np.zeros((1, width), dtype=np.int64))

    def _rows(self, piece: Piece) -> Batch:
        counts = piece.payloads[:, 0]
        keys, payloads = piece.keys, piece.payloads
        # Within a transaction an entry may be zero and still be there.
        if not counts.all():
            live = counts != 0
            keys, payloads = keys[live], payloads[live]
        if self._is_aggregate:
            return self._answers(keys, payloads)
        return Batch(self._project(self._columns(keys), len(payloads)), payloads[:, 0].copy())

    def _answers(self, keys: Ints, payloads: Ints) -> Batch:
        columns = (*self._columns(keys), *(finish(payloads) for finish in self._finish))
        return Batch(self._project(columns, len(payloads)), np.ones(len(payloads), dtype=np.int64))

    def _columns(self, keys: Ints) -> tuple[Vector, ...]:
        vectors = self._layout.unpack(keys) if self._keys else ()
        return tuple(vectors[p] for p in self._places)

    def content(self) -> Batch:
        """All rows, listed."""
        return self._joined(self.iterate())

    def _joined(self, batches: Iterator[Batch]) -> Batch:
        found = list(batches)
        return concatenate(found) if found else self.nothing()

    def lookup(self, columns: Sequence[int], values: Sequence[Vector]) -> Batch:
        """The rows with these values (vectors of one row) in these columns; NULL finds NULL.

        Columns that are variables restrict the enumeration: by slices where they come first in its order, else by leaving out
        what does not fit; other columns are computed and compared.
        """
        bound: dict[str, Ints] = {}
        others: list[tuple[int, Vector]] = []
        for column, value in zip(columns, values, strict=True):
            variable = self._variables[column]
            if variable is None:
                others.append((column, value))
                continue
            words = self._words(variable, value)
            if words is None or (variable in bound and (bound[variable] != words).any()):
                return self.nothing()
            bound[variable] = words
        return self._joined(_only(batch, others, self.layout) for batch in self._batches(bound, PIECE))

    def _words(self, variable: str, value: Vector) -> Ints | None:
        """The words of a value of a variable; None if it has none."""
        declared = self.program.block.variable(variable)
        if value.nulls is not None and value.nulls.any() and not declared.nullable:
            return None
        (words,) = KeyLayout((declared.type,), (declared.nullable,)).pack((value,), 1)
        return np.asarray(words)

    def count(self) -> int:
        """The number of rows, by multiplicity: for a join the product of the roots' counts, without listing anything."""
        if self._is_aggregate:
            return sum(len(batch) for batch in self.iterate())
        maps = [[self.state.maps[name] for name in branch.roots] for branch in self._factorized.branches]
        return sum(prod(total_weight(v.entries[v.live_slots(), v.offsets[0]]) for v in roots) for roots in maps)

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self.content()

    def arranged(self) -> Arrangement:
        raise InternalError("a factorized result has no delta, so nothing can be kept by it.")

    def commit(self) -> None:
        self._end()
        super().commit()

    def rollback(self) -> None:
        self._end()
        super().rollback()

    def _end(self) -> None:
        """Entries are about to go: whoever lists them has to begin again."""
        self._version += self._is_moved
        self._is_moved = False

    def python_parts(self) -> list[str]:
        return [*super().python_parts(), *self._project.definitions(tuple(self.program.block.keys))]

    def describe(self) -> str:
        order, names = ", ".join(self._factorized.order), ", ".join(self.state.maps)
        atoms = len(self.program.block.atoms)
        return f"factorized result [{order}] over {atoms} relations, storing {names}"


def _variable(output: Expression, block: Block) -> str | None:
    """The variable that an output column is, if it is one."""
    if not isinstance(output, Column) or output.index >= len(block.keys):
        return None
    name = block.keys[output.index]
    return name if block.variable(name).type == output.type else None


def _only(batch: Batch, wanted: list[tuple[int, Vector]], layout: KeyLayout) -> Batch:
    """The rows with the wanted values."""
    mask = np.ones(len(batch), dtype=np.bool_)
    for column, value in wanted:
        part = layout.part((column,))
        if value.nulls is not None and value.nulls.any() and not part.nullable[0]:
            mask[:] = False
            break
        mask &= (part.pack((batch.columns[column],), len(batch)) == part.pack((value,), 1)).all(axis=1)
    return batch.take(mask)
