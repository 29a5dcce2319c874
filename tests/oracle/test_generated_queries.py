"""The law on generated queries over generated tables: reference(frontend(query)) == Spark(query), as bags.

A query costs Spark a third of a second, so an example is one set of tables and several queries over it. The quick profile
always makes the same examples and does not shrink; to shrink what it finds, run this file with HYPOTHESIS_PROFILE=long. What
a failure prints under "Found" goes into ``test_found.py`` as it is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st

from tests.oracle.generate_sql import failing_queries, queries
from tests.oracle.generate_tables import TableData, tables
from tests.oracle.oracle import Oracle

_IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_LAW = settings(
    max_examples=600 if _IS_LONG else 8,
    derandomize=not _IS_LONG,
    phases=tuple(Phase) if _IS_LONG else (Phase.explicit, Phase.generate),
    suppress_health_check=(
        HealthCheck.too_slow,  # making a query is quick, asking Spark is not
        HealthCheck.data_too_large,  # an example is several tables and queries; that few are cut off is fine
        HealthCheck.large_base_example,  # same
    ),
)


@dataclass(frozen=True, slots=True)
class Case:
    """Tables and queries over them."""

    tables: tuple[TableData, ...]
    queries: tuple[str, ...]


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    made = draw(tables())
    safe = draw(st.lists(queries(made), min_size=4, max_size=4))
    return Case(made, (*safe, draw(failing_queries(made))))


@_LAW
@given(case=_cases())
def test_reference_equals_spark(case: Case, oracle: Oracle) -> None:
    """The reference backend answers a generated query as Spark does, or fails as Spark does."""
    oracle.load(case.tables)
    for sql in case.queries:
        try:
            event(oracle.check(sql).value)
        except Exception:
            listed = ",\n        ".join(map(repr, case.tables))
            note(f'Found\n    oracle.load((\n        {listed},\n    ))\n    oracle.check("""{sql}""")')
            raise
