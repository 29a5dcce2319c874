"""Compaction: small segments of a relation are merged into one whose rows are summed up.

What one job or transaction has written is a *run*, of however many segments: a load is one. Runs of similar size make a tier:
ascending, a run belongs to the tier of those before it while it has no more rows than they have together, or than twice the
largest. The first tier of ``FEWEST`` runs is merged, with the smaller ones: into one of 1.5 times the largest at least, so that
each row is rewritten O(log n) times. Small changes do not make a large table be rewritten, but many of them do, once they have
about as many rows. It is a commit like any other; the old files stay for older versions until a vacuum.

Of a table with a primary key only rows whose key has been deleted are summed up: any other key has one row, which stands as
it is. So executors copy most rows, instead of grouping all of them by all columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from everview.backends.spark.commit_log import Move
from everview.backends.spark.local_engine import run_locally
from everview.backends.spark.payloads import zero
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.segments import Segment
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.term_plans import ONE, add_up, consolidated, project, weighted
from everview.relational.expressions import Call, Column, Literal, conjunction
from everview.relational.nodes import Distinct, Filter, Join, JoinKind, Project, Relation, Scan, UnionAll
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, INT64

FEWEST: Final = 8
"""Fewer runs of similar size than this are left alone."""


def chosen_segments(segments: list[Segment]) -> list[Segment]:
    """The segments to merge; none if there are few of similar size.

    >>> small = [Segment(f"s{i}", 10, 1) for i in range(8)]
    >>> chosen_segments(small[:7])
    []
    >>> load = [Segment(f"load/part-{i}", 50, 1) for i in range(20)]
    >>> chosen_segments(load + small) == small
    True
    """
    runs: dict[str, list[Segment]] = {}
    for segment in sorted(segments, key=lambda s: s.path):
        runs.setdefault(segment.run, []).append(segment)
    taken: list[Segment] = []
    count = gathered = largest = 0
    for run in sorted(runs.values(), key=_rows_of):
        rows = _rows_of(run)
        if rows > max(gathered, 2 * largest):
            if count >= FEWEST:
                return taken
            count = gathered = 0
        taken += run
        count, gathered, largest = count + 1, gathered + rows, rows
    return taken if count >= FEWEST else []


def _rows_of(run: Iterable[Segment]) -> int:
    return sum(s.rows for s in run)


def is_merged_by_spark(taken: Iterable[Segment], limit: int) -> bool:
    """Whether they have more rows than the driver takes."""
    return _rows_of(taken) > limit


def compaction_of(
    relation: StoredRelation,
    taken: list[Segment],
    state_keys: int | None,
    engine: SparkEngine,
    limit: int,
    key: tuple[int, ...] = (),
) -> Move:
    """The move that merges some segments, its new one written.

    ``state_keys`` is the number of key columns where the relation holds payloads, whose other columns are summed; ``key`` are
    the columns of a primary key, if any.
    """
    plan = merged_plan(relation, state_keys)
    if is_merged_by_spark(taken, limit):
        if key:
            plan = merged_by_key(Scan("t", weighted(relation.fields)), key)
        view = engine.view_of(engine.frame_of_segments(relation, taken))
        try:
            made = engine.write(engine.run(plan, {"t": view}, "UTC"), relation)
        finally:
            engine.drop([view])
        return Move(tuple(made), tuple(taken))
    rows = run_locally(plan, {"t": pa.concat_tables([relation.rows_of(s) for s in taken])})
    return Move((relation.write(rows),) if rows.num_rows else (), tuple(taken))


def merged_plan(relation: StoredRelation, state_keys: int | None) -> Relation:
    """The sum of segments scanned as ``t``."""
    scan = Scan("t", weighted(relation.fields))
    if state_keys is None:
        return consolidated(scan)
    payloads = Project(scan, columns(scan)[:-1], tuple(f.name for f in schema(scan)[:-1]))
    summed = add_up(payloads, state_keys)
    left = columns(summed)[state_keys:]
    is_zero = conjunction(tuple(Call("=", (c, zero(c.type)), BOOLEAN) for c in left))
    kept = Filter(summed, Call("not", (is_zero,), BOOLEAN))
    return project(kept, columns(kept), ONE)


def merged_by_key(scan: Relation, key: tuple[int, ...]) -> Relation:
    """The sum of rows of which no two have the same key, but for deleted ones and what came in their place."""
    every = columns(scan)
    is_deleted = Call("<", (every[-1], Literal(0, INT64)), BOOLEAN)
    keys = tuple(every[k] for k in key)
    names = tuple(f"k{i}" for i in range(len(key)))
    deleted = Distinct(Project(Filter(scan, is_deleted), keys, names))
    others = columns(deleted)
    same = conjunction(
        tuple(
            Call("=", (mine, Column(len(every) + i, other.type, other.nullable)), BOOLEAN)
            for i, (mine, other) in enumerate(zip(keys, others, strict=True))
        )
    )
    met = Join(scan, deleted, JoinKind.SEMI, same)
    return UnionAll((Join(scan, deleted, JoinKind.ANTI, same), consolidated(met)))
