"""What ``stats`` says of view trees: their work, and of heavy and light parts how often rows have moved, and the pauses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked


def work_of(operators: Iterable[Operator]) -> int:
    """How many rows the triggers of view trees have read or made so far: what theorems count, and no clock disturbs."""
    return sum(o.state.work for o in operators if isinstance(o, TreeBacked))


def rebalancing_stats(operators: Iterable[Operator]) -> list[dict[str, Any]] | None:
    """One record for each operator with heavy and light parts; None where there is none."""
    found = []
    for operator in operators:
        if not isinstance(operator, TreeBacked) or operator.state.partitions is None:
            continue
        partitions, maps = operator.state.partitions, operator.state.maps
        done = partitions.done
        found.append(
            {
                "minor": done.minor,
                "major": done.major,
                "moved_keys": done.moved_keys,
                "largest_pause_seconds": done.largest_pause,
                "threshold_base": partitions.base,
                "keys": partitions.size,
                "partitions": [
                    {
                        "relation": operator.program.block.atoms[p.atom].name,
                        "variables": list(p.variables),
                        "threshold": partitions.threshold(p),
                        "heavy_values": len(maps[p.heavy]),
                        "values": len(maps[p.degrees]),
                    }
                    for p in operator.program.partitions
                ],
            }
        )
    return found or None
