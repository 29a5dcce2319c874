"""Spark's own expression code, run over a batch of arguments, without a Spark job.

An expression's SQL text is resolved and optimized over an empty relation with columns of its arguments, once. What comes out is
one or more projections over a leaf; Spark compiles each to a function from row to row (``UnsafeProjection``). A batch goes to
the JVM as one Arrow record batch, through these functions, and back as another: eight calls of py4j, a few milliseconds. A
function of Python is called in this process (``python_functions``). What is neither is run as a Spark job over the batch.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from everview.errors import CorruptDatabase, EvaluationError, InternalError
from everview.frontend.aggregate_in_spark import RunGroups, compile_aggregate
from everview.frontend.answer_in_spark import SparkAnswers
from everview.frontend.catalyst_plan import quiet_spark_log
from everview.frontend.catalyst_transform import scala_list
from everview.frontend.gateway import SparkGateway
from everview.frontend.month_intervals import has_months, with_numbers
from everview.frontend.python_functions import python_function
from everview.frontend.session_settings import apply_settings, working_in
from everview.frontend.spark_frames import empty_rows, struct_type
from everview.frontend.spark_types import schema_to_spark_json
from everview.frontend.translated import SessionSettings
from everview.frontend.user_functions import copy_all_functions, introduce
from everview.relational import spark_code
from everview.relational.arrow import arrow_type, column_to_arrow, internal_values
from everview.relational.arrow_text import require_unicode
from everview.relational.expressions import SparkExpression
from everview.relational.nodes import Field, Schema, SparkQuery
from everview.relational.types import Array, DataType, Map, String, Struct, holds

_ROWS_A_MESSAGE: Final = 1 << 20
_FEWEST_BITS: Final = 4
"""The first of the numbers of registers for which Spark has corrections."""
_UTC: Final = "UTC"
"""The zone in Arrow's types: rows hold instants, so it plays no part."""

Run = Callable[[Sequence[pa.Array], int], pa.Array]
_R = TypeVar("_R")


class SparkEvaluator:
    """Compiled expressions of one Spark application."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._context: SparkContext | None = None
        self._sessions: dict[SessionSettings, SparkSession] = {}
        self._compiled: dict[SparkExpression, Run] = {}
        self._aggregates: dict[SparkExpression, RunGroups] = {}
        self._answers: dict[SessionSettings, SparkAnswers] = {}

    def compute(self, expression: SparkExpression, inputs: Sequence[pa.Array], count: int) -> pa.Array:
        """The values of an expression for rows of arguments.

        Raises:
            EvaluationError: some row has none.
        """
        with self._running(expression, _compile, self._compiled) as run:
            return run(inputs, count)

    def compute_groups(self, function: SparkExpression, inputs: Sequence[pa.Array], sizes: Sequence[int]) -> pa.Array:
        """The values of an aggregate function for groups that stand one after another, of these sizes.

        Raises:
            EvaluationError: some group has none.
        """
        with self._running(function, compile_aggregate, self._aggregates) as run:
            return run(inputs, sizes)

    def distinct_corrections(self, bits: int) -> tuple[float, list[float], list[float]]:
        """The constants by which Spark corrects ``approx_count_distinct`` with 2^bits registers."""
        with self._lock:
            jvm: Any = self._session(SessionSettings(_UTC))._jvm
            helper = jvm.org.apache.spark.sql.catalyst.util.HyperLogLogPlusPlusHelper
            place = bits - _FEWEST_BITS
            listed = (jvm.java.util.Arrays.toString(t[place]) for t in (helper.RAW_ESTIMATE_DATA(), helper.BIAS_DATA()))
            estimates, biases = (json.loads(text) for text in listed)
            return float(helper.THRESHOLDS()[place]), estimates, biases

    @contextmanager
    def _running(
        self, expression: SparkExpression, make: Callable[[Any, SparkExpression], _R], known: dict[SparkExpression, _R]
    ) -> Iterator[_R]:
        with self._lock:
            session = self._session(SessionSettings(expression.zone, expression.settings))
            with working_in(session), quiet_spark_log():
                function = spark_code.function_of(expression)
                try:
                    if function not in known:
                        copy_all_functions(session)
                        known[function] = make(session, function)
                    yield known[function]
                except (PySparkException, Py4JJavaError) as error:
                    # Some of Spark's expressions keep what they were building when they failed (a map's entries): begin anew.
                    known.pop(function, None)
                    raise _as_evaluation_error(error, expression.name) from None

    def introduce(self, session: Any, names: Iterable[str]) -> None:
        """Makes functions of the user's known to a session."""
        with self._lock:
            for name in names:
                introduce(session, name)

    def answer(self, query: SparkQuery, tables: Sequence[pa.Table]) -> pa.Table:
        """Spark's answer to a query, for the rows of its inputs.

        Raises:
            EvaluationError: it has none.
        """
        with self._answering(query) as answers:
            return answers.rows(query, tables)

    def answer_frames(self, query: SparkQuery, frames: Sequence[DataFrame], session: SparkSession) -> DataFrame:
        """Spark's answer to a query over DataFrames of a session, as one of it."""
        with self._answering(query) as answers:
            return answers.frame(query, frames, session)

    @contextmanager
    def _answering(self, query: SparkQuery) -> Iterator[SparkAnswers]:
        with self._lock:
            settings = SessionSettings(query.zone, query.settings)
            session = self._session(settings)
            answers = self._answers.setdefault(settings, SparkAnswers(session))
            with working_in(session), quiet_spark_log():
                copy_all_functions(session)
                try:
                    yield answers
                except (PySparkException, Py4JJavaError) as error:
                    raise _as_evaluation_error(error, "the query") from None

    def _session(self, settings: SessionSettings) -> SparkSession:
        if self._context is None or SparkContext._active_spark_context is not self._context:
            user = SparkGateway().user_session
            self._context, self._sessions, self._answers = user.sparkContext, {}, {}
            self._compiled, self._aggregates = {}, {}
        known = self._sessions.get(settings)
        if known is None:
            known = self._sessions[settings] = SparkGateway().private_session()
            apply_settings(settings, known)
        return known


