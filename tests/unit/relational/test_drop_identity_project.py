from __future__ import annotations

from everview.relational.expressions import Column
from everview.relational.nodes import Field, Project, Scan
from everview.relational.rules.drop_identity_project import drop_identity_project
from everview.relational.schema import columns
from everview.relational.types import INT32

R = Scan("r", (Field("a", INT32), Field("b", INT32, nullable=False)))


def test_identity_is_dropped() -> None:
    """π[0, 1](R) = R, whatever the projection calls the columns."""
    assert drop_identity_project(Project(R, columns(R), ("x", "y"))) is R


def test_other_projections_stay() -> None:
    """Fewer columns, another order, or a column whose nullability the projection widens are no identity."""
    a, b = columns(R)
    assert drop_identity_project(Project(R, (a,), ("a",))) is None
    assert drop_identity_project(Project(R, (b, a), ("b", "a"))) is None
    assert drop_identity_project(Project(R, (a, b, a), ("a", "b", "c"))) is None
    assert drop_identity_project(Project(R, (a, Column(1, INT32, nullable=True)), ("a", "b"))) is None
    assert drop_identity_project(R) is None
