"""The text of programs: every kind of statement, lift and access."""

from __future__ import annotations

import random
import re

from everview.planner.block_build import Facts, build_block
from everview.planner.materialize import materialized_nodes
from everview.relational.expressions import Call, Case, Column, Literal, conjunction
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Scan
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64
from everview.trigger.format_tree_program import format_tree_program
from everview.trigger.lower_tree import lower_tree
from everview.trigger.plan_block import BlockOptions, flat_tree, plan_block
from tests.unit.backends.embedded.tree.generate_blocks import random_query

R = Scan("r", (Field("k", INT32, False), Field("x", FLOAT64, True), Field("n", INT32, False)))
S = Scan("s", (Field("j", INT32, False), Field("y", FLOAT64, False), Field("m", INT32, False)))
K, X, N = (Column(i, f.type, f.nullable) for i, f in enumerate(R.fields))
J, Y, M = (Column(3 + i, f.type, f.nullable) for i, f in enumerate(S.fields))
SAME = Call("=", (K, J), BOOLEAN)


def flat(join: Join | Filter, *calls: AggregateCall) -> str:
    """The first-order program of a global aggregate."""
    block = build_block(Aggregate(join, (), calls, tuple(f"o{i}" for i in range(len(calls)))), lambda _: Facts())
    tree = flat_tree(block)
    return format_tree_program(lower_tree(block, tree, materialized_nodes(tree, roots=False)))


def test_lifts() -> None:
    """A product over two tables, a mask, and a condition on the rows of one."""
    masked = Case(((Call(">", (N, Literal(0, INT32)), BOOLEAN), Y),), Literal(None, FLOAT64))
    product = Call("*", (X, Call("+", (Y, Literal(1.0, FLOAT64)), FLOAT64)), FLOAT64)
    join = Join(R, Filter(S, Call("<", (Column(2, INT32, False), Literal(9, INT32)), BOOLEAN)), JoinKind.INNER, SAME)
    found = flat(join, AggregateCall("sum", (masked,), FLOAT64), AggregateCall("sum", (product,), FLOAT64))
    assert "result result[]: #, r.[n > 0] * s.y, [n > 0], r.x * s.(y + 1.0), [isnotnull(x)]" in found
    assert "δr[k] := Σ #, [n > 0], x, [isnotnull(x)]" in found
    assert "δs[k] := Σ #, y, y + 1.0  where m < 9  with k = j" in found


def test_predicates_and_products() -> None:
    """A predicate over two tables is written where it is checked; a join on nothing scans."""
    text = flat(Join(R, S, JoinKind.INNER, Call("<", (N, M), BOOLEAN)), AggregateCall("count", (), INT64))
    assert "δresult[] := Σ δr[n] * s[m] where n < m    -- scan of all" in text
    both = conjunction((SAME, Call("<", (N, M), BOOLEAN)))
    text = flat(Join(R, S, JoinKind.INNER, both), AggregateCall("count", (), INT64))
    assert "δresult[] := Σ δr[k, n] * s[k, m] where n < m    -- slice by k" in text


def test_every_line_is_one_of_a_few_forms() -> None:
    """Whatever the program."""
    forms = re.compile(
        r"(view|result) \S.*: #.*|on .* \(.*\)|  δ.*\] := (Σ )?\S.*|  \S.*\] \+= δ.*|    \* .* -- (look-up|slice|scan) .*|"
    )
    for seed in range(60):
        aggregate = random_query(random.Random(seed)).aggregate
        for line in format_tree_program(
            plan_block(aggregate, lambda _: Facts(), BlockOptions("auto")).program
        ).splitlines():
            assert forms.fullmatch(line), line
