"""Views that have no answer, because their arithmetic fails on rows that are there.

A transaction that makes a view fail is rolled back and run again without the operators that only such views need, so that
nothing of the failed run is left anywhere. If it then commits, the views that failed take no part any more, nor do views over
them. They come back in one of two ways:

- *From deltas*: their operators are paused as they were, and what would have reached them waits (``propagation.Paused``). Rows
  that have come and gone cancel; if what is left can be taken in, its delta is that of the view since it last answered.
- *Anew*: where operators cannot be paused, never were loaded, or fail on a delta though the query does not fail on the rows,
  the view is built again from its tables, as a new one would be. It has kept its last content, and the delta since is

      δ = content now − last content            (empty for a view that never had one)

So the deltas of a view still add up to its content. A transaction tries if few rows wait (the tables are small), or half as
many rows have come since the last try as wait (as the tables hold): a constant a changed row. A read always tries, so that a
view is refused only if its query fails now.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from everview.backends import rejections
from everview.backends.base import Change, Refresh, Suspension
from everview.backends.embedded.arrow_columns import arrow_table
from everview.backends.embedded.build_operators import build_apart
from everview.backends.embedded.column_reader import ColumnReader
from everview.backends.embedded.dependencies import below
from everview.backends.embedded.graph import Graph
from everview.backends.embedded.operators.base import Operator, consolidated
from everview.backends.embedded.operators.recompute import GivenOperator
from everview.backends.embedded.paused_views import PausedViews
from everview.backends.embedded.propagation import OperatorFailed, Paused, Propagation, Running
from everview.backends.embedded.restoration import add_to_graph
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked
from everview.backends.embedded.vectors import Batch, KeyLayout, concatenate, empty_batch
from everview.backends.embedded.view_choices import choices_of
from everview.backends.embedded.views import MaintainedView
from everview.backends.refresh_choice import views_over
from everview.catalog import ViewDefinition
from everview.errors import EvaluationError, OutOfMemory
from everview.relational.format import format_plan
from everview.relational.nodes import Schema
from everview.relational.rules import WITH_TREES, run_rules
from everview.relational.traverse import tables_of

FEW_ROWS = 20_000
"""Tables with at most so many rows are cheap enough to be read after every transaction that changes them."""


@dataclass(slots=True)
class SuspendedView:
    """A view without an answer, and what it needs to have one again."""

    definition: ViewDefinition
    why: Suspension
    created_at: int
    last: pa.Table | None
    """The content that it had, weights last; None if nobody knows it: a lazy view that failed when it was read."""
    layout: KeyLayout
    updates: int = 0
    seconds: float = 0.0
    is_stale: bool = True
    """Whether something that it reads has changed since it was tried."""
    changed: int = 0
    """Rows that have changed in its tables since then."""
    was_tried: bool = False
    """Whether it was found to fail when computed from its tables, not only from a delta."""


@dataclass(slots=True)
class Failing:
    """The views that cannot take part in a transaction under way, by key, in order of creation."""

    views: dict[str, SuspendedView] = field(default_factory=dict)

    def __contains__(self, key: object) -> bool:
        return key in self.views


@dataclass(frozen=True, slots=True)
class Recovered:
    """A view answers again: how that came about, and what has changed since it last did."""

    refresh: Refresh
    delta: Batch


class SuspendedViews:
    """The suspended views of a database.

    Args:
        graph: The operators of all others.
        propagation: What runs them.
        views: All others, by key; shared with the backend.
        settle: Called before operators come or go.
        changed: Called after views have come or gone.
    """

    def __init__(
        self,
        graph: Graph,
        propagation: Propagation,
        views: dict[str, MaintainedView],
        settle: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self._graph = graph
        self._propagation = propagation
        self._views = views
        self._settle = settle
        self._changed = changed
        self.paused = PausedViews(graph, propagation)
        self.by_key: dict[str, SuspendedView] = {}
        """Each after those that it reads."""

    def check(self, name: str) -> None:
        """Raises if a view cannot be read.

        Raises:
            ViewSuspended: it has no answer.
        """
        found = self.by_key.get(name.lower())
        if found is not None:
            raise rejections.suspended(found.definition, found.why)

    @property
    def reasons(self) -> dict[str, Suspension]:
        """Why each has no answer, by its name."""
        return {v.definition.name: v.why for v in self.by_key.values()}

    # Becoming suspended

    def leave_out(self, failed: OperatorFailed, version: int, failing: Failing) -> Failing:
        """Lets the views over an operator that has failed take no part in a transaction, which is rolled back.

        Returns:
            The views that now take no part; they failed in this version, if it comes to be.

        Raises:
            EvaluationError: one of them may not be suspended.
        """
        operator, known = failed.operator, len(failing.views)
        self._propagation.detach(())
        is_let_go = self.paused.let_go_over(operator)
        self._settle()
        self._fail(operator, failed.error, version, failing)
        if isinstance(operator, TreeBacked) and operator.group is not None:
            self._graph.pool.let_go(operator)  # the others of its group go on
        else:
            assert is_let_go or len(failing.views) > known, "what only detached views need does not run"
        self._propagation.detach(failing.views)
        return failing

    def _fail(self, operator: Operator, error: EvaluationError, version: int, failing: Failing) -> None:
        over = [key for key in self._views if key in self._graph.views_over(operator)]
        for key in over:
            if not self._views[key].definition.options.may_be_suspended:
                raise rejections.failed_in_view(self._views[key].definition, error) from error
        for key in over:
            if key not in failing:
                why = self._why(self._views[key].definition, version, error, failing.views)
                failing.views[key] = self._suspended(self._views[key], why)

    def _why(
        self, view: ViewDefinition, version: int, error: EvaluationError, others: Mapping[str, SuspendedView]
    ) -> Suspension:
        below = self._waits_for(view, others)
        if below is None:
            return rejections.failing(view, version, error)
        return rejections.waiting(view, version, below.definition, below.why)

    def _waits_for(self, view: ViewDefinition, others: Mapping[str, SuspendedView]) -> SuspendedView | None:
        return next((others[n.lower()] for n in tables_of(view.plan) if n.lower() in others), None)

    def _suspended(self, view: MaintainedView, why: Suspension, *, is_lazy: bool = False) -> SuspendedView:
        definition, layout = view.definition, view.root.layout
        last = None if is_lazy or view.has_no_listing else self._to_arrow(view.root, definition.fields)
        return SuspendedView(definition, why, view.created_at, last, layout, view.updates, view.seconds)

    def _to_arrow(self, root: Operator, fields: Schema) -> pa.Table:
        rows = consolidated(root.content(), root.layout)
        return arrow_table(rows, fields, self._graph.dictionary).append_column("", pa.array(rows.weights))

    def failed_lazily(self, failed: OperatorFailed, version: int) -> Failing:
        """The views over an operator that has failed when lazy ones caught up; what they held before is not known any more.

        Raises:
            EvaluationError: one of them may not be suspended.
        """
        failing = Failing()
        for key in self._graph.views_over(failed.operator):
            why = self._why(self._views[key].definition, version, failed.error, failing.views)
            failing.views[key] = self._suspended(self._views[key], why, is_lazy=True)
        return failing

    def add(self, failing: Failing, running: Running | None = None) -> None:
        """Takes views out of the graph, or pauses them where a transaction without them (``running``) is committed."""
        are_paused = running is not None and self.paused.add(list(failing.views), running)
        for key in failing.views:
            del self._views[key]
            if not are_paused:
                self._graph.drop_view(key)
        self.by_key = {
            **failing.views,
            **self.by_key,
        }  # those that have failed before may read these, not the other way round
        self._propagation.detach(())
        self._changed()

    def add_new(self, view: ViewDefinition, version: int, error: EvaluationError | None) -> None:
        """A view that has no answer to begin with: it fails, or reads one that is suspended.

        Raises:
            EvaluationError: it may not be suspended.
            UnsupportedQuery: nor could it be maintained otherwise.
        """
        below = self._waits_for(view, self.by_key)
        if below is not None:
            if not view.options.may_be_suspended:
                raise rejections.suspended(below.definition, below.why)
            why = rejections.waiting(view, version, below.definition, below.why)
        else:
            assert error is not None, "it fails, or waits for another"
            why = rejections.failing(view, version, error)
        self._check_supported(view)
        types, nullable = tuple(f.type for f in view.fields), tuple(f.nullable for f in view.fields)
        empty = arrow_table(empty_batch(types), view.fields, self._graph.dictionary)
        nothing = empty.append_column("", pa.array([], pa.int64()))
        layout = KeyLayout(types, nullable)
        self.by_key[view.name.lower()] = SuspendedView(
            view, why, version, nothing, layout, is_stale=False, was_tried=True
        )

    def _check_supported(self, view: ViewDefinition) -> None:
        """Builds the view over empty tables: what cannot be maintained is refused now, not when the view answers."""
        given: dict[str, Operator] = {}
        for name in tables_of(view.plan):
            fields = self._fields_of(name.lower())
            given[name.lower()] = GivenOperator(fields, empty_batch(tuple(f.type for f in fields)))
        try:
            build_apart(run_rules(view.plan, WITH_TREES), given, self._graph.dictionary)
        except EvaluationError:
            return  # it fails over no rows, too, as some divisions do; all before that can be maintained

    def _fields_of(self, key: str) -> Schema:
        if key in self._graph.tables:
            return self._graph.tables[key].fields
        return self._definition(key).fields

    def _definition(self, key: str) -> ViewDefinition:
        return self.by_key[key].definition if key in self.by_key else self._views[key].definition

    def described(self, key: str) -> tuple[ViewDefinition, KeyLayout]:
        """The definition of a view, suspended or not, and how its rows lie in memory."""
        layout = self.by_key[key].layout if key in self.by_key else self._views[key].root.layout
        return self._definition(key), layout

    def drop(self, key: str) -> None:
        """Removes a view."""
        del self.by_key[key]
        self._let_go(key)

    def _let_go(self, key: str) -> None:
        paused = self.paused.having(key)
        if paused is not None:
            self.paused.let_go(paused)

    # Trying again

    def note(self, tables: Iterable[str], changes: Sequence[Change]) -> None:
        """A transaction has changed these tables (keys)."""
        everything = {key: self._definition(key) for key in (*self._views, *self.by_key)}
        rows = sum(c.given.num_rows for c in changes)
        for key in views_over(tables, everything):
            if key in self.by_key:
                self.by_key[key].is_stale = True
                self.by_key[key].changed += rows

    def to_try(self, *, cheaply: bool) -> list[str]:
        """The views to try again, each after those that it reads; ``cheaply``: only where that costs little a changed row."""
        return [k for k, v in self.by_key.items() if v.is_stale and (not cheaply or self._is_cheap(v))]

    def _is_cheap(self, view: SuspendedView) -> bool:
        """Whether a view may be loaded now; one that has failed just now always, as a delta may fail where the rows do not."""
        if not view.was_tried:
            return True
        held = self._rows_below(view.definition)
        return held <= FEW_ROWS or 2 * view.changed >= held

    def _rows_below(self, view: ViewDefinition) -> int:
        """The rows of all tables that a view is computed from."""
        names, seen = [n.lower() for n in tables_of(view.plan)], set[str]()
        held = 0
        while names:
            name = names.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._graph.tables:
                held += self._graph.tables[name].table.row_count
            else:
                names += [n.lower() for n in tables_of(self._definition(name).plan)]
        return held

    def try_again(self, version: int, *, cheaply: bool) -> dict[str, Recovered]:
        """Takes in what has waited, or builds views from what is there; those that answer again, by key."""
        found: dict[str, Recovered] = {}
        for paused in self.paused.groups:
            waiting_rows = paused.rows
            if waiting_rows > max(FEW_ROWS, *(self._rows_below(self.by_key[k].definition) for k in paused.roots)):
                self.paused.let_go(paused)  # building its views anew is less than taking all that in
            elif paused.changed and (not cheaply or waiting_rows <= FEW_ROWS or 2 * paused.changed >= waiting_rows):
                found |= self._resume(paused)
        while waiting := self.to_try(cheaply=cheaply):
            self._settle()
            for key in waiting:
                why = self.by_key[key].why
                delta = self._build(key, version)
                if delta is not None:
                    found[key] = Recovered(_healed(why), delta)
                    self._changed()
        return found

    def _resume(self, paused: Paused) -> dict[str, Recovered]:
        """The views that have taken in what waited for them, all or none."""
        self._settle()
        try:
            deltas = self._propagation.resume(paused)
        except OperatorFailed as failed:
            for key, root in paused.roots.items():
                view = self.by_key[key]
                if any(o is failed.operator for o in below(root)):
                    view.why = self._why(view.definition, view.why.version, failed.error, self.by_key)
            return {}
        except OutOfMemory:
            self._propagation.torn = None
            self.paused.let_go(paused)
            return {}
        found: dict[str, Recovered] = {}
        for key, root in paused.roots.items():
            view = self.by_key[key]
            refresh = choices_of(view.definition).refresh
            self._answers(
                key, MaintainedView(view.definition, root, view.created_at, refresh, view.updates, view.seconds)
            )
            found[key] = Recovered(_caught_up(view.why), deltas.get(id(root), root.nothing()))
        self._changed()
        return found

    def _answers(self, key: str, view: MaintainedView) -> None:
        """A view is back; those that wait for it can be tried."""
        del self.by_key[key]
        for other in self.by_key.values():
            other.is_stale |= key in {n.lower() for n in tables_of(other.definition.plan)}
        view.updates += 1
        self._views[key] = view

    def _build(self, key: str, version: int) -> Batch | None:
        """The delta of a view since its last content, or None: it is suspended still."""
        view = self.by_key[key]
        view.is_stale, view.changed, view.was_tried = False, 0, True
        below = self._waits_for(view.definition, self.by_key)
        if below is not None:
            view.why = rejections.waiting(view.definition, view.why.version, below.definition, below.why)
            return None
        choices = choices_of(view.definition)
        try:
            root = add_to_graph(self._graph, view.definition, choices)
        except EvaluationError as error:
            view.why = rejections.failing(view.definition, view.why.version, error)
            return None
        except MemoryError:
            reason = "there is not enough memory to compute it anew."
            view.why, view.is_stale = Suspension(view.why.version, reason, "OUT_OF_MEMORY"), True
            return None
        self._let_go(key)
        created = version if view.last is None else view.created_at
        self._answers(key, MaintainedView(view.definition, root, created, choices.refresh, view.updates, view.seconds))
        if view.last is None:
            return root.nothing()
        last = self._from_arrow(view.last, view.definition.fields)
        return consolidated(concatenate([root.content(), last.negated()]), root.layout)

    def _from_arrow(self, rows: pa.Table, fields: Schema) -> Batch:
        width = len(fields)
        read = ColumnReader(fields, range(width), self._graph.dictionary).read(rows.select(range(width)))
        return Batch(tuple(read[i] for i in range(width)), rows.column(width).to_numpy())

    # What is told of them

    def explain(self, key: str, mode: str) -> str:
        """The plan of a suspended view, which has no operators, and why it has none."""
        view = self.by_key[key]
        plan = format_plan(view.definition.plan)
        match mode:
            case "text":
                return f"{view.why}\nheals {self.paused.how_it_heals(key)}\n{plan}"
            case "json":
                told = {
                    "view": view.definition.name,
                    "suspended": asdict(view.why),
                    "heals": self.paused.how_it_heals(key),
                }
                return json.dumps({**told, "plan": plan.splitlines()}, indent=2)
            case _:
                raise rejections.suspended(view.definition, view.why)

    def stats(self, key: str) -> dict[str, Any]:
        """What a suspended view has cost, and why it has no rows."""
        view = self.by_key[key]
        kept = {} if view.last is None else {"last_content": view.last.nbytes}
        return {
            "rows": None,
            "bytes": kept,
            "updates": view.updates,
            "seconds": view.seconds,
            "suspended": view.why,
            "heals": self.paused.how_it_heals(key),
        }


def _caught_up(why: Suspension) -> Refresh:
    """The same of one that was paused."""
    return Refresh(
        "incremental", f"it failed at version {why.version} ({why.condition}), and took in what had changed since"
    )


def _healed(why: Suspension) -> Refresh:
    """What ``Commit.refreshed`` says of a view that answers again."""
    return Refresh(
        "full", f"it failed at version {why.version} ({why.condition}), and was computed anew from its tables"
    )
