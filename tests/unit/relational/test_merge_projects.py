from __future__ import annotations

from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.nodes import Field, Filter, Project, Scan
from everview.relational.rules.merge_projects import merge_projects
from everview.relational.types import BOOLEAN, INT32

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
A, B = Column(0, INT32), Column(1, INT32)


def _plus(left: Expression, right: Expression) -> Expression:
    return Call("+", (left, right), INT32)


def test_projections_compose() -> None:
    """π[e](π[f](R)) = π[e ∘ f](R), under the outer names."""
    inner = Project(R, (_plus(A, B), A), ("total", "a"))
    outer = Project(inner, (_plus(A, Literal(1, INT32)), B), ("more", "same"))
    merged = merge_projects(outer)
    assert merged == Project(R, (_plus(_plus(A, B), Literal(1, INT32)), A), ("more", "same"))
    assert isinstance(merged, Project)
    assert merged.names == ("more", "same")


def test_columns_and_constants_may_be_used_twice() -> None:
    """Reading a plain column or a constant again costs nothing."""
    inner = Project(R, (B, Literal(7, INT32)), ("b", "seven"))
    outer = Project(inner, (_plus(A, A), _plus(B, B)), ("x", "y"))
    seven = Literal(7, INT32)
    assert merge_projects(outer) == Project(R, (_plus(B, B), _plus(seven, seven)), ("x", "y"))


def test_computed_column_that_is_used_twice_stays() -> None:
    """Merging would do its work twice, in one expression or in two."""
    inner = Project(R, (_plus(A, B),), ("total",))
    assert merge_projects(Project(inner, (_plus(A, A),), ("x",))) is None
    assert merge_projects(Project(inner, (A, A), ("x", "y"))) is None


def test_projection_over_something_else_stays() -> None:
    """The rule is about two projections in a row."""
    assert merge_projects(Project(R, (A,), ("a",))) is None
    assert merge_projects(Filter(R, Call("isnull", (A,), BOOLEAN))) is None
