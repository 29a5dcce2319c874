"""Operators whose output change is a function of the input change alone: all linear, none keeps state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate, compile_projection
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.table_part import TablePart
from everview.backends.embedded.sources import ScanOperator
from everview.backends.embedded.vectors import Batch, DeferredBatch, concatenate
from everview.errors import EvaluationError
from everview.relational.evaluate import compile_expression
from everview.relational.failing import can_fail
from everview.relational.nodes import Filter, Project, UnionAll
from everview.relational.schema import schema
from everview.relational.sql_text import sql_text
from everview.relational.types import Row


class FilterOperator(Operator):
    """δσ[p](R) = σ[p](δR)."""

    survives_lack_of_memory = True

    def __init__(self, node: Filter, child: Operator, dictionary: Dictionary) -> None:
        super().__init__(schema(node), (child,))
        self._holds = compile_predicate(node.condition, dictionary)
        part = _part_read(child)
        self.part = None if part is None else part.where(node.condition)
        self._text = sql_text(node.condition, tuple(f.name for f in child.fields))

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        (delta,) = deltas
        if delta is None:
            return None
        mask = self._holds(delta.columns, len(delta))
        kept = np.count_nonzero(mask)
        if kept == len(delta):
            return delta
        return delta.take(mask) if kept else None

    def python_parts(self) -> list[str]:
        return list(self._holds.definitions(tuple(f.name for f in self.inputs[0].fields)))

    def describe(self) -> str:
        return f"filter {self._text}"


class ProjectOperator(Operator):
    """δπ[e](R) = π[e](δR)."""

    survives_lack_of_memory = True

    def __init__(self, node: Project, child: Operator, dictionary: Dictionary) -> None:
        super().__init__(schema(node), (child,))
        self._project = compile_projection(node.expressions, dictionary)
        part = _part_read(child)
        self.part = None if part is None else part.of(node.expressions)
        self._by_row = tuple(compile_expression(e) for e in node.expressions)
        self._risky = tuple(f for f, e in zip(self._by_row, node.expressions, strict=True) if can_fail(e))
        names = tuple(f.name for f in child.fields)
        self._text = ", ".join(sql_text(e, names) for e in node.expressions)

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        (delta,) = deltas
        if delta is None:
            return None
        if isinstance(delta, DeferredBatch) and not delta.is_made and self._will_succeed(delta):
            waiting, arriving = delta, delta.arriving
            row = None if arriving is None else lambda: self._row(arriving())
            return DeferredBatch(lambda: self._projected(waiting), waiting.held, row)
        return self._projected(delta)

    def _row(self, row: Row) -> Row:
        return tuple(evaluate(row) for evaluate in self._by_row)

    def _projected(self, delta: Batch) -> Batch:
        return Batch(self._project(delta.columns, len(delta)), delta.weights)

    def _will_succeed(self, delta: DeferredBatch) -> bool:
        """Whether no expression can fail on what the change inserts; what it deletes has been computed before."""
        if not self._risky:
            return True
        if delta.arriving is None:
            return False
        row = delta.arriving()
        try:
            for evaluate in self._risky:
                evaluate(row)
        except EvaluationError:
            return False  # computing it in the general way says so
        return True

    def python_parts(self) -> list[str]:
        return list(self._project.definitions(tuple(f.name for f in self.inputs[0].fields)))

    def describe(self) -> str:
        return f"project [{self._text}]"


def _part_read(child: Operator) -> TablePart | None:
    return TablePart(child, child.columns) if isinstance(child, ScanOperator) else child.part


class UnionAllOperator(Operator):
    """δ(R ⊎ S) = δR ⊎ δS."""

    survives_lack_of_memory = True

    def __init__(self, node: UnionAll, inputs: tuple[Operator, ...]) -> None:
        super().__init__(schema(node), inputs)

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        parts = [d for d in deltas if d is not None and len(d)]
        return concatenate(parts) if parts else None

    def describe(self) -> str:
        return "union all"
