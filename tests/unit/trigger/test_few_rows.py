"""Tables of which a filter leaves few rows are joined as early as they can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.planner.block_flatten import as_relation, flatten
from everview.planner.block_join_builder import Facts
from everview.relational.expressions import Column, Expression
from everview.relational.nodes import Field, Filter, Join, JoinKind, Relation, Scan
from everview.relational.rule_examples import equal, less, plus
from everview.relational.types import INT64
from everview.trigger.few_rows import join_few_first
from tests.oracle.bags import assert_same_bag


def at(index: int) -> Expression:
    """A column of a join of tables with two columns each."""
    return Column(index, INT64, True)


A, B, C, D = (Scan(n, (Field(f"{n}1", INT64, True), Field(f"{n}2", INT64, True))) for n in "abcd")
FEW = equal(at(1), 1)


def joined(*steps: tuple[Relation, Expression]) -> Relation:
    """A, joined with one relation after another."""
    plan: Relation = A
    for relation, condition in steps:
        plan = Join(plan, relation, JoinKind.INNER, condition)
    return plan


def order(plan: Relation) -> str:
    """The tables in the order in which they are joined, in capitals if that is another one."""
    found = join_few_first(flatten(plan), lambda _: Facts())
    used = flatten(plan).inputs if found is None else found.inputs
    names = "".join(r.table for r in used if isinstance(r, Scan))
    return names if found is None else names.upper()


def test_few_rows_come_first() -> None:
    """As soon as a table that they are equal to has been joined, one after the other."""
    b, c, d = (B, equal(at(0), at(2))), (Filter(C, FEW), equal(at(1), at(4))), (Filter(D, FEW), equal(at(3), at(6)))
    assert order(joined(b, c)) == "ACB"
    assert order(joined(b, c, d)) == "ACBD"
    assert order(joined((Filter(C, FEW), equal(at(1), at(2))), (B, equal(at(0), at(4))))) == "acb"
    assert order(joined(b, (C, equal(at(1), at(4))))) == "abc"


def test_others_stay() -> None:
    """Without an equality that leads there, with one that needs both, or where a condition can fail."""
    b = (B, equal(at(0), at(2)))
    assert order(joined(b, (Filter(C, FEW), less(at(1), at(4))))) == "abc"
    assert order(joined(b, (Filter(C, FEW), equal(at(3), at(4))))) == "abc"
    assert order(joined(b, (Filter(C, FEW), equal(plus(at(1), 1), at(4))))) == "abc"
    assert order(joined((B, equal(plus(at(0), 1), at(2))), (Filter(C, FEW), equal(at(1), at(4))))) == "abc"


@given(data=st.data())
def test_the_answer_is_the_same(data: st.DataObject) -> None:
    """Whatever the tables hold."""
    values = st.one_of(st.none(), st.integers(0, 2))
    tables = {n: data.draw(st.lists(st.tuples(values, values), max_size=5), label=n) for n in "abcd"}
    plan = joined((B, equal(at(0), at(2))), (D, less(at(3), at(4))), (Filter(C, FEW), equal(at(1), at(6))))
    found = join_few_first(flatten(plan), lambda _: Facts())
    assert found is not None
    changed = as_relation(found, tuple("stuvwxyz"))
    assert_same_bag(evaluate_plan(changed, tables), evaluate_plan(plan, tables), "joined")
