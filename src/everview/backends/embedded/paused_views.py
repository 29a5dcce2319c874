"""Views that have failed and whose operators are kept as they were, so that they can come back from deltas."""

from __future__ import annotations

from everview.backends.embedded.dependencies import needed_for
from everview.backends.embedded.graph import Graph
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.propagation import Paused, Propagation, Running


class PausedViews:
    """The paused views of a database.

    Args:
        graph: All operators, those of paused views among them.
        propagation: What runs them.
    """

    def __init__(self, graph: Graph, propagation: Propagation) -> None:
        self._graph = graph
        self._propagation = propagation

    @property
    def groups(self) -> list[Paused]:
        """Those that have failed together."""
        return list(self._propagation.paused)

    def having(self, key: str) -> Paused | None:
        """The group of a view, if it is paused."""
        return next((p for p in self._propagation.paused if key in p.roots), None)

    def add(self, views: list[str], running: Running) -> bool:
        """Pauses detached views, if that is possible, after a transaction without them."""
        paused = self._propagation.pause(views, running)
        if paused is not None:
            self._graph.pool.set_apart(paused.operators)  # a new view must not read what stands still
        return paused is not None

    def let_go_over(self, operator: Operator) -> bool:
        """Pauses no longer what an operator that fails feeds; whether there was something."""
        over = [p for p in self.groups if any(o is operator for o in needed_for(p.roots.values()))]
        for paused in over:
            self.let_go(paused)
        return bool(over)

    def let_go_all(self) -> None:
        """Pauses nothing any more: all views have to be built anew."""
        for paused in self.groups:
            self.let_go(paused)

    def let_go(self, paused: Paused) -> None:
        """Drops paused operators; their views have to be built anew, if they have not been already."""
        self._propagation.paused.remove(paused)
        for key, root in paused.roots.items():
            if self._graph.roots.get(key) is root:
                self._graph.drop_view(key)
        self._graph.collect()
        self._propagation.graph_changed()

    def how_it_heals(self, key: str) -> str:
        """What ``explain`` and ``stats`` say of a suspended view."""
        paused = self.having(key)
        return "by being computed anew" if paused is None else f"from deltas (rows that wait for it: {paused.rows})"
