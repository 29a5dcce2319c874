from __future__ import annotations

from everview.relational.expressions import FALSE, TRUE, Literal
from everview.relational.nodes import Field, Filter, Scan
from everview.relational.rules.drop_true_filter import drop_true_filter
from everview.relational.types import BOOLEAN, INT32

R = Scan("r", (Field("a", INT32),))


def test_true_filter_is_dropped() -> None:
    """σ[true](R) = R."""
    assert drop_true_filter(Filter(R, TRUE)) is R


def test_other_filters_stay() -> None:
    """FALSE and NULL keep nothing, so they are not dropped."""
    assert drop_true_filter(Filter(R, FALSE)) is None
    assert drop_true_filter(Filter(R, Literal(None, BOOLEAN))) is None
    assert drop_true_filter(R) is None
