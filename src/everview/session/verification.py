"""Comparing a maintained view with Spark's own answer, as bags.

Rows are equal when all their values are; floats, also inside arrays and structs, when they differ by at most ``TOLERANCE`` of
the larger (sums of floats depend on the order of addition, and Spark's order is not ours), NaN equals NaN. Exact matches are
taken away first; only what is left is matched with tolerance, so the comparison is linear where nothing is wrong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from everview.algebra.zset import ZSet, bag, difference
from everview.catalog import ViewDefinition
from everview.errors import VerificationFailed
from everview.relational.arrow import public_rows, rows_from_arrow, rows_to_arrow
from everview.relational.display import show_row
from everview.relational.nodes import Schema
from everview.relational.types import FLOATS, Row, Value, holds

TOLERANCE = 1e-9
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class VerifiedView:
    """A view that equals its recomputation: how many rows it has, and how long Spark and the comparison took.

    ``recomputed_from`` is ``query``, or ``plan`` where the query was a DataFrame or ``ev.union_max`` of another process: Spark
    then computes the stored plan, and that the plan means the query is not checked again.
    """

    name: str
    rows: int
    seconds: float
    recomputed_from: str = "query"

    def __str__(self) -> str:
        how = "" if self.recomputed_from == "query" else f", recomputed from its stored {self.recomputed_from}"
        return f"{self.name}: {self.rows} rows equal, {self.seconds:.2f} s{how}"


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """What ``db.verify`` compared, and what it could not (name → reason)."""

    version: int
    views: tuple[VerifiedView, ...]
    skipped: dict[str, str]

    def __repr__(self) -> str:
        lines = [f"verified at version {self.version}:"]
        lines += [f"  {view}" for view in self.views]
        lines += [f"  {name}: not verified, {reason}" for name, reason in self.skipped.items()]
        return "\n".join(lines) if len(lines) > 1 else f"verified at version {self.version}: nothing to verify"


def compare(view: ViewDefinition, maintained: pa.Table, recomputed: pa.Table) -> None:
    """Raises ``VerificationFailed`` with the differing rows unless the two bags are equal."""
    fields = view.fields
    ours = bag(rows_from_arrow(maintained, fields))
    theirs = bag(rows_from_arrow(recomputed, fields))
    surplus, deficit = _unmatched(difference(ours, theirs), fields)
    if surplus or deficit:
        raise VerificationFailed(_message(view, ours, theirs, [*surplus, *deficit]))


def _unmatched(delta: ZSet[Row], fields: Schema) -> tuple[list[Row], list[Row]]:
    """The rows only we have and those only Spark has, after matching with tolerance."""
    ours = [row for row, weight in delta.items() for _ in range(weight)]
    theirs = [row for row, weight in delta.items() for _ in range(-weight)]
    floating = [i for i, f in enumerate(fields) if holds(f.type, FLOATS)]
    if not floating or not ours or not theirs:
        return ours, theirs
    exact = [i for i in range(len(fields)) if i not in floating]
    groups: defaultdict[Row, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((ours, theirs)):
        for row in rows:
            groups[tuple(row[i] for i in exact)][side].append(row)
    left: list[Row] = []
    right: list[Row] = []
    for a, b in groups.values():
        rest_a, rest_b = _match(a, b, floating)
        left += rest_a
        right += rest_b
    return left, right


def _match(ours: list[Row], theirs: list[Row], floating: Sequence[int]) -> tuple[list[Row], list[Row]]:
    """Pairs rows whose floats are close: in sorted order first, which settles nearly all, then each with each."""

    def order(row: Row) -> tuple[Value, ...]:
        return tuple(_order_key(row[i]) for i in floating)

    ours, theirs = sorted(ours, key=order), sorted(theirs, key=order)
    if len(ours) == len(theirs) and all(_are_close(a, b, floating) for a, b in zip(ours, theirs, strict=True)):
        return [], []
    waiting = list(theirs)
    unmatched: list[Row] = []
    for row in ours:
        partner = next((i for i, other in enumerate(waiting) if _are_close(row, other, floating)), None)
        if partner is None:
            unmatched.append(row)
        else:
            waiting.pop(partner)
    return unmatched, waiting


def _order_key(value: Value) -> tuple[Value, ...]:
    """What sorts values of one type, also nested ones with NULL and NaN in them."""
    if value is None:
        return (2,)
    if isinstance(value, tuple):
        return (0, tuple(_order_key(v) for v in value))
    return (1,) if isinstance(value, float) and math.isnan(value) else (0, value)


def _are_close(a: Row, b: Row, floating: Sequence[int]) -> bool:
    return all(_is_close(a[i], b[i]) for i in floating)


def _is_close(a: Value, b: Value) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(_is_close(x, y) for x, y in zip(a, b, strict=True))
    if not isinstance(a, float):
        return bool(a == b)
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=TOLERANCE)


def _message(view: ViewDefinition, ours: ZSet[Row], theirs: ZSet[Row], differing: list[Row]) -> str:
    distinct = list(dict.fromkeys(differing))
    shown = public_rows(rows_to_arrow(distinct[:_SHOWN], view.fields))
    lines = [f"{view.kind} '{view.name}' differs from Spark's recomputation in {len(distinct)} distinct rows:"]
    for row, public in zip(distinct, shown, strict=False):
        lines.append(f"  {show_row(public)}: {ours.get(row, 0)} here, {theirs.get(row, 0)} in Spark")
    if len(distinct) > _SHOWN:
        lines.append(f"  and {len(distinct) - _SHOWN} more")
    return "\n".join(lines)
