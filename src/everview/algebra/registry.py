"""The rings that users have registered as SQL aggregates, by name, for the whole process.

``name(x1, …, xk)`` means Σ_rows Π_i lift_i(x_i) in the ring, where rows with a NULL among the arguments do not count, and NULL
where no row counts, as for SUM. A query's plan has the name only; whoever maintains it finds the ring here. A name means the
same ring as long as the process lives: views that use it may exist in any database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from everview.algebra.laws import shape_problem
from everview.algebra.ring import ColumnValues, Payloads, Ring
from everview.errors import AlreadyExists, EvaluationError, UnknownName, did_you_mean

LiftFunction: TypeAlias = Callable[[ColumnValues], Payloads]


@dataclass(frozen=True, slots=True)
class RegisteredRing:
    """A ring under its SQL name.

    ``lifts`` are functions for the arguments, one each; without them the ring's own ``lift`` takes any number of arguments.
    ``returns`` is the Spark type of the answer, as DDL.
    """

    name: str
    ring: Ring
    lifts: tuple[LiftFunction, ...] | None
    returns: str

    @property
    def arity(self) -> int | None:
        """How many arguments it takes; None for any number from one."""
        return None if self.lifts is None else len(self.lifts)

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        """The argument at ``position`` of some rows, lifted.

        Raises:
            EvaluationError: the lift fails, or does not return payloads.
        """
        try:
            lifted = self.ring.lift(position, column) if self.lifts is None else self.lifts[position](column)
        except EvaluationError:
            raise
        except Exception as error:
            raise self._failure(f"lifting argument {position + 1} failed: {type(error).__name__}: {error}") from error
        problem = shape_problem(self.ring, lifted, len(column))
        if problem is not None:
            raise self._failure(f"the lift of argument {position + 1} returned {problem}")
        return np.ascontiguousarray(lifted)

    def product(self, columns: Sequence[ColumnValues], positions: Sequence[int] | None = None) -> Payloads:
        """Π_i lift_i(x_i) for each row, where the columns are all arguments in order, or those at the positions."""
        places = range(len(columns)) if positions is None else positions
        result = self.lift(places[0], columns[0])
        for position, column in zip(places[1:], columns[1:], strict=True):
            result = self.multiply(result, self.lift(position, column))
        return result

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        """A * b for each key.

        Raises:
            EvaluationError: the ring fails, or does not return payloads.
        """
        try:
            product = self.ring.multiply(a, b)
        except EvaluationError:
            raise
        except Exception as error:
            raise self._failure(f"multiplying failed: {type(error).__name__}: {error}") from error
        problem = shape_problem(self.ring, product, len(a))
        if problem is not None:
            raise self._failure(f"multiply returned {problem}")
        return product

    def values(self, payloads: Payloads) -> Sequence[Any]:
        """What the payloads are to the reader of a view."""
        try:
            values = self.ring.values(payloads)
            given = len(values)
        except Exception as error:
            raise self._failure(f"reading payloads failed: {type(error).__name__}: {error}") from error
        if given != len(payloads):
            raise self._failure(f"values returned {given} values for {len(payloads)} payloads")
        return values

    def _failure(self, what: str) -> EvaluationError:
        return EvaluationError(f"ring '{self.name}': {what}.", condition="REGISTERED_RING")


_rings: dict[str, RegisteredRing] = {}
_lock = threading.Lock()


def register(entry: RegisteredRing) -> RegisteredRing:
    """Adds a ring; doing the same again changes nothing.

    Raises:
        AlreadyExists: another ring has the name.
    """
    with _lock:
        known = _rings.setdefault(entry.name.lower(), entry)
    if known != entry:
        raise AlreadyExists(
            f"a ring '{known.name}' is registered already, and is not the same.",
            hint="a name means one ring for the whole process; choose another, or register the same objects.",
        )
    return known


def forget(name: str) -> None:
    """Removes a ring, if there is one; for names that turn out to be taken, and for tests."""
    with _lock:
        _rings.pop(name.lower(), None)


def ring_named(name: str) -> RegisteredRing:
    """The ring of this name.

    Raises:
        UnknownName: there is none.
    """
    entry = _rings.get(name.lower())
    if entry is None:
        hint = did_you_mean(name, [r.name for r in registered_rings()]) or "register it with ev.register_ring."
        raise UnknownName(f"no ring '{name}' is registered.", hint=hint)
    return entry


def is_registered(name: str) -> bool:
    """Whether a ring has this name."""
    return name.lower() in _rings


def registered_rings() -> tuple[RegisteredRing, ...]:
    """All rings, in order of registration."""
    with _lock:
        return tuple(_rings.values())
