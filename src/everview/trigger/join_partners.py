"""What the nodes of a plan say of the partners that a row finds in a join."""

from __future__ import annotations

from everview.relational.expressions import Column, conjunction
from everview.relational.join_condition import split_join_condition
from everview.relational.nodes import Aggregate, Filter, Join, Project, Relation
from everview.relational.range_condition import range_searches
from everview.relational.schema import schema
from everview.relational.traverse import inputs


def is_searched(relation: Relation) -> bool:
    """Whether every join of two relations, as they stand in a plan, finds partners by an equality or between two bounds.

    One bound alone lets half of all pairs through, which a tree need not keep.
    """
    if isinstance(relation, Join):
        condition = split_join_condition(relation)
        widths = len(schema(relation.left)), len(schema(relation.right))
        searches = range_searches(conjunction(condition.residual), *widths)
        if not condition.equalities and not all(s is not None and s.has_two_bounds for s in searches):
            return False
    elif not isinstance(relation, Project | Filter):
        return True
    return all(is_searched(i) for i in inputs(relation))


def is_surely_single(join: Join) -> bool:
    """Whether the right side is an aggregate with at most one row for each left row."""
    node = join.right
    known = {e.right for e in split_join_condition(join).equalities}
    positions: set[int | None] = {k.index for k in known if isinstance(k, Column)}
    while isinstance(node, Project | Filter):
        if isinstance(node, Project):
            listed = node.expressions
            positions = {
                e.index if isinstance(e, Column) else None for e in (listed[p] for p in positions if p is not None)
            }
        node = node.child
    return isinstance(node, Aggregate) and all(i in positions for i in range(len(node.keys)))
