"""Full refresh: the result computed from scratch whenever an input has changed, and compared with what it was.

The baseline that incremental maintenance is measured against (``strategy="recompute"``): base rows and the result are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.backends.embedded.arrow_columns import bag_table, vector_from_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Arrangement, Operator, consolidated
from everview.backends.embedded.vectors import Batch, concatenate, unit_weights
from everview.relational import spark_code
from everview.relational.arrow import canonical_floats
from everview.relational.nodes import Schema, SparkQuery
from everview.relational.schema import schema

Evaluate = Callable[[Sequence[Batch]], Batch]


class GivenOperator(Operator):
    """A bag that is at hand, as the input of a computation that happens once."""

    def __init__(self, fields: Schema, rows: Batch) -> None:
        super().__init__(fields, ())
        self._rows = rows

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        return None

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self._rows

    def load(self, contents: Sequence[Batch]) -> Batch:
        return self._rows

    def describe(self) -> str:
        return f"given, {len(self._rows)} rows"


class RecomputeOperator(Operator):
    """A query evaluated anew after every change of its inputs."""

    def __init__(self, fields: Schema, inputs: tuple[Operator, ...], evaluate: Evaluate, by: str = "") -> None:
        super().__init__(fields, inputs)
        self._evaluate = evaluate
        self._by = by
        self._held: tuple[Arrangement, ...] = tuple(i.arranged() for i in inputs)
        self._rows = self.nothing()
        self._before: Batch | None = None

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        before = self._rows
        after = self._evaluate([a.content() for a in self._held])
        self._before, self._rows = before, after
        delta = consolidated(concatenate([after, before.negated()]), self.layout)
        return delta if len(delta) else None

    def load(self, contents: Sequence[Batch]) -> Batch:
        self._rows = self._evaluate(contents)
        return self._rows

    def content(self) -> Batch:
        return self._rows

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self._rows

    def commit(self) -> None:
        self._before = None

    def rollback(self) -> None:
        if self._before is not None:
            self._rows, self._before = self._before, None

    def searches(self) -> tuple[Arrangement, ...]:
        return self._held

    def describe(self) -> str:
        return f"computed anew{self._by and ' '}{self._by} after every change: O(N)"


def answer_of_spark(query: SparkQuery, dictionary: Dictionary) -> Evaluate:
    """Lets Spark answer a query over the contents of its inputs."""

    def evaluate(contents: Sequence[Batch]) -> Batch:
        given = [bag_table(rows, schema(i), dictionary) for rows, i in zip(contents, query.inputs, strict=True)]
        found = spark_code.answer(query, given)
        columns = tuple(
            vector_from_arrow(canonical_floats(c, f.type), f.type, dictionary)
            for c, f in zip(found.columns, query.fields, strict=True)
        )
        return Batch(columns, unit_weights(found.num_rows))

    return evaluate
