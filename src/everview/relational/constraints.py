"""Constraints as queries that must stay empty: which keys repeat, and which rows refer to nothing.

A transaction that would give such a query a row is rejected. So constraints are maintained like views: a changed row costs one
look-up, whichever of the tables it is in, and they are checked at the end of a transaction. As in SQL, a row with a NULL in a
key is no duplicate and refers to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.relational.expressions import Call, Column, Expression, Literal, conjunction
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
from everview.relational.types import BOOLEAN, INT64


def repeated_keys(table: Scan, key: Sequence[int]) -> Relation:
    """The values of the key columns that more than one row has.

    >>> from everview.relational.format import format_plan
    >>> from everview.relational.nodes import Field
    >>> print(format_plan(repeated_keys(Scan("t", (Field("a", INT64, True), Field("b", INT64, False))), (0,))))
    project [a]
      filter (count > 1)
        aggregate by [a] [count(*) as count]
          project [a]
            filter isnotnull(a)
              scan t [a, b]
    """
    present = _present_keys(table, key)
    names = tuple(f.name for f in schema(present))
    counted = Aggregate(present, columns(present), (AggregateCall("count", (), INT64),), (*names, "count"))
    *own, count = columns(counted)
    return Project(Filter(counted, Call(">", (count, Literal(1, INT64)), BOOLEAN)), tuple(own), names)


def missing_keys(table: Scan, key: Sequence[int], parent: Scan, referenced: Sequence[int]) -> Relation:
    """The values of the key columns that no row of the parent has in the referenced columns.

    >>> from everview.relational.format import format_plan
    >>> from everview.relational.nodes import Field
    >>> child, parent = Scan("c", (Field("p", INT64, False),)), Scan("p", (Field("id", INT64, False),))
    >>> print(format_plan(missing_keys(child, (0,), parent, (0,))))
    anti join on (p = id)
      distinct
        project [p]
          scan c [p]
      project [id]
        scan p [id]
    """
    child, other = Distinct(_present_keys(table, key)), _chosen(parent, referenced)
    width = len(key)
    pairs = zip(columns(child), columns(other), strict=True)
    equal = tuple(Call("=", (a, Column(width + b.index, b.type, b.nullable)), BOOLEAN) for a, b in pairs)
    return Join(child, other, JoinKind.ANTI, conjunction(equal))


def _present_keys(table: Scan, key: Sequence[int]) -> Relation:
    every = columns(table)
    tests: tuple[Expression, ...] = tuple(Call("isnotnull", (every[i],), BOOLEAN) for i in key if every[i].nullable)
    return _chosen(Filter(table, conjunction(tests)) if tests else table, key)


def _chosen(relation: Relation, key: Sequence[int]) -> Project:
    every, fields = columns(relation), schema(relation)
    return Project(relation, tuple(every[i] for i in key), tuple(fields[i].name for i in key))
