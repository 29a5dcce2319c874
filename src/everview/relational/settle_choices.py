"""``first``, ``last`` and ``any_value`` where keys leave no choice.

Spark takes the value of whichever row comes first. Where the grouping columns determine the value, all rows of a group have the
same, and the least is it: ``GROUP BY customer.id`` with ``first(customer.name)`` is well-defined if ``id`` is a key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from everview.errors import UnsupportedQuery
from everview.relational.expressions import Column, Expression, columns_of, shift_columns
from everview.relational.nodes import Aggregate, AggregateCall, Filter, Join, JoinKind, Project, Relation
from everview.relational.schema import schema
from everview.relational.traverse import nodes_of, rewrite_bottom_up
from everview.relational.unique_keys import KeysOfScan, unique_keys

CHOICES: Final = frozenset({"first", "last", "any_value"})


def settle_choices(plan: Relation, of_scan: KeysOfScan) -> Relation:
    """The plan with MIN in the place of choices that are none.

    Raises:
        UnsupportedQuery: rows of one group may differ in what is chosen from.
    """
    if not any(c.function in CHOICES for n in nodes_of(plan) if isinstance(n, Aggregate) for c in n.aggregates):
        return plan

    def settle(relation: Relation) -> Relation | None:
        if not isinstance(relation, Aggregate) or all(c.function not in CHOICES for c in relation.aggregates):
            return None
        known = {k.index for k in relation.keys if isinstance(k, Column)}
        return replace(
            relation, aggregates=tuple(_settled(c, relation.child, known, of_scan) for c in relation.aggregates)
        )

    return rewrite_bottom_up(plan, settle)


def _settled(call: AggregateCall, rows: Relation, known: set[int], of_scan: KeysOfScan) -> AggregateCall:
    if call.function not in CHOICES:
        return call
    if _is_determined(rows, known, call.args[0], of_scan):
        return replace(call, function="min")
    name = "first (or any_value)" if call.function == "first" else call.function  # Catalyst makes the one of the other
    raise UnsupportedQuery(
        f"the aggregate {name} depends on the order in which rows arrive, so a view over it has no defined content.",
        operator=call.function,
        hint="use min, max, min_by or max_by, which say which row they mean, or group by a primary key that fixes the value.",
    )


def _is_determined(rows: Relation, known: set[int], value: Expression, of_scan: KeysOfScan) -> bool:
    """Whether rows that agree on the known columns agree on a value: a key of the relation that it comes from is known."""
    wanted = columns_of(value)
    if wanted <= known:
        return True
    match rows:
        case Filter():
            return _is_determined(rows.child, known, value, of_scan)
        case Project():
            passed = {e.index for i in known if isinstance(e := rows.expressions[i], Column)}
            return all(_is_determined(rows.child, passed, rows.expressions[i], of_scan) for i in wanted)
        case Join(kind=JoinKind.INNER):
            width = len(schema(rows.left))
            if max(wanted) < width and _is_determined(rows.left, {c for c in known if c < width}, value, of_scan):
                return True
            if min(wanted) >= width:
                moved = shift_columns(value, -width)
                return _is_determined(rows.right, {c - width for c in known if c >= width}, moved, of_scan)
    return any(not key.present and key.columns <= known for key in unique_keys(rows, of_scan))
