"""From an inner, semi, anti or single join to its operator: equalities become keys of indexes, the rest a check of pairs."""

from __future__ import annotations

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.join import JoinOperator
from everview.backends.embedded.operators.match import MatchByKeyOperator, MatchByPairOperator
from everview.backends.embedded.operators.match_other import MatchByOtherOperator
from everview.relational.expressions import Column, Expression, conjunction
from everview.relational.join_condition import differing_columns, split_join_condition
from everview.relational.nodes import Join, JoinKind
from everview.relational.schema import schema


def join_operator(
    join: Join, inputs: tuple[Operator, ...], dictionary: Dictionary, *, keeps_slices: bool = False
) -> Operator:
    """The operator of a join of two inputs; that of a single join checks its left side and passes it on.

    With ``keeps_slices`` an inner join meets all rows that agree on its equalities, and keeps them in no order.
    """
    left, right = inputs
    condition = split_join_condition(join)
    keys = tuple(_key_columns(q.left, q.right, q.null_safe) for q in condition.equalities)
    residual = conjunction(condition.residual) if condition.residual else None
    match join.kind:
        case JoinKind.INNER:
            return JoinOperator(schema(join), left, right, keys, residual, dictionary, keeps_slices=keeps_slices)
        case JoinKind.SEMI | JoinKind.ANTI if residual is None:
            return MatchByKeyOperator(schema(join.left), left, right, join.kind, keys)
        case JoinKind.SEMI | JoinKind.ANTI if (differing := differing_columns(join)) is not None:
            return MatchByOtherOperator(schema(join.left), left, right, join.kind, keys, differing)
        case JoinKind.SEMI | JoinKind.ANTI | JoinKind.SINGLE:
            return MatchByPairOperator(schema(join.left), left, right, join.kind, keys, residual, dictionary)
        case _:
            raise AssertionError(f"{join.kind} is split before lowering")


def _key_columns(left: Expression, right: Expression, null_safe: bool) -> tuple[int, int, bool]:
    assert isinstance(left, Column), "join keys are exposed before lowering"
    assert isinstance(right, Column), "join keys are exposed before lowering"
    return left.index, right.index, null_safe
