"""Aggregates of Spark's own code over groups of rows, all groups of a batch together.

A function of Python is called in this process (``python_functions``). Any other runs as one small Spark job in one task, over
the rows in the order given, so that its answer is defined even where it depends on that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.functions import expr

from everview.errors import CorruptDatabase, InternalError
from everview.frontend.catalyst_transform import scala_list
from everview.frontend.python_functions import python_function
from everview.frontend.spark_frames import empty_rows, struct_type
from everview.frontend.spark_text import sequence
from everview.relational import spark_code
from everview.relational.arrow import arrow_type
from everview.relational.arrow_text import require_unicode
from everview.relational.expressions import SparkExpression
from everview.relational.nodes import Field, Schema
from everview.relational.types import BOOLEAN, INT32, String, holds

RunGroups = Callable[[Sequence[pa.Array], Sequence[int]], pa.Array]
_GROUP: Final = "everview_group"
_IS_ROW: Final = "everview_is_row"


def compile_aggregate(session: Any, function: SparkExpression) -> RunGroups:
    """From columns in which groups stand one after another, and the sizes of these, to the function's values."""
    fields = tuple(Field(f"everview_{i}", a.type, True) for i, a in enumerate(function.args))
    text = function.sql([f.name for f in fields])
    spark_code.introduce(session, text)
    analyzed = empty_rows(session, fields).selectExpr(_one(session, f"{text} AS value")).queryExecution().analyzed()
    called = _called(analyzed)
    if called is None or not analyzed.subqueriesAll().isEmpty():
        # The text may come from a folder: what creates views lets nothing else through, so somebody has changed it.
        raise CorruptDatabase(f"the stored aggregate {text!r} is no deterministic function of a group.")
    if called.getClass().getSimpleName() != "PythonUDAF":
        return _as_job(session, function, fields, f"{text} FILTER (WHERE {_IS_ROW})")
    python = python_function(session, called, fields, function.type)
    return _as_job(session, function, fields, text) if python is None else python.of_groups


def _called(analyzed: Any) -> Any | None:
    """The aggregate function whose value a plan is; None where it is anything else."""
    if analyzed.nodeName() != "Aggregate":
        return None
    computed = analyzed.aggregateExpressions().apply(0).child()
    if computed.getClass().getSimpleName() != "AggregateExpression":
        return None
    called = computed.aggregateFunction()
    return called if all(c.deterministic() for c in sequence(called.children())) else None


def _as_job(session: Any, function: SparkExpression, fields: Schema, text: str) -> RunGroups:
    """One task over all rows, before which stands one of no content for each group, so that empty groups have an answer too."""
    columns = (Field(_GROUP, INT32, False), Field(_IS_ROW, BOOLEAN, False), *fields)
    wanted = arrow_type(function.type)

    def run(inputs: Sequence[pa.Array], sizes: Sequence[int]) -> pa.Array:
        count = len(sizes)
        groups = np.concatenate([np.arange(count), np.repeat(np.arange(count), sizes)]).astype(np.int32)
        is_row = np.arange(len(groups)) >= count
        listed = [pa.concat_arrays([pa.nulls(count, a.type), a]) for a in inputs]
        table = pa.Table.from_arrays([pa.array(groups), pa.array(is_row), *listed], names=[f.name for f in columns])
        frame = session.createDataFrame(table, schema=struct_type(columns)).coalesce(1)
        found = frame.groupBy(_GROUP).agg(expr(text).alias("value")).toArrow().sort_by(_GROUP)
        if found.column(_GROUP).to_pylist() != list(range(count)):
            raise InternalError(f"Spark gave {found.num_rows} values of {function.name} for {count} groups.")
        value = found.column("value").combine_chunks()
        value = value if isinstance(value, pa.Array) else pa.concat_arrays(value.chunks)
        if holds(function.type, String):
            require_unicode(value, function.name)
        return value if value.type == wanted else value.cast(wanted)

    return run


def _one(session: Any, text: str) -> Any:
    listed = session._jvm.java.util.ArrayList()
    listed.add(text)
    return scala_list(session._jvm, listed)
