"""Drop a projection that returns its input."""

from __future__ import annotations

from everview.relational.nodes import Project, Relation
from everview.relational.schema import columns


def drop_identity_project(relation: Relation) -> Relation | None:
    """π[0, 1, …, n-1](R) = R, for R of n columns.

    Names are for people and are lost here; whoever needs them at the root puts them back.
    """
    if isinstance(relation, Project) and relation.expressions == columns(relation.child):
        return relation.child
    return None
