"""A difference as a file that shows it again, after everything that it does not need has been left out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everview.errors import EverviewError
from tests.oracle.answers import Answers, configured
from tests.oracle.generate_tables import TableData
from tests.soak.scenario import Apply, AskSpark, CreateView, Difference, Drop, Scenario, Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE: Final = '''"""{title}

Seed {seed}. Run it from the repository: .venv/bin/python -m tests.soak {path}

{message}
"""

from decimal import Decimal as Number

from tests.oracle.generate_tables import day, table
from tests.soak.run import run
from tests.soak.scenario import Apply, AskSpark, CreateView, Drop, Reopen

{scenario}
'''


def attempt(
    spark: SparkSession,
    answers: Answers,
    backend: str,
    settings: Mapping[str, str],
    tables: Sequence[TableData],
    steps: Sequence[Step],
) -> tuple[Scenario, Difference | None]:
    """Plays given steps; Spark is asked where they say so."""
    with configured(spark, settings), answers.configured(settings):
        scenario = Scenario(spark, answers, tables, backend=backend, settings=settings)
        with closing(scenario):
            try:
                for step in steps:
                    scenario.do(step)
            except Difference as difference:
                return scenario, difference
        return scenario, None


def reduced(spark: SparkSession, answers: Answers, found: Scenario, kind: str, seconds: float) -> Scenario:
    """The smallest scenario with a difference of this kind that could be found in that time."""
    best = found
    deadline = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for candidate in _smaller(best.steps):
            if time.monotonic() > deadline:
                break
            try:
                played, difference = attempt(spark, answers, best.backend, best.settings, best.tables, candidate)
            except (EverviewError, AssertionError, KeyError):
                continue  # steps that make no sense without those left out
            if difference is not None and difference.kind == kind:
                best, progress = played, True
                break
    return best


def _smaller(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """The steps without some of them, the largest parts first."""
    views = [s for s in steps if isinstance(s, CreateView)]
    if len(views) > 1:
        for kept in reversed(views):
            yield [s for s in steps if not isinstance(s, CreateView | Drop) or s is kept]
    batches = [i for i, s in enumerate(steps) if isinstance(s, Apply)]
    size = len(batches) // 2
    while size >= 1:
        for start in range(0, len(batches), size):
            gone = set(batches[start : start + size])
            yield [s for i, s in enumerate(steps) if i not in gone]
        size //= 2
    for i, step in enumerate(steps):
        if not isinstance(step, Apply):
            yield [*steps[:i], *steps[i + 1 :]]
            continue
        for name, rows in step.changes.items():
            for half in {len(rows) // 2, 1} - {0}:
                for start in range(0, len(rows), half):
                    left = {**step.changes, name: (*rows[:start], *rows[start + half :])}
                    yield [*steps[:i], replace(step, changes=left), *steps[i + 1 :]]


def write(path: Path, seed: str, difference: Difference, scenario: Scenario) -> None:
    """The file."""
    if difference.kind.endswith("Spark") and not isinstance(scenario.steps[-1], AskSpark):
        scenario.steps.append(AskSpark())
    message = "\n".join(
        line[:2000] for line in str(difference).replace("\\", "\\\\").replace('"""', "'''").splitlines()
    )
    title = f"{difference.kind}, on the {scenario.backend} backend."
    path.write_text(_FILE.format(title=title, seed=seed, path=path, message=message, scenario=scenario))
