from __future__ import annotations

from everview.relational.expressions import Call, Column, Expression, Literal, conjunction
from everview.relational.nodes import Field, Filter, Project, Scan
from everview.relational.rules.push_filter_below_project import push_filter_below_project
from everview.relational.types import BOOLEAN, INT32

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
A, B, C = (Column(i, INT32) for i in range(3))
SEVEN = Literal(7, INT32)
TOTAL = Call("+", (A, B), INT32)


def _positive(expression: Expression) -> Expression:
    return Call(">", (expression, Literal(0, INT32)), BOOLEAN)


def test_plain_columns_and_constants_are_read_below() -> None:
    """σ[p](π[e](R)) = π[e](σ[p ∘ e](R)), the projection's names kept."""
    project = Project(R, (B, SEVEN), ("b", "seven"))
    pushed = push_filter_below_project(Filter(project, conjunction((_positive(A), _positive(B)))))
    below = Filter(R, conjunction((_positive(B), _positive(SEVEN))))
    assert pushed == Project(below, (B, SEVEN), ("b", "seven"))
    assert isinstance(pushed, Project)
    assert pushed.names == ("b", "seven")


def test_computed_columns_hold_their_conjuncts_above() -> None:
    """Only the conjuncts over plain columns go below: the computation is not done twice."""
    project = Project(R, (A, TOTAL), ("a", "total"))
    pushed = push_filter_below_project(Filter(project, conjunction((_positive(B), _positive(A)))))
    assert pushed == Filter(Project(Filter(R, _positive(A)), (A, TOTAL), ("a", "total")), _positive(B))


def test_nothing_to_push() -> None:
    """None where all conjuncts read computed columns, or no projection is below."""
    project = Project(R, (A, TOTAL), ("a", "total"))
    both = Call("<", (A, B), BOOLEAN)
    assert push_filter_below_project(Filter(project, both)) is None
    assert push_filter_below_project(Filter(R, _positive(A))) is None
    assert push_filter_below_project(project) is None
