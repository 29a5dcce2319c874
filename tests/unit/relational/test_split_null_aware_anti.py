from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.relational.expressions import Call, Column, Expression, Literal, conjunction
from everview.relational.nodes import Field, Filter, Join, JoinKind, Relation, Scan, UnionAll
from everview.relational.rules.split_null_aware_anti import split_null_aware_anti
from everview.relational.types import BOOLEAN, INT32

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
S = Scan("s", (Field("c", INT32), Field("d", INT32)))
A, B, C, D = (Column(i, INT32) for i in range(4))
CORRELATED = Call("=", (B, D), BOOLEAN)


def _null_aware(left: Expression, right: Expression) -> Expression:
    equal = Call("=", (left, right), BOOLEAN)
    return Call("or", (equal, Call("isnull", (equal,), BOOLEAN)), BOOLEAN)


def _anti(left: Relation, right: Relation, *parts: Expression) -> Join:
    return Join(left, right, JoinKind.ANTI, conjunction(parts))


def _is_null(expression: Expression) -> Expression:
    return Call("isnull", (expression,), BOOLEAN)


@pytest.mark.parametrize("swapped", [False, True])
def test_not_in_becomes_anti_joins_on_equalities(swapped: bool) -> None:
    """First what is equal, then NULL partners, then NULLs on the left; either order of the equality's sides."""
    sides = (C, A) if swapped else (A, C)
    no_equal = _anti(R, S, CORRELATED, Call("=", sides, BOOLEAN))
    no_null = _anti(no_equal, Filter(S, _is_null(A)), CORRELATED)
    present = Filter(no_null, Call("isnotnull", (A,), BOOLEAN))
    absent = _anti(Filter(no_null, _is_null(A)), S, CORRELATED)
    assert split_null_aware_anti(_anti(R, S, CORRELATED, _null_aware(*sides))) == UnionAll((present, absent))


@pytest.mark.parametrize("parts", [(_null_aware(A, C),), (CORRELATED, _null_aware(A, C))])
def test_splitting_keeps_the_rows(parts: tuple[Expression, ...]) -> None:
    """For every pair of small tables, with NULLs on both sides, correlated or not."""
    join = _anti(R, S, *parts)
    split = split_null_aware_anti(join)
    assert split is not None
    rows = list(product((None, 1, 2), (1,)))
    for chosen in product((False, True), repeat=len(rows)):
        tables = {"r": [*rows, (None, 2)], "s": [row for row, is_in in zip(rows, chosen, strict=True) if is_in]}
        assert Counter(evaluate_plan(split, tables)) == Counter(evaluate_plan(join, tables))


def test_other_joins_stay() -> None:
    """Two such conditions, a condition within one side, another kind of join, or a plain equality."""
    assert split_null_aware_anti(_anti(R, S, _null_aware(A, C), _null_aware(B, D))) is None
    assert split_null_aware_anti(_anti(R, S, _null_aware(A, B))) is None
    assert split_null_aware_anti(_anti(R, S, Call("=", (A, C), BOOLEAN))) is None
    assert split_null_aware_anti(Join(R, S, JoinKind.SEMI, _null_aware(A, C))) is None
    assert split_null_aware_anti(R) is None


def test_null_test_of_something_else_stays() -> None:
    """``x = y OR isnull(z)`` is not NOT IN."""
    other = Call("or", (Call("=", (A, C), BOOLEAN), _is_null(Call("=", (A, D), BOOLEAN))), BOOLEAN)
    assert split_null_aware_anti(_anti(R, S, other)) is None


def test_constant_on_the_left() -> None:
    """``1 NOT IN (SELECT …)`` has no column on its left side and is split all the same."""
    one = Literal(1, INT32)
    split = split_null_aware_anti(_anti(R, S, _null_aware(one, C)))
    assert split is not None
    for partners in ([], [(1, 1)], [(2, 1)], [(None, 1)]):
        kept = [] if partners and partners[0][0] in (1, None) else [(5, 5)]
        assert evaluate_plan(split, {"r": [(5, 5)], "s": partners}) == kept
