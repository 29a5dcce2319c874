"""Which comparisons of a join bound an ordered index, and on which side."""

from __future__ import annotations

import pytest

from everview.relational.expressions import Call, Column, Expression, Literal, conjunction
from everview.relational.range_condition import RangeAccess, RangeSearch, range_searches
from everview.relational.types import BOOLEAN, FLOAT64, INT64, STRING, DataType

A, B = Column(0, INT64), Column(1, INT64)
C, D = Column(2, INT64), Column(3, INT64)


def _compare(function: str, left: Expression, right: Expression) -> Call:
    return Call(function, (left, right), BOOLEAN)


def _plus(left: Expression, number: float, data_type: DataType = INT64) -> Call:
    return Call("+", (left, Literal(number, data_type)), data_type)


def _both(*parts: Expression) -> tuple[RangeSearch, RangeSearch]:
    left, right = range_searches(conjunction(parts), 2, 2)
    assert left is not None
    assert right is not None
    return left, right


def test_both_bounds_of_a_band_are_used() -> None:
    """On the side of the column itself, and on the side that is computed with."""
    left, right = _both(_compare(">=", C, A), _compare("<=", C, _plus(A, 2)))
    fails = RangeAccess(0, keeps_nulls=True)  # a + 2 may overflow, also beside a row without a value
    assert (left.access, right.access) == (fails, fails)
    assert [c.is_from for c in left.cuts] == [False, True]
    assert [c.is_from for c in right.cuts] == [True, False]


def test_two_columns_are_an_order_and_a_reach() -> None:
    """A < d and c < b: of the left rows up to d, those whose b is above c."""
    left, right = _both(_compare("<", A, D), _compare("<", C, B))
    assert left.access == RangeAccess(0, 1, reaches_up=True)
    assert right.access == RangeAccess(1, 0, reaches_up=False)
    assert left.reach is not None
    assert (left.reach.comparison, left.reach.value) == (">", Column(0, INT64))


def test_what_can_fail_hides_what_comes_behind_it() -> None:
    """Spark would come to it for pairs that the comparison excludes, and fail; but not the other way round."""
    ratio = Call("/", (A, C), INT64)
    fails = _compare(">", ratio, Literal(1, INT64))
    assert range_searches(conjunction((fails, _compare("<", A, C))), 2, 2) == (None, None)
    left, right = _both(_compare("<", A, C), fails, _compare("<", B, D))
    assert (left.access, right.access) == (RangeAccess(0), RangeAccess(0))


@pytest.mark.parametrize(
    "condition",
    [
        _compare(">", Call("*", (A, C), INT64), Literal(3, INT64)),
        Call("or", (_compare("<", A, C), _compare(">", A, D)), BOOLEAN),
        Call("not", (_compare("=", A, C),), BOOLEAN),
        _compare("<", A, Literal(3, INT64)),
        _compare("<", Call("+", (A, B), INT64), Call("+", (C, D), INT64)),
    ],
)
def test_what_bounds_no_column_is_no_range(condition: Expression) -> None:
    """Products of both sides, alternatives, sums of two columns, and what reads one side only."""
    assert range_searches(condition, 2, 2) == (None, None)


def test_floats_are_shifted_by_constants_only() -> None:
    """NaN, which is the greatest value, comes out of sums of others."""
    x, y = Column(0, FLOAT64), Column(2, FLOAT64)
    left, _ = _both(_compare("<", _plus(x, 1.5, FLOAT64), y))
    assert left.access == RangeAccess(0)
    turned = Call("-", (Literal(1.0, FLOAT64), x), FLOAT64)
    assert range_searches(_compare("<", turned, y), 2, 2)[0] is None
    shifted = _plus(x, float("inf"), FLOAT64)
    assert range_searches(_compare("<", shifted, y), 2, 2)[0] is None


def test_texts_are_ordered_and_have_no_reach_beside_them() -> None:
    """Nodes of an index know the extremes of numbers."""
    left, _ = _both(_compare("<", Column(0, STRING), Column(2, STRING)), _compare(">", B, D))
    assert left.access in (RangeAccess(0), RangeAccess(1))
    assert left.reach is None
