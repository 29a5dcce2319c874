"""Spark's own answers, in one session whose tables and settings are replaced from example to example."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.types import StructType

from everview.frontend.catalyst_plan import quiet_spark_log
from everview.frontend.spark_types import schema_to_spark_json
from everview.relational.arrow import rows_to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.oracle.generate_changes import Content
    from tests.oracle.generate_tables import TableData

_EVALUATES_EARLY = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
_EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"


class NoAnswer(Enum):
    """Why Spark has none."""

    REFUSED = "it refuses the query, or breaks down with an internal error"
    FAILED = "it fails on the rows"


@contextmanager
def configured(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, and afterwards as it was."""
    before = {name: session.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


class Answers:
    """A session that computes what everview maintains."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark.newSession()

    def configured(self, settings: Mapping[str, str]) -> AbstractContextManager[None]:
        """As a context: what is asked in it is asked with these settings."""
        return configured(self._session, settings)

    def load(self, tables: Sequence[TableData], content: Content) -> None:
        """Fills the tables."""
        for t in tables:
            rows = rows_to_arrow(list(content[t.name].elements()), t.fields)
            struct = StructType.fromJson(schema_to_spark_json(t.fields))
            self._session.createDataFrame(rows, schema=struct).createOrReplaceTempView(t.name)

    def define(self, name: str, sql: str) -> None:
        """Makes a query known by a name, over the tables as they are now."""
        self._session.sql(sql).createOrReplaceTempView(name)

    def ask(self, sql: str) -> pa.Table | NoAnswer:
        """Spark's answer."""
        try:
            with quiet_spark_log():
                return self._session.sql(sql).toArrow()
        except AnalysisException:
            return NoAnswer.REFUSED
        except (PySparkException, Py4JJavaError) as error:
            condition = re.search(r"\[([A-Z_]+)[].]", str(error))
            is_internal = condition is None or condition[1].startswith("INTERNAL_ERROR")
            return NoAnswer.REFUSED if is_internal else NoAnswer.FAILED

    def ask_of_tables(self, sql: str) -> pa.Table | NoAnswer:
        """Asks as if the rows were not at hand: those that are, Spark filters before it has simplified the condition.

        ``array(1, 2)[k] IS NOT NULL`` is simply true of any table, but fails of rows that Spark holds as constants.
        """
        with self.configured({_EXCLUDED_RULES: _EVALUATES_EARLY}):
            return NoAnswer.REFUSED if self._fails_whatever_the_rows(sql) else self.ask(sql)

    def _fails_whatever_the_rows(self, sql: str) -> bool:
        """Whether Spark cannot even plan the query: it computes constants then, also those that no row ever reaches.

        ``lag(q, 1, 9223372036854775807)`` of a TINYINT casts the constant, and fails over an empty table too.
        """
        try:
            with quiet_spark_log():
                self._session.sql(sql)._jdf.queryExecution().executedPlan()
        except (PySparkException, Py4JJavaError):
            return True
        return False
