"""Spark's answer to a plan over given rows: how a view is recomputed whose query is not text that could be run again.

The plan is what the front end made of a DataFrame or of ``ev.union_max``, and what the catalog stores. Spark runs it as SQL
(``evaluate.py``), so the answer owes nothing to the engine that maintains the view; only the translation is taken on trust.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from everview.backends.spark.spark_engine import SparkEngine
from everview.relational.arrow import arrow_schema
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.traverse import scans_of


def answer_plan(plan: Relation, contents: Mapping[str, pa.Table], zone: str, session: SparkSession) -> pa.Table:
    """The bag of a plan when each table that it scans holds the given rows.

    Args:
        plan: What to compute.
        contents: The rows of every scanned table, by its name in small letters.
        zone: The time zone that the plan was made in.
        session: The user's session; the work is done in one beside it.

    Raises:
        EvaluationError: the plan has no value for some row.
    """
    engine = SparkEngine(lambda: session)
    fields = {scan.table: scan.fields for scan in scans_of(plan)}
    views = {name: engine.view_of_rows(contents[name.lower()], columns) for name, columns in fields.items()}
    try:
        found = engine.collect(engine.run(plan, views, zone), schema(plan))
    finally:
        engine.drop(list(views.values()))
    return pa.Table.from_arrays(found.columns, schema=arrow_schema(schema(plan)))
