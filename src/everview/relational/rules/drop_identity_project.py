"""Drop a projection that returns its input."""

from __future__ import annotations

from everview.relational.nodes import Project, Relation
from everview.relational.schema import columns


def drop_identity_project(relation: Relation) -> Relation | None:
    """π[0, 1, …, n-1](R) = R, for R of n columns.

    Names are for people and are lost here; whoever needs them at the root puts them back.

    >>> from everview.relational.rule_examples import L, a, b, show
    >>> plan = Project(L, (a, b), ("a", "b"))
    >>> show(plan)
    project [a, b]
      scan l [a, b]
    >>> show(drop_identity_project(plan))
    scan l [a, b]
    """
    if isinstance(relation, Project) and relation.expressions == columns(relation.child):
        return relation.child
    return None