evaluate: Final = SparkEvaluator()
"""The evaluator of this process."""


def _compile(session: Any, function: SparkExpression) -> Run:
    fields = tuple(Field(f"everview_{i}", a.type, True) for i, a in enumerate(function.args))
    if function.name == spark_code.JSON_TUPLE:
        return _as_projection(session, function, fields, _json_tuple_steps(session, function, fields))
    text = function.sql([f.name for f in fields]) + " AS value"
    spark_code.introduce(session, text)
    relation = empty_rows(session, fields)
    execution = relation.selectExpr(_strings(session, [text])).queryExecution()
    analyzed = execution.analyzed()
    if not analyzed.deterministic() or not analyzed.subqueriesAll().isEmpty():
        # The text may come from a folder: what creates views lets neither of these through, so somebody has changed it.
        raise CorruptDatabase(f"the stored expression {text!r} is no deterministic function of its arguments.")
    plan = execution.optimizedPlan()
    projections = []
    while plan.nodeName() == "Project":
        projections.append((plan.projectList(), plan.child().output()))
        plan = plan.child()
    if plan.nodeName() not in ("LogicalRDD", "ExternalRDD") or not projections:
        called = analyzed.projectList().apply(0).child()
        is_python = called.getClass().getSimpleName() == "PythonUDF"
        python = python_function(session, called, fields, function.type) if is_python else None
        return _as_job(session, function, fields, text) if python is None else python.of_rows
    create = session._jvm.org.apache.spark.sql.catalyst.expressions.UnsafeProjection.create
    steps = [create(expressions, given) for expressions, given in reversed(projections)]
    return _as_projection(session, function, fields, steps)


def _json_tuple_steps(session: Any, function: SparkExpression, fields: Schema) -> list[Any]:
    """Two projections: the arguments as a struct, then the one row that Spark's generator makes of it."""
    catalyst, types = session._jvm.org.apache.spark.sql.catalyst.expressions, session._jvm.org.apache.spark.sql.types
    listed = empty_rows(session, fields).selectExpr(_strings(session, [function.sql([f.name for f in fields])]))
    analyzed = listed.queryExecution().analyzed()
    generate = analyzed.child() if analyzed.nodeName() == "Project" else analyzed
    if generate.nodeName() != "Generate" or generate.generator().getClass().getSimpleName() != "JsonTuple":
        raise CorruptDatabase(f"the stored expression {function.name!r} is no call of json_tuple.")
    generator = generate.generator()
    if not generate.deterministic() or not analyzed.subqueriesAll().isEmpty():
        raise CorruptDatabase("the stored json_tuple is no deterministic function of its arguments.")
    children = [generator.children().apply(i) for i in range(generator.children().size())]
    references = [catalyst.BoundReference(i, c.dataType(), True) for i, c in enumerate(children)]
    bound = generator.withNewChildren(_expressions(session, references))
    packed = catalyst.CreateStruct.apply(_expressions(session, children))

    def invoke(target: Any, method: str, made: Any, arguments: list[Any]) -> Any:
        given = _expressions(session, arguments)
        return catalyst.objects.Invoke(target, method, made, given, _expressions(session, []), False, True, True)

    def object_type(name: str) -> Any:
        return types.ObjectType(session._jvm.java.lang.Class.forName(name))

    target = catalyst.Literal.fromObject(bound, object_type(bound.getClass().getName()))
    rows = invoke(
        target,
        "eval",
        object_type("scala.collection.IterableOnce"),
        [catalyst.BoundReference(0, packed.dataType(), False)],
    )
    first = invoke(
        invoke(rows, "iterator", object_type("scala.collection.Iterator"), []), "next", bound.elementSchema(), []
    )
    create = catalyst.UnsafeProjection.create
    return [
        create(_expressions(session, [packed]), generate.child().output()),
        create(_expressions(session, [first])),
    ]


