"""Functions of Python, run in this process as Spark's Python workers run them.

A worker makes of a pickled function and of PySpark's number for its kind a function over Arrow batches. That very function of
PySpark's is called here, so that arguments and results are converted as PySpark converts them: rows as Python values, columns
as pandas Series or Arrow arrays, at most so many rows a call as the session says. No job runs, and no process is started.
Where this version of PySpark has no such function, or the kind is one of pickled rows, the caller lets Spark run a job.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from everview.errors import EvaluationError
from everview.frontend.spark_text import sequence
from everview.frontend.spark_types import schema_to_spark_json
from everview.relational.arrow import arrow_type
from everview.relational.nodes import Schema
from everview.relational.types import YEAR_MONTH_INTERVAL, DataType

_SCALAR: Final = (
    "SQL_ARROW_BATCHED_UDF",
    "SQL_SCALAR_PANDAS_UDF",
    "SQL_SCALAR_PANDAS_ITER_UDF",
    "SQL_SCALAR_ARROW_UDF",
    "SQL_SCALAR_ARROW_ITER_UDF",
)
_GROUPED: Final = (
    "SQL_GROUPED_AGG_PANDAS_UDF",
    "SQL_GROUPED_AGG_PANDAS_ITER_UDF",
    "SQL_GROUPED_AGG_ARROW_UDF",
    "SQL_GROUPED_AGG_ARROW_ITER_UDF",
)
_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"


@dataclass(frozen=True)
class PythonFunction:
    """A function of columns, or of groups of rows, over the columns ``names``."""

    name: str
    type: DataType
    names: tuple[str, ...]
    rows_a_call: int
    run: Any
    """PySpark's function: from a partition's number and its batches, or groups of batches, to batches with one column."""

    def of_rows(self, inputs: Sequence[pa.Array], count: int) -> pa.Array:
        """The value for each row.

        Raises:
            EvaluationError: the function raises.
        """
        whole = self._batch(inputs, count)
        steps = range(0, count, self.rows_a_call)
        return self._values((whole.slice(at, self.rows_a_call) for at in steps), count)

    def of_groups(self, inputs: Sequence[pa.Array], sizes: Sequence[int]) -> pa.Array:
        """The value for each group of consecutive rows; a group has at least one."""
        whole = self._batch(inputs, sum(sizes))
        ends = list(accumulate(sizes))
        groups = (iter((whole.slice(end - size, size),)) for end, size in zip(ends, sizes, strict=True))
        return self._values(groups, len(sizes))

    def _batch(self, inputs: Sequence[pa.Array], count: int) -> pa.RecordBatch:
        if not inputs:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
        return pa.RecordBatch.from_arrays(list(inputs), names=list(self.names))

    def _values(self, given: Iterable[Any], count: int) -> pa.Array:
        try:
            parts = [batch.column(0) for batch in self.run(0, iter(given))]
        except Exception as error:  # whatever the user's function raises
            raise EvaluationError(
                f"{self.name}: {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}",
                condition="PYTHON_EXCEPTION",
            ) from error
        wanted = arrow_type(self.type)
        found = pa.chunked_array(parts).combine_chunks() if parts else pa.array([], wanted)
        found = found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
        if len(found) != count:
            raise EvaluationError(f"{self.name}: {len(found)} values for {count}.", condition="PYTHON_EXCEPTION")
        return found if found.type == wanted else found.cast(wanted)


def python_function(session: Any, function: Any, fields: Schema, data_type: DataType) -> PythonFunction | None:
    """A ``PythonUDF`` or ``PythonUDAF`` of Catalyst's over columns of these names; None if Spark has to run it itself."""
    parts = _worker_parts()
    if parts is None or any(f.type == YEAR_MONTH_INTERVAL for f in fields):
        return None
    kind = function.evalType()
    kinds = {getattr(parts["kinds"], name, None) for name in (*_SCALAR, *_GROUPED)}
    positions = _positions(function, fields)
    if kind not in kinds or positions is None:
        return None
    args, kwargs = positions
    command = function.func().command()
    info = parts["info"](udfs=[bytes(command.unsafeArray())], args=args, kwargs=kwargs, result_id=0)
    settings = _settings(session)
    given = parts["eval_conf"]({"input_type": json.dumps(schema_to_spark_json(fields))})
    run = parts["read"](parts["pickle"], [info], kind, parts["runner_conf"](settings), given)[0]
    rows = int(settings.get(_BATCH, "0")) or int(session.conf.get(_BATCH))
    return PythonFunction(function.name(), data_type, tuple(f.name for f in fields), rows if rows > 0 else 1 << 30, run)


def _positions(function: Any, fields: Schema) -> tuple[list[int], dict[str, int]] | None:
    """Which columns the arguments are, by place and by name; None where an argument is not simply a column."""
    places = {f.name: i for i, f in enumerate(fields)}
    args: list[int] = []
    kwargs: dict[str, int] = {}
    for child in sequence(function.children()):
        key = None
        if child.getClass().getSimpleName() == "NamedArgumentExpression":
            key, child = child.key(), child.value()  # noqa: PLW2901  # the argument itself
        if child.getClass().getSimpleName() != "AttributeReference" or child.name() not in places:
            return None
        if key is None:
            args.append(places[child.name()])
        else:
            kwargs[key] = places[child.name()]
    return args, kwargs


def _settings(session: Any) -> dict[str, str]:
    """The settings that Spark hands to a worker."""
    runner = session._jvm.org.apache.spark.sql.execution.python.ArrowPythonRunner
    given = runner.getPythonRunnerConfMap(session._jsparkSession.sessionState().conf())
    pairs = given.toSeq()
    return {pairs.apply(i)._1(): pairs.apply(i)._2() for i in range(pairs.size())}


def _worker_parts() -> Mapping[str, Any] | None:
    """What of PySpark's worker is used; None where this version has it in another form."""
    try:
        worker, messages, tools, util = (
            importlib.import_module(f"pyspark.{name}") for name in ("worker", "worker_message", "worker_util", "util")
        )
        return {
            "read": worker.read_udfs,
            "runner_conf": worker.RunnerConf,
            "eval_conf": worker.EvalConf,
            "info": messages.UDFInfo,
            "pickle": tools.pickleSer,
            "kinds": util.PythonEvalType,
        }
    except (ImportError, AttributeError):
        return None
