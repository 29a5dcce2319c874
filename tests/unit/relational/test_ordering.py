from __future__ import annotations

import math
from itertools import permutations

import pytest

from everview.relational.definitions.ordering import order_values, ordered_rows
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Field, SortKey
from everview.relational.types import FLOAT64, INT32, NAN, STRING, Row

NUMBERS = (Field("x", FLOAT64),)
X = Column(0, FLOAT64)


@pytest.mark.parametrize(
    ("descending", "nulls_first", "expected"),
    [
        (False, True, [None, -math.inf, 1.0, math.inf, NAN]),
        (False, False, [-math.inf, 1.0, math.inf, NAN, None]),
        (True, True, [None, NAN, math.inf, 1.0, -math.inf]),
        (True, False, [NAN, math.inf, 1.0, -math.inf, None]),
    ],
)
def test_nulls_and_nan(descending: bool, nulls_first: bool, expected: list[float | None]) -> None:
    """NULLs stand where asked, in either direction; NaN is above infinity."""
    key = SortKey(X, descending, nulls_first)
    for rows in permutations([(v,) for v in expected]):
        assert ordered_rows(rows, (key,), NUMBERS) == [(v,) for v in expected]


def test_ties_are_broken_by_the_whole_row() -> None:
    """Ascending, NULLs first, whatever the direction of the order: the answer is a function of the bag."""
    fields = (Field("k", INT32), Field("s", STRING), Field("x", FLOAT64))
    expected: list[Row] = [(2, "z", 0.0), (1, None, NAN), (1, "a", 1.0), (1, "a", NAN), (1, "b", None)]
    key = SortKey(Column(0, INT32), descending=True, nulls_first=False)
    for rows in permutations(expected):
        assert ordered_rows(rows, (key,), fields) == expected


def test_later_keys_order_the_peers_of_earlier_ones() -> None:
    """Each key with its own direction."""
    fields = (Field("a", INT32), Field("b", INT32))
    order = (SortKey(Column(0, INT32)), SortKey(Column(1, INT32), descending=True, nulls_first=False))
    assert ordered_rows([(1, 1), (2, 5), (1, None), (1, 3)], order, fields) == [(1, 3), (1, 1), (1, None), (2, 5)]


def test_keys_may_be_expressions() -> None:
    """Rows are ordered by what the expression gives, and come back whole."""
    key = SortKey(Call("negative", (Column(0, INT32),), INT32))
    assert ordered_rows([(1,), (3,), (None,)], (key,), (Field("a", INT32),)) == [(None,), (3,), (1,)]


def test_without_keys_rows_are_in_their_own_order() -> None:
    """Duplicates are kept."""
    assert ordered_rows([(2,), (None,), (1,), (2,)], (), (Field("a", INT32),)) == [(None,), (1,), (2,), (2,)]


def test_peers_have_equal_order_values() -> None:
    """0.0 and -0.0 are peers, as are two NULLs and two NaNs; NULL and a value are not."""
    value = order_values((SortKey(X),))
    assert value((0.0,)) == value((-0.0,))
    assert value((None,)) == value((None,))
    assert value((NAN,)) == value((float("nan"),))
    assert value((None,)) != value((0.0,))
