from __future__ import annotations

import json

import pytest
from pyspark.logger import PySparkLogger

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_plan import quiet_spark_log, refuse_nondeterministic
from tests.unit.frontend.catalyst_nodes import attribute, expression, plan


def _json(*listed: list[dict[str, object]]) -> str:
    """As Catalyst writes it, without spaces."""
    return json.dumps(plan("Project", projectList=list(listed)), separators=(",", ":"))


@pytest.mark.parametrize(("name", "function"), [("Rand", "rand"), ("CurrentTime", "current_time"), ("Uuid", "uuid")])
def test_functions_of_chance_and_of_the_moment_are_refused(name: str, function: str) -> None:
    """A view over them has no well-defined content; the error names the SQL function."""
    with pytest.raises(UnsupportedQuery, match="not deterministic") as caught:
        refuse_nondeterministic(_json(attribute("a", 1), expression("Abs", expression(name))))
    assert caught.value.operator == function
    assert caught.value.hint is not None


def test_other_functions_pass() -> None:
    """Also where a column is called like such a function."""
    refuse_nondeterministic(_json(attribute("rand", 1), expression("Abs", attribute("Rand", 2))))


def test_spark_log_is_quiet_only_inside() -> None:
    """The logger is as before, also after an error."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before = logger.disabled
    seen: list[bool] = []

    def fail() -> None:
        with quiet_spark_log():
            seen.append(logger.disabled)
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert seen == [True]
    assert logger.disabled == before
