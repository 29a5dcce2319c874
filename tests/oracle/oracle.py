"""The oracle: Spark's answer to a query beside ours, over tables that are replaced from example to example."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.errors import EvaluationError
from everview.frontend.catalyst_plan import quiet_spark_log
from everview.frontend.gateway import SparkGateway
from everview.frontend.spark_types import schema_to_spark_json
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.nodes import Relation, Schema
from everview.relational.schema import schema
from everview.relational.types import Row
from tests.oracle.bags import assert_same_bag
from tests.oracle.generate_tables import TableData

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


_EVALUATES_EARLY = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"


class Outcome(Enum):
    """How a query that passed the law ended."""

    EQUAL = "equal answers"
    BOTH_FAILED = "both failed on the rows"
    REFUSED = "Spark has no answer"
    """It refuses the query, or breaks down with an internal error."""


class Oracle:
    """One gateway to translate with and one session to ask; the law is checked query by query."""

    def __init__(self, spark: SparkSession) -> None:
        self._gateway = SparkGateway(spark)
        self._answers = spark.newSession()
        self._content: dict[str, Sequence[Row]] = {}
        # A handful of rows gains nothing from parallelism or from compiling Java: half the time of a query.
        self._answers.conf.set("spark.sql.shuffle.partitions", "1")
        self._answers.conf.set("spark.sql.codegen.wholeStage", "false")

    def load(self, tables: Sequence[TableData]) -> None:
        """Makes these the tables of the queries to come."""
        self._content = {t.name: t.rows for t in tables}
        for t in tables:
            self._gateway.register(t.name, t.fields)
            frame = self._answers.createDataFrame(rows_to_arrow(t.rows, t.fields), schema=_struct_type(t.fields))
            frame.createOrReplaceTempView(t.name)

    def translate(self, sql: str) -> Relation:
        """The plan of a query over the loaded tables."""
        return self._gateway.translate(sql).plan

    def check(self, sql: str) -> Outcome:
        """Fails unless the reference backend and Spark agree: the same bag, or an error from both."""
        theirs = self._ask_spark(sql)
        if theirs is Outcome.REFUSED:
            return theirs
        plan = self.translate(sql)
        ours = self._evaluate(plan)
        if theirs is Outcome.BOTH_FAILED and not isinstance(ours, EvaluationError):
            theirs = self._ask_spark_of_tables(sql)
        if isinstance(ours, EvaluationError):
            assert theirs is Outcome.BOTH_FAILED, f"{sql}\nfails, but not in Spark: {ours}"
            return Outcome.BOTH_FAILED
        assert not isinstance(theirs, Outcome), f"{sql}\nfails in Spark, but has the answer {ours[:5]}"
        try:
            assert_same_bag(ours, rows_from_arrow(theirs, schema(plan)), sql)
        except AssertionError:
            of_tables = self._ask_spark_of_tables(sql)
            if isinstance(of_tables, Outcome):
                raise
            assert_same_bag(ours, rows_from_arrow(of_tables, schema(plan)), sql)
        return Outcome.EQUAL

    def _evaluate(self, plan: Relation) -> list[Row] | EvaluationError:
        try:
            return evaluate_plan(plan, self._content)
        except EvaluationError as error:
            return error

    def _ask_spark_of_tables(self, sql: str) -> pa.Table | Outcome:
        """Asks again as if the rows were not at hand: those that are, Spark filters before it has simplified the condition.

        ``array(1, 2)[k] IS NOT NULL`` is simply true of any table, but fails of rows that Spark holds as constants; and a
        constant column is not seen to be one, which decides whether ``IN`` in an ON can be NULL.
        """
        self._answers.conf.set("spark.sql.optimizer.excludedRules", _EVALUATES_EARLY)
        try:
            return self._ask_spark(sql)
        finally:
            self._answers.conf.unset("spark.sql.optimizer.excludedRules")

    def _ask_spark(self, sql: str) -> pa.Table | Outcome:
        try:
            with quiet_spark_log():
                return self._answers.sql(sql).toArrow()
        except AnalysisException:
            return Outcome.REFUSED
        except (PySparkException, Py4JJavaError) as error:
            condition = re.search(r"\[([A-Z_]+)[].]", str(error))
            is_internal = condition is None or condition[1].startswith("INTERNAL_ERROR")
            return Outcome.REFUSED if is_internal else Outcome.BOTH_FAILED


def _struct_type(fields: Schema) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(schema_to_spark_json(fields))
