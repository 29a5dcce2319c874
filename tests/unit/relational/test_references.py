"""Joins along foreign keys: the rules that use them denote the same bag wherever the foreign keys are true."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.relational.expressions import Call, Column, conjunction
from everview.relational.format import format_plan
from everview.relational.nodes import Aggregate, Field, Filter, Join, JoinKind, Project, Relation, Scan
from everview.relational.references import Reference
from everview.relational.rules import use_references
from everview.relational.rules.drop_referenced_join import drop_referenced_join
from everview.relational.rules.match_referenced_rows import match_referenced_rows
from everview.relational.schema import columns, schema
from everview.relational.traverse import nodes_of, tables_of
from everview.relational.types import BOOLEAN, FLOAT64, INT32, Row

PARENT = Scan("p", (Field("k", INT32, False), Field("a", INT32), Field("b", INT32), Field("v", INT32)))
CHILD = Scan(
    "c", (Field("x", INT32), Field("f", INT32), Field("a", INT32), Field("b", INT32), Field("must", INT32, False))
)
FOREIGN = (Reference((1,), "P", ("k",)), Reference((2, 3), "p", ("a", "b")), Reference((4,), "p", ("k",)))
WAYS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((1, 0),),
    ((4, 0),),
    ((2, 1), (3, 2)),
    ((2, 2), (3, 1)),
    ((0, 0),),
    ((2, 1),),
)
"""Pairs of a column of the child and one of the parent: along three foreign keys, and along none."""


def references_of(scan: Scan) -> tuple[Reference, ...]:
    """The foreign keys of the child."""
    return FOREIGN if scan.table == "c" else ()


def joined(
    child: Relation, parent: Relation, kind: JoinKind, pairs: tuple[tuple[int, int], ...], *, child_first: bool = True
) -> Join:
    """The join on pairs of columns."""
    left, right = (child, parent) if child_first else (parent, child)
    width, every = len(schema(left)), (schema(left), schema(right))

    def equal(a: int, b: int) -> Call:
        of_left, of_right = (a, b) if child_first else (b, a)
        first, second = every[0][of_left], every[1][of_right]
        args = (Column(of_left, first.type, first.nullable), Column(width + of_right, second.type, second.nullable))
        return Call("=", args, BOOLEAN)

    return Join(left, right, kind, conjunction(tuple(equal(a, b) for a, b in pairs)))


def some_of(relation: Relation, kept: tuple[int, ...]) -> Relation:
    """Some columns of a relation."""
    every = columns(relation)
    return Project(relation, tuple(every[i] for i in kept), tuple(schema(relation)[i].name for i in kept))


@st.composite
def plans(draw: st.DrawFn) -> Relation:
    """The child joined with one parent, or with two one after the other, of which all columns are read or those of the join."""
    plan: Relation = CHILD
    if draw(st.booleans()):
        plan = Filter(plan, Call("isnotnull", (Column(0, INT32),), BOOLEAN))
    for _ in range(draw(st.integers(1, 2))):
        pairs = draw(st.sampled_from(WAYS))
        wide = draw(st.booleans())
        parent = PARENT if wide else some_of(PARENT, tuple(p for _, p in pairs))
        narrow = pairs if wide else tuple((c, i) for i, (c, _) in enumerate(pairs))
        kind = draw(st.sampled_from([k for k in JoinKind if k not in (JoinKind.MARK, JoinKind.SINGLE)]))
        if kind in (JoinKind.SEMI, JoinKind.ANTI) or draw(st.booleans()):
            plan = joined(plan, parent, kind, narrow)
        else:
            mirrored = joined(plan, parent, kind, narrow, child_first=False)
            behind = len(schema(parent))
            plan = some_of(mirrored, (*range(behind, len(schema(mirrored))), *range(behind)))
    return plan


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Row]]:
    """Tables of which the keys are unique and the foreign keys true."""
    value = st.sampled_from([None, 1, 2])
    rows = draw(
        st.lists(st.tuples(st.integers(1, 3), value, value, value), min_size=1, max_size=3, unique_by=lambda r: r[0])
    )
    pairs = {r[1:3]: r for r in rows if None not in r[1:3]}
    parents = [r for r in rows if None in r[1:3] or pairs[r[1:3]] is r]
    keys = [r[0] for r in parents]
    both = [*pairs, (None, 1), (2, None), (None, None)]
    child = st.tuples(value, st.sampled_from([None, *keys]), st.sampled_from(both), st.sampled_from(keys))
    children = draw(st.lists(child, max_size=5)) if keys else []
    return {"p": parents, "c": [(x, f, *pair, must) for x, f, pair, must in children]}


@given(plan=plans(), content=tables())
def test_plans_denote_the_same_bag_where_foreign_keys_are_true(plan: Relation, content: dict[str, list[Row]]) -> None:
    """For joins of every kind, from either side, along one and several columns, with NULL in any of them."""
    used = use_references(plan, references_of)
    assert Counter(evaluate_plan(used, content)) == Counter(evaluate_plan(plan, content)), format_plan(used)
    never = [i for i, f in enumerate(schema(used)) if not f.nullable]
    assert all(row[i] is not None for row in evaluate_plan(used, content) for i in never)


def test_a_join_of_which_the_key_is_read_goes_with_all_above_it_that_it_made_needless() -> None:
    """The first parent is there for its column a, which only the second join reads."""
    key, both = some_of(PARENT, (0, 1, 2)), some_of(PARENT, (1, 2))
    first = joined(CHILD, key, JoinKind.INNER, ((1, 0),))
    second = joined(first, both, JoinKind.INNER, ((2, 0), (3, 1)))
    counted = Aggregate(second, columns(second)[:1], (), ("x",))
    assert tables_of(use_references(counted, references_of)) == ("c",)


def test_what_says_nothing_of_all_rows_is_left() -> None:
    """A parent that is filtered, equality that lets NULL meet NULL, further conditions, other kinds, floating-point keys."""
    key = some_of(PARENT, (0,))
    fine = joined(CHILD, key, JoinKind.INNER, ((4, 0),))
    assert drop_referenced_join(fine, references_of) is not None
    some = joined(CHILD, Filter(key, Call("isnotnull", (Column(0, INT32),), BOOLEAN)), JoinKind.INNER, ((4, 0),))
    alike = Join(CHILD, key, JoinKind.INNER, Call("<=>", (Column(4, INT32), Column(5, INT32)), BOOLEAN))
    further = Call("<", (Column(0, INT32), Column(5, INT32)), BOOLEAN)
    more = Join(CHILD, key, JoinKind.INNER, Call("and", (fine.condition, further), BOOLEAN))
    others = [joined(CHILD, key, kind, ((4, 0),)) for kind in (JoinKind.ANTI, JoinKind.RIGHT, JoinKind.FULL)]
    for plan in (some, alike, more, *others):
        assert drop_referenced_join(plan, references_of) is None
        assert match_referenced_rows(plan, references_of) is None
    of, to = Scan("c", (Field("f", FLOAT64, False),)), Scan("p", (Field("k", FLOAT64, False),))
    floats = joined(of, to, JoinKind.INNER, ((0, 0),))
    assert drop_referenced_join(floats, lambda _: (Reference((0,), "p", ("k",)),)) is None


def test_half_a_key_refers_to_nothing_and_is_not_null() -> None:
    """A row with one of two columns has no partner, so an outer join makes both NULL, which the child's are not."""
    both, pairs = some_of(PARENT, (1, 2)), ((2, 0), (3, 1))
    assert drop_referenced_join(joined(CHILD, both, JoinKind.INNER, pairs), references_of) is not None
    assert drop_referenced_join(joined(CHILD, both, JoinKind.LEFT, pairs), references_of) is None


def test_a_padded_row_refers_to_nothing() -> None:
    """Behind an outer join a column may be NULL that is declared NOT NULL."""
    padded = joined(PARENT, CHILD, JoinKind.LEFT, ((0, 0),))
    above = joined(padded, PARENT, JoinKind.LEFT, ((8, 0),))
    assert match_referenced_rows(above, references_of) is None
    inner = joined(joined(PARENT, CHILD, JoinKind.INNER, ((0, 0),)), PARENT, JoinKind.LEFT, ((8, 0),))
    matched = match_referenced_rows(inner, references_of)
    assert isinstance(matched, Join)
    assert matched.kind is JoinKind.INNER
    assert all(n.kind is JoinKind.INNER for n in nodes_of(matched) if isinstance(n, Join))
