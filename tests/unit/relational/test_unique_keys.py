"""Where functional dependencies come from: primary keys, also through casts, constants, and views that group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.planner.block_build import Facts, build_block
from everview.planner.join_query import Dependency
from everview.planner.plan_tree import plan_tree
from everview.relational.expressions import Call, Cast, Column, Expression, Literal, conjunction, shift_columns
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
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, FLOAT32, FLOAT64, INT32, INT64, STRING, DataType, Decimal
from everview.relational.unique_keys import UniqueKey, is_unique, unique_keys

COUNT = AggregateCall("count", (), INT64)
R = Scan("r", (Field("k", INT64, False), Field("a", INT64, False)))
S = Scan("s", (Field("k", INT32, False), Field("b", INT32, False), Field("v", INT64, False)))
KEY = (UniqueKey(frozenset({0})),)
KEYS = {"s": (UniqueKey(frozenset({0, 1})),)}


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
    assert unique_keys(relation, lambda scan: KEYS.get(scan.table, ())) == tuple(UniqueKey(frozenset(k)) for k in keys)


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
    assert unique_keys(cast, lambda _: KEY) == (KEY if is_kept else ())


def test_a_cast_that_gives_null_loses_the_key() -> None:
    """TRY_CAST makes one NULL of all that does not fit."""
    scan = Scan("s", (Field("k", INT64, False),))
    cast = Project(scan, (Cast(Column(0, INT64), INT32, is_try=True),), ("k",))
    assert unique_keys(cast, lambda _: KEY) == ()


NULLABLE = Scan("u", (Field("a", INT64, True), Field("b", INT64, True), Field("c", INT64, True)))
DECLARED = (UniqueKey(frozenset({0, 1}), frozenset({0, 1})),)


def test_a_unique_key_with_nulls_holds_where_there_are_none() -> None:
    """Rows with a NULL in a UNIQUE key may repeat; a condition that lets none through makes a key of it."""
    b_is_five = Filter(NULLABLE, _equal(Column(1, INT64), Literal(5, INT64)))
    both = Filter(b_is_five, Call("isnotnull", (Column(0, INT64),), BOOLEAN))
    b_is_null = Filter(NULLABLE, Call("<=>", (Column(1, INT64), Literal(None, INT64)), BOOLEAN))
    assert unique_keys(b_is_five, lambda _: DECLARED) == (UniqueKey(frozenset({0}), frozenset({0})),)
    assert unique_keys(both, lambda _: DECLARED) == (UniqueKey(frozenset({0})),)
    assert unique_keys(b_is_null, lambda _: DECLARED) == (UniqueKey(frozenset({0}), frozenset({0, 1})),)


def test_a_row_number_of_one() -> None:
    """What ``is_unique`` answers without knowing the tables: groups, and joins with them by their key."""
    groups = Aggregate(R, (Column(0, INT64),), (COUNT,), ("k", "n"))
    twice = Join(groups, groups, JoinKind.LEFT, _equal(Column(0, INT64), Column(2, INT64)))
    assert is_unique(twice, {0})
    assert not is_unique(twice, {1})
    assert not is_unique(Join(groups, R, JoinKind.LEFT, _equal(Column(0, INT64), Column(2, INT64))), {0})


VALUES = st.sampled_from([None, 1, 2])
KINDS = [k for k in JoinKind if k is not JoinKind.SINGLE]


@st.composite
def _relations(draw: st.DrawFn, depth: int = 3) -> Relation:
    """Scans of t, which has a primary key, and of u, filtered, projected, joined and grouped."""
    if depth == 0:
        return draw(st.sampled_from([PRIMARY, NULLABLE]))
    child = draw(_relations(depth - 1))
    every = columns(child)
    wanted = st.sampled_from(every)
    match draw(st.sampled_from(["filter", "project", "join", "aggregate", "distinct"])):
        case "filter":
            function = draw(st.sampled_from(["=", "<=>", "<"]))
            return Filter(child, Call(function, (draw(wanted), Literal(draw(VALUES), INT64)), BOOLEAN))
        case "project":
            chosen = draw(st.lists(wanted, min_size=2, max_size=4))
            return Project(child, tuple(chosen), tuple(f"c{i}" for i in range(len(chosen))))
        case "join":
            other = draw(_relations(draw(st.integers(0, depth - 1))))
            theirs = [shift_columns(c, len(every)) for c in columns(other)]
            pairs = draw(st.lists(st.tuples(wanted, st.sampled_from(theirs)), min_size=1, max_size=2))
            equal = [Call(draw(st.sampled_from(["=", "<=>"])), pair, BOOLEAN) for pair in pairs]
            joined = Join(child, other, draw(st.sampled_from(KINDS)), conjunction(tuple(equal)))
            plain = (c for c in columns(joined) if c.type == INT64)  # without the mark of a MARK join
            return Project(
                joined, tuple(plain), tuple(f"c{i}" for i, f in enumerate(schema(joined)) if f.type == INT64)
            )
        case "aggregate":
            keys = tuple(draw(st.lists(wanted, max_size=2)))
            return Aggregate(child, keys, (COUNT,), tuple(f"g{i}" for i in range(len(keys) + 1)))
        case _:
            return Distinct(child)


PRIMARY = Scan("t", (Field("k", INT64, False), Field("v", INT64, True)))
OF_SCAN = {"t": KEY, "u": DECLARED}


@given(_relations(), st.data())
def test_no_two_rows_agree_on_a_key(relation: Relation, data: st.DataObject) -> None:
    """Whatever the tables hold, as long as their own keys hold."""
    t = data.draw(st.lists(st.tuples(st.integers(1, 3), VALUES), max_size=4, unique_by=lambda row: row[0]))
    u = data.draw(
        st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=5, unique_by=lambda r: id(r) if None in r[:2] else r[:2])
    )
    rows = evaluate_plan(relation, {"t": t, "u": u})
    for key in unique_keys(relation, lambda scan: OF_SCAN[scan.table]):
        counted = [r for r in rows if all(r[c] is not None for c in key.present)]
        assert len({tuple(r[c] for c in sorted(key.columns)) for r in counted}) == len(counted), key
