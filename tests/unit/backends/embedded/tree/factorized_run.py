"""A factorized operator over relations that a test holds as plain rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import constant_vector
from everview.backends.embedded.tree.factorized_operator import FactorizedOperator
from everview.backends.embedded.vectors import Batch
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.relational.expressions import Literal
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.types import Row, Value
from everview.trigger.plan_factorized import FactorizedPlan
from tests.unit.backends.embedded.tree.given_inputs import Change, GivenOperator, bag_of, batch_of, without_zeros


class FactorizedRun:
    """The operator with the tables it is over, which the test changes."""

    def __init__(self, relation: Relation, plan: FactorizedPlan, tables: dict[str, list[Row]]) -> None:
        self.relation = relation
        self.fields = schema(relation)
        self.dictionary = Dictionary()
        self.tables = tables
        self.atoms = [a.input for a in plan.block.atoms]
        inputs = tuple(GivenOperator(schema(a), ()) for a in self.atoms)
        self.operator = FactorizedOperator(self.fields, plan, inputs, self.dictionary)
        assert len(self.operator.load([self._batch(a, tables, {}) for a in self.atoms])) == 0
        self.operator.commit()

    def _batch(self, atom: Relation, come: Mapping[str, Sequence[Row]], gone: Mapping[str, Sequence[Row]]) -> Batch:
        added = evaluate_plan(atom, {t: list(come.get(t, ())) for t in self.tables})
        removed = evaluate_plan(atom, {t: list(gone.get(t, ())) for t in self.tables})
        weights = [1] * len(added) + [-1] * len(removed)
        return batch_of(schema(atom), [*added, *removed], weights, self.dictionary)

    def push(self, change: Change) -> None:
        """Passes a change on, without ending the transaction."""
        come, gone = ({t: c[side] for t, c in change.items()} for side in (0, 1))
        batches = [self._batch(a, come, gone) for a in self.atoms]
        assert self.operator.push([b if len(b) else None for b in batches]) is None

    def commit(self, change: Change, *, reads_before: bool = False) -> None:
        """A whole transaction; the result is right also before its end."""
        self.push(change)
        for table, (come, gone) in change.items():
            for row in gone:
                self.tables[table].remove(row)
            self.tables[table].extend(come)
        if reads_before:
            self.check()
        self.operator.commit()

    def roll_back(self, change: Change) -> None:
        """A transaction that fails after the operator has seen it."""
        self.push(change)
        self.operator.rollback()

    def expected(self) -> Counter[Row]:
        """The listing by definition."""
        return without_zeros(Counter(evaluate_plan(self.relation, self.tables)))

    def check(self) -> None:
        """What is enumerated, in one piece or in small ones, is what recomputing gives."""
        expected = self.expected()
        assert bag_of(self.operator.content(), self.dictionary) == expected
        pieces = list(self.pieces(3))
        assert sum(pieces, Counter[Row]()) == expected
        assert self.operator.count() == expected.total()

    def pieces(self, size: int) -> Iterator[Counter[Row]]:
        """The batches of an iteration."""
        for batch in self.operator.iterate(size):
            assert 0 < len(batch) <= size
            yield bag_of(batch, self.dictionary)

    def lookup(self, wanted: Mapping[int, Value]) -> Counter[Row]:
        """The rows with these values in these columns."""
        literals = (Literal(v, self.fields[c].type) for c, v in wanted.items())
        vectors = [constant_vector(literal, 1, self.dictionary) for literal in literals]
        return bag_of(self.operator.lookup(list(wanted), vectors), self.dictionary)

    def check_lookup(self, wanted: Mapping[int, Value]) -> None:
        """A look-up finds the rows of the listing with these values, and no others."""
        rows = self.expected().items()
        expected = Counter({r: n for r, n in rows if all(_is_same(r[c], v) for c, v in wanted.items())})
        assert self.lookup(wanted) == expected, wanted


def _is_same(one: Value, other: Value) -> bool:
    """Equality as Spark groups: NaN is NaN."""
    is_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return is_nan or bool(one == other)
