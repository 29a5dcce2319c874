"""Registered rings in Spark: names that Catalyst resolves, and the same sums computed by Spark's own workers.

Spark needs two functions for each ring. The *aggregate*, an Arrow UDAF under the ring's name, is what Catalyst resolves and
what we read in plans; as Spark refuses to run such aggregates next to built-in ones, and loses the row of a global aggregate
over nothing, it is never run. To recompute a query, its ring aggregates become ``answers(collect_list(struct(args)))``: Spark
joins and groups, and ``answers``, an Arrow UDF, sums each list in the ring.

Both carry a mark in their environment, so that nobody else's function of the same name is taken for a ring.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas import functions as vectorised

from everview.algebra.registry import RegisteredRing, forget, is_registered, registered_rings, ring_named
from everview.errors import AlreadyExists, InternalError, UnsupportedOperation
from everview.frontend.catalyst_transform import run_transform, scala_list
from everview.frontend.spark_types import from_spark_json
from everview.relational.arrow import column_to_arrow, data_type_from_arrow, rows_from_arrow
from everview.relational.nodes import Field
from everview.relational.ring_values import lift_column, ring_values
from everview.relational.types import DataType, Struct, Value

_MARK = "EVERVIEW_RING"


class SparkRings:
    """The registered rings as functions of one private session."""

    def __init__(self, session: SparkSession) -> None:
        self._session: Any = session
        self._known: dict[str, RegisteredRing] = {}

    def register_new(self) -> None:
        """Makes rings known to the session that have been registered since.

        Raises:
            AlreadyExists: Spark has a function of that name; the ring is then forgotten.
        """
        for entry in registered_rings():
            if self._known.get(entry.name) is not entry:
                self._register(entry)
                self._known[entry.name] = entry

    def _register(self, entry: RegisteredRing) -> None:
        identifier = self._session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(entry.name)
        if entry.name not in self._known and self._session._jsparkSession.sessionState().catalog().functionExists(
            identifier
        ):
            forget(entry.name)
            raise AlreadyExists(
                f"Spark SQL has a function '{entry.name}', so the ring of that name has been forgotten.",
                hint="register it under another name.",
            )
        with _marked_functions(self._session):
            self._session.udf.register(entry.name, _arrow_function(_never_run, entry.returns))

    def runnable(self, plan: Any) -> Any:
        """The analyzed plan with its ring aggregates in a form that Spark runs beside any others."""
        if not self._known or "PythonUDAF" not in plan.toJSON():
            return plan

        def replace(expression: Any) -> Any:
            if expression.getClass().getSimpleName() != "AggregateExpression":
                return expression
            function = expression.aggregateFunction()
            return self._collected(function) if is_ring_function(function) else expression

        return run_transform(self._session, plan.transformAllExpressionsWithSubqueries, replace)

    def _collected(self, function: Any) -> Any:
        """``answers(collect_list(struct(args)))`` in place of a ring's aggregate."""
        jvm = self._session._jvm
        catalyst = jvm.org.apache.spark.sql.catalyst.expressions
        named, listed = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
        for i in range(function.children().size()):
            name = jvm.org.apache.spark.unsafe.types.UTF8String.fromString(f"arg{i}")
            named.add(catalyst.Literal(name, jvm.org.apache.spark.sql.types.DataTypes.StringType))
            named.add(function.children().apply(i))
        row = catalyst.CreateNamedStruct(scala_list(jvm, named))
        listed.add(catalyst.aggregate.CollectList(row).toAggregateExpression())
        entry = ring_named(function.name())
        returns = from_spark_json(json.loads(function.dataType().json()))
        with _marked_functions(self._session):
            answers = _arrow_function(_answers_of(entry, returns), entry.returns)
            return answers._unwrapped._judf.builder(scala_list(jvm, listed))


def is_ring_function(function: Any) -> bool:
    """Whether an aggregate function of the JVM is one of ours."""
    if function.getClass().getSimpleName() != "PythonUDAF":
        return False
    return function.func().envVars().get(_MARK) is not None and is_registered(function.name())


@contextmanager
def _marked_functions(session: Any) -> Iterator[None]:
    """While it lasts, Python functions given to Spark carry our mark, and run in this very Python where workers are local.

    Without PYSPARK_PYTHON Spark would run the first ``python3`` of the PATH, which need not have everview.
    """
    context = session.sparkContext
    before = context.pythonExec
    context.environment[_MARK] = "1"
    if context.master.startswith("local") and not os.environ.get("PYSPARK_PYTHON"):
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        del context.environment[_MARK]
        context.pythonExec = before


def _arrow_function(function: Callable[..., Any], returns: str) -> Any:
    make = getattr(vectorised, "arrow_udf", None)
    if make is None:
        raise UnsupportedOperation("registered rings need PySpark 4.1 or newer.")
    return make(function, returns)


def _never_run(*columns: pa.Array) -> float:
    raise InternalError("Spark ran the aggregate that only stands for a registered ring.")


def _answers_of(entry: RegisteredRing, returns: DataType) -> Callable[[pa.Array], pa.Array]:
    def answers(lists: pa.Array) -> pa.Array:
        return ring_answers(entry, returns, lists)

    return answers


def ring_answers(entry: RegisteredRing, returns: DataType, lists: pa.Array) -> pa.Array:
    """For each list of argument structs the ring's Σ Π lift(x); NULL for a list without a complete struct."""
    lengths = [0 if size is None else size for size in lists.value_lengths().to_pylist()]
    structs = lists.flatten()
    args = data_type_from_arrow(structs.type)
    assert isinstance(args, Struct), args
    rows = [row for (row,) in rows_from_arrow(pa.table([structs], names=["args"]), (Field("args", args),))]
    complete = [None not in row for row in rows]
    group_of_row = np.repeat(np.arange(len(lengths)), lengths)[complete]
    values: list[Value] = [None] * len(lengths)
    if len(group_of_row):
        columns = zip(*(row for row, counts in zip(rows, complete, strict=True) if counts), strict=True)
        product = entry.product([lift_column(c, t) for c, t in zip(columns, args.types, strict=True)])
        given = np.unique(group_of_row)
        sums = entry.ring.sum_by(product, group_of_row, len(lengths))[given]
        for place, value in zip(given.tolist(), ring_values(entry, sums, returns), strict=True):
            values[place] = value
    return column_to_arrow(values, returns)