def _expressions(session: Any, parts: Sequence[Any]) -> Any:
    listed = session._jvm.java.util.ArrayList()
    for part in parts:
        listed.add(part)
    return scala_list(session._jvm, listed)


def _as_projection(session: Any, function: SparkExpression, fields: Schema, steps: list[Any]) -> Run:
    jvm = session._jvm
    converters = getattr(getattr(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters$"), "MODULE$")
    single = getattr(getattr(jvm.scala.collection, "Iterator$"), "MODULE$").single
    given, made = (
        jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(schema_to_spark_json(f)))
        for f in (fields, (Field("value", function.type, True),))
    )
    if any(isinstance(f.type, Array | Map | Struct) for f in fields):
        # Some code reads elements without asking whether they are NULL, which Arrow's vectors refuse and Spark's rows do not.
        steps = [jvm.org.apache.spark.sql.catalyst.expressions.UnsafeProjection.create(given), *steps]
    answer = pa.schema([pa.field("value", _sent_type(function.type))])

    def run(inputs: Sequence[pa.Array], count: int) -> pa.Array:
        columns = [_sent(a, f.type) for a, f in zip(inputs, fields, strict=True)]
        named = [f.name for f in fields]
        if columns:
            batch = pa.RecordBatch.from_arrays(columns, names=named)
        else:
            batch = pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
        message = batch.serialize().to_pybytes()
        rows = converters.fromBatchIterator(single(message), given, _UTC, False, False, None)
        for step in steps:
            rows = rows.map(step)
        written = converters.toBatchIterator(rows, made, _ROWS_A_MESSAGE, _UTC, False, False, None)
        parts: list[pa.Array] = []
        received = 0
        try:
            while received < count:
                data = pa.py_buffer(bytes(written.next()))
                parts.append(pa.ipc.read_record_batch(data, answer).column(0))
                received += len(parts[-1])
        finally:
            written.close()
        return _received(pa.concat_arrays(parts) if len(parts) != 1 else parts[0], function)

    return run


def _as_job(session: Any, function: SparkExpression, fields: Schema, text: str) -> Run:
    def run(inputs: Sequence[pa.Array], count: int) -> pa.Array:
        table = pa.Table.from_arrays(list(inputs), names=[f.name for f in fields])
        frame = session.createDataFrame(table, schema=struct_type(fields)).selectExpr(text)
        result = frame.toArrow().column(0).combine_chunks()
        if len(result) != count:
            raise InternalError(f"Spark gave {len(result)} values of {function.name} for {count} rows.")
        whole = result if isinstance(result, pa.Array) else pa.concat_arrays(result.chunks)
        require_unicode(whole, function.name)
        return whole

    return run


def _strings(session: Any, texts: Sequence[str]) -> Any:
    listed = session._jvm.java.util.ArrayList()
    for text in texts:
        listed.add(text)
    return scala_list(session._jvm, listed)


def _sent_type(data_type: DataType) -> pa.DataType:
    """Of the type of a column, what Spark's Arrow has in its place: months as integers, all else as we have it."""
    return arrow_type(with_numbers(data_type))


def _sent(array: pa.Array, data_type: DataType) -> pa.Array:
    if has_months(data_type):
        return column_to_arrow(internal_values(pa.chunked_array([array]), data_type), with_numbers(data_type))
    wanted = arrow_type(data_type)
    return array if array.type == wanted else array.cast(wanted)


def _received(array: pa.Array, function: SparkExpression) -> pa.Array:
    data_type = function.type
    if holds(data_type, String):
        require_unicode(array, function.name)
    if has_months(data_type):
        return column_to_arrow(internal_values(pa.chunked_array([array]), with_numbers(data_type)), data_type)
    return array


def _sentence(message: str) -> str:
    """What Spark says in a line; of a failing function of Python, the exception that it raised."""
    lines = [line.strip() for line in message.strip().splitlines()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
    return raised[-1] if raised and "Python worker" in message else lines[0]


def _as_evaluation_error(error: Any, name: str) -> EvaluationError:
    if isinstance(error, Py4JJavaError):
        message, condition = str(error.java_exception.toString()), "SPARK_ERROR"
    else:
        message, condition = str(error), error.getCondition() or "SPARK_ERROR"
    first = _sentence(message)
    if condition.startswith("UNRESOLVED_ROUTINE"):
        hint = "register it with spark.udf.register, under that name, in the session that connect(spark=…) is given."
        return EvaluationError(f"the function {name} is not registered in Spark.", condition=condition, hint=hint)
    return EvaluationError(f"{name}: {first}", condition=condition)
