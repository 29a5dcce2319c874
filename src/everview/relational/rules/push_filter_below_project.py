"""Filter before projecting."""

from __future__ import annotations

from everview.relational.expressions import Column, Literal, columns_of, conjunction, conjuncts, substitute
from everview.relational.nodes import Filter, Project, Relation


def push_filter_below_project(relation: Relation) -> Relation | None:
    """σ[p](π[e](R)) = π[e](σ[p ∘ e](R)), for the conjuncts of p that read only plain columns and constants of e.

    A conjunct over a computed column stays above: below, the computation would be done twice.

    >>> from everview.relational.rule_examples import L, a, b, both, less, plus, show
    >>> plan = Filter(Project(L, (b, plus(a, 1)), ("b", "t")), both(less(a, 5), less(b, 7)))
    >>> show(plan)
    filter ((b < 5) and (t < 7))
      project [b, (a + 1) as t]
        scan l [a, b]
    >>> show(push_filter_below_project(plan))
    filter (t < 7)
      project [b, (a + 1) as t]
        filter (b < 5)
          scan l [a, b]
    """
    if not (isinstance(relation, Filter) and isinstance(relation.child, Project)):
        return None
    project = relation.child
    plain = {i for i, e in enumerate(project.expressions) if isinstance(e, Column | Literal)}
    parts = conjuncts(relation.condition)
    below = tuple(p for p in parts if columns_of(p) <= plain)
    if not below:
        return None
    above = tuple(p for p in parts if not columns_of(p) <= plain)
    filtered = Filter(project.child, conjunction(tuple(substitute(p, project.expressions) for p in below)))
    pushed = Project(filtered, project.expressions, project.names)
    return Filter(pushed, conjunction(above)) if above else pushed
