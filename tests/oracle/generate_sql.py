"""Spark SQL queries over given tables: a grammar of small functions, each with a typed scope of what it may name.

A query is built from the outside in: a form (rows, groups, a set operation, …), its FROM clause, which gives the scope, and
expressions over that. Subqueries and window functions are columns like any other that a scope may be extended with, so they
turn up inside OR, CASE and arithmetic too. Nearly all queries are valid, and all have one answer: every LIMIT has a total
order, and nothing compares or sums what loses digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tests.oracle.choices import Choices
from tests.oracle.generate_aggregates import aggregate, approximate_aggregate, window_function
from tests.oracle.generate_expressions import Column, Scope, any_value, columns_of, key, may_fail, value
from tests.oracle.generate_from import joined
from tests.oracle.generate_from import source as source_of
from tests.oracle.generate_grammar import Grammar, Named, Parts, Query, Source, select_list, table_source
from tests.oracle.generate_orders import select_top, select_top_by_unselected
from tests.oracle.generate_shapes import select_shape
from tests.oracle.generate_subqueries import (
    SET_OPERATIONS,
    condition,
    null_test,
    scalar_subquery,
    truth_subquery,
    where_clause,
    with_subqueries,
)
from tests.oracle.generate_tables import Kind, TableData, kind_of


def queries(tables: Sequence[TableData], depth: int = 2) -> st.SearchStrategy[str]:
    """The text of a query that has an answer on whatever rows the tables hold."""
    return st.composite(lambda draw: make_query(Choices.drawn(draw), named(tables), depth).sql)()


def failing_queries(tables: Sequence[TableData]) -> st.SearchStrategy[str]:
    """The text of a query that may fail, depending on the rows, and then must."""
    return st.composite(lambda draw: make_failing_query(Choices.drawn(draw), named(tables)))()


def named(tables: Sequence[TableData]) -> tuple[Named, ...]:
    """The tables as queries see them."""
    return tuple(Named(t.name, tuple(Column(f.name, kind_of(f)) for f in t.fields)) for t in tables)


def make_query(choices: Choices, tables: tuple[Named, ...], depth: int) -> Query:
    """The same by any choices, with its output columns."""
    grammar = Grammar(choices, tables, depth, _PARTS, is_top=True)
    shape = select_shape(grammar) if choices.once_in(4) else None
    return query(grammar) if shape is None else shape


def make_failing_query(choices: Choices, tables: tuple[Named, ...]) -> str:
    """A query that may fail, and then must, by any choices."""
    grammar = Grammar(choices, tables, 0, _PARTS)
    source = table_source(grammar)
    large = columns_of(source.scope, Kind.LARGE, Kind.WIDE)
    if large and choices.once_in(2):
        by = choices.pick(source.scope)
        summed = choices.pick([f"sum({c.sql})" for c in large if c.kind is Kind.LARGE] or ["count(*)"])
        return choices.pick(
            (f"SELECT {summed} AS c FROM {source.sql}", f"SELECT {summed} AS c FROM {source.sql} GROUP BY {by.sql}")
        )
    if choices.once_in(4):
        columns = source.scope[0].sql
        return f"SELECT (SELECT {columns} FROM {source.sql}) AS c FROM VALUES (1) AS v(x)"
    risk = may_fail(choices, source.scope)
    return choices.pick(
        (
            f"SELECT {risk} AS c FROM {source.sql}",
            f"SELECT max({risk}) AS c FROM {source.sql}",
            f"SELECT {source.scope[0].sql} AS c FROM {source.sql} WHERE {risk} IS NOT NULL",
        )
    )


# Queries


def query(grammar: Grammar, kinds: Sequence[Kind] | None = None) -> Query:
    """A query; its output has these kinds, if any are asked for."""
    simple = (_select_rows, _select_groups, _select_distinct)
    nested = (_select_grouping_sets, _set_operation, _with_common_table, select_top, select_top_by_unselected)
    return grammar.choices.pick((*simple, *nested) if grammar.depth > 0 else simple)(grammar, kinds)


def _select_rows(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    choices, source = grammar.choices, source_of(grammar)
    where = where_clause(grammar, source.scope)
    scope = with_subqueries(grammar, source.scope)
    if grammar.depth > 0 and choices.once_in(4):
        scope += tuple(window_function(choices, source.scope) for _ in range(choices.count(1, 2)))
    return _select(grammar, scope, kinds, f"FROM {source.sql}{where}")


def _select_distinct(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    below = replace(grammar, is_top=False)
    inner = grammar.choices.pick((_select_rows, _select_groups))(below, kinds)
    return Query(inner.sql.replace("SELECT", "SELECT DISTINCT", 1), inner.columns)


def _select_groups(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    choices, source = grammar.choices, source_of(grammar)
    keys = tuple(key(choices, source.scope) for _ in range(choices.count(0, 3)))
    clause = f" GROUP BY {', '.join(k.sql for k in keys)}" if keys else ""
    return _select_of_groups(grammar, source, keys, clause, kinds)


def _select_grouping_sets(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    choices, source = grammar.choices, source_of(grammar)
    keys = tuple(choices.some(source.scope, 1, 3))
    listed = ", ".join(k.sql for k in keys)
    sets = ", ".join(f"({', '.join(k.sql for k in choices.some(keys, 0))})" for _ in range(choices.count(1, 3)))
    clause = choices.pick((f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), {sets})"))
    marks = (f"grouping({choices.pick(keys).sql})", "grouping_id()")
    # No key is plain: Spark cannot execute a HAVING that correlates a subquery with one.
    offered = tuple(Column(k.sql, k.kind, is_plain=False) for k in keys)
    offered += tuple(Column(mark, Kind.INTEGER, is_plain=False) for mark in marks)
    return _select_of_groups(grammar, source, offered, f" GROUP BY {clause}", kinds)


def _select_of_groups(
    grammar: Grammar, source: Source, keys: Scope, clause: str, kinds: Sequence[Kind] | None
) -> Query:
    """A SELECT whose scope is one group: keys, aggregates, and subqueries correlated by the keys."""
    choices = grammar.choices
    where = where_clause(grammar, source.scope)
    group = keys + tuple(aggregate(choices, source.scope) for _ in range(choices.count(1, 3)))
    having = f" HAVING {condition(grammar, group)}" if choices.once_in(3) else ""
    scope = group
    if grammar.depth > 0 and choices.once_in(6):
        # Spark wants a correlated scalar subquery over groups to be one of the keys, and without keys its EXISTS over no
        # rows is NULL in a column that it calls not nullable.
        has_test = keys and choices.once_in(2)
        scope += (truth_subquery(grammar, group) if has_test else scalar_subquery(grammar, ()),)
    if grammar.depth > 0 and choices.once_in(6):
        scope += (window_function(choices, group),)
    tail = f"FROM {source.sql}{where}{clause}{having}"
    lossy = grammar.is_top and kinds is None and choices.once_in(3)
    extra = [approximate_aggregate(choices, source.scope) for _ in range(choices.count(1, 2))] if lossy else []
    return _select(replace(grammar, is_top=False), scope, kinds, tail, extra)


def _select(
    grammar: Grammar, scope: Scope, kinds: Sequence[Kind] | None, tail: str, extra: Sequence[str] = ()
) -> Query:
    choices = grammar.choices
    if kinds is None:
        listed = [any_value(choices, scope, 2) for _ in range(choices.count(1, 4))]
        listed += scope[-1:]  # what the scope was extended with last, or nothing would use it
    else:
        listed = [Column(value(choices, scope, kind, 1), kind) for kind in kinds]
    return select_list(choices, listed, tail, extra)


def _set_operation(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    left = query(grammar.below(), kinds)
    right = query(grammar.below(), [c.kind for c in left.columns])
    return Query(f"({left.sql}) {grammar.choices.pick(SET_OPERATIONS)} ({right.sql})", left.columns)


def _with_common_table(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    definition = query(grammar.below())
    common = Named(grammar.choices.name("w"), definition.columns)
    twice = replace(grammar.below(), tables=(common, common, common, grammar.choices.pick(grammar.tables)))
    body = query(twice, kinds)
    rest = body.sql.replace("WITH", ",", 1) if body.sql.startswith("WITH") else body.sql
    return Query(f"WITH {common.name} AS ({definition.sql}) {rest}", body.columns)


_PARTS = Parts(query, joined, condition, null_test)
