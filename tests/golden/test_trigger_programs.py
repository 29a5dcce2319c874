"""The trigger programs of the running example of F-IVM, as text; those of TPC-H are in the explanations of views."""

from __future__ import annotations

from textwrap import dedent

import pytest

from everview.planner.block_build import Facts, build_block
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_tree import plan_tree
from everview.planner.variable_order import parse_order
from everview.relational.expressions import Call, Cast, Column, Expression
from everview.relational.nodes import Aggregate, AggregateCall, Field, Join, JoinKind, Relation, Scan
from everview.relational.types import BOOLEAN, INT32, INT64
from everview.trigger.format_program import format_program
from everview.trigger.lower_tree import lower_tree


def relation(name: str, columns: str) -> Scan:
    """A table of ints."""
    return Scan(name, tuple(Field(c, INT32, False) for c in columns))


R, S, T = relation("R", "AB"), relation("S", "ACE"), relation("T", "CD")
A_R, B, A_S, C_S, E, C_T, D = (Column(i, INT32, False) for i in range(7))


def joined() -> Relation:
    """R ⋈ S ⋈ T on A and C."""
    left = Join(R, S, JoinKind.INNER, Call("=", (A_R, A_S), BOOLEAN))
    return Join(left, T, JoinKind.INNER, Call("=", (C_S, C_T), BOOLEAN))


def big(e: Expression) -> Expression:
    """As a bigint."""
    return Cast(e, INT64)


def program_text(keys: tuple[Column, ...], call: AggregateCall, order: str, updated: str = "R S T") -> str:
    """The program of an aggregate over the join, along an order, for updates to some relations."""
    aggregate = Aggregate(joined(), keys, (call,), tuple(f"o{i}" for i in range(len(keys) + 1)))
    block = build_block(aggregate, lambda r: Facts(updatable=isinstance(r, Scan) and r.table in updated.split()))
    tree = plan_tree(block.query, order=parse_order(block.query, order), inline=False).tree
    return format_program(lower_tree(block, tree, materialized_nodes(tree, roots=False)))


COUNT = AggregateCall("count", (), INT64)
ORDER = "A - C"

COUNT_TEXT = """
    view R[A]: #
    view S[A, C]: #
    view T[C]: #
    view V@C_ST[A]: #
    result V@A_RST[]: #

    on R (A)
      δR[A] := Σ #
      R[A] += δR[A]
      δV@A_RST[] := Σ δR[A] * V@C_ST[A]    -- look-up by A
      V@A_RST[] += δV@A_RST[]

    on S (A, C)
      δS[A, C] := Σ #
      S[A, C] += δS[A, C]
      δV@C_ST[A] := Σ δS[A, C] * T[C]    -- look-up by C
      V@C_ST[A] += δV@C_ST[A]
      δV@A_RST[] := Σ δV@C_ST[A] * R[A]    -- look-up by A
      V@A_RST[] += δV@A_RST[]

    on T (C)
      δT[C] := Σ #
      T[C] += δT[C]
      δV@C_ST[A] := Σ δT[C] * S[A, C]    -- slice by C
      V@C_ST[A] += δV@C_ST[A]
      δV@A_RST[] := Σ δV@C_ST[A] * R[A]    -- look-up by A
      V@A_RST[] += δV@A_RST[]
"""


def text(lines: str) -> str:
    """A text of this file."""
    return dedent(lines).strip("\n")


def test_count_over_the_join() -> None:
    """Example 2: COUNT over R ⋈ S ⋈ T along A - C (the variables of one relation are summed in its leaf)."""
    assert program_text((), COUNT, ORDER) == text(COUNT_TEXT)


def test_sum_of_products() -> None:
    """SUM(B * D * E): every relation lifts its own factor, and views multiply."""
    product = Call("*", (Call("*", (big(B), big(D)), INT64), big(E)), INT64)
    with pytest.raises(Exception, match="no sum of products"):  # it may overflow
        program_text((), AggregateCall("sum", (product,), INT64), ORDER)
    pair = Call("*", (big(B), big(D)), INT64)
    found = program_text((A_R, C_S), AggregateCall("sum", (pair,), INT64), ORDER)
    assert "δR[A] := Σ #, cast(B as bigint)" in found
    assert "result V@A_RST[A, C]: #, R.(cast(B as bigint)) * T.(cast(D as bigint))" in found


def test_updates_to_one_relation_only() -> None:
    """Figure 8: for updates to T alone, S and R are stored, and T is not; what does not change stops where nothing needs it."""
    found = program_text((), COUNT, ORDER, updated="T").splitlines()
    assert found[:3] == ["view R[A]: #", "view S[A, C]: #", "result V@A_RST[]: #"]
    on_s = found[found.index("on S (A, C)") :]
    assert on_s[1:4] == ["  δS[A, C] := Σ #", "  S[A, C] += δS[A, C]", ""]


def test_the_text_is_the_same_every_time() -> None:
    """Programs are sets inside; their text is not."""
    assert len({program_text((C_T, A_S), COUNT, order) for order in [ORDER] * 3}) == 1
