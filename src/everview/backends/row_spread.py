"""How rows are spread over the values of some columns: a statistic for ``explain``, by a query over the rows that are there."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from everview.relational.expressions import Call, Column, conjunction
from everview.relational.nodes import Aggregate, AggregateCall, Filter, Project, Relation, Scan
from everview.relational.types import BOOLEAN, INT64
from everview.trigger.summary import Spread, SpreadOf

MOST_COUNTED = 10_000_000
"""Tables with more rows than these are not read for ``explain``."""

_COUNT = AggregateCall("count", (), INT64)


def spread_by(query: Callable[[Relation], pa.Table], can_be_read: Callable[[str], bool]) -> SpreadOf:
    """Counts by queries, each once."""
    known: dict[tuple[str, tuple[int, ...]], Spread | None] = {}

    def spread_of(scan: Scan, columns: tuple[int, ...]) -> Spread | None:
        key = scan.table.lower(), columns
        if key not in known:
            known[key] = _counted(query, scan, columns) if can_be_read(scan.table) else None
        return known[key]

    return spread_of


def _counted(query: Callable[[Relation], pa.Table], scan: Scan, columns: tuple[int, ...]) -> Spread:
    read = [Column(c, scan.fields[c].type, scan.fields[c].nullable) for c in columns]
    names = tuple(scan.fields[c].name for c in columns)
    is_there = [Call("isnotnull", (c,), BOOLEAN) for c in read if c.nullable]
    rows: Relation = Filter(scan, conjunction(tuple(is_there))) if is_there else scan
    chosen = Project(rows, tuple(read), names)
    keys = tuple(Column(i, c.type, c.nullable) for i, c in enumerate(read))
    grouped = Aggregate(chosen, keys, (_COUNT,), (*names, "n"))
    count = Column(len(keys), INT64, False)
    calls = (AggregateCall("sum", (count,), INT64), _COUNT, AggregateCall("max", (count,), INT64))
    (found,) = query(Aggregate(grouped, (), calls, ("rows", "values", "most"))).to_pylist()
    return Spread(found["rows"] or 0, found["values"], found["most"] or 0)
