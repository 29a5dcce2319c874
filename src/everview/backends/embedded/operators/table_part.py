"""Rows of a table that meet a condition, in some columns, as joins look them up: in the table's arrangement, or kept apart.

Where a join reads a filter of a table, it may search an arrangement of the rows that pass. Several such arrangements hold the
same rows again and again, if most rows pass. These are then found in the one arrangement of the table, and the condition is
tested on what is found, which is at most twice too much where half of the table's rows pass and differ in the columns.

The first such part of a table keeps its rows apart, which takes less memory. With the second, or where the table is arranged
anyway, all are found in the table's arrangement. A condition that can fail is never tested there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate
from everview.backends.embedded.operators.base import Searched
from everview.backends.embedded.operators.table_arrangement import TableArrangement, TableColumns
from everview.backends.embedded.vectors import Ints
from everview.relational.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    remap_columns,
)
from everview.relational.failing import can_fail

if TYPE_CHECKING:
    from everview.backends.embedded.sources import ScanOperator

_KEEPING_MOST = frozenset(("not", "isnotnull"))


@dataclass(frozen=True, slots=True)
class TablePart:
    """π[columns](σ[condition](T)), with all columns at their positions in the table T, of which ``scan`` reads them."""

    scan: ScanOperator
    columns: tuple[int, ...]
    condition: Expression = TRUE

    def where(self, condition: Expression) -> TablePart | None:
        """The rows of it that meet a condition over its columns; None if that can fail."""
        if can_fail(condition):
            return None
        own = remap_columns(condition, self.columns.__getitem__)
        return replace(self, condition=conjunction((*conjuncts(self.condition), *conjuncts(own))))

    def of(self, expressions: Sequence[Expression]) -> TablePart | None:
        """Some of its columns; None if something is computed."""
        columns = tuple(self.columns[e.index] for e in expressions if isinstance(e, Column))
        return replace(self, columns=columns) if len(columns) == len(expressions) else None

    @property
    def keeps_most(self) -> bool:
        """Whether probably most rows of the table pass, as far as the condition alone tells."""
        return all(isinstance(c, Call) and c.function in _KEEPING_MOST for c in conjuncts(self.condition))


class PartColumns(TableColumns):
    """Some columns of a table's arrangement, and only the rows that meet a condition."""

    def __init__(self, table: TableArrangement, part: TablePart, dictionary: Dictionary) -> None:
        super().__init__(table, part.columns)
        tested = tuple(sorted(columns_of(part.condition)))
        self._reader = table.reader(part.scan.columns)
        self._tested = TableColumns(table, tested)
        self._holds = compile_predicate(remap_columns(part.condition, tested.index), dictionary)

    @property
    def reader(self) -> Searched:
        """The scan's place in the arrangement."""
        return self._reader

    def found(self, columns: Sequence[int], keys: Ints) -> tuple[Ints, Ints]:
        """Pairs of a key and the slot of a row that has it, and that passes."""
        rows, slots = super().found(columns, keys)
        kept = self._passing(slots)
        return rows[kept], slots[kept]

    def live_slots(self) -> Ints:
        """The slots of the rows that pass."""
        slots = super().live_slots()
        return slots[self._passing(slots)]

    def _passing(self, slots: Ints) -> Ints:
        return np.flatnonzero(self._holds(self._tested.at(slots).columns, len(slots)))
