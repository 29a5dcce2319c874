"""Payloads of groups, and of views of trees, from rows whose floats are not yet cut into limbs (``float_totals``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from everview.backends.spark.bound_views import views_of
from everview.backends.spark.float_totals import float_totals
from everview.backends.spark.local_engine import run_locally
from everview.backends.spark.restrict import BoundSource
from everview.backends.spark.segments import empty_rows
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.stage_plans import TOTALS, pruned, state_of_totals
from everview.backends.spark.stages import Grouped, TreeView
from everview.relational.nodes import Relation


def near_payload(stage: Grouped | TreeView, uncut: pa.Table) -> pa.Table:
    """The rows of a payload, or of a change of it, from rows at the driver."""
    totals = pa.Table.from_batches(
        [
            batch.cast(empty_rows(stage.state).schema)
            for batch in float_totals(uncut.to_batches(), stage.key_count, stage.parts)
        ],
        empty_rows(stage.state).schema,
    )
    return run_locally(state_of_totals(stage), {TOTALS: totals})


def far_payload(
    engine: SparkEngine,
    limit: int,
    stage: Grouped | TreeView,
    rows: Relation,
    sources: Mapping[str, BoundSource],
    zone: str,
) -> DataFrame:
    """The rows of a payload from a plan that Spark runs: tasks sum up their batches, and Spark these sums."""
    views = views_of(rows, sources, engine, limit)
    try:
        frame = engine.run(pruned(rows), views, zone)
        cut = partial(float_totals, key_count=stage.key_count, parts=stage.parts)
        views[TOTALS] = engine.view_of(engine.in_batches(frame, rows, cut, stage.state))
        return engine.run(state_of_totals(stage), views, zone)
    finally:  # plans are resolved at once
        engine.drop(list(views.values()))
