"""Spark SQL queries over given tables: a grammar of small functions, each with a typed scope of what it may name.

A query is built from the outside in: a form (rows, groups, a set operation, …), its FROM clause, which gives the scope, and
expressions over that. Subqueries and window functions are columns like any other that a scope may be extended with, so they
turn up inside OR, CASE and arithmetic too. Nearly all queries are valid, and all have one answer: every LIMIT has a total
order, and nothing compares or sums what loses digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hypothesis import strategies as st

from tests.oracle.generate_aggregates import aggregate, approximate_aggregate, window_function
from tests.oracle.generate_expressions import (
    LITERALS,
    Choices,
    Column,
    Scope,
    any_value,
    columns_of,
    key,
    may_fail,
    predicate,
    value,
)
from tests.oracle.generate_tables import Kind, TableData, kind_of

_JOINS: Final = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN")
_SET_OPERATIONS: Final = ("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")


@dataclass(frozen=True, slots=True)
class Named:
    """A table, common table expression or subquery: its columns by name."""

    name: str
    columns: Scope


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a part of a query is made with: Hypothesis' choices, the tables in reach, and how deep it may still nest."""

    choices: Choices
    tables: tuple[Named, ...]
    depth: int
    is_top: bool = False

    def below(self) -> Grammar:
        """For a part of this part."""
        return replace(self, depth=self.depth - 1, is_top=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A query and its output columns."""

    sql: str
    columns: Scope


@dataclass(frozen=True, slots=True)
class Source:
    """A FROM clause and the columns it offers."""

    sql: str
    scope: Scope


@st.composite
def queries(draw: st.DrawFn, tables: Sequence[TableData], depth: int = 2) -> str:
    """The text of a query that has an answer on whatever rows the tables hold."""
    return query(_grammar(draw, tables, depth)).sql


@st.composite
def failing_queries(draw: st.DrawFn, tables: Sequence[TableData]) -> str:
    """The text of a query that may fail, depending on the rows, and then must."""
    grammar = _grammar(draw, tables, 0)
    choices, source = grammar.choices, _table(grammar)
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


def _grammar(draw: st.DrawFn, tables: Sequence[TableData], depth: int) -> Grammar:
    known = tuple(Named(t.name, tuple(Column(f.name, kind_of(f.type)) for f in t.fields)) for t in tables)
    return Grammar(Choices(draw), known, depth, is_top=True)


# Queries


def query(grammar: Grammar, kinds: Sequence[Kind] | None = None) -> Query:
    """A query; its output has these kinds, if any are asked for."""
    simple = (_select_rows, _select_groups, _select_distinct)
    nested = (_select_grouping_sets, _set_operation, _with_common_table, _top)
    return grammar.choices.pick((*simple, *nested) if grammar.depth > 0 else simple)(grammar, kinds)


def _select_rows(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    choices, source = grammar.choices, _source(grammar)
    where = _where(grammar, source.scope)
    scope = _with_subqueries(grammar, source.scope)
    if grammar.depth > 0 and choices.once_in(4):
        scope += tuple(window_function(choices, source.scope) for _ in range(choices.count(1, 2)))
    return _select(grammar, scope, kinds, f"FROM {source.sql}{where}")


def _select_distinct(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    below = replace(grammar, is_top=False)
    inner = grammar.choices.pick((_select_rows, _select_groups))(below, kinds)
    return Query(inner.sql.replace("SELECT", "SELECT DISTINCT", 1), inner.columns)


def _select_groups(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    choices, source = grammar.choices, _source(grammar)
    keys = tuple(key(choices, source.scope) for _ in range(choices.count(0, 3)))
    clause = f" GROUP BY {', '.join(k.sql for k in keys)}" if keys else ""
    return _select_of_groups(grammar, source, keys, clause, kinds)


def _select_grouping_sets(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    choices, source = grammar.choices, _source(grammar)
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
    where = _where(grammar, source.scope)
    group = keys + tuple(aggregate(choices, source.scope) for _ in range(choices.count(1, 3)))
    having = f" HAVING {_condition(grammar, group)}" if choices.once_in(3) else ""
    scope = group
    if grammar.depth > 0 and choices.once_in(6):
        # Spark wants a correlated scalar subquery over groups to be one of the keys, and without keys its EXISTS over no
        # rows is NULL in a column that it calls not nullable.
        has_test = keys and choices.once_in(2)
        scope += (_truth_subquery(grammar, group) if has_test else _scalar_subquery(grammar, ()),)
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
    outputs = tuple(Column(choices.name("c"), c.kind) for c in listed)
    items = [f"{c.sql} AS {o.sql}" for c, o in zip(listed, outputs, strict=True)]
    items += [f"{sql} AS {choices.name('z')}" for sql in extra]
    return Query(f"SELECT {', '.join(items)} {tail}", outputs)


def _set_operation(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    left = query(grammar.below(), kinds)
    right = query(grammar.below(), [c.kind for c in left.columns])
    return Query(f"({left.sql}) {grammar.choices.pick(_SET_OPERATIONS)} ({right.sql})", left.columns)


def _with_common_table(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    definition = query(grammar.below())
    common = Named(grammar.choices.name("w"), definition.columns)
    twice = replace(grammar.below(), tables=(common, common, common, grammar.choices.pick(grammar.tables)))
    body = query(twice, kinds)
    rest = body.sql.replace("WITH", ",", 1) if body.sql.startswith("WITH") else body.sql
    return Query(f"WITH {common.name} AS ({definition.sql}) {rest}", body.columns)


def _top(grammar: Grammar, kinds: Sequence[Kind] | None) -> Query:
    """ORDER BY and LIMIT over all output columns, so that ties are equal rows."""
    choices, inner = grammar.choices, query(grammar.below(), kinds)
    order = ", ".join(
        f"{c.sql}{choices.pick(('', ' DESC', ' ASC NULLS LAST', ' DESC NULLS FIRST'))}"
        for c in choices.some(inner.columns, len(inner.columns), len(inner.columns))
    )
    limit = choices.pick((" LIMIT 2", " LIMIT 4 OFFSET 1", " OFFSET 2", " LIMIT 0", " LIMIT 100"))
    return Query(f"SELECT * FROM ({inner.sql}) {choices.name('q')} ORDER BY {order}{limit}", inner.columns)


# FROM


def _source(grammar: Grammar) -> Source:
    choices = grammar.choices
    source = _using(grammar) if choices.once_in(6) else _joined(grammar)
    return _with_lateral_view(choices, source) if choices.once_in(8) else source


def _joined(grammar: Grammar) -> Source:
    choices, source = grammar.choices, _primary(grammar)
    for _ in range(choices.pick((0, 1, 0, 1, 2))):
        source = _join(choices, source, _primary(grammar), choices.pick(_JOINS))
    return source


def _primary(grammar: Grammar) -> Source:
    choices = grammar.choices
    if grammar.depth > 0 and choices.once_in(4):
        return _aliased(choices, query(grammar.below()))
    if choices.once_in(12):
        alias = choices.name("v")
        return Source(
            f"(VALUES (1, 'a'), (2, NULL), (NULL, 'b'), (1, 'a')) {alias}(k, s)",
            (Column(f"{alias}.k", Kind.INTEGER), Column(f"{alias}.s", Kind.STRING)),
        )
    return _table(grammar)


def _table(grammar: Grammar) -> Source:
    table, alias = grammar.choices.pick(grammar.tables), grammar.choices.name("a")
    return Source(f"{table.name} {alias}", _qualified(alias, table.columns))


def _aliased(choices: Choices, inner: Query) -> Source:
    alias = choices.name("q")
    return Source(f"({inner.sql}) {alias}", _qualified(alias, inner.columns))


def _qualified(alias: str, columns: Scope) -> Scope:
    return tuple(Column(f"{alias}.{c.sql}", c.kind) for c in columns)


def _join(choices: Choices, left: Source, right: Source, kind: str) -> Source:
    both = left.scope + right.scope
    condition = "" if kind == "CROSS JOIN" else f" ON {_join_condition(choices, left.scope, right.scope)}"
    scope = left.scope if "SEMI" in kind or "ANTI" in kind else both
    return Source(f"{left.sql} {kind} {right.sql}{condition}", scope)


def _join_condition(choices: Choices, left: Scope, right: Scope) -> str:
    if choices.once_in(6):
        return predicate(choices, left + right, 1)
    equality = _link(choices, left, right, ("=", "=", "=", "=", "<=>", "<", ">="))
    return f"{equality} AND {predicate(choices, left + right, 1)}" if choices.once_in(3) else equality


def _link(choices: Choices, left: Scope, right: Scope, operators: Sequence[str]) -> str:
    """A comparison between a column of each side, of the same kind if they have one in common."""
    mine = choices.pick(left)
    partners = columns_of(right, mine.kind)
    theirs = choices.pick(partners).sql if partners else value(choices, right, mine.kind, 1)
    return f"{mine.sql} {choices.pick(operators)} {theirs}"


def _using(grammar: Grammar) -> Source:
    """A join of two tables by the columns they share, which then have one unqualified name."""
    choices = grammar.choices
    left, right = choices.pick(grammar.tables), choices.pick(grammar.tables)
    kinds = {c.sql: c.kind for c in right.columns}
    shared = [c for c in left.columns if kinds.get(c.sql) is c.kind]
    if not shared or left.name.startswith("w"):
        return _joined(grammar)
    used = choices.some(shared, 1, 2)
    aliases = choices.name("a"), choices.name("a")
    kind = choices.pick(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    names = [c.sql for c in used]
    # Without a qualifier they are not plain: inside a subquery the same name would be a column of its own.
    merged = tuple(Column(c.sql, c.kind, is_plain=False) for c in used)
    rest = (
        _qualified(alias, tuple(c for c in t.columns if c.sql not in names))
        for alias, t in zip(aliases, (left, right), strict=True)
    )
    sql = f"{left.name} {aliases[0]} {kind} {right.name} {aliases[1]} USING ({', '.join(names)})"
    return Source(sql, sum(rest, merged))


def _with_lateral_view(choices: Choices, source: Source) -> Source:
    alias, name = choices.name("l"), choices.name("e")
    outer = choices.pick(("", "OUTER "))
    texts, numbers = columns_of(source.scope, Kind.STRING), columns_of(source.scope, Kind.INTEGER)
    if texts and (not numbers or choices.once_in(2)):
        array, kind = f"split({choices.pick(texts).sql}, ',')", Kind.STRING
    else:
        items = [value(choices, source.scope, Kind.INTEGER, 0) for _ in range(choices.count(1, 3))]
        array, kind = f"array({', '.join(items)})", Kind.INTEGER
    if choices.once_in(3):
        position = choices.name("p")
        view = f"LATERAL VIEW {outer}posexplode({array}) {alias} AS {position}, {name}"
        added = (Column(f"{alias}.{position}", Kind.INTEGER), Column(f"{alias}.{name}", kind))
        return Source(f"{source.sql} {view}", source.scope + added)
    view = f"LATERAL VIEW {outer}explode({array}) {alias} AS {name}"
    return Source(f"{source.sql} {view}", (*source.scope, Column(f"{alias}.{name}", kind)))


# WHERE and HAVING


def _where(grammar: Grammar, scope: Scope) -> str:
    return "" if grammar.choices.once_in(3) else f" WHERE {_condition(grammar, scope)}"


def _condition(grammar: Grammar, scope: Scope) -> str:
    """A predicate, subqueries as its conjuncts, or both mixed in any way."""
    choices = grammar.choices
    if grammar.depth == 0 or choices.once_in(2):
        return predicate(choices, scope, 2)
    if choices.once_in(2):
        return predicate(choices, _with_subqueries(grammar, scope, at_least=1), 2)
    test = choices.pick((_exists, _in, _in_pair))(grammar, scope)
    other = predicate(choices, scope, 1)
    return choices.pick((test, f"NOT {test}", f"{test} AND {other}", f"({test} OR {other})"))


# Subqueries


def _with_subqueries(grammar: Grammar, scope: Scope, at_least: int = 0) -> Scope:
    """The scope and perhaps subqueries as further columns."""
    choices = grammar.choices
    if grammar.depth == 0 or (at_least == 0 and not choices.once_in(5)):
        return scope
    forms = (_scalar_subquery, _truth_subquery)
    return scope + tuple(choices.pick(forms)(grammar, scope) for _ in range(choices.count(1, 2)))


def _scalar_subquery(grammar: Grammar, outer: Scope) -> Column:
    choices, source = grammar.choices, _joined(grammar.below())
    call = aggregate(choices, source.scope)
    result = choices.pick((call.sql, call.sql, f"coalesce({call.sql}, {value(choices, (), call.kind, 0)})"))
    where = _correlated(grammar, source.scope, outer)
    return Column(f"(SELECT {result} FROM {source.sql}{where})", call.kind, is_plain=False)


def _truth_subquery(grammar: Grammar, outer: Scope) -> Column:
    """EXISTS or IN as a value, and never NULL.

    Where IN is NULL, Spark has NULL or FALSE, depending on what its optimizer has rewritten before; only as a condition,
    where both are the same, is it well defined.
    """
    form = grammar.choices.pick((_exists, _in_without_nulls))
    return Column(form(grammar, outer), Kind.BOOLEAN, is_plain=False)


def _exists(grammar: Grammar, outer: Scope) -> str:
    choices, source = grammar.choices, _joined(grammar.below())
    where = _correlated(grammar, source.scope, outer)
    tail = _grouped_tail(choices, source.scope) if choices.once_in(5) else ""
    return f"({choices.pick(('', 'NOT '))}EXISTS (SELECT 1 FROM {source.sql}{where}{tail}))"


def _grouped_tail(choices: Choices, scope: Scope) -> str:
    column = choices.pick(scope).sql
    return f" GROUP BY {column} HAVING {predicate(choices, (aggregate(choices, scope),), 0)}"


def _in(grammar: Grammar, outer: Scope) -> str:
    choices = grammar.choices
    operand = any_value(choices, tuple(c for c in outer if c.is_plain), 1)
    negation = choices.pick(("", "NOT "))
    if choices.once_in(3):
        inner = query(replace(grammar.below(), depth=0), [operand.kind]).sql
        return f"({operand.sql} {negation}IN ({inner}))"
    source = _joined(grammar.below())
    column = value(choices, source.scope, operand.kind, 0)
    where = _correlated(grammar, source.scope, outer)
    return f"({operand.sql} {negation}IN (SELECT {column} FROM {source.sql}{where}))"


def _in_without_nulls(grammar: Grammar, outer: Scope) -> str:
    choices, source = grammar.choices, _joined(grammar.below())
    operand = any_value(choices, tuple(c for c in outer if c.is_plain), 1)
    inner = value(choices, source.scope, operand.kind, 0)
    default = LITERALS[operand.kind][0]
    where = _correlated(grammar, source.scope, outer)
    listed = f"SELECT coalesce({inner}, {default}) FROM {source.sql}{where}"
    return f"(coalesce({operand.sql}, {default}) {choices.pick(('', 'NOT '))}IN ({listed}))"


def _in_pair(grammar: Grammar, outer: Scope) -> str:
    choices, source = grammar.choices, _table(grammar)
    plain = tuple(c for c in outer if c.is_plain)
    operands = [any_value(choices, plain, 0) for _ in range(2)]
    columns = [value(choices, source.scope, o.kind, 0) for o in operands]
    negation = choices.pick(("", "NOT "))
    where = _correlated(grammar, source.scope, outer)
    return (
        f"(({operands[0].sql}, {operands[1].sql}) {negation}IN (SELECT {', '.join(columns)} FROM {source.sql}{where}))"
    )


def _correlated(grammar: Grammar, inner: Scope, outer: Scope) -> str:
    """The WHERE clause of a subquery: links to the query around it, and conditions of its own."""
    choices = grammar.choices
    plain = tuple(c for c in outer if c.is_plain)
    conjuncts = []
    if plain and not choices.once_in(4):
        conjuncts.append(_link(choices, inner, plain, ("=", "=", "=", "<", ">=", "<>", "<=>")))
        if choices.once_in(4):
            conjuncts.append(_link(choices, inner, plain, ("=", "<", ">")))
    if choices.once_in(2):
        conjuncts.append(_condition(grammar.below(), inner) if grammar.depth > 1 else predicate(choices, inner, 1))
    return f" WHERE {' AND '.join(f'({c})' for c in conjuncts)}" if conjuncts else ""
