from __future__ import annotations

import pytest

from everview.errors import InvalidQuery, UnknownName
from everview.frontend.spark_errors import from_spark_error


class _SparkError(Exception):
    """What we read of a PySpark exception."""

    def __init__(self, condition: str | None, message: str = "", **parameters: str) -> None:
        super().__init__(message)
        self._condition = condition
        self._parameters = parameters

    def getCondition(self) -> str | None:  # noqa: N802  # PySpark's name
        return self._condition

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802  # PySpark's name
        return self._parameters


def test_missing_table() -> None:
    """Its bare name, and the near miss among ours."""
    error = from_spark_error(_SparkError("TABLE_OR_VIEW_NOT_FOUND", relationName="`main`.`order`"), ["Orders", "part"])
    assert isinstance(error, UnknownName)
    assert error.message == "table or view 'order' does not exist."
    assert error.hint == "did you mean 'Orders'?"
    assert from_spark_error(_SparkError("TABLE_OR_VIEW_NOT_FOUND", relationName="`zzz`"), ["part"]).hint is None


@pytest.mark.parametrize(
    ("proposal", "hint"),
    [
        ("`r`.`price`, `r`.`volume`", "did you mean 'price'?"),
        ("`r`.`a`, `r`.`b`", "the columns here are a, b."),
        ("", None),
    ],
)
def test_missing_column(proposal: str, hint: str | None) -> None:
    """The near miss, else the columns there are, else nothing."""
    spark = _SparkError("UNRESOLVED_COLUMN.WITH_SUGGESTION", objectName="`r`.`pric`", proposal=proposal)
    error = from_spark_error(spark, [])
    assert isinstance(error, UnknownName)
    assert error.message == "column 'pric' cannot be resolved."
    assert error.hint == hint


def test_other_errors_are_shortened() -> None:
    """Spark's own words, without the plan and the JVM's stack."""
    message = "[DATATYPE_MISMATCH] Cannot add.; line 1 pos 7;\n'Project [...]\n+- Relation\nJVM stacktrace:\n\tat x"
    error = from_spark_error(_SparkError("DATATYPE_MISMATCH.X", message), [])
    assert isinstance(error, InvalidQuery)
    assert error.message == "[DATATYPE_MISMATCH] Cannot add.; line 1 pos 7;"
    parse = "[PARSE_SYNTAX_ERROR] Syntax error.\n\n== SQL ==\nSELEC 1\n^^^\n\nJVM stacktrace:\norg.x"
    assert from_spark_error(_SparkError(None, parse), []).message.endswith("SELEC 1\n^^^")
