"""Two filters in a row are one."""

from __future__ import annotations

from everview.relational.expressions import conjunction, conjuncts
from everview.relational.nodes import Filter, Relation


def merge_filters(relation: Relation) -> Relation | None:
    """σ[p](σ[q](R)) = σ[q ∧ p](R). The inner condition stays first: it guards the outer one's evaluation."""
    if isinstance(relation, Filter) and isinstance(relation.child, Filter):
        inner = relation.child
        parts = dict.fromkeys((*conjuncts(inner.condition), *conjuncts(relation.condition)))
        return Filter(inner.child, conjunction(tuple(parts)))
    return None
