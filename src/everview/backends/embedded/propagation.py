"""How a transaction runs through the DAG: operators in topological order, all of them committed or all of them rolled back.

Operators that only lazy views need do not run in a transaction. The deltas that would have reached them wait, and run
through them as one merged transaction when somebody reads: all inputs are then at their newest contents, and the
merged deltas lead there from the contents of the last time, which is what every delta rule asks for.

So it is with operators that only suspended views need, where these can be paused: what has come since they failed waits, rows
that have gone again cancel, and if what is left can be taken in, the views answer again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

from everview.backends.embedded.dependencies import needed_for
from everview.backends.embedded.graph import Graph
from everview.backends.embedded.operators.base import Operator, consolidated
from everview.backends.embedded.operators.recompute import RecomputeOperator
from everview.backends.embedded.sources import ScanOperator, TableInput
from everview.backends.embedded.state.memory import Budget, reserve
from everview.backends.embedded.tree.machine import TreeOutgrown
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked, TreeGroup
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.vectors import Batch, DeferredBatch, KeyLayout, computed, concatenate, words_held
from everview.errors import EvaluationError

Rejection = Callable[[Operator, MemoryError], Exception]
"""Makes the error for a user where there is no memory for an operator."""

Stop = tuple[Operator, tuple[int, ...]]
"""An operator on a route, and its inputs by identity."""


class LeavesGroup(Exception):
    """A tree that moves with others must go on alone: the transaction is to be rolled back, and run again without it there."""

    def __init__(self, tree: TreeOperator) -> None:
        super().__init__("a tree leaves its group")
        self.tree = tree


class OperatorFailed(Exception):
    """An operator cannot be computed: the transaction is to be rolled back, and rejected, or run again without it."""

    def __init__(self, operator: Operator, error: EvaluationError) -> None:
        super().__init__(error.message)
        self.operator = operator
        self.error = error


NO_BUDGET: Final = nullcontext()
"""Stands for as much memory as there is."""
MOST_WAITING = 64
"""Deltas of an operator that wait before they are merged."""
FEW_WAITING = 1024
"""Rows that are not worth consolidating."""


@dataclass(slots=True)
class Waiting:
    """The deltas of an operator that lazy ones have not seen.

    Where their rows are twice as many as after the last time, they are consolidated: what was inserted and deleted again
    waits no longer, and a row that waits has been consolidated a constant number of times.
    """

    layout: KeyLayout
    deltas: list[Batch] = field(default_factory=list)
    _rows: int = 0
    """Of the deltas that have been computed."""
    _settled: int = 0
    """Rows after the last time."""

    def add(self, delta: Batch) -> None:
        """Takes in a delta."""
        self.deltas.append(delta)
        if not isinstance(delta, DeferredBatch):
            self._rows += len(delta)
        if len(self.deltas) >= MOST_WAITING:
            self._merge()
        if self._rows >= 2 * self._settled + FEW_WAITING:
            self.deltas[:] = [self.merged()]
            self._rows = self._settled = len(self.deltas[0])

    def _merge(self) -> None:
        """Makes the last half of the deltas one, and what is before as long as that is not much larger."""
        start, rows = len(self.deltas), 0
        while start and (start > MOST_WAITING // 2 or len(self.deltas[start - 1]) <= 2 * rows):
            start -= 1
            rows += len(self.deltas[start])
        self.deltas[start:] = [concatenate([computed(b) for b in self.deltas[start:]])]
        self._rows = sum(len(d) for d in self.deltas)

    @property
    def words(self) -> int:
        """How many words of memory they hold on to."""
        return sum(words_held(d) for d in self.deltas)

    def merged(self) -> Batch:
        """All of them as one."""
        return consolidated(concatenate([computed(b) for b in self.deltas]), self.layout)


@dataclass(slots=True)
class Paused:
    """Views that have failed together, with the operators that only they need, as these were before."""

    roots: dict[str, Operator]
    """By view."""
    operators: list[Operator]
    feeding: dict[int, Waiting]
    """What has come since, by the operators that it comes from; these go on running."""
    sources: list[Operator]
    """Those operators."""
    changed: int = 0
    """Rows that have come since the operators were last tried."""

    def add(self, deltas: Mapping[int, Batch]) -> None:
        """Takes note of a transaction."""
        for operator in self.feeding.keys() & deltas.keys():
            self.feeding[operator].add(deltas[operator])
            self.changed += len(deltas[operator])

    @property
    def rows(self) -> int:
        """How many rows wait."""
        return sum(len(delta) for waiting in self.feeding.values() for delta in waiting.deltas)


@dataclass(slots=True)
class Running:
    """A transaction under way: what has been touched so far."""

    tables: list[TableInput] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    deltas: dict[int, Batch] = field(default_factory=dict)
    key: tuple[int, ...] = ()
    """The tables by identity, under which is remembered where their changes go."""

    def commit(self) -> None:
        """Makes everything final."""
        for operator in self.operators:
            operator.commit()
            if operator.arrangement is not None:
                operator.arrangement.commit()
        for source in self.tables:
            source.table.commit()
            source.withdraw()

    def rollback(self) -> None:
        """Takes everything back, last first."""
        self.rollback_operators()
        for source in self.tables:
            source.table.rollback()
            source.withdraw()

    def rollback_operators(self) -> None:
        """Takes back what the operators have done, so that they can be run again; the tables keep their changes."""
        for operator in reversed(self.operators):
            if operator.arrangement is not None:
                operator.arrangement.rollback()
            operator.rollback()
        self.operators.clear()


class Propagation:
    """Runs transactions through a graph of which some views are lazy."""

    def __init__(self, graph: Graph, rejection: Rejection) -> None:
        self._graph = graph
        self._rejection = rejection
        self._lazy_views: set[str] = set()
        self._detached: frozenset[str] = frozenset()
        """Views that take no part in the transaction at hand, because they fail in it."""
        self._idle: set[int] = set()
        """Operators that do not run in a transaction, by identity: lazy ones, and those that only detached views need."""
        self._lazy: list[Operator] = []
        self._feeding: dict[int, Operator] = {}
        """The operators whose deltas lazy ones wait for, by identity."""
        self._waiting: dict[int, Waiting] = {}
        self._routes: dict[tuple[int, ...], list[Stop]] = {}
        self._routed = -1
        self.paused: list[Paused] = []
        self.budget: Budget | AbstractContextManager[None] = NO_BUDGET
        """In force while operators run."""
        self.torn: Operator | None = None
        """An operator whose state a lack of memory has left half changed: it cannot be rolled back."""

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit to what operators may take."""
        return self.budget is not NO_BUDGET

    def building(self) -> Budget | AbstractContextManager[None]:
        """What is in force while operators are made."""
        return self.budget.building() if isinstance(self.budget, Budget) else self.budget

    def set_lazy(self, views: Iterable[str]) -> None:
        """Which views are lazy; nothing waits when this is called, unless all that happened is that a lazy one has gone."""
        self._lazy_views = set(views)
        self.graph_changed()

    def graph_changed(self) -> None:
        """The graph has other operators or roots now."""
        self._lazy, self._feeding, self._idle = [], {}, set()
        self._routes.clear()
        if not self._lazy_views and not self._detached and not self.paused:
            self._waiting.clear()
            return
        apart = self._detached.union(*(p.roots for p in self.paused))
        attached = {name: r for name, r in self._graph.roots.items() if name not in apart}
        running = [r for name, r in attached.items() if name not in self._lazy_views]
        eager = {id(o) for o in needed_for([*running, *(o for p in self.paused for o in p.sources)])}
        lazy_roots = [r for name, r in attached.items() if name in self._lazy_views]
        for_lazy = {id(o) for o in needed_for(lazy_roots)}
        self._idle = {id(o) for o in self._graph.operators if id(o) not in eager and not isinstance(o, ScanOperator)}
        is_lazy = self._idle & for_lazy
        self._lazy = [o for o in self._graph.operators if id(o) in is_lazy]
        inputs = [i for o in self._lazy for i in o.inputs]
        self._feeding = {id(o): o for o in (*inputs, *lazy_roots) if id(o) not in is_lazy}
        self._waiting = {o: deltas for o, deltas in self._waiting.items() if o in self._feeding}

    def detach(self, views: Iterable[str]) -> None:
        """Which views take no part in the transaction at hand, by name; nothing may wait for lazy ones."""
        if self._detached or views:
            self._detached = frozenset(views)
            self.graph_changed()

    def pause(self, views: Iterable[str], running: Running) -> Paused | None:
        """Keeps the operators of detached views as they are, with what a transaction would have brought them.

        Returns:
            None where that is not possible: lazy views may wait for the same, a tree is in step with others, or something is
            computed anew each time.
        """
        roots = {name: self._graph.roots[name] for name in views}
        needed = {id(o) for o in needed_for(roots.values())}
        idle = [o for o in self._graph.operators if id(o) in needed and id(o) in self._idle]
        if self._lazy_views or any(_cannot_pause(o) for o in idle):
            return None
        own = {id(o) for o in idle}
        sources = list({id(i): i for o in (*idle, *roots.values()) for i in o.inputs if id(i) not in own}.values())
        paused = Paused(roots, idle, {id(o): Waiting(o.layout) for o in sources}, sources)
        paused.add(running.deltas)
        paused.changed = 0  # they have just failed on this
        self.paused.append(paused)
        return paused

    def resume(self, paused: Paused) -> dict[int, Batch]:
        """Takes in what has waited; returns the deltas, by operator. The views are no longer paused.

        Raises:
            OperatorFailed: they fail still; nothing has changed.
        """
        running = Running()
        for operator, waiting in paused.feeding.items():
            merged = waiting.merged() if waiting.deltas else None
            waiting.deltas[:] = [] if merged is None or not len(merged) else [merged]
            if waiting.deltas:
                running.deltas[operator] = waiting.deltas[0]
        paused.changed = 0
        try:
            self._run_all(lambda: [_stop(o) for o in paused.operators], running)
        except BaseException:
            running.rollback()
            raise
        running.commit()
        self.paused.remove(paused)
        self.graph_changed()
        return running.deltas

    def push(self, running: Running) -> None:
        """Sends the deltas of the changed tables through all operators but the lazy ones."""
        running.key = tuple([id(t) for t in running.tables])
        self._run_all(lambda: self._route(running), running)

    def _run_all(self, route: Callable[[], Iterable[Stop]], running: Running) -> None:
        """Runs a transaction, again if a tree has left its group."""
        given = dict(running.deltas)
        while True:
            try:
                if self.budget is NO_BUDGET:
                    self._run(route(), running, is_limited=False)
                else:
                    with self.budget:
                        self._run(route(), running, is_limited=True)
            except LeavesGroup as leaving:
                running.rollback_operators()
                running.deltas = dict(given)
                self._graph.pool.let_go(leaving.tree)
                self.graph_changed()
            else:
                return

    def _route(self, running: Running) -> list[Stop]:
        """The operators that a change of the tables can reach, in order; remembered until the graph changes."""
        if self._routed != self._graph.pool.generation:
            self._routes.clear()
            self._routed = self._graph.pool.generation
        route = self._routes.get(running.key)
        if route is None:
            reached = {id(scan) for source in running.tables for scan in source.scans.values()}
            route = []
            for operator in self._graph.operators:
                if id(operator) in self._idle:
                    continue
                if id(operator) in reached or any(id(i) in reached for i in operator.inputs):
                    reached.add(id(operator))
                    route.append(_stop(operator))
            self._routes[running.key] = route
        return route

    def _run(self, route: Iterable[Stop], running: Running, *, is_limited: bool) -> None:
        """Visits operators in order, each with the deltas of its inputs, if one of them has moved, and takes their time."""
        deltas, touched = running.deltas, running.operators
        since = perf_counter()
        for operator, inputs in route:
            given = [deltas.get(i) for i in inputs]
            for delta in given:
                if delta is not None:
                    break
            else:
                if not isinstance(operator, ScanOperator):
                    continue
            touched.append(operator)
            try:
                made = operator.push(given)
                if isinstance(made, DeferredBatch):
                    deltas[id(operator)] = made
                    if made.counter is None:
                        made.counter = operator.out
                        operator.out.unread += 1
                    if operator.arrangement is not None:
                        operator.arrangement.apply(made)
                elif made is not None and (count := len(made)):
                    deltas[id(operator)] = made
                    operator.out.rows += count
                    if is_limited:
                        reserve(8 * count * (1 + len(made.columns)))
                    if operator.arrangement is not None:
                        operator.arrangement.apply(made)
            except TreeOutgrown as error:
                if isinstance(operator, TreeOperator) and operator.group is not None and operator.may_leave_tree:
                    raise LeavesGroup(operator) from error
                raise OperatorFailed(operator, error) from error
            except EvaluationError as error:
                raise OperatorFailed(operator, error) from error
            except MemoryError as error:
                if not operator.survives_lack_of_memory:
                    self.torn = touched.pop()
                raise self._rejection(operator, error) from error
            now = perf_counter()
            operator.seconds += now - since
            since = now

    def forget(self) -> None:
        """All operators are at the newest contents, lazy ones too."""
        self.torn = None
        self._waiting.clear()

    def commit(self, running: Running) -> None:
        """Makes a transaction final, and keeps what lazy operators will need of it."""
        running.commit()
        for paused in self.paused:
            paused.add(running.deltas)
        if not self._feeding:
            return
        for operator in self._feeding.keys() & running.deltas.keys():
            if operator not in self._waiting:
                self._waiting[operator] = Waiting(self._feeding[operator].layout)
            self._waiting[operator].add(running.deltas[operator])

    @property
    def has_waiting(self) -> bool:
        """Whether lazy views are behind."""
        return bool(self._waiting)

    def catch_up(self) -> dict[int, Batch]:
        """Brings the lazy operators up to date; returns the deltas, by operator.

        Raises:
            OperatorFailed: a view cannot be computed; it stays where it was.
        """
        running = Running()
        for operator, waiting in self._waiting.items():
            merged = waiting.merged()
            if len(merged):
                running.deltas[operator] = merged
        try:
            self._run_all(lambda: [_stop(lazy) for lazy in self._lazy], running)
        except BaseException:
            running.rollback()
            raise
        running.commit()
        self._waiting.clear()
        return running.deltas


def _cannot_pause(operator: Operator) -> bool:
    """Whether an operator moves with others, or computes everything anew, so that it has nothing to wait with."""
    in_step = isinstance(operator, TreeGroup) or (isinstance(operator, TreeBacked) and operator.group is not None)
    return in_step or isinstance(operator, RecomputeOperator)


def _stop(operator: Operator) -> Stop:
    return operator, tuple(id(i) for i in operator.inputs)
