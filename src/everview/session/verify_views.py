"""Running ``db.verify``: Spark's answer for a view, from the base tables up, against what is maintained.

A view over views is recomputed from the tables: the views below it are computed by Spark first and stand in as tables,
so that a mistake below cannot hide a mistake above. A DataFrame, and what ``ev.union_max`` was given, is known to the process
that made the view; where the database was opened again, Spark recomputes the plan that is stored instead.
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import UnsupportedOperation
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.definitions.ordered_aggregates import has_open_answers
from everview.relational.traverse import tables_of
from everview.relational.types import Row
from everview.session.queries import UnionMaxQuery
from everview.session.verification import VerificationReport, VerifiedView, compare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.core import Core


def verify_one(core: Core, name: str) -> VerificationReport:
    """Verifies one view or assertion."""
    definition = core.catalog.get(name)
    if isinstance(definition, TableDefinition):
        keeps = "is given, not computed" if definition.retain else "keeps no rows (retain=False)"
        raise UnsupportedOperation(
            f"table '{definition.name}' {keeps}, so there is nothing to verify.", hint="verify the views that read it."
        )
    if definition.name in core.backend.suspensions():
        core.backend.read(definition.name)  # raises ViewSuspended
    problem = _why_not(core, definition)
    if problem is not None:
        raise UnsupportedOperation(f"{definition.kind} '{definition.name}' cannot be verified: {problem}.")
    return VerificationReport(core.backend.version, (_verify(core, definition, {}),), {})


def verify_all(core: Core) -> VerificationReport:
    """Verifies every view and assertion that can be."""
    verified: list[VerifiedView] = []
    skipped: dict[str, str] = {}
    recomputed: dict[str, pa.Table] = {}
    for definition in (*core.catalog.views, *core.catalog.assertions):
        problem = _why_not(core, definition)
        if problem is None:
            verified.append(_verify(core, definition, recomputed))
        else:
            skipped[definition.name] = problem
    return VerificationReport(core.backend.version, tuple(verified), skipped)


def _why_not(core: Core, view: ViewDefinition) -> str | None:
    for definition in core.catalog.inputs_of(view):
        if isinstance(definition, TableDefinition) and not definition.retain:
            return f"table '{definition.name}' keeps no rows (retain=False)"
    why = core.backend.suspensions().get(view.name)
    return None if why is None else f"it is {why}"


def _verify(core: Core, view: ViewDefinition, recomputed: dict[str, pa.Table]) -> VerifiedView:
    """Compares one view; ``recomputed`` collects Spark's answers, by name, for the views above."""
    started = time.perf_counter()
    for below in (*core.catalog.inputs_of(view), view):
        if below.name not in recomputed:
            recomputed[below.name] = _recompute(core, below, recomputed)
    maintained = core.backend.read(view.name)
    compare(view, maintained, recomputed[view.name])
    source = "plan" if _source_of(core, view) is None else "query"
    return VerifiedView(view.name, maintained.num_rows, time.perf_counter() - started, source)


def _recompute(core: Core, definition: TableDefinition | ViewDefinition, inputs: dict[str, pa.Table]) -> pa.Table:
    if isinstance(definition, TableDefinition):
        return core.backend.read(definition.name)
    contents = {name: inputs[name] for name in (core.catalog.get(n).name for n in tables_of(definition.plan))}
    source = _source_of(core, definition)
    if source is None:
        return _recompute_plan(core, definition, contents)
    made_with = (definition.time_zone, definition.settings)
    if not isinstance(source, UnionMaxQuery):
        return core.gateway.recompute(source, contents, *made_with)
    counts: Counter[Row] = Counter()
    for part in source.parts:
        answer = core.gateway.recompute(part, contents, *made_with)
        counts |= Counter(rows_from_arrow(answer, definition.fields))
    return rows_to_arrow(list(counts.elements()), definition.fields)


def _source_of(core: Core, view: ViewDefinition) -> str | DataFrame | UnionMaxQuery | None:
    """The query that a view was made from; None for one that is no text, in a database opened again since.

    None too where Spark may give one answer and everview another, both right: the plan says which is meant.
    """
    if has_open_answers(view.plan):
        return None
    return view.query if view.query is not None else core.sources.get(view.name.lower())


def _recompute_plan(core: Core, view: ViewDefinition, contents: dict[str, pa.Table]) -> pa.Table:
    """Spark's answer to the stored plan of a view whose query is no text."""
    module = importlib.import_module("everview.backends.spark.answer_plan")  # imports pyspark
    by_name = {name.lower(): rows for name, rows in contents.items()}
    answer: pa.Table = module.answer_plan(view.plan, by_name, view.time_zone, core.gateway.user_session)
    return answer
