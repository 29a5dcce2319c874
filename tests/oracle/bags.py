"""Comparing bags of rows: exactly, but for the last digits of floating-point numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

Row = tuple[Any, ...]
_TOLERANCE = 1e-9


def assert_same_bag(ours: Iterable[Row], theirs: Iterable[Row], what: str) -> None:
    """Fails with the differing rows unless the two bags are equal."""
    left, right = Counter(map(_hashable, ours)), Counter(map(_hashable, theirs))
    only_left, only_right = list((left - right).elements()), list((right - left).elements())
    unmatched = _match_approximately(only_left, only_right)
    assert unmatched is None, (
        f"{what}: {len(only_left)} rows differ of {sum(left.values())} (expected {sum(right.values())} rows)\n"
        f"  ours:     {sorted(map(repr, only_left))[:5]}\n  expected: {sorted(map(repr, only_right))[:5]}"
    )


def _hashable(row: Row) -> Row:
    return tuple(_canonical(v) for v in row)


def _canonical(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list | tuple):
        return tuple(_canonical(v) for v in value)
    return value


def _match_approximately(left: Sequence[Row], right: Sequence[Row]) -> Row | None:
    """Pairs the rows up to float tolerance; returns a row without a partner, None if all have one."""
    if len(left) != len(right):
        return (left or right)[0]
    remaining = list(right)
    for row in left:
        at = next((i for i, other in enumerate(remaining) if _close(row, other)), None)
        if at is None:
            return row
        del remaining[at]
    return None


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=1e-12)
    return type(a) is type(b) and bool(a == b)
