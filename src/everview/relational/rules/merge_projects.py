"""Two projections in a row are one."""

from __future__ import annotations

from collections import Counter

from everview.relational.expressions import Column, Literal, substitute, walk
from everview.relational.nodes import Project, Relation


def merge_projects(relation: Relation) -> Relation | None:
    """π[e](π[f](R)) = π[e ∘ f](R).

    Only where no computed f is used twice, since its work would double. A computed f that nothing uses is dropped, and with
    it an error it might have raised, as Spark's own column pruning does.

    >>> from everview.relational.rule_examples import L, a, b, plus, show
    >>> plan = Project(Project(L, (plus(a, b), a), ("s", "a")), (plus(a, 1),), ("t",))
    >>> show(plan)
    project [(s + 1) as t]
      project [(a + b) as s, a]
        scan l [a, b]
    >>> show(merge_projects(plan))
    project [((a + b) + 1) as t]
      scan l [a, b]
    """
    if not (isinstance(relation, Project) and isinstance(relation.child, Project)):
        return None
    inner = relation.child
    uses = Counter(p.index for e in relation.expressions for p in walk(e) if isinstance(p, Column))
    for index, expression in enumerate(inner.expressions):
        if uses[index] > 1 and not isinstance(expression, Column | Literal):
            return None
    merged = tuple(substitute(e, inner.expressions) for e in relation.expressions)
    return Project(inner.child, merged, relation.names)
