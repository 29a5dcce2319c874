"""Rows whose compared key cannot be computed, against counting all pairs; a transaction that is taken back leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest

from everview.backends.embedded.operators.nested_rows import FailingPairs
from everview.backends.embedded.vectors import Batch, Vector
from everview.errors import EvaluationError
from everview.relational.expressions import Column
from everview.relational.nodes import AggregateCall, Field, Scan
from everview.relational.types import BOOLEAN, INT64
from everview.trigger.program import Correlation, NestedFilter

Row = tuple[int | None, int | None, bool | None, int | None, bool | None]
"""A group, and twice what is compared and whether computing it fails; a key that fails, or has a NULL inside, is NULL."""

TYPES = (INT64, INT64, BOOLEAN, INT64, BOOLEAN)
FIELDS = tuple(Field(name, t) for name, t in zip(("g", "x", "fx", "y", "fy"), TYPES, strict=True))
STEPS = 800


def _statement(function: str, *, is_grouped: bool, is_band: bool) -> NestedFilter:
    outer, inner = Scan("o", FIELDS), Scan("i", FIELDS)
    band = (Correlation(3, 3, "<=", (4, 4)),) if is_band else ()
    return NestedFilter(
        outer,
        inner,
        None,
        ((0, 0),) if is_grouped else (),
        (Correlation(1, 1, ">=", (2, 2)), *band),
        AggregateCall(function, (Column(1, INT64),), INT64),
        1,
        Column(0, BOOLEAN),
    )


def _batch(rows: list[Row], weights: list[int]) -> Batch:
    columns = []
    for values, data_type in zip(zip(*rows, strict=True), TYPES, strict=True):
        nulls = np.array([v is None for v in values])
        columns.append(Vector(data_type, np.array([v or 0 for v in values], dtype=np.int64), nulls))
    return Batch(tuple(columns), np.array(weights, dtype=np.int64))


def _fails(held: list[list[Row]], statement: NestedFilter) -> bool:
    """By definition: whether a pair is compared of which a key cannot be computed."""
    grouped, is_count = bool(statement.groups), statement.call.function == "count"
    outers, inners = held[0], [r for r in held[1] if not grouped or r[0] is not None]
    if grouped and not is_count and all(o[0] is None for o in outers):
        return False
    for o in outers:
        for i in inners:
            if o[2] is not None and i[2] is not None:
                if o[2] or i[2]:
                    return True
                second = len(statement.compared) > 1 and o[4] is not None and i[4] is not None
                if second and (o[4] or i[4]) and i[1] is not None and o[1] is not None and i[1] >= o[1]:
                    return True
    return False


def _row(rng: np.random.Generator) -> Row:
    keys: list[tuple[int | None, bool | None]] = []
    for _ in range(2):
        kind = rng.random()
        fails = None if kind < 0.1 else bool(kind > 0.9)
        keys.append((int(rng.integers(0, 6)) if fails is False else None, fails))
    return None if rng.random() < 0.3 else int(rng.integers(2)), *keys[0], *keys[1]


@pytest.mark.parametrize("function", ["sum", "count"])
@pytest.mark.parametrize("is_grouped", [False, True])
@pytest.mark.parametrize("is_band", [False, True])
def test_failing_pairs_are_those_that_are_compared(function: str, is_grouped: bool, is_band: bool) -> None:
    """An error is raised if and only if such a pair exists; what a failed or abandoned transaction has added is forgotten."""
    rng = np.random.default_rng(is_grouped + 2 * is_band)
    statement = _statement(function, is_grouped=is_grouped, is_band=is_band)
    pairs = FailingPairs(statement)
    held: list[list[Row]] = [[], []]
    raised = 0
    for _ in range(STEPS):
        after = [list(rows) for rows in held]
        deltas: list[Batch | None] = []
        for rows in after:
            changes: list[tuple[Row, int]] = []
            for _ in range(int(rng.integers(0, 3))):
                if rows and rng.random() < 0.55:
                    changes.append((rows.pop(int(rng.integers(len(rows)))), -1))
                else:
                    row = _row(rng)
                    rows.append(row)
                    changes.append((row, 1))
            deltas.append(_batch([r for r, _ in changes], [w for _, w in changes]) if changes else None)
        before = pairs._counts.tobytes(), pairs._joined
        contents = [
            _batch(rows, [1] * len(rows)) if rows else _batch([_row(rng)], [0]).take(np.zeros(1, dtype=np.bool_))
            for rows in after
        ]
        try:
            pairs.add(deltas[0], deltas[1], lambda: (contents[0], contents[1]))  # noqa: B023  # asked at once
            has_failed = False
        except EvaluationError:
            has_failed = True
        assert has_failed == _fails(after, statement)
        raised += has_failed
        if has_failed or rng.random() < 0.2:
            pairs.rollback()
            assert (pairs._counts.tobytes(), pairs._joined) == before
        else:
            pairs.commit()
            held = after
    assert 0 < raised < STEPS
