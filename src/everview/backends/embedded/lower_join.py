"""From an inner, semi, anti or single join to its operators: equalities become keys of indexes, the rest a check of pairs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeAlias

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.join import JoinOperator, Keys
from everview.backends.embedded.operators.match import MatchByKeyOperator, MatchByPairOperator
from everview.backends.embedded.operators.stateless import ProjectOperator, UnionAllOperator
from everview.relational.expressions import Column, Expression, conjunction
from everview.relational.join_condition import split_join_condition
from everview.relational.nodes import Join, JoinKind, Project, UnionAll
from everview.relational.rules.split_outer_join import split_outer_join
from everview.relational.schema import schema

Inputs: TypeAlias = tuple[Operator, ...]
Share: TypeAlias = Callable[[Hashable, Inputs, Callable[[], Operator]], Operator]
"""The operator with a key over some inputs, made if there is none."""


def lower_join(join: Join, inputs: Inputs, share: Share, dictionary: Dictionary) -> Operator:
    """The operator of a join of two inputs."""
    left, right = inputs
    condition = split_join_condition(join)
    keys = tuple(_key_columns(q.left, q.right, q.null_safe) for q in condition.equalities)
    residual = conjunction(condition.residual) if condition.residual else None
    key: Hashable = (join.kind.value, id(left), id(right), keys, residual)
    match join.kind:
        case JoinKind.INNER:
            return share(key, inputs, lambda: JoinOperator(schema(join), left, right, keys, residual, dictionary))
        case JoinKind.SEMI | JoinKind.ANTI:
            return share(key, inputs, lambda: _match(join, left, right, keys, residual, dictionary))
        case JoinKind.SINGLE:
            checked = share(key, inputs, lambda: _match(join, left, right, keys, residual, dictionary))
            return _padded(join, checked, right, share, dictionary)
        case _:
            raise AssertionError(f"{join.kind} is split before lowering")


def _match(
    join: Join, left: Operator, right: Operator, keys: Keys, residual: Expression | None, dictionary: Dictionary
) -> Operator:
    fields = schema(join.left)
    if residual is None and join.kind is not JoinKind.SINGLE:
        return MatchByKeyOperator(fields, left, right, join.kind, keys)
    return MatchByPairOperator(fields, left, right, join.kind, keys, residual, dictionary)


def _padded(join: Join, left: Operator, right: Operator, share: Share, dictionary: Dictionary) -> Operator:
    """A left join over a left side that has been checked to have at most one partner a row."""
    left_join = split_outer_join(Join(join.left, join.right, JoinKind.LEFT, join.condition))
    assert isinstance(left_join, UnionAll)
    matched_node, padded_node = left_join.inputs
    assert isinstance(matched_node, Join)
    assert isinstance(padded_node, Project)
    assert isinstance(padded_node.child, Join)
    matched = lower_join(matched_node, (left, right), share, dictionary)
    lonely = lower_join(padded_node.child, (left, right), share, dictionary)
    projected: Hashable = ("project", id(lonely), padded_node.expressions)
    padded = share(projected, (lonely,), lambda: ProjectOperator(padded_node, lonely, dictionary))
    united: Hashable = ("union all", (id(matched), id(padded)))
    return share(united, (matched, padded), lambda: UnionAllOperator(left_join, (matched, padded)))


def _key_columns(left: Expression, right: Expression, null_safe: bool) -> tuple[int, int, bool]:
    assert isinstance(left, Column), "join keys are exposed before lowering"
    assert isinstance(right, Column), "join keys are exposed before lowering"
    return left.index, right.index, null_safe
