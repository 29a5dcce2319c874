"""A scenario: a database with generated tables, and what a user does to it, step by step, every view checked after each.

What is compared with what: after every step each view's rows, and the sum of its deltas, with the reference backend's answer to
the view's translated query; and where a step asks for it, both with Spark's own answer to the query's text on the same rows.
A scenario prints as Python text that runs it again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import everview as ev
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.errors import EvaluationError, EverviewError, InternalError, InvalidQuery, UnknownName, ViewSuspended
from everview.relational.arrow import canonical_rows, rows_from_arrow, rows_to_arrow
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.traverse import tables_of
from everview.relational.types import Row
from tests.oracle.answers import Answers, NoAnswer
from tests.oracle.bags import assert_same_bag
from tests.oracle.followed import WEIGHT, Followed
from tests.oracle.generate_changes import Content, Transaction, apply_transaction
from tests.oracle.generate_tables import TableData, internal_row, show_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class CreateView:
    """A view is made; the options are those of ``create_view``."""

    name: str
    sql: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drop:
    """A view is dropped."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """A transaction."""

    changes: Transaction

    def __post_init__(self) -> None:
        read = {name: tuple((internal_row(row), n) for row, n in rows) for name, rows in self.changes.items()}
        object.__setattr__(self, "changes", read)


@dataclass(frozen=True, slots=True)
class Reopen:
    """The database is closed and opened again, perhaps after a checkpoint; only where it is on disk."""

    is_checkpointed: bool = False


@dataclass(frozen=True, slots=True)
class AskSpark:
    """All views are compared with Spark's answers."""


Step = CreateView | Drop | Apply | Reopen | AskSpark


class Difference(AssertionError):
    """Neither Spark's answer nor an ``EverviewError``; ``kind`` says what it is in a few words, ``view`` whose."""

    def __init__(self, kind: str, message: str, view: str | None = None) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.view = view


@dataclass(slots=True)
class Tally:
    """What was done, by name of what."""

    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    """By the reason of a refusal: the first query that had it, and the whole message."""


