"""The row of a maintained value, read off changes and contents of all kinds."""

from __future__ import annotations

import math
from decimal import Decimal as Number

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.maintained_value import MaintainedValue
from everview.backends.embedded.vectors import Batch, DeferredBatch
from everview.relational.nodes import Field
from everview.relational.types import BOOLEAN, DATE, FLOAT64, INT64, STRING, Decimal, Row
from tests.unit.backends.embedded.tree.given_inputs import batch_of

FIELDS = tuple(
    Field(f"c{i}", t, nullable=True)
    for i, t in enumerate((INT64, Decimal(9, 2), Decimal(38, 4), FLOAT64, STRING, BOOLEAN, DATE))
)
OLD: Row = (1, Number("1.50"), Number("-12345678901234567890123.4567"), 0.5, "a", True, 19_000)
NEW: Row = (-7, Number("-2.25"), Number("12345678901234567890123.4567"), math.inf, "é", False, -1)
NONE: Row = (None,) * len(FIELDS)


def test_a_change_tells_the_row_that_comes() -> None:
    """Whatever its columns are, and wherever it is beside the row that goes."""
    dictionary = Dictionary()
    value = MaintainedValue([f.type for f in FIELDS], dictionary)
    for row in (NEW, NONE):
        assert value.moved(batch_of(FIELDS, [OLD, row], [-1, 1], dictionary)) == row
        assert value.moved(batch_of(FIELDS, [row, OLD], [1, -1], dictionary)) == row
        assert value.row(batch_of(FIELDS, [row], [1], dictionary)) == row


def test_nothing_comes() -> None:
    """Without a change, or a row that comes, the value is what it was; an empty content has none."""
    dictionary = Dictionary()
    value = MaintainedValue([f.type for f in FIELDS], dictionary)
    assert value.moved(None) is None
    assert value.moved(batch_of(FIELDS, [OLD], [-1], dictionary)) is None
    assert value.row(batch_of(FIELDS, [], [], dictionary)) is None


def test_a_deferred_change_is_not_computed_for_its_row() -> None:
    """Where the row that comes is at hand, that is all that is looked at; once it is computed, it is read."""
    dictionary = Dictionary()
    value = MaintainedValue([f.type for f in FIELDS], dictionary)

    def compute() -> Batch:
        return batch_of(FIELDS, [OLD, NEW], [-1, 1], dictionary)

    delta = DeferredBatch(compute, 0, lambda: NONE)
    assert value.moved(delta) == NONE
    assert not delta.is_made
    assert len(delta) == 2
    assert value.moved(delta) == NEW
