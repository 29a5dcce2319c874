"""The delta rules of the algebra: for each input of a node, what kind of change it makes and what is searched for it.

σ π explode ⊎      linear; nothing is searched
L ⋈ R              linear; a change of one side searches the rows of the other, by the equalities of the condition
L ⋉ R, L ▷ R       linear in L: whether a row has a partner is looked up in R. Pointwise in R: where a key appears or vanishes,
the rows of L with that key come or go
DISTINCT ∸ min max pointwise: the count of a row in each input says how often it is in the output
GROUP BY           pointwise where every aggregate is a function of sums, otherwise ordered
WITH RECURSIVE     each round is a view over the round before: linear in it and in what it is joined with
windows            ordered: the touched partitions are computed anew
top-k              ordered: all rows are kept in order, and the answer is read off the first ones
Spark's answer     computed anew from all rows, whatever has changed
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from everview.relational.definitions.sum_aggregates import sum_aggregate
from everview.relational.expressions import conjunction
from everview.relational.join_condition import split_join_condition
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Filter,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Recursive,
    Relation,
    Scan,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
)
from everview.relational.range_condition import range_searches
from everview.relational.schema import columns
from everview.relational.traverse import inputs
from everview.trigger.program import ChangeRule, Place, Search, StatementKind
from everview.trigger.tree_program import AccessKind

LINEAR, POINTWISE, ORDERED = StatementKind.LINEAR, StatementKind.POINTWISE, StatementKind.ORDERED


def rules_of(node: Relation, *, keeps_slices: bool = False) -> tuple[ChangeRule, ...]:
    """A rule for each input of a node; with ``keeps_slices`` a join keeps no order beside its equalities.

    >>> from everview.relational.nodes import Field
    >>> from everview.relational.types import INT64
    >>> [rule.kind.value for rule in rules_of(Distinct(Scan("r", (Field("a", INT64),))))]
    ['pointwise']
    """
    match node:
        case Scan() | Values():
            return ()
        case Filter() | Project() | Generate() | UnionAll():
            return tuple(ChangeRule(side, LINEAR) for side in range(len(inputs(node))))
        case Join():
            return _join(node, keeps_slices=keeps_slices)
        case Recursive():
            rows = tuple(Search(side, Place.ROWS, AccessKind.SLICE) for side in range(1, len(inputs(node))))
            return tuple(ChangeRule(side, LINEAR, rows) for side in range(len(inputs(node))))
        case Distinct() | ExceptAll() | IntersectAll() | UnionMax():
            searches = tuple(
                Search(side, Place.COUNTS, AccessKind.LOOKUP, columns(read)) for side, read in enumerate(inputs(node))
            )
            return tuple(ChangeRule(side, POINTWISE, searches) for side in range(len(searches)))
        case Aggregate():
            if all(_is_pointwise(call) for call in node.aggregates):
                return (ChangeRule(0, POINTWISE, (Search(0, Place.GROUPS, AccessKind.LOOKUP, node.keys),)),)
            return (ChangeRule(0, ORDERED, (Search(0, Place.ORDER, AccessKind.RANGE, node.keys),)),)
        case Window():
            return (ChangeRule(0, ORDERED, (Search(0, Place.ROWS, AccessKind.GROUP, node.partition),)),)
        case TopK():
            return (ChangeRule(0, ORDERED, (Search(0, Place.ORDER, AccessKind.RANGE),)),)
        case SparkQuery():
            whole = tuple(Search(side, Place.ROWS, AccessKind.GROUP) for side in range(len(node.inputs)))
            return tuple(ChangeRule(side, StatementKind.ANEW, whole) for side in range(len(node.inputs)))
        case _:
            assert_never(node)


def _join(join: Join, *, keeps_slices: bool) -> tuple[ChangeRule, ...]:
    condition = split_join_condition(join)
    keys = tuple(e.left for e in condition.equalities), tuple(e.right for e in condition.equalities)
    own = columns(join.left), columns(join.right)
    bounding = None if keeps_slices else conjunction(condition.residual)
    ranges = range_searches(bounding, len(own[0]), len(own[1]))

    def rows(side: int) -> Search:
        search = ranges[side]
        if search is not None:
            column, reach = search.access.column, search.access.reach
            beside = None if reach is None else own[side][reach]
            return Search(side, Place.ROWS, AccessKind.RANGE, keys[side], own[side][column], beside)
        return Search(side, Place.ROWS, AccessKind.SLICE if keys[side] else AccessKind.SCAN, keys[side])

    match join.kind:
        case JoinKind.INNER:
            return ChangeRule(0, LINEAR, (rows(1),)), ChangeRule(1, LINEAR, (rows(0),))
        case JoinKind.SEMI | JoinKind.ANTI if not condition.residual:
            counts = Search(1, Place.COUNTS, AccessKind.LOOKUP, keys[1])
            return ChangeRule(0, LINEAR, (counts,)), ChangeRule(1, POINTWISE, (counts, rows(0)))
        case JoinKind.SEMI | JoinKind.ANTI | JoinKind.SINGLE:
            return ChangeRule(0, LINEAR, (rows(1),)), ChangeRule(1, POINTWISE, (rows(0), rows(1)))
        case _:
            raise AssertionError(f"{join.kind} is split before lowering")


def _is_pointwise(call: AggregateCall) -> bool:
    return call.is_ring or sum_aggregate(replace(call, distinct=False)) is not None
