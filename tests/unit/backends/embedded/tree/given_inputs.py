"""A tree operator over relations that a test holds as plain rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from everview.backends.embedded.arrow_columns import vector_from_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.join_tree_operator import JoinTreeOperator
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.vectors import Batch, DeferredBatch
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.relational.arrow import column_to_arrow
from everview.relational.expressions import Expression
from everview.relational.nodes import Relation, Schema
from everview.relational.schema import schema
from everview.relational.types import NAN, Row
from everview.trigger.plan_block import Lowered
from tests.oracle.bags import assert_same_bag
from tests.unit.backends.embedded.expressions.expressions_checks import values_in

Change = Mapping[str, tuple[Sequence[Row], Sequence[Row]]]
"""By table, the rows that come and those that go."""


class GivenOperator(Operator):
    """An input whose deltas the test hands in."""

    def describe(self) -> str:
        return "given"


def batch_of(fields: Schema, rows: Sequence[Row], weights: Sequence[int], dictionary: Dictionary) -> Batch:
    """Rows as columns."""
    columns = tuple(
        vector_from_arrow(column_to_arrow([r[i] for r in rows], f.type), f.type, dictionary)
        for i, f in enumerate(fields)
    )
    return Batch(columns, np.array(weights, dtype=np.int64))


def bag_of(batch: Batch | None, dictionary: Dictionary) -> Counter[Row]:
    """The rows of a batch with their weights."""
    bag: Counter[Row] = Counter()
    if batch is not None and len(batch):
        columns = [values_in(c, dictionary) for c in batch.columns]
        rows = list(zip(*columns, strict=True)) if columns else [()] * len(batch)
        for row, weight in zip(rows, batch.weights.tolist(), strict=True):
            bag[row] += weight
    return without_zeros(bag)


def without_zeros(bag: Counter[Row]) -> Counter[Row]:
    """Only what is there; a NaN is the one NaN, so that rows with it are equal."""
    clean: Counter[Row] = Counter()
    for row, weight in bag.items():
        clean[tuple(NAN if isinstance(v, float) and math.isnan(v) else v for v in row)] += weight
    return Counter({r: w for r, w in clean.items() if w})


class TreeRun:
    """A tree operator with the tables it is over, which the test changes; for a join, with its ``outputs``.

    ``accumulated`` is the sum of all deltas that the operator has put out.
    """

    def __init__(
        self,
        relation: Relation,
        lowered: Lowered,
        tables: dict[str, list[Row]],
        outputs: tuple[Expression, ...] | None = None,
    ) -> None:
        self.relation = relation
        self.dictionary = Dictionary()
        self.tables = tables
        self.atoms = [a.input for a in lowered.program.block.atoms]
        inputs = tuple(GivenOperator(schema(a), ()) for a in self.atoms)
        self.operator: TreeOperator | JoinTreeOperator
        if outputs is None:
            self.operator = TreeOperator(schema(relation), lowered, inputs, self.dictionary)
        else:
            self.operator = JoinTreeOperator(schema(relation), lowered, outputs, inputs, self.dictionary)
        loaded = self.operator.load([self._batch(a, self.tables, {}) for a in self.atoms])
        self.operator.commit()
        self.accumulated = bag_of(loaded, self.dictionary)

    def _batch(self, atom: Relation, come: Mapping[str, Sequence[Row]], gone: Mapping[str, Sequence[Row]]) -> Batch:
        every = {t: list(come.get(t, ())) for t in self.tables}
        back = {t: list(gone.get(t, ())) for t in self.tables}
        added, removed = evaluate_plan(atom, every), evaluate_plan(atom, back)
        weights = [1] * len(added) + [-1] * len(removed)
        return batch_of(schema(atom), [*added, *removed], weights, self.dictionary)

    def expected(self) -> Counter[Row]:
        """The answer by definition."""
        return without_zeros(Counter(evaluate_plan(self.relation, self.tables)))

    def content(self) -> Counter[Row]:
        """The answer that the operator holds; a join computes it anew."""
        if isinstance(self.operator, TreeOperator):
            return bag_of(self.operator.content(), self.dictionary)
        return bag_of(self.operator.recompute([self._batch(a, self.tables, {}) for a in self.atoms]), self.dictionary)

    def push(self, change: Change) -> Counter[Row]:
        """Passes a change on, without ending the transaction; returns the operator's delta."""
        come = {t: c for t, (c, _) in change.items()}
        gone = {t: g for t, (_, g) in change.items()}
        batches = [self._batch(a, come, gone) for a in self.atoms]
        delta = self.operator.push([b if len(b) else None for b in batches])
        if isinstance(delta, DeferredBatch) and delta.arriving is not None:
            assert self.content() == Counter([delta.arriving()]), "the row at hand is the one that the operator holds"
        return bag_of(delta, self.dictionary)

    def commit(self, change: Change) -> None:
        """A whole transaction."""
        delta = self.push(change)
        self.operator.commit()
        for table, (come, gone) in change.items():
            for row in gone:
                self.tables[table].remove(row)
            self.tables[table].extend(come)
        self.accumulated.update(delta)
        self.accumulated = without_zeros(self.accumulated)

    def roll_back(self, change: Change) -> None:
        """A transaction that fails after the operator has seen it."""
        self.push(change)
        self.operator.rollback()

    def check(self) -> None:
        """The law: what is held is what recomputing gives, and what was put out is what is held, to the last bit."""
        held = self.content()
        assert self.accumulated == held
        assert_same_bag(list(held.elements()), list(self.expected().elements()), str(self.relation))
