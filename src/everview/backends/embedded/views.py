"""The views of the embedded backend, and which of them a transaction reaches."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everview.backends.base import Refresh
from everview.backends.embedded.arrow_columns import rows_of_batch
from everview.backends.embedded.dependencies import below
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator, consolidated
from everview.backends.embedded.propagation import Running
from everview.backends.embedded.rebalancing_stats import rebalancing_stats, work_of
from everview.backends.embedded.sources import ScanOperator
from everview.backends.embedded.vectors import Batch
from everview.backends.refresh_choice import FROM_DELTAS, NOTHING_TO_DO, views_over
from everview.backends.rejections import assertion_violated
from everview.catalog import ViewDefinition
from everview.relational.traverse import tables_of


@dataclass(slots=True)
class MaintainedView:
    """A view or assertion in force, and what its maintenance has cost."""

    definition: ViewDefinition
    root: Operator
    created_at: int
    refresh: Refresh = FROM_DELTAS
    updates: int = 0
    seconds: float = 0.0
    """As far as they have been shared out; see ``view_times``."""

    @property
    def is_lazy(self) -> bool:
        """Whether it moves when it is read."""
        return self.definition.options.lazy

    @property
    def has_no_listing(self) -> bool:
        """Whether its rows are not listed: there is only a tree to enumerate them from, or the arrays of matrices."""
        return self.definition.options.representation in ("factorized", "matrix")

    def stats(self) -> dict[str, Any]:
        """Rows, bytes by structure, updates, seconds, and the rows that its view trees have read or made."""
        told: dict[str, Any] = {"rows": self.root.count(), "bytes": state_sizes(self.root)}
        told |= {"updates": self.updates, "seconds": self.seconds, "work": work_of(below(self.root))}
        rebalancing = rebalancing_stats(below(self.root))
        return told if rebalancing is None else {**told, "rebalancing": rebalancing}


@dataclass(frozen=True, slots=True)
class Reached:
    """A view that changes of some tables reach, with what it reads: operators by identity.

    ``reads`` are the outputs that the view itself is computed from, scans of tables and roots of other views; ``scans`` are
    those of all tables below it, through other views too.
    """

    key: str
    name: str | None
    """None for an assertion."""
    root: int
    view: MaintainedView
    reads: tuple[int, ...]
    scans: tuple[int, ...]

    def refresh(self, deltas: Mapping[int, Batch]) -> Refresh | None:
        """How a transaction with these deltas has brought it up to date; None if all rows for its tables cancelled out."""
        for read in self.reads:
            if read in deltas:
                self.view.updates += 1
                return self.view.refresh
        return NOTHING_TO_DO if any(scan in deltas for scan in self.scans) else None


class Reach:
    """Which views a change of some tables reaches; remembered until views come or go.

    Args:
        views: All views by name in small letters, each after those that it reads.
    """

    def __init__(self, views: Mapping[str, MaintainedView]) -> None:
        self._views = views
        self._known: dict[tuple[int, ...], list[Reached]] = {}

    def forget(self) -> None:
        """The views are others now."""
        self._known.clear()

    def by(self, running: Running) -> list[Reached]:
        """The views that are not lazy over the tables of a transaction, in order of creation."""
        found = self._known.get(running.key)
        if found is None:
            names = [t.table.name.lower() for t in running.tables]
            over = views_over(names, {k: v.definition for k, v in self._views.items()})
            found = [self._reached(k, self._views[k]) for k in over if not self._views[k].is_lazy]
            self._known[running.key] = found
        return found

    def _reached(self, key: str, view: MaintainedView) -> Reached:
        definition = view.definition
        names = {n.lower() for n in tables_of(definition.plan)}
        scans = [o for o in below(view.root) if isinstance(o, ScanOperator)]
        own = [id(s) for s in scans if s.source.table.name.lower() in names]
        reads = (*own, *(id(self._views[n].root) for n in names if n in self._views))
        name = None if definition.is_assertion else definition.name
        return Reached(key, name, id(view.root), view, reads, tuple(id(s) for s in scans))


def views_to_restore(views: Mapping[str, MaintainedView], torn: Operator) -> list[MaintainedView]:
    """The views over an operator that was left half changed, and all lazy ones."""
    return [v for v in views.values() if v.is_lazy or any(o is torn for o in below(v.root))]


def moved_views(
    reached: Sequence[Reached], deltas: Mapping[int, Batch], left_out: Container[str] | None
) -> tuple[dict[str, Batch], dict[str, Refresh]]:
    """What a transaction with these deltas did to views, by key, and how it brought them up to date, by name."""
    moved, refreshed = {}, {}
    for each in reached:
        if left_out is not None and each.key in left_out:
            continue
        delta = deltas.get(each.root)
        if delta is not None:
            moved[each.key] = delta
        refresh = each.refresh(deltas)
        if refresh is not None and each.name is not None:
            refreshed[each.name] = refresh
    return moved, refreshed


def check_assertions(reached: Sequence[Reached], deltas: Mapping[int, Batch], dictionary: Dictionary) -> None:
    """Raises if an assertion would have rows: it was empty before, so what it would hold is its delta.

    Raises:
        AssertionViolated: it would.
    """
    for each in reached:
        if each.name is None and each.root in deltas:
            definition = each.view.definition
            delta = consolidated(deltas[each.root], each.view.root.layout)
            if rows := rows_of_batch(delta, definition.fields, dictionary):
                raise assertion_violated(definition, rows)


def state_sizes(root: Operator) -> dict[str, int]:
    """Bytes of state by structure, of all that a view needs.

    A structure is named ``#1.aggregate.groups``: the number of its operator, which ``explain`` prints too, the operator's kind,
    and the structure. A view tree has its stored views by name, and their indexes by words of the key (``#1.tree.V.index[0]``).
    """
    sizes: dict[str, int] = {}
    numbers: dict[int, int] = {}
    stack = [root]
    while stack:
        operator = stack.pop()
        if id(operator) in numbers:
            continue
        number = numbers[id(operator)] = len(numbers) + 1
        stack.extend(reversed(operator.inputs))
        kept = {} if operator.arrangement is None else operator.arrangement.nbytes()
        for part, size in (operator.nbytes() | kept).items():
            sizes[f"#{number}.{_kind(operator)}.{part.replace(' ', '_')}"] = size
    return sizes


def _kind(operator: Operator) -> str:
    """What an operator does, as in its class: ``MatchByKeyOperator`` is ``match_by_key``."""
    return re.sub(r"(?<=.)([A-Z])", r"_\1", type(operator).__name__.removesuffix("Operator")).lower()
