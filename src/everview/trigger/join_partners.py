"""What the nodes of a plan say of the partners that a row finds in a join."""

from __future__ import annotations

from everview.planner.block_flatten import flatten
from everview.planner.block_join_builder import FactsOf
from everview.relational.expressions import Column, Expression, conjunction, substitute
from everview.relational.join_condition import split_join_condition
from everview.relational.nodes import Aggregate, Filter, Join, JoinKind, Project, Relation
from everview.relational.range_condition import range_searches
from everview.relational.schema import schema
from everview.relational.traverse import inputs
from everview.relational.unique_keys import unique_keys

MANY = 100
"""So many rows that agree on the equalities of a join are worth an order: below it, meeting all of them costs less."""


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


def finds_few(join: Join, facts_of: FactsOf) -> bool:
    """Whether the equalities of an inner join leave so few rows that no order of them pays for one bound.

    They do where they fix a key of one side, unless many rows of the other are there that agree. Two bounds are another matter:
    a band may be narrow.
    """
    condition = split_join_condition(join)
    widths = len(schema(join.left)), len(schema(join.right))
    searches = [s for s in range_searches(conjunction(condition.residual), *widths) if s is not None]
    if join.kind is not JoinKind.INNER or not condition.equalities or not searches:
        return False
    if any(s.has_two_bounds for s in searches):
        return False
    sides = (
        (join.left, tuple(e.left for e in condition.equalities)),
        (join.right, tuple(e.right for e in condition.equalities)),
    )
    return any(is_keyed_by(relation, read, facts_of) for relation, read in sides) and all(
        mean_matches(relation, read, facts_of) < MANY for relation, read in sides
    )


def is_keyed_by(relation: Relation, read: tuple[Expression, ...], facts_of: FactsOf) -> bool:
    """Whether no two rows of a relation agree on some of these expressions: a key of a table, or the groups of an aggregate."""
    known = {e.index for e in read if isinstance(e, Column)}
    keys = unique_keys(relation, lambda scan: facts_of(scan).keys)
    return any(key.columns and key.columns <= known for key in keys)


def mean_matches(relation: Relation, read: tuple[Expression, ...], facts_of: FactsOf) -> float:
    """How many rows of a relation agree on these expressions, by the rows that its table has now; 0 where nobody knows."""
    flat = flatten(relation)
    matches = facts_of(flat.inputs[0]).matches if len(flat.inputs) == 1 else None
    below = [substitute(e, flat.outputs) for e in read]
    columns = tuple(e.index for e in below if isinstance(e, Column))
    return 0.0 if matches is None or not columns or len(columns) < len(below) else matches(columns)
