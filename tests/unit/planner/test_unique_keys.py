"""Where functional dependencies come from: primary keys, also through casts, constants, and views that group."""

from __future__ import annotations

import pytest

from everview.planner.block_build import Facts, build_block
from everview.planner.join_query import Dependency
from everview.planner.plan_tree import plan_tree
from everview.planner.unique_keys import unique_keys
from everview.relational.expressions import Call, Cast, Column, Expression, Literal
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Field,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
)
from everview.relational.types import BOOLEAN, FLOAT32, FLOAT64, INT32, INT64, STRING, DataType, Decimal

COUNT = AggregateCall("count", (), INT64)
R = Scan("r", (Field("k", INT64, False), Field("a", INT64, False)))
S = Scan("s", (Field("k", INT32, False), Field("b", INT32, False), Field("v", INT64, False)))
KEYS = {"s": (frozenset({0, 1}),)}


def _equal(a: Expression, b: Expression) -> Expression:
    return Call("=", (a, b), BOOLEAN)


def _dependencies(right: Relation, *conditions: Expression) -> tuple[Dependency, ...]:
    """Of Q[a, v] over r and the relation, whose last column is v; conditions are over both side by side."""
    joined: Relation = Join(R, right, JoinKind.INNER, conditions[0])
    for condition in conditions[1:]:
        joined = Filter(joined, condition)
    last = Column(len(R.fields) + 2, INT64, False)
    aggregate = Aggregate(joined, (Column(1, INT64, False), last), (COUNT,), ("a", "v", "n"))
    block = build_block(aggregate, lambda q: Facts(KEYS.get(q.table, ()) if isinstance(q, Scan) else ()))
    cost = {c.atom: c.bound.exponent for c in plan_tree(block.query).costs}
    assert (cost["r"] == 0) == bool(block.query.dependencies)
    return block.query.dependencies


K, S_K, S_B = Column(0, INT64, False), Column(2, INT32, False), Column(3, INT32, False)
WIDE_K = Cast(S_K, INT64)


def test_a_key_through_a_cast_and_a_constant() -> None:
    """S.k is compared as a bigint, s.b is 0: a row of r finds one v."""
    assert _dependencies(S, _equal(K, WIDE_K), _equal(S_B, Literal(0, INT32))) == (
        Dependency(frozenset({"k"}), frozenset({"v"})),
    )


def test_half_a_key_is_none() -> None:
    """Without the constant, a look-up by s.k finds any number of rows."""
    assert _dependencies(S, _equal(K, WIDE_K)) == ()


def test_a_constant_that_is_not_compared_by_equality_fixes_nothing() -> None:
    """S.b > 0 leaves s.b open."""
    assert _dependencies(S, _equal(K, WIDE_K), Call(">", (S_B, Literal(0, INT32)), BOOLEAN)) == ()


@pytest.mark.parametrize(
    ("relation", "keys"),
    [
        (S, ({0, 1},)),
        (Filter(S, _equal(Column(1, INT32), Literal(0, INT32))), ({0},)),
        (Project(S, (Column(2, INT64), Column(1, INT32), Column(0, INT32)), ("v", "b", "k")), ({1, 2},)),
        (Project(S, (Column(0, INT32), Column(2, INT64)), ("k", "v")), ()),
        (Aggregate(R, (Column(1, INT64),), (COUNT,), ("a", "n")), ({0},)),
        (Aggregate(R, (), (COUNT,), ("n",)), (set(),)),
        (Distinct(R), ({0, 1},)),
        (R, ()),
        (Join(S, R, JoinKind.SEMI, _equal(Column(0, INT32), Cast(Column(3, INT64), INT32))), ({0, 1},)),
        (Join(S, R, JoinKind.INNER, _equal(Column(2, INT64), Column(3, INT64))), ()),
    ],
)
def test_keys_of_relations(relation: Relation, keys: tuple[set[int], ...]) -> None:
    """What each operator makes of the keys below it."""
    assert unique_keys(relation, lambda scan: KEYS.get(scan.table, ())) == tuple(map(frozenset, keys))


@pytest.mark.parametrize(
    ("source", "target", "is_kept"),
    [
        (INT32, INT64, True),
        (INT32, FLOAT64, True),
        (INT64, FLOAT64, False),
        (INT64, Decimal(38, 0), True),
        (INT64, STRING, True),
        (STRING, INT64, False),
        (Decimal(10, 2), Decimal(12, 4), True),
        (Decimal(10, 2), Decimal(10, 0), False),
        (FLOAT32, FLOAT64, True),
        (FLOAT64, FLOAT32, False),
    ],
)
def test_casts_that_keep_values_apart(source: DataType, target: DataType, is_kept: bool) -> None:
    """A cast that maps two values to one loses the key: two BIGINTs may be one DOUBLE."""
    scan = Scan("s", (Field("k", source, False),))
    cast = Project(scan, (Cast(Column(0, source), target),), ("k",))
    assert unique_keys(cast, lambda _: (frozenset({0}),)) == ((frozenset({0}),) if is_kept else ())


def test_a_cast_that_gives_null_loses_the_key() -> None:
    """TRY_CAST makes one NULL of all that does not fit."""
    scan = Scan("s", (Field("k", INT64, False),))
    cast = Project(scan, (Cast(Column(0, INT64), INT32, is_try=True),), ("k",))
    assert unique_keys(cast, lambda _: (frozenset({0}),)) == ()
