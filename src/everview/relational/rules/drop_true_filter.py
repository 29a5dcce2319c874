"""Drop a filter that keeps everything."""

from __future__ import annotations

from everview.relational.expressions import TRUE
from everview.relational.nodes import Filter, Relation


def drop_true_filter(relation: Relation) -> Relation | None:
    """σ[true](R) = R."""
    if isinstance(relation, Filter) and relation.condition == TRUE:
        return relation.child
    return None
