"""Which DISTINCTs become groupings."""

from __future__ import annotations

from everview.relational.expressions import TRUE, Call
from everview.relational.nodes import Aggregate, Distinct, Field, Filter, Join, JoinKind, Project, Scan
from everview.relational.rules.group_distinct_join import group_distinct_join
from everview.relational.schema import columns
from everview.relational.types import BOOLEAN, INT64

A, B = Scan("a", (Field("x", INT64, True),)), Scan("b", (Field("y", INT64, True),))
JOIN = Join(A, B, JoinKind.INNER, TRUE)
ABOVE = Filter(Project(JOIN, columns(JOIN)[:1], ("x",)), Call("isnotnull", columns(JOIN)[:1], BOOLEAN))


def test_joins_are_grouped() -> None:
    """Below filters and projections, and as the side that is only asked whether it has a partner."""
    grouped = Aggregate(ABOVE, columns(ABOVE), (), ("x",))
    assert group_distinct_join(Distinct(ABOVE)) == grouped
    for kind in (JoinKind.SEMI, JoinKind.ANTI):
        assert group_distinct_join(Join(B, ABOVE, kind, TRUE)) == Join(B, grouped, kind, TRUE)


def test_others_are_not() -> None:
    """Single relations, outer joins, and a join of which no column is read: a group of nothing is always there."""
    assert group_distinct_join(Distinct(A)) is None
    assert group_distinct_join(Distinct(Join(A, B, JoinKind.LEFT, TRUE))) is None
    assert group_distinct_join(Join(A, Project(JOIN, (), ()), JoinKind.ANTI, TRUE)) is None
    assert group_distinct_join(Join(A, JOIN, JoinKind.INNER, TRUE)) is None
