"""The oracle: Spark's answer to a query beside ours, over tables that are replaced from example to example."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.errors import EvaluationError
from everview.frontend.gateway import SparkGateway
from everview.relational.arrow import rows_from_arrow
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.types import Row
from tests.oracle.answers import Answers, NoAnswer
from tests.oracle.bags import assert_same_bag
from tests.oracle.generate_changes import content_of
from tests.oracle.generate_tables import TableData

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        self._answers = Answers(spark)
        self._content: dict[str, Sequence[Row]] = {}

    def load(self, tables: Sequence[TableData]) -> None:
        """Makes these the tables of the queries to come."""
        self._content = {t.name: t.rows for t in tables}
        for t in tables:
            self._gateway.register(t.name, t.fields)
        self._answers.load(tables, content_of(tables))

    def translate(self, sql: str) -> Relation:
        """The plan of a query over the loaded tables."""
        return self._gateway.translate(sql).plan

    def check(self, sql: str) -> Outcome:
        """Fails unless the reference backend and Spark agree: the same bag, or an error from both."""
        theirs = self._answers.ask(sql)
        if theirs is NoAnswer.REFUSED:
            return Outcome.REFUSED
        plan = self.translate(sql)
        ours = self._evaluate(plan)
        if theirs is NoAnswer.FAILED and not isinstance(ours, EvaluationError):
            theirs = self._answers.ask_of_tables(sql)
            if theirs is NoAnswer.REFUSED:
                return Outcome.REFUSED
        if isinstance(ours, EvaluationError):
            assert theirs is NoAnswer.FAILED, f"{sql}\nfails, but not in Spark: {ours}"
            return Outcome.BOTH_FAILED
        assert not isinstance(theirs, NoAnswer), f"{sql}\nfails in Spark, but has the answer {ours[:5]}"
        try:
            assert_same_bag(ours, rows_from_arrow(theirs, schema(plan)), sql)
        except AssertionError:
            of_tables = self._answers.ask_of_tables(sql)
            if isinstance(of_tables, NoAnswer):
                raise
            assert_same_bag(ours, rows_from_arrow(of_tables, schema(plan)), sql)
        return Outcome.EQUAL

    def _evaluate(self, plan: Relation) -> list[Row] | EvaluationError:
        try:
            return evaluate_plan(plan, self._content)
        except EvaluationError as error:
            return error
