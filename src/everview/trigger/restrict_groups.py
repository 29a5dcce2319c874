"""Groups are computed of those rows only whose group a join can keep.

A nested aggregate has a group for each key, and is then joined with few rows: parts of a brand (TPC-H 17), or a name (20).
The groups that no such row meets need not be kept, so the rows that make them are not let in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from everview.planner.block_flatten import flatten
from everview.planner.block_join_builder import FactsOf
from everview.relational.expressions import Call, Column
from everview.relational.failing import can_fail
from everview.relational.join_condition import split_join_condition
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
)
from everview.relational.schema import columns, schema
from everview.relational.traverse import expressions_in, inputs, nodes_of, with_inputs
from everview.relational.types import BOOLEAN, INT64, Decimal, is_floating, is_integral
from everview.relational.unique_keys import unique_keys
from everview.trigger.few_rows import leaves_few

_WIDEST_SUMMED = 28
"""The most digits of decimals whose sum cannot overflow."""


@dataclass(frozen=True, slots=True)
class _Few:
    """A filtered table, and the column that has all values which a join keeps."""

    rows: Filter
    column: int


_Kept = dict[int, _Few]
"""For some columns of a relation: rows of which the column has another value are not wanted."""


def restrict_groups(plan: Relation, facts_of: FactsOf) -> Relation:
    """R ⋈[x = k] γ[k; f](I) = R ⋈[x = k] γ[k; f](π_I(I ⋈[k = x] δ(π_x R))), where a filter leaves few rows of the table R.

    Groups that the join keeps have all their rows, each as often as before; δ is left out where x is a key of R. The same for
    semi- and anti-joins with the groups on the right, and for a semi-join with R above the join. R may be anywhere in the
    plan, as long as equalities of columns lead from it to k.

    Not where an error would be lost: nothing below the groups, none of f, and nothing between them and the join can fail. Not
    where others read the groups, too.

    >>> from everview.planner.block_join_builder import Facts
    >>> from everview.relational.rule_examples import L, R, c, d, equal, show
    >>> few = Filter(R, equal(Column(1, INT64, True), 7))
    >>> groups = Aggregate(L, columns(L)[:1], (AggregateCall("count", (), INT64),), ("a", "n"))
    >>> plan = Join(groups, few, JoinKind.INNER, equal(columns(L)[0], c))
    >>> show(plan)
    inner join on (a = c)
      aggregate by [a] [count(*) as n]
        scan l [a, b]
      filter (d = 7)
        scan r [c, d]
    >>> show(restrict_groups(plan, lambda _: Facts()))
    inner join on (a = c)
      aggregate by [a] [count(*) as n]
        project [a, b]
          inner join on (a = c)
            scan l [a, b]
            distinct
              project [c]
                #1: filter (d = 7)
                  scan r [c, d]
      see #1
    """
    return _Restriction(plan, facts_of).visit(plan, {})


class _Restriction:
    """One way down through a plan."""

    def __init__(self, plan: Relation, facts_of: FactsOf) -> None:
        self._facts_of = facts_of
        self._readers = Counter(i for node in nodes_of(plan) for i in inputs(node))
        self._done: dict[int, Relation] = {}

    def visit(self, relation: Relation, kept: Mapping[int, _Few]) -> Relation:
        """The relation, of which only rows with kept values are wanted."""
        if self._readers[relation] > 1:
            if id(relation) not in self._done:
                self._done[id(relation)] = self._visited(relation, {})
            return self._done[id(relation)]
        return self._visited(relation, kept)

    def _visited(self, relation: Relation, kept: Mapping[int, _Few]) -> Relation:
        if any(map(can_fail, expressions_in(relation))):
            kept = {}
        match relation:
            case Filter(child=child):
                return with_inputs(relation, (self.visit(child, kept),))
            case Project(child=child, expressions=expressions):
                below = {e.index: kept[i] for i, e in enumerate(expressions) if i in kept and isinstance(e, Column)}
                return with_inputs(relation, (self.visit(child, below),))
            case Join(kind=JoinKind.INNER | JoinKind.SEMI | JoinKind.ANTI):
                left, right = self._sides(relation, kept)
                return with_inputs(relation, (self.visit(relation.left, left), self.visit(relation.right, right)))
            case Aggregate() if kept and _cannot_fail(relation):
                return self._restricted(relation, kept)
            case _:
                return with_inputs(relation, tuple(self.visit(i, {}) for i in inputs(relation)))

    def _sides(self, join: Join, kept: Mapping[int, _Few]) -> tuple[_Kept, _Kept]:
        """What is wanted of the sides: what is wanted of the join, and what the other side has."""
        if can_fail(join.condition):
            return {}, {}
        width = len(schema(join.left))
        left = {c: few for c, few in kept.items() if c < width}
        right = {c - width: few for c, few in kept.items() if c >= width}
        of_left, of_right = self._few_of(join.left), self._few_of(join.right)
        for a, b in _equal_columns(join):
            known = left.get(a) or of_left.get(a)
            if join.kind is not JoinKind.ANTI and (few := right.get(b) or of_right.get(b)) is not None:
                left.setdefault(a, few)
            if known is not None:
                right.setdefault(b, known)
        return left, right

    def _few_of(self, relation: Relation) -> _Kept:
        """The columns of a relation of which a filtered table has all values."""
        match relation:
            case Filter() if self._is_few(relation):
                return {i: _Few(relation, i) for i in range(len(schema(relation)))}
            case Filter(child=child):
                return self._few_of(child)
            case Project(child=child, expressions=expressions):
                below = self._few_of(child)
                named = enumerate(expressions)
                return {i: below[e.index] for i, e in named if isinstance(e, Column) and e.index in below}
            case Join(kind=JoinKind.INNER | JoinKind.SEMI | JoinKind.ANTI):
                left, right = self._few_of(relation.left), self._few_of(relation.right)
                for a, b in _equal_columns(relation) if relation.kind is not JoinKind.ANTI else ():
                    if b in right:
                        left.setdefault(a, right[b])
                    if a in left:
                        right.setdefault(b, left[a])
                width = len(schema(relation.left))
                is_whole = relation.kind is JoinKind.INNER
                return left | ({c + width: few for c, few in right.items()} if is_whole else {})
            case _:
                return {}

    def _is_few(self, filtered: Filter) -> bool:
        flat = flatten(filtered)
        return len(flat.inputs) == 1 and leaves_few(flat.conditions, flat.inputs[0], self._facts_of)

    def _restricted(self, aggregate: Aggregate, kept: Mapping[int, _Few]) -> Aggregate:
        """The aggregate over the rows of the groups that are wanted."""
        for number, key in enumerate(aggregate.keys):
            few = kept.get(number)
            if few is not None and isinstance(key, Column) and few.rows not in nodes_of(aggregate.child):
                return replace(aggregate, child=self._joined(aggregate.child, key.index, few))
        return aggregate

    def _joined(self, relation: Relation, column: int, few: _Few) -> Relation:
        """The rows of a relation of which a column has one of a few values; the join is with the table that has the column."""
        is_joined = any(isinstance(n, Join) for n in nodes_of(relation))
        match relation:
            case Filter(child=child) if is_joined:
                return replace(relation, child=self._joined(child, column, few))
            case Project(child=child, expressions=expressions) if is_joined:
                below = expressions[column]
                if isinstance(below, Column):
                    return replace(relation, child=self._joined(child, below.index, few))
            case Join(left=left, right=right):
                width = len(schema(left))
                if column < width:
                    return replace(relation, left=self._joined(left, column, few))
                return replace(relation, right=self._joined(right, column - width, few))
        own = columns(relation)
        values = self._values(few)
        (value,) = columns(values)
        is_kept = Call("=", (own[column], replace(value, index=len(own))), BOOLEAN)
        return Project(Join(relation, values, JoinKind.INNER, is_kept), own, tuple(f.name for f in schema(relation)))

    def _values(self, few: _Few) -> Relation:
        """The values that are wanted, each once."""
        field = schema(few.rows)[few.column]
        values = Project(few.rows, (columns(few.rows)[few.column],), (field.name,))
        keys = unique_keys(values, lambda scan: self._facts_of(scan).keys)
        return values if any(not k.present for k in keys) else Distinct(values)


def _equal_columns(join: Join) -> Iterator[tuple[int, int]]:
    """Columns of both sides that are equal, and not NULL, where rows meet."""
    for equality in split_join_condition(join).equalities:
        if isinstance(equality.left, Column) and isinstance(equality.right, Column) and not equality.null_safe:
            yield equality.left.index, equality.right.index


def _cannot_fail(aggregate: Aggregate) -> bool:
    """Whether neither the aggregates nor what is below them can raise an error: filters, projections, and joins of tables."""
    nodes = (aggregate, *nodes_of(aggregate.child))
    return (
        bool(aggregate.keys)
        and all(map(_is_total, aggregate.aggregates))
        and all(_is_plain(n) for n in nodes[1:])
        and not any(can_fail(e) for n in nodes for e in expressions_in(n))
    )


def _is_plain(node: Relation) -> bool:
    return isinstance(node, Scan | Filter | Project) or (isinstance(node, Join) and node.kind is JoinKind.INNER)


def _is_total(call: AggregateCall) -> bool:
    """Whether an aggregate has a value for every group."""
    if call.is_ring or call.function not in ("count", "min", "max", "sum", "avg"):
        return False
    if call.function not in ("sum", "avg") or is_floating(call.type):
        return True
    (argument,) = call.args
    if isinstance(argument.type, Decimal):
        return argument.type.precision <= _WIDEST_SUMMED
    return is_integral(argument.type) and argument.type != INT64
