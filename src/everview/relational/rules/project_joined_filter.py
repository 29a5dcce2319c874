"""Columns that only a filter below a join reads are dropped above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from everview.relational.nodes import Filter, Join, Project, Relation
from everview.relational.schema import columns, schema


def project_joined_filter(relation: Relation, used: Mapping[int, set[int]]) -> Relation | None:
    """R ⋈ σ(S) = R ⋈ π(σ(S)), where π keeps all columns, until ``prune_columns`` leaves those that are read.

    Only where some are not, as ``columns_used`` says of the plan. What an engine keeps of a side of a join is so as narrow as
    can be.

    >>> from everview.relational.nodes import JoinKind
    >>> from everview.relational.rule_examples import L, R, a, c, equal, show
    >>> plan = Join(L, Filter(R, equal(columns(R)[1], 7)), JoinKind.INNER, equal(a, c))
    >>> show(plan)
    inner join on (a = c)
      scan l [a, b]
      filter (d = 7)
        scan r [c, d]
    >>> show(project_joined_filter(plan, {id(plan.right): {0}}))
    inner join on (a = c)
      scan l [a, b]
      project [c, d]
        filter (d = 7)
          scan r [c, d]
    """
    if not isinstance(relation, Join):
        return None
    left, right = _projected(relation.left, used), _projected(relation.right, used)
    if left is relation.left and right is relation.right:
        return None
    return replace(relation, left=left, right=right)


def _projected(side: Relation, used: Mapping[int, set[int]]) -> Relation:
    fields = schema(side)
    if not isinstance(side, Filter) or len(used.get(id(side), fields)) == len(fields):
        return side
    return Project(side, columns(side), tuple(f.name for f in fields))
