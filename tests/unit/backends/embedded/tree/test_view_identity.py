"""Views have the same identity if, and only if, they have the same content at every moment."""

from __future__ import annotations

import pytest

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.view_identity import (
    AtomIdentity,
    Described,
    Identity,
    describe_view,
    may_be_shared,
    occurrences,
)
from everview.planner.block_build import Facts
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Relation, Scan
from everview.relational.types import BOOLEAN, INT32, INT64
from everview.trigger.plan_block import BlockOptions, plan_block
from everview.trigger.tree_program import TreeProgram
from tests.unit.backends.embedded.tree.cyclic_queries import SHAPES, cyclic_join

R = Scan("r", (Field("a", INT32, False), Field("b", INT32, False), Field("x", INT32, False)))
S = Scan("s", (Field("b", INT32, False), Field("c", INT32, False), Field("y", INT32, False)))
COUNT = AggregateCall("count", (), INT64)


def column(index: int) -> Column:
    """A column of the join of r and s."""
    return Column(index, INT32, False)


A, B, X, B2, C, Y = map(column, range(6))


class _Input(Operator):
    """Something that a tree is over."""

    def __init__(self, name: str) -> None:
        super().__init__((), ())
        self.name = name


INPUTS: dict[str, _Input] = {}


def inputs_of(program: TreeProgram) -> tuple[Operator, ...]:
    """One operator a relation, as a graph would share them."""
    names = [str(atom.input) for atom in program.block.atoms]
    return tuple(INPUTS.setdefault(n, _Input(n)) for n in names)


def lowered(
    relation: Relation, keys: tuple[Expression, ...] = (), calls: tuple[AggregateCall, ...] = (COUNT,)
) -> TreeProgram:
    """The program of an aggregate."""
    aggregate = Aggregate(relation, keys, calls, tuple(f"o{i}" for i in range(len(keys) + len(calls))))
    return plan_block(aggregate, lambda _: Facts(), BlockOptions("auto")).program


def joined(condition: Expression | None = None, left: Relation = R, right: Relation = S) -> Relation:
    """The join of r and s by b, or by another condition."""
    return Join(left, right, JoinKind.INNER, condition or Call("=", (B, B2), BOOLEAN))


def described(program: TreeProgram, known: list[Identity] | None = None) -> dict[str, Described]:
    """The views that may be shared, by name."""
    atoms = occurrences(program, inputs_of(program), known or [])
    return {v.name: describe_view(program, v, atoms) for v in program.views if may_be_shared(program, v)}


def common(one: TreeProgram, other: TreeProgram) -> set[str]:
    """The views of the second program that the first one has, too."""
    known = [d.identity for d in described(one).values()]
    return {name for name, d in described(other, known).items() if d.identity in known}


def total(value: Expression) -> AggregateCall:
    """A sum."""
    return AggregateCall("sum", (value,), INT64)


def test_names_and_places_do_not_matter() -> None:
    """The same relation in another place of the join, beside another table, and with other names."""
    renamed = Scan("r", R.fields)
    turned = Join(S, renamed, JoinKind.INNER, Call("=", (column(4), column(0)), BOOLEAN))
    assert common(lowered(joined(), (A,)), lowered(turned, (column(3),))) >= {"r", "s"}


def test_the_order_of_keys_and_parts_is_told_apart_from_what_they_are() -> None:
    """Equal identities, and the orders to translate by."""
    one, other = lowered(joined(), (A, C)), lowered(joined(), (C, A))
    first, second = (next(d for n, d in described(p).items() if len(d.identity.atoms) == 2) for p in (one, other))
    assert first.identity == second.identity
    assert set(first.keys) == set(second.keys)