class Scenario:
    """A database in some state, and the steps that led there."""

    def __init__(
        self,
        spark: SparkSession,
        answers: Answers,
        tables: Sequence[TableData],
        *,
        backend: str = "embedded",
        settings: Mapping[str, str] | None = None,
        tally: Tally | None = None,
    ) -> None:
        self.tables = tuple(tables)
        self.backend = backend
        self.settings = dict(settings or {})
        self.steps: list[Step] = []
        self.followed: dict[str, Followed] = {}
        self.queries: dict[str, str] = {}
        self._suspended: set[str] = set()
        self._forgotten: set[str] = set()
        self.tally = tally or Tally()
        self.content: Content = {t.name: Counter() for t in self.tables}
        self._fields = {t.name: t.fields for t in self.tables}
        self._spark = spark
        self._answers = answers
        self._folder = Path(tempfile.mkdtemp(prefix="everview-soak-")) if backend != "embedded" else None
        self.db = self._open()
        for t in self.tables:
            self.db.create_table(t.name, rows_to_arrow([], t.fields).schema, primary_key=list(t.key) or None)

    def _open(self) -> ev.Database:
        backend = "spark" if self.backend == "spark" else "embedded"
        return ev.connect(self._folder, backend=backend, spark=self._spark)

    def close(self) -> None:
        """Closes the database and removes its files."""
        self.db.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def do(self, step: Step) -> bool:
        """Takes a step and checks what must hold after it; False if the database refused it.

        Raises:
            Difference: something is wrong.
        """
        self.steps.append(step)
        match step:
            case CreateView():
                return self._create_view(step)
            case Drop():
                self._guard("drop", lambda: self.db.drop(step.name))
                del self.followed[step.name], self.queries[step.name]
                self._suspended.discard(step.name)
                self._forgotten.discard(step.name)
                return True
            case Apply():
                return self._apply(step.changes)
            case Reopen():
                self._guard("reopen", lambda: self._reopen(step.is_checkpointed))
                self._check_views()
                return True
            case AskSpark():
                self._ask_spark()
                return True

    def _guard(self, what: str, call: Any) -> Any:
        """Runs what must not fail."""
        try:
            return call()
        except Exception as error:
            raise Difference(f"{what} raises {_name(error)}", str(error)) from error

    def _create_view(self, step: CreateView) -> bool:
        try:
            view = self.db.create_view(step.name, step.sql, **step.options)
            plan = self._plan(step.name)
            has_deltas = step.options.get("representation") != "factorized"
            self.followed[step.name] = Followed(view, plan, self.db.version, has_deltas=has_deltas)
        except InternalError as error:
            raise Difference(f"create_view raises {_name(error)}", f"{error}\n{step.sql}", step.name) from error
        except EvaluationError as error:
            raise Difference("create_view raises EvaluationError", f"{error}\n{step.sql}", step.name) from error
        except EverviewError as error:
            self.tally.refusals[_reason(error)] += 1
            self.tally.refused.setdefault(_reason(error), f"{error}\n{step.sql}\n{dict(step.options)}")
            if isinstance(error, InvalidQuery | UnknownName):
                self._expect_refusal(step, error)
            return False
        except Exception as error:
            raise Difference(f"create_view raises {_name(error)}", f"{error}\n{step.sql}", step.name) from error
        self.queries[step.name] = step.sql
        self.tally.counts["views"] += 1
        self._check_views([step.name])
        return True

    def _expect_refusal(self, step: CreateView, error: EverviewError) -> None:
        """A query that is called invalid must be so in Spark."""
        answer = self._ask(self.content, step.sql)
        if not isinstance(answer, NoAnswer):
            raise Difference("invalid, but not in Spark", f"{error}\n{step.sql}", step.name) from error

    def _ask(self, content: Content, sql: str) -> pa.Table | NoAnswer:
        """Spark's answer over tables that hold this."""
        self._answers.load(self.tables, content)
        for name in self.queries:
            self._define_if_read(name, sql)
        return self._answers.ask(sql)

    def _expect_failure(self, content: Content, view: str, sql: str, error: EvaluationError) -> None:
        """A view whose arithmetic fails on these rows must fail in Spark too."""
        answer = self._ask(content, sql)
        if not isinstance(answer, NoAnswer):
            raise Difference("fails, but not in Spark", f"{error}\n{sql}\nSpark has {answer.num_rows} rows", view)

    def _plan(self, name: str) -> Relation:
        return self.db._core.catalog.view(name).plan

    def _reopen(self, is_checkpointed: bool) -> None:
        version = self.db.version
        if is_checkpointed:
            self.db.checkpoint()
        self.db.close()
        self.db = self._open()
        for name, followed in self.followed.items():
            followed.view = self.db.view(name)
        self._forgotten |= self._suspended
        assert self.db.version == version, "the version after opening again"

    def _apply(self, changes: Transaction) -> bool:
        after = apply_transaction(self.content, changes)
        given = {name: self._weighted(name, rows) for name, rows in changes.items()}
        self._guard("apply", lambda: self.db.apply(given))
        self.content = after
        self.tally.counts["transactions"] += 1
        self._check_views()
        return True

    def _weighted(self, name: str, rows: Sequence[tuple[Row, int]]) -> pa.Table:
        weights = pa.array([weight for _, weight in rows], pa.int64())
        return rows_to_arrow([row for row, _ in rows], self._fields[name]).append_column(WEIGHT, weights)

    def _recompute(self) -> tuple[dict[str, list[Row]], dict[str, EvaluationError]]:
        """The rows that each view should have, by the reference backend, and the views that fail, or read one that does."""
        bags: dict[str, list[Row]] = {name: list(bag.elements()) for name, bag in self.content.items()}
        failed: dict[str, EvaluationError] = {}
        for name, followed in self.followed.items():
            below = next((failed[read] for read in tables_of(followed.plan) if read in failed), None)
            if below is not None:
                failed[name] = below
                continue
            try:
                bags[name] = evaluate_plan(followed.plan, bags)
            except EvaluationError as error:
                failed[name] = error
        return bags, failed

    def _check_views(self, names: Sequence[str] | None = None) -> None:
        expected, failed = self._recompute()
        for name in self.followed if names is None else names:
            if name in failed:
                self._check_suspended(name, failed)
                continue
            if name in self._suspended:
                self._suspended.discard(name)
                self.tally.counts["views that answer again"] += 1
                if self.db._core.catalog.view(name).options.lazy or name in self._forgotten:
                    self._forgotten.discard(name)  # what it held before is not known any more
                    self._guard("reading a view that answers again", lambda name=name: self._follow(name))
            try:
                self.followed[name].check(expected[name], self.db.version)
            except AssertionError as error:
                raise Difference("differs from the reference", str(error), name) from error
            except Exception as error:
                raise Difference(f"reading raises {_name(error)}", f"{error}\n{self.queries[name]}", name) from error
            self.tally.counts["pairs"] += 1

    def _follow(self, name: str) -> None:
        self.followed[name] = Followed(self.db.view(name), self.followed[name].plan, self.db.version)

    def _check_suspended(self, name: str, failed: Mapping[str, EvaluationError]) -> None:
        """A view that fails in the reference has no answer here, nor in Spark."""
        try:
            rows = self.followed[name].view.to_arrow()
        except ViewSuspended:
            self.tally.counts["suspended pairs"] += 1
        except Exception as error:
            raise Difference(f"reading raises {_name(error)}", f"{error}\n{self.queries[name]}", name) from error
        else:
            # What the reference computes row by row, the engine may have had no need of.
            message = f"{failed[name]}\n{self.queries[name]}\nhas {rows.num_rows} rows"
            raise Difference("a view answers that fails", message, name)
        if name not in self._suspended:
            self._suspended.add(name)
            if not any(read in failed for read in tables_of(self.followed[name].plan)):
                self._expect_failure(self.content, name, self.queries[name], failed[name])

    def _ask_spark(self) -> None:
        self._answers.load(self.tables, self.content)
        bags, failed = self._recompute()
        for name, sql in self.queries.items():
            if name in failed:  # so it does in Spark, which was asked when it became suspended
                self._define_if_read(name)
                continue
            answer = self._answers.ask(sql)
            if answer is NoAnswer.FAILED:
                answer = self._answers.ask_of_tables(sql)
            if answer is NoAnswer.FAILED:
                raise Difference("fails in Spark only", f"{sql}\nhas here {bags[name][:5]}", name)
            if isinstance(answer, NoAnswer):
                self.tally.counts["Spark has no answer"] += 1
                continue
            fields = schema(self.followed[name].plan)
            try:
                theirs = rows_from_arrow(answer, fields)
            except Exception as error:
                raise Difference("has other columns than in Spark", f"{error}\n{sql}", name) from error
            try:
                assert_same_bag(canonical_rows(bags[name], fields), canonical_rows(theirs, fields), sql)
            except AssertionError as error:
                raise Difference("differs from Spark", str(error), name) from error
            self.tally.counts["pairs with Spark"] += 1
            self._define_if_read(name)

    def _define_if_read(self, name: str, also: str = "") -> None:
        """Makes a view known to Spark if another reads it."""
        if any(f" {name} " in text for text in (*self.queries.values(), also)):
            self._answers.define(name, self.queries[name])

    def __repr__(self) -> str:
        """Python text that makes this scenario again."""
        tables = "".join(f"\n        {t!r}," for t in self.tables)
        fields = {t.name: t.fields for t in self.tables}
        steps = "".join(f"\n        {_show_step(s, fields)}," for s in self.steps)
        return f"run(\n    {self.backend!r},\n    {self.settings!r},\n    [{tables}\n    ],\n    [{steps}\n    ],\n)"


def _show_step(step: Step, fields: Mapping[str, Any]) -> str:
    match step:
        case CreateView(name, sql, options):
            return f'CreateView("{name}", """{sql}""", {dict(options)!r})'
        case Apply(changes):
            shown = (
                f'"{name}": [{", ".join(f"({show_row(row, fields[name])}, {weight})" for row, weight in rows)}]'
                for name, rows in changes.items()
            )
            return f"Apply({{{', '.join(shown)}}})"
        case _:
            return repr(step)


def _name(error: BaseException) -> str:
    return type(error).__name__


def _reason(error: EverviewError) -> str:
    """A refusal in a few words, the same for the same cause."""
    operator = getattr(error, "operator", None)
    if operator is not None:
        return f"{_name(error)}: {operator}"
    bracket = str(error).partition("[")[2].partition("]")[0]
    return f"{_name(error)}: {bracket or str(error).partition(chr(39))[0].strip()[:60]}"
