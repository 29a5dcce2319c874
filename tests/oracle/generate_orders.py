"""ORDER BY with LIMIT, by what is selected and by what is not.

Every order is total: it ends with all columns that the rows have, so that ties are equal rows, and it does not matter which of
them the limit cuts off.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.choices import Choices
from tests.oracle.generate_aggregates import aggregate
from tests.oracle.generate_expressions import Column, Scope, any_value, predicate, value
from tests.oracle.generate_grammar import Grammar, Query, link, plain
from tests.oracle.generate_tables import Kind

_DIRECTIONS = ("", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST")
_LIMITS = (*(" LIMIT 1", " LIMIT 2", " LIMIT 3") * 3, " LIMIT 4 OFFSET 1", " OFFSET 2", " LIMIT 0", " LIMIT 100")


def total_order(choices: Choices, scope: Scope, first: Sequence[str] = ()) -> str:
    """ORDER BY these expressions, and then all columns of the scope in any order and direction."""
    listed = [*first, *(c.sql for c in choices.shuffled(scope))]
    return "ORDER BY " + ", ".join(f"{sql}{choices.pick(_DIRECTIONS)}" for sql in listed)


def limit(choices: Choices) -> str:
    """LIMIT, OFFSET or both."""
    return choices.pick(_LIMITS)


def select_top(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    """The first rows of a query in the order of its output."""
    choices, inner = grammar.choices, grammar.parts.query(grammar.below(), kinds)
    order = total_order(choices, inner.columns)
    return Query(f"SELECT * FROM ({inner.sql}) {choices.name('q')} {order}{limit(choices)}", inner.columns)


def select_top_by_unselected(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    """The first rows in an order of columns, expressions and aggregates that are not in the SELECT list."""
    choices = grammar.choices
    source = grammar.parts.joined(grammar.below())
    where = f" WHERE {grammar.parts.condition(grammar.below(), source.scope)}" if choices.once_in(2) else ""
    return top_of(choices, source.sql, where, source.scope, kinds)


def top_of(choices: Choices, source: str, where: str, scope: Scope, kinds: Sequence[Kind] | None) -> Query:
    """The first rows, or groups, of a FROM and a WHERE clause."""
    if choices.once_in(3):
        keys = tuple(choices.some(scope, 1, 2))
        group = (*keys, aggregate(choices, scope))
        first = [aggregate(choices, scope).sql]
        clause, order = f" GROUP BY {', '.join(k.sql for k in keys)}", total_order(choices, keys, first)
        scope = group
    else:
        first = [any_value(choices, scope, 1).sql] if choices.once_in(2) else []
        # Spark would read a literal as the number of an output column
        first = [f"coalesce({sql}, {sql})" for sql in first]
        clause, order = "", total_order(choices, scope, first)
    if kinds is None:
        listed = [any_value(choices, scope, choices.pick((0, 0, 1))) for _ in range(choices.count(1, 2))]
    else:
        listed = [Column(value(choices, scope, kind, 1), kind) for kind in kinds]
    outputs = tuple(Column(choices.name("c"), c.kind) for c in listed)
    items = ", ".join(f"{c.sql} AS {o.sql}" for c, o in zip(listed, outputs, strict=True))
    return Query(f"SELECT {items} FROM {source}{where}{clause} {order}{limit(choices)}", outputs)


def first_value(grammar: Grammar, outer: Scope) -> Column:
    """A correlated scalar subquery: a column of the first row by other columns."""
    choices, source = grammar.choices, grammar.parts.joined(grammar.below())
    where = " WHERE " + correlation(choices, source.scope, outer) if plain(outer) else ""
    if choices.once_in(4):
        key = choices.pick(source.scope)
        order = total_order(choices, (key,), [aggregate(choices, source.scope).sql])
        shown, tail = key, f" GROUP BY {key.sql} {order} LIMIT 1"
    else:
        shown = any_value(choices, source.scope, choices.pick((0, 0, 1)))
        tail = f" {total_order(choices, source.scope)} LIMIT 1"
    return Column(f"(SELECT {shown.sql} AS o FROM {source.sql}{where}{tail})", shown.kind, is_plain=False)


def correlation(choices: Choices, inner: Scope, outer: Scope) -> str:
    """Equalities with the query around, mostly, and a condition of its own."""
    operators = ("=", "=", "=", "<=>", "<") if choices.once_in(3) else ("=",)
    condition = link(choices, plain(outer), inner, operators)
    return f"{condition} AND {predicate(choices, inner, 0)}" if choices.once_in(3) else condition
