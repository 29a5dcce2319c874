"""Drop a filter that keeps everything."""

from __future__ import annotations

from everview.relational.expressions import TRUE
from everview.relational.nodes import Filter, Relation


def drop_true_filter(relation: Relation) -> Relation | None:
    """σ[true](R) = R.

    >>> from everview.relational.rule_examples import L, show
    >>> plan = Filter(L, TRUE)
    >>> show(plan)
    filter true
      scan l [a, b]
    >>> show(drop_true_filter(plan))
    scan l [a, b]
    """
    if isinstance(relation, Filter) and relation.condition == TRUE:
        return relation.child
    return None
