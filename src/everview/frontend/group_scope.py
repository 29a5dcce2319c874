"""The SELECT list of an aggregation: expressions over group keys and aggregate calls."""

from __future__ import annotations

from collections.abc import Iterable

from everview.frontend.catalyst_json import CatalystNode
from everview.frontend.translate_aggregate import translate_aggregate
from everview.frontend.translate_expression import SUBQUERIES, Scope, contains, expr_id, translate_expression
from everview.relational.expressions import Column, Expression
from everview.relational.nodes import Aggregate, AggregateCall
from everview.relational.schema import columns


class GroupScope:
    """Translates SELECT-list expressions over the output of an ``Aggregate``."""

    def __init__(self, grouped: Aggregate, below: Scope, above: Scope) -> None:
        self._below = below
        self._above = above
        outputs = columns(grouped)
        split = len(grouped.keys)
        self._keys = dict(zip(grouped.keys, outputs[:split], strict=True))
        self._calls = dict(zip(grouped.aggregates, outputs[split:], strict=True))

    def translate(self, node: CatalystNode) -> Expression:
        """The expression over the aggregate's output columns (and the subqueries joined to them)."""
        scope = Scope(self._above.columns.copy())
        return translate_expression(self._prepare(node, scope), scope)

    def _prepare(self, node: CatalystNode, scope: Scope) -> CatalystNode:
        """Replaces aggregate calls and key expressions in the tree by attributes of the scope."""
        if node.name == "AggregateExpression":
            return _attribute(self._calls[translate_aggregate(node, self._below)], scope)
        if node.name not in ("Alias", "Literal") and not contains(node, _NOT_KEYS):
            key = self._keys.get(translate_expression(node, self._below))
            if key is not None:
                return _attribute(key, scope)
        return CatalystNode(node.name, node.fields, tuple(self._prepare(c, scope) for c in node.children))


def _attribute(column: Column, scope: Scope) -> CatalystNode:
    identity = -2 - column.index  # no attribute of Catalyst has a negative id
    scope.columns[identity] = column
    return CatalystNode("GroupColumn", {"exprId": {"id": identity}}, ())


_NOT_KEYS = frozenset({"AggregateExpression", "CommonExpressionRef", "CommonExpressionDef"}) | SUBQUERIES


def aggregate_expressions(node: CatalystNode) -> Iterable[CatalystNode]:
    """The aggregate calls in an expression."""
    if node.name == "AggregateExpression":
        yield node
    else:
        for child in node.children:
            yield from aggregate_expressions(child)


def aggregate_names(
    listed: tuple[CatalystNode, ...],
    grouping: tuple[CatalystNode, ...],
    keys: tuple[Expression, ...],
    calls: tuple[AggregateCall, ...],
    scope: Scope,
) -> tuple[str, ...]:
    """Names for people: an aggregate's alias where it is the whole expression, else the function's name."""
    names: dict[object, str] = {}
    for g in grouping:
        names.setdefault(translate_expression(g, scope), g.fields.get("name", "key"))
    for e in listed:
        if e.name == "Alias" and e.children[0].name == "AggregateExpression":
            names.setdefault(translate_aggregate(e.children[0], scope), e.fields["name"])
    return tuple(names.get(k, "key") for k in keys) + tuple(names.get(c, c.function) for c in calls)


def marks_as_max(node: CatalystNode, marks: set[int]) -> CatalystNode:
    """Spark wraps an existence mark in the SELECT list of groups in FIRST; every row of a group has the same, so MAX is it."""
    if node.name == "First" and node.children[0].name == "AttributeReference" and expr_id(node.children[0]) in marks:
        return CatalystNode("Max", node.fields, node.children[:1])
    return CatalystNode(node.name, node.fields, tuple(marks_as_max(c, marks) for c in node.children))
