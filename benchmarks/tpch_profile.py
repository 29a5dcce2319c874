"""Where the time of a batch goes: by operator, in kernels, and in calls.

Operators and kernels are timed by stand-ins that exist only while a profile is taken: the engine itself pays nothing for being
observable. Calls are counted by ``cProfile`` in a run of their own. The upkeep of an operator's arrangement (the indexed
copy of its output) is listed by itself.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from numba.core.dispatcher import Dispatcher

import everview as ev
from benchmarks.steps import Step
from benchmarks.timing import feed

ENGINE = "everview.backends.embedded."
SHOWN = 6
NAME_LENGTH = 40
ARRANGE = "arrange"
AROUND = "around:"


@dataclass(slots=True)
class Spent:
    """Calls and seconds by name."""

    calls: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with what it takes added up under a name."""

        def stand_in(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[name] += time.perf_counter() - started
                self.calls[name] += 1

        return stand_in


@dataclass(frozen=True, slots=True)
class Profile:
    """What one transaction of a kind costs, on average."""

    batches: int
    seconds: float
    operators: Spent
    kernels: Spent
    calls_per_batch: float

    @property
    def operators_per_batch(self) -> float:
        """How many operators a batch is pushed through."""
        pushes = sum(n for name, n in self.operators.calls.items() if not name.startswith((ARRANGE, AROUND)))
        return pushes / self.batches

    @property
    def kernel_calls_per_batch(self) -> float:
        """How often Python calls compiled code."""
        return sum(self.kernels.calls.values()) / self.batches

    @property
    def kernel_share(self) -> float:
        """The share of the time spent inside compiled kernels (NumPy not counted)."""
        return sum(self.kernels.seconds.values()) / self.batches / self.seconds

    def slowest_operators(self) -> str:
        """The operators that take most, with microseconds a batch and pushes a batch."""
        ranked = sorted(self.operators.seconds.items(), key=lambda item: -item[1])
        texts = [
            f"{name} {seconds / self.batches * 1e6:.0f} µs x{self.operators.calls[name] / self.batches:.1f}"
            for name, seconds in ranked[:SHOWN]
        ]
        return "; ".join(texts)

    def params(self) -> dict[str, Any]:
        """For a result."""
        return {
            "calls_per_batch": round(self.calls_per_batch),
            "kernel_calls_per_batch": round(self.kernel_calls_per_batch),
            "kernel_share": round(self.kernel_share, 3),
            "operators_per_batch": round(self.operators_per_batch, 1),
            "operators": self.slowest_operators(),
        }


def profile(db: ev.Database, steps: Sequence[Step]) -> Profile:
    """Applies the steps: half with stand-ins for operators and kernels, half with ``cProfile`` counting calls."""
    watched, counted = steps[::2], steps[1::2]
    operators, kernels = Spent(), Spent()
    with _watched_operators(db, operators), _watched_kernels(kernels):
        timed = feed(db, watched)
    counter = cProfile.Profile()
    counter.runcall(feed, db, counted)
    calls = pstats.Stats(counter).total_calls  # type: ignore[attr-defined]  # missing in typeshed
    return Profile(len(watched), timed.mean, operators, kernels, calls / len(counted))


@contextmanager
def _watched_operators(db: ev.Database, spent: Spent) -> Iterator[None]:
    """Every operator, and around them what the session, the tables and the commit take (``around …``)."""
    backend: Any = db._core.backend
    graph = backend._graph
    watched: list[tuple[Any, str]] = []
    _put(db._core, "read_mapping", spent.timed(f"{AROUND} reading the change", db._core.read_mapping), watched)
    propagation = backend._propagation
    _put(propagation, "commit", spent.timed(f"{AROUND} commit", propagation.commit), watched)
    for source in graph.tables.values():
        _put(source.table, "prepare", spent.timed(f"{AROUND} table", source.table.prepare), watched)
    for operator in graph.operators:
        kind = operator.describe().split(":")[0][:NAME_LENGTH]
        _put(operator, "push", spent.timed(kind, operator.push), watched)
        if operator.arrangement is not None:
            name = f"{ARRANGE} {kind}"
            _put(operator.arrangement, "apply", spent.timed(name, operator.arrangement.apply), watched)
    try:
        yield
    finally:
        for thing, name in watched:
            delattr(thing, name)


def _put(thing: Any, name: str, stand_in: Callable[..., Any], watched: list[tuple[Any, str]]) -> None:
    """Hides a method of one object behind a stand-in; deleting the attribute shows the method again."""
    setattr(thing, name, stand_in)
    watched.append((thing, name))


@contextmanager
def _watched_kernels(spent: Spent) -> Iterator[None]:
    """Every compiled function that an engine module can call, behind a stand-in. Kernels must be warm: compiling sees it."""
    hidden: list[tuple[dict[str, Any], str, Any]] = []
    for module in [m for name, m in sys.modules.items() if name.startswith(ENGINE)]:
        names = vars(module)
        for name, value in list(names.items()):
            if isinstance(value, Dispatcher):
                hidden.append((names, name, value))
                names[name] = spent.timed(name, value)
    try:
        yield
    finally:
        for names, name, value in hidden:
            names[name] = value
