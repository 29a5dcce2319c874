"""Semi- and anti-joins on a column that differs, operator by operator: both sides change, also at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.match_other import MatchByOtherOperator
from everview.backends.embedded.vectors import Batch, Vector
from everview.relational.nodes import Field, JoinKind
from everview.relational.types import INT64

Bag = Counter[tuple[int, ...]]
LEFT = tuple(Field(name, INT64, nullable=False) for name in ("k", "x", "name"))
KEPT = tuple(Field(name, INT64, nullable=False) for name in ("k", "x"))
NULLABLE = (KEPT[0], Field("x", INT64, nullable=True))


class _Given(Operator):
    """What a test hands in, with an arrangement that takes it in before others see it."""

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self.nothing()

    def take(self, delta: Batch | None) -> None:
        if delta is not None and self.arrangement is not None:
            self.arrangement.apply(delta)


def _batch(bag: Bag, width: int) -> Batch | None:
    rows = np.array([row for row, weight in bag.items() if weight], dtype=np.int64).reshape(-1, width)
    weights = np.array([weight for weight in bag.values() if weight], dtype=np.int64)
    return Batch(tuple(Vector(INT64, rows[:, i].copy()) for i in range(width)), weights) if len(rows) else None


def _bag(batch: Batch | None) -> Bag:
    found: Bag = Counter()
    if batch is not None:
        for *row, weight in zip(*(c.values.tolist() for c in batch.columns), batch.weights.tolist(), strict=True):
            found[tuple(row)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def _joined(left: Bag, right: Bag, kind: JoinKind) -> Bag:
    def has_partner(row: tuple[int, ...]) -> bool:
        return any(r[0] == row[0] and r[1] != row[1] for r in right)

    return Counter({row: w for row, w in left.items() if has_partner(row) == (kind is JoinKind.SEMI)})


def _change(rng: np.random.Generator, bag: Bag, width: int) -> Bag:
    """Some rows that come and some that go."""
    change: Bag = Counter()
    for _ in range(rng.integers(0, 6)):
        change[tuple(rng.integers(0, 3, width).tolist())] += 1
    for row in list(bag):
        if rng.random() < 0.3:
            change[row] -= bag[row]
    return change


def _plus(bag: Bag, change: Bag) -> Bag:
    after = Counter(bag)
    for row, weight in change.items():
        after[row] += weight
    return Counter({row: weight for row, weight in after.items() if weight})


@pytest.mark.parametrize("kind", [JoinKind.SEMI, JoinKind.ANTI])
@pytest.mark.parametrize("fields", [KEPT, NULLABLE], ids=["others_keep_the_pairs", "it_keeps_them"])
@pytest.mark.parametrize("is_late", [False, True], ids=["eager", "lazy"])
def test_both_sides_change_at_once(kind: JoinKind, fields: tuple[Field, ...], is_late: bool) -> None:
    """What comes out is the change of the join, also where right rows are in place before the counts, or have waited."""
    rng = np.random.default_rng(7)
    left, right = _Given(LEFT, ()), _Given(fields, ())
    operator = MatchByOtherOperator(LEFT, left, right, kind, ((0, 0, False),), (1, 1))
    assert (right.arrangement is not None) == (fields is KEPT)
    operator.load([left.nothing(), right.nothing()])
    operator.commit()
    bags: tuple[Bag, Bag] = (Counter(), Counter())
    for number in range(300):
        changes = _change(rng, bags[0], 3), _change(rng, bags[1], 2)
        deltas = [_batch(changes[0], 3), _batch(changes[1], 2)]
        for source, delta in zip((left, right), deltas, strict=True):
            source.take(delta)
        if is_late:
            for source in (left, right):
                if source.arrangement is not None:
                    source.arrangement.commit()
        made = _bag(operator.push(deltas)) if any(d is not None for d in deltas) else Counter()
        after = _plus(bags[0], changes[0]), _plus(bags[1], changes[1])
        before, now = _joined(*bags, kind), _joined(*after, kind)
        assert _plus(before, made) == now, number
        if number % 5 == 0 and not is_late:
            operator.rollback()
            for source in (left, right):
                if source.arrangement is not None:
                    source.arrangement.rollback()
            continue
        operator.commit()
        for source in (left, right):
            if source.arrangement is not None:
                source.arrangement.commit()
        bags = after
