"""``ev.register_ring``: a ring of the user's own becomes an SQL aggregate."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from everview.algebra.laws import broken_law
from everview.algebra.registry import LiftFunction, RegisteredRing, register
from everview.algebra.ring import Payloads, Ring
from everview.errors import AlreadyExists, EvaluationError, InvalidQuery, UnsupportedQuery
from everview.relational.definitions.aggregates import is_aggregate
from everview.relational.functions import is_function
from everview.relational.ring_values import is_ring_type, ring_values
from everview.session.sql.ddl import parse_schema

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def register_ring(
    name: str,
    ring: Ring,
    *,
    lifts: Iterable[LiftFunction] | None = None,
    returns: str,
    samples: Payloads | None = None,
) -> None:
    """Makes ``name(x1, …, xk)`` an aggregate of every query in this process: Σ over rows of Π_i lift_i(x_i) in the ring.

    Rows with a NULL argument do not count; where no row counts the answer is NULL, as for SUM. Registering the same again
    changes nothing.

    Args:
        name: The SQL name; not one of Spark's own functions.
        ring: A subclass of ``ev.Ring``.
        lifts: A function for each argument, from a NumPy column to payloads [n, width]; by default ``ring.lift``.
        returns: The Spark type, as DDL, of what ``ring.values`` makes of a payload: ``double``, ``array<double>``, …
        samples: Payloads on which to try the laws of a ring, besides 0, 1, -1 and 2.

    Raises:
        InvalidQuery: the name, the type or the ring itself is not what it should be.
        UnsupportedQuery: an aggregate cannot return the type.
        AlreadyExists: Spark or another ring has the name.
    """
    if not _NAME.fullmatch(name):
        raise InvalidQuery(f"'{name}' is no name for a function.", hint="use letters, digits and _.")
    if is_aggregate(name.lower()) or is_function(
        name.lower()
    ):  # Spark's other functions: when the name first meets Spark
        raise AlreadyExists(f"Spark SQL has a function '{name}'.", hint="register the ring under another name.")
    if not isinstance(ring, Ring):
        given = f"the class {ring.__name__}" if isinstance(ring, type) else f"a {type(ring).__name__}"
        raise InvalidQuery(f"ring '{name}' is {given}.", hint="give an instance of a subclass of ev.Ring.")
    given_lifts = None if lifts is None else tuple(lifts)
    if given_lifts is not None and not (given_lifts and all(callable(lift) for lift in given_lifts)):
        raise InvalidQuery(f"the lifts of ring '{name}' are not functions.", hint="give one for each argument.")
    entry = RegisteredRing(name, ring, given_lifts, returns)
    _check(entry, samples)
    register(entry)


def _check(entry: RegisteredRing, samples: Payloads | None) -> None:
    (field,) = parse_schema(f"value {entry.returns}").fields
    if not is_ring_type(field.type):
        raise UnsupportedQuery(
            f"the aggregate of ring '{entry.name}' cannot return {field.type}.",
            operator=str(field.type),
            hint="return numbers, booleans, strings, or arrays and structs of them.",
        )
    try:
        broken = broken_law(entry.ring, samples)
    except Exception as error:
        raise InvalidQuery(f"ring '{entry.name}' fails on its own 0 and 1: {type(error).__name__}: {error}.") from error
    if broken is not None:
        raise InvalidQuery(f"'{entry.name}' is no ring: {broken}.")
    if not entry.ring.is_commutative and entry.arity not in (None, 1):
        raise InvalidQuery(
            f"ring '{entry.name}' does not commute, and a view multiplies the factors of a row in any order.",
            hint="give it one lift, which makes the whole element from one argument.",
        )
    try:
        ring_values(entry, np.concatenate([entry.ring.zeros(1), entry.ring.ones(1)]), field.type)
    except EvaluationError as error:
        raise InvalidQuery(error.message, hint="values and returns must agree.") from error
