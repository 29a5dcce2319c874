"""Plays a scenario from the file of a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.oracle.answers import Answers
from tests.oracle.generate_tables import TableData
from tests.soak.reproduce import attempt
from tests.soak.scenario import Step
from tests.soak.session import start_session


def run(backend: str, settings: Mapping[str, str], tables: Sequence[TableData], steps: Sequence[Step]) -> None:
    """Plays it, and raises what it finds."""
    spark = start_session()
    _, difference = attempt(spark, Answers(spark), backend, settings, tables, steps)
    if difference is not None:
        raise difference
    print("no difference")
