"""A view as its deltas tell it: their sum must be its content, after every transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

import everview as ev
from everview.relational.arrow import canonical_rows, public_rows, rows_from_arrow, rows_to_arrow
from everview.relational.nodes import Relation, Schema
from everview.relational.schema import schema
from everview.relational.types import Row
from tests.oracle.bags import assert_same_bag

WEIGHT = "_weight"


class Followed:
    """A view, the plan of its query, and its content as the sum of its deltas.

    A view that is suspended from the start has no rows before it answers. ``has_deltas`` is false of a view that keeps no
    listing of its rows: of that only the rows are compared.
    """

    def __init__(self, view: ev.View, plan: Relation, version: int, *, has_deltas: bool = True) -> None:
        self.view = view
        self.plan = plan
        self.fields: Schema = schema(plan)
        self._sum = Counter(self._rows(view.to_arrow()) if view.suspension is None else ())
        self._version = version
        self._has_deltas = has_deltas

    def check(self, expected: Sequence[Row], version: int) -> None:
        """The view has these rows, and the sum of its deltas equals the view."""
        what = f"version {version} of {self.view.query}"
        assert_same_bag(self._rows(self.view.to_arrow()), canonical_rows(expected, self.fields), what)
        try:
            public = public_rows(rows_to_arrow(expected, self.fields))
        except ev.UnsupportedOperation:
            pass  # dates beyond the year 9999 are no dates of Python's
        else:
            assert_same_bag(self.view.rows(), public, what)
        if not self._has_deltas:
            return
        for change in self.view.changes(since=self._version):
            assert self._version < change.version <= version, "deltas come in order, once each"
            self._version = change.version
            self._add(change.delta)
        self._version = version
        assert self._sum == Counter(self._rows(self.view.to_arrow())), "the sum of the deltas is the content"

    def _add(self, delta: pa.Table) -> None:
        rows = self._rows(delta.drop_columns([WEIGHT]))
        assert rows, "a version that did not move the view has no delta"
        assert len(set(rows)) == len(rows), "a delta has each row once"
        for row, weight in zip(rows, delta.column(WEIGHT).to_pylist(), strict=True):
            assert weight != 0, "a delta has no row of weight 0"
            assert self._sum[row] + weight >= 0, f"a delta deletes {row}, which is not there"
            self._sum[row] += weight
        self._sum = +self._sum

    def _rows(self, table: pa.Table) -> list[Row]:
        return rows_from_arrow(table, self.fields)
