"""ORDER BY with LIMIT and OFFSET, and the order in which the rows of a plan stand.

Spark turns the LIMIT of a correlated subquery into ``row_number() <= n`` over a window for each outer row. That window has an
ORDER BY only where the Sort is right below the LIMIT. Where an operator stands in between, as the projection does that drops a
key which is not selected, Spark leaves the window unordered and relies on how the sorted rows happen to lie. Here the order
is read from the Sort below; where there is none, the row that is kept would be arbitrary, and the query is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_json import CatalystNode
from everview.frontend.translate_expression import translate_literal
from everview.frontend.translation import Translation, has_one_row, sort_key_of
from everview.relational.expressions import Column, Expression
from everview.relational.nodes import Project, SortKey, TopK
from everview.relational.schema import columns, schema
from everview.relational.unique_keys import is_unique

LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Sort"})
NO_ATTRIBUTE = -1
"""The identity of a column that no expression of Catalyst's refers to."""


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Rows ``offset … offset + limit`` of an ordered input, and the projections to apply afterwards."""

    input: Translation
    order: tuple[SortKey, ...] | None
    limit: int | None = None
    offset: int = 0
    projections: tuple[CatalystNode, ...] = ()

    def top(self) -> Translation:
        """The rows that are kept, before the projections."""
        if self.limit is None and not self.offset:
            return self.input
        if self.order is not None:
            top = TopK(self.input.relation, self.order, self.limit, self.offset)
            return Translation(top, self.input.attributes)
        if has_one_row(self.input.relation) and not self.offset and self.limit:
            return self.input
        raise _arbitrary_rows()


@dataclass(frozen=True, slots=True)
class OrderedPlan:
    """A relation, the order its rows stand in, and after the plan's own columns those that only the order needs."""

    rows: Translation
    order: tuple[SortKey, ...]


class LimitTranslator:
    """Translates limits and sorts; ``translate``, ``project`` and ``filtered`` are the translations of other nodes."""

    def __init__(
        self,
        translate: Callable[[CatalystNode], Translation],
        project: Callable[[Translation, CatalystNode], Translation],
        filtered: Callable[[Translation, CatalystNode], Translation],
    ) -> None:
        self._translate = translate
        self._project = project
        self._filtered = filtered

    def limited(self, node: CatalystNode) -> Translation:
        """The rows that a limit, an offset or a sort leaves."""
        ordered = self._ordered(node)
        result = ordered.top()
        for projection in ordered.projections:
            result = self._project(result, projection)
        return result

    def numbered_input(
        self, node: CatalystNode, partition: Callable[[Translation], tuple[Expression, ...]]
    ) -> OrderedPlan:
        """The input of a ``row_number()`` without ORDER BY, in its order.

        Raises:
            UnsupportedQuery: it has no order, and a partition may have several rows.
        """
        found = self._sorted(node)
        if found is not None:
            return found
        rows = self._translate(node)
        if not is_unique(rows.relation, (e.index for e in partition(rows) if isinstance(e, Column))):
            raise _arbitrary_rows()
        return OrderedPlan(rows, ())

    def _ordered(self, node: CatalystNode) -> _Ordered:
        match node.name:
            case "GlobalLimit" | "LocalLimit":
                inner = self._ordered(node.children[0])
                limit = _constant(node, "limitExpr")
                return _Ordered(inner.input, inner.order, _smaller(inner.limit, limit), inner.offset, inner.projections)
            case "Offset":
                inner = self._ordered(node.children[0])
                skip = _constant(node, "offsetExpr")
                limit_left = None if inner.limit is None else max(0, inner.limit - skip)
                return _Ordered(inner.input, inner.order, limit_left, inner.offset + skip, inner.projections)
            case "Sort":
                child = self._translate(node.children[0])
                if not node.fields["global"]:  # SORT BY: each partition by itself, and rows are in any partition
                    return _Ordered(child, None)
                order = tuple(sort_key_of(e, child.scope) for e in node.trees("order"))
                return _Ordered(child, order)
            case "Project" if _leads_to_sort(node):
                inner = self._ordered(node.children[0])
                return _Ordered(inner.input, inner.order, inner.limit, inner.offset, (*inner.projections, node))
            case "SubqueryAlias" | "PipeOperator":
                return self._ordered(node.children[0])
            case _:
                return _Ordered(self._translate(node), None)

    def _sorted(self, node: CatalystNode) -> OrderedPlan | None:
        """The rows of a plan and their order, through operators that keep it; None where they have none."""
        if node.name in LIMITS:
            ordered = self._ordered(node)
            if ordered.order is None:
                return None
            found = OrderedPlan(ordered.top(), ordered.order)
            for projection in ordered.projections:
                found = self._with_keys(found, projection)
            return found
        match node.name:
            case "SubqueryAlias" | "PipeOperator":
                return self._sorted(node.children[0])
            case "Project":
                below = self._sorted(node.children[0])
                return None if below is None else self._with_keys(below, node)
            case "Filter":
                below = self._sorted(node.children[0])
                return None if below is None else OrderedPlan(self._filtered(below.rows, node), below.order)
            case "Window" if _is_numbering(node):  # the limit of a subquery inside: the numbers are the order
                rows = self._translate(node)
                return OrderedPlan(rows, (SortKey(columns(rows.relation)[-1], False, True),))
            case _:
                return None

    def _with_keys(self, below: OrderedPlan, node: CatalystNode) -> OrderedPlan:
        """A projection that keeps the keys of the order, in columns after its own."""
        narrow = self._project(below.rows, node)
        assert isinstance(narrow.relation, Project), "a projection is one"
        width = len(narrow.attributes)
        names = (*narrow.relation.names, *(f"order {i}" for i in range(len(below.order))))
        keys = tuple(key.expression for key in below.order)
        wide = Project(narrow.relation.child, (*narrow.relation.expressions, *keys), names)
        order = tuple(
            SortKey(Column(width + i, f.type, f.nullable), key.descending, key.nulls_first)
            for i, (key, f) in enumerate(zip(below.order, schema(wide)[width:], strict=True))
        )
        return OrderedPlan(Translation(wide, (*narrow.attributes, *(NO_ATTRIBUTE for _ in keys))), order)


def _is_numbering(window: CatalystNode) -> bool:
    listed = window.trees("windowExpressions")
    return len(listed) == 1 and is_row_number(listed[0])


def is_row_number(named: CatalystNode) -> bool:
    """Whether a named window expression is ``row_number()``."""
    return (
        bool(named.children) and bool(named.children[0].children) and named.children[0].children[0].name == "RowNumber"
    )


def _arbitrary_rows() -> UnsupportedQuery:
    return UnsupportedQuery(
        "LIMIT or OFFSET without ORDER BY keeps arbitrary rows, so the view has no well-defined content.",
        operator="GlobalLimit",
        hint="add an ORDER BY (SORT BY orders each partition by itself), or declare the order: "
        "create_view(…, order_by='primary key').",
    )


def _constant(node: CatalystNode, key: str) -> int:
    expression = node.tree(key)
    if expression is None or expression.name != "Literal":
        raise UnsupportedQuery("LIMIT and OFFSET must be constants.", operator=node.name)
    return int(translate_literal(expression).value)


def _smaller(a: int | None, b: int) -> int:
    return b if a is None else min(a, b)


def _leads_to_sort(node: CatalystNode) -> bool:
    below = node.children[0]
    if below.name in ("Project", "SubqueryAlias", "PipeOperator"):
        return _leads_to_sort(below)
    return below.name in LIMITS
