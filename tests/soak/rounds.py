"""One round of the soak: a scenario made from a seed, with the habits of users.

Tables are filled before the views are made, after, or both; views read views that read views; some are dropped, and others made
in their place, while the stream goes on; settings of the session, strategies and representations are chosen at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from everview.errors import EverviewError
from tests.oracle.answers import Answers, configured
from tests.oracle.choices import Choices
from tests.oracle.generate_changes import content_of, make_transaction
from tests.oracle.generate_grammar import Named
from tests.oracle.generate_sql import make_failing_query, make_query, named
from tests.oracle.generate_tables import make_tables
from tests.soak.scenario import Apply, AskSpark, CreateView, Difference, Drop, Reopen, Scenario, Tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BACKENDS: Final = ("embedded",) * 7 + ("durable",) * 2 + ("spark",)
_SETTINGS_ONCE_IN: Final = 5
_SETTINGS: Final[dict[str, tuple[str, ...]]] = {
    "spark.sql.session.timeZone": ("America/New_York", "Asia/Kolkata", "Europe/London", "+05:30"),
    "spark.sql.ansi.enabled": ("false",),
    "spark.sql.caseSensitive": ("true",),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("false",),
    "spark.sql.legacy.inSubqueryNullability": ("true",),
    "spark.sql.legacy.nullInEmptyListBehavior": ("true",),
    "spark.sql.legacy.integerGroupingId": ("true",),
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": ("true",),
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": ("true",),
    "spark.sql.orderByOrdinal": ("false",),
}
_OPTIONS: Final[tuple[Mapping[str, Any], ...]] = (
    {"strategy": "recursive"},
    {"strategy": "recursive", "depth": 1},
    {"strategy": "first_order"},
    {"strategy": "factorized"},
    {"strategy": "recompute"},
    {"strategy": "skew"},
    {"strategy": "skew", "epsilon": 0.3},
    {"representation": "factorized"},
    {"representation": "listing"},
    {"lazy": True},
)


@dataclass(frozen=True, slots=True)
class Found:
    """A difference, and the scenario as far as it went."""

    difference: Difference
    scenario: Scenario


def play(seed: str, spark: SparkSession, answers: Answers, tally: Tally) -> Found | None:
    """Plays the round of this seed; every fourth has a second database, which takes its steps between those of the first."""
    choices = Choices.seeded(seed)
    settings = _settings(choices)
    both = [choices, Choices.seeded(f"{seed} too")] if choices.once_in(4) else [choices]
    opened: list[Scenario] = []
    with configured(spark, settings), answers.configured(settings):
        try:
            for each in both:
                backend = each.pick(_BACKENDS)
                tables = make_tables(each, each.pick((4, 8, 15)))
                opened.append(Scenario(spark, answers, tables, backend=backend, settings=settings, tally=tally))
            found = _take_turns([(s, _Round(c, s).play()) for c, s in zip(both, opened, strict=True)])
        except EverviewError as error:
            if not settings:
                raise
            tally.refusals[f"{type(error).__name__} for {', '.join(settings)}"] += 1
            found = None
        finally:
            for scenario in opened:
                scenario.close()
    tally.counts["rounds"] += 1
    return found


def _take_turns(playing: list[tuple[Scenario, Iterator[bool]]]) -> Found | None:
    while playing:
        for scenario, steps in list(playing):
            try:
                if next(steps, None) is None:
                    playing.remove((scenario, steps))
            except Difference as difference:
                return Found(difference, scenario)
    return None


def _settings(choices: Choices) -> dict[str, str]:
    if not choices.once_in(_SETTINGS_ONCE_IN):
        return {}
    return {name: choices.pick(_SETTINGS[name]) for name in choices.some(list(_SETTINGS), 1, 2)}


class _Round:
    """Chooses the steps of a scenario, one after the other."""

    def __init__(self, choices: Choices, scenario: Scenario) -> None:
        self._choices = choices
        self._scenario = scenario
        self._views: dict[str, Named] = {}
        self._read: dict[str, set[str]] = {}
        self._made = 0

    def play(self) -> Iterator[bool]:
        """Plays the whole round; something is yielded after each of its parts."""
        choices, scenario = self._choices, self._scenario
        is_filled_before = choices.once_in(2)
        if is_filled_before:
            yield self._fill()
        for _ in range(choices.count(3, 8)):
            yield self._create_view()
        if not is_filled_before:
            yield self._fill()
        yield scenario.do(AskSpark())
        batches = 4 if scenario.backend == "spark" else choices.pick((20, 50, 100))
        for number in range(batches):
            yield scenario.do(Apply(make_transaction(choices, scenario.tables, scenario.content)))
            if choices.once_in(8):
                yield self._change_views()
            if scenario.backend != "embedded" and choices.once_in(3 if scenario.backend == "spark" else 20):
                yield scenario.do(Reopen(scenario.backend == "durable" and choices.once_in(2)))
            if number == batches // 2:
                yield scenario.do(AskSpark())
        if choices.once_in(3):
            every = {n: tuple((row, -count) for row, count in bag.items()) for n, bag in scenario.content.items()}
            yield scenario.do(Apply(every))
        yield scenario.do(AskSpark())

    def _fill(self) -> bool:
        content = content_of(self._scenario.tables)
        return self._scenario.do(Apply({name: tuple(bag.items()) for name, bag in content.items()}))

    def _create_view(self) -> bool:
        choices, scenario = self._choices, self._scenario
        tables = named(scenario.tables)
        if self._views and choices.once_in(3):
            tables += tuple(choices.some(list(self._views.values()), 1, 2)) * 2
        self._made += 1
        name = f"mv{self._made}"
        if choices.once_in(12):
            return scenario.do(CreateView(name, make_failing_query(choices, named(scenario.tables))))
        query = make_query(choices, tables, choices.pick((0, 1, 1, 2)))
        options = choices.pick(_OPTIONS) if choices.once_in(4) else {}
        is_made = scenario.do(CreateView(name, query.sql, options))
        if not is_made and options:  # what one strategy refuses, another can do
            is_made = scenario.do(CreateView(name, query.sql))
        if is_made:
            self._views[name] = Named(name, query.columns)
            self._read[name] = {v for v in self._views if f" {v} " in query.sql}
        return is_made

    def _change_views(self) -> bool:
        """Drops a view that no other reads, and makes another."""
        choices, scenario = self._choices, self._scenario
        free = [v for v in self._views if not any(v in read for other, read in self._read.items() if other != v)]
        if free and choices.once_in(2):
            gone = choices.pick(free)
            scenario.do(Drop(gone))
            del self._views[gone], self._read[gone]
        return self._create_view()
