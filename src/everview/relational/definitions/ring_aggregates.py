"""The aggregate of a registered ring: Σ_rows Π_i lift_i(x_i), row after row."""

from __future__ import annotations

from collections.abc import Sequence

from everview.algebra.registry import ring_named
from everview.relational.nodes import AggregateCall
from everview.relational.ring_values import lift_column, ring_values
from everview.relational.types import Row, Value


def evaluate_ring_aggregate(call: AggregateCall, rows: Sequence[Row]) -> Value:
    """The value over argument tuples without NULL; NULL for none of them."""
    if not rows:
        return None
    entry = ring_named(call.function)
    total = entry.ring.zeros(1)
    for row in rows:
        columns = [lift_column([value], arg.type) for value, arg in zip(row, call.args, strict=True)]
        total = entry.ring.add(total, entry.product(columns))
    return ring_values(entry, total, call.type)[0]