POSITIVE = Call(">", (X, Literal(0, INT32)), BOOLEAN)
SMALL = Call("<", (X, Literal(9, INT32)), BOOLEAN)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (lowered(joined(), (A,)), lowered(joined(), (A,), (total(X),)), {"s"}),
        (lowered(joined(), (A,)), lowered(joined(left=Filter(R, POSITIVE)), (A,)), {"s"}),
        (lowered(joined(), (A,)), lowered(joined(), (C,)), set()),
        (lowered(joined(), (), (total(X),)), lowered(joined(), (), (total(X), COUNT)), {"r", "s", "V@b_rs"}),
        (lowered(joined(), (), (total(X),)), lowered(joined(), (), (total(Y),)), set()),
        (lowered(joined(), (A,)), lowered(joined(Call("=", (A, B2), BOOLEAN)), (A,)), {"s"}),
        (lowered(joined(), (A, B)), lowered(joined(Call("=", (A, B2), BOOLEAN)), (A, B)), {"r", "s"}),
    ],
    ids=["payload", "filter", "keys", "same", "lifts", "join column", "result"],
)
def test_what_matters(one: TreeProgram, other: TreeProgram, expected: set[str]) -> None:
    """Payloads, filters, keys, lifts and which columns are equal."""
    assert common(one, other) == expected


def test_conditions_have_no_order() -> None:
    """Here, x > 0 and x < 9 is x < 9 and x > 0."""
    one = joined(left=Filter(Filter(R, POSITIVE), SMALL))
    other = joined(left=Filter(Filter(R, SMALL), POSITIVE))
    assert common(lowered(one, (A,)), lowered(other, (A,))) >= {"r", "s"}


def test_a_predicate_over_two_tables_is_part_of_the_view() -> None:
    """With and without it, and with another one."""
    less, more = (Call(f, (X, Y), BOOLEAN) for f in ("<", ">"))
    relations = joined(), Filter(joined(), less), Filter(joined(), more)
    views = [described(lowered(r, (A,))) for r in relations]
    results = [next(d.identity for d in v.values() if len(d.identity.atoms) == 2) for v in views]
    assert len(set(results)) == 3


def path(steps: int, keys: tuple[int, ...] = (0,)) -> TreeProgram:
    """Paths of so many steps along r, by the columns with these numbers."""
    found: Relation = R
    for i in range(1, steps):
        found = Join(found, R, JoinKind.INNER, Call("=", (column(3 * i - 2), column(3 * i)), BOOLEAN))
    return lowered(found, tuple(column(k) for k in keys))


@pytest.mark.parametrize("steps", [2, 3, 6])
def test_atoms_of_a_self_join_keep_apart(steps: int) -> None:
    """No two atoms of a tree get the same number, whatever is known; and so no two of its views are identical."""
    known = [d.identity for k in (2, 3) for d in described(path(k)).values()]
    program = path(steps)
    atoms = occurrences(program, inputs_of(program), known)
    assert len(set(atoms)) == steps
    found = described(program, known)
    assert len({d.identity for d in found.values()}) == len(found)


def test_a_part_of_a_longer_path_is_recognized() -> None:
    """Its atoms get the numbers that they have in the shorter one."""
    assert len(common(path(2), path(3))) >= 1
    assert len(common(path(3), path(2))) >= 1
    assert len(common(path(6), path(6, keys=(0, 3)))) >= 3


def test_views_that_an_indicator_touches_are_not_shared() -> None:
    """Neither those above it nor those of its atom."""
    relation, _ = cyclic_join(SHAPES["triangle"], ["R", "S", "T"])
    program = lowered(relation)
    (indicated,) = {v.indicates for v in program.views} - {None}
    found = described(program)
    assert found
    for name in found:
        view = program.view(name)
        assert indicated not in view.atoms
        assert not view.indicated


def test_atoms_are_equal_by_what_they_take_in() -> None:
    """Another input is another atom."""
    one, other = _Input("one"), _Input("other")
    atoms = [AtomIdentity(i, frozenset(), frozenset(), frozenset()) for i in (one, one, other)]
    assert atoms[0] == atoms[1]
    assert hash(atoms[0]) == hash(atoms[1])
    assert atoms[0] != atoms[2]
    assert atoms[0].numbered(1) != atoms[0]
    assert atoms[0].is_like(atoms[0].numbered(1))
