"""Two filters in a row are one."""

from __future__ import annotations

from everview.relational.expressions import conjunction, conjuncts
from everview.relational.nodes import Filter, Relation


def merge_filters(relation: Relation) -> Relation | None:
    """σ[p](σ[q](R)) = σ[q ∧ p](R). The inner condition stays first: it guards the outer one's evaluation.

    >>> from everview.relational.rule_examples import L, a, b, less, show
    >>> plan = Filter(Filter(L, less(a, 5)), less(b, 7))
    >>> show(plan)
    filter (b < 7)
      filter (a < 5)
        scan l [a, b]
    >>> show(merge_filters(plan))
    filter ((a < 5) and (b < 7))
      scan l [a, b]
    """
    if isinstance(relation, Filter) and isinstance(relation.child, Filter):
        inner = relation.child
        parts = dict.fromkeys((*conjuncts(inner.condition), *conjuncts(relation.condition)))
        return Filter(inner.child, conjunction(tuple(parts)))
    return None
