"""The FROM clause: tables, subqueries, joins with conditions of any kind, lateral joins and lateral views."""

from __future__ import annotations

from typing import Final

from tests.oracle.choices import Choices
from tests.oracle.generate_aggregates import aggregate
from tests.oracle.generate_expressions import Column, Scope, any_value, columns_of, predicate, value
from tests.oracle.generate_grammar import Grammar, Source, aliased, link, plain, qualified, select_list, table_source
from tests.oracle.generate_orders import correlation, top_of
from tests.oracle.generate_tables import Kind

_JOINS: Final = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN")


def source(grammar: Grammar) -> Source:
    """A FROM clause."""
    choices = grammar.choices
    made = _using(grammar) if choices.once_in(6) else joined(grammar)
    return _with_lateral_view(choices, made) if choices.once_in(8) else made


def joined(grammar: Grammar) -> Source:
    """Tables, subqueries and joins of them."""
    choices, made = grammar.choices, _primary(grammar)
    for _ in range(choices.pick((0, 1, 0, 1, 2))):
        if grammar.depth > 0 and choices.once_in(6):
            made = _lateral(grammar, made)
        else:
            made = _join(grammar, made, _primary(grammar), choices.pick(_JOINS))
    return made


def _primary(grammar: Grammar) -> Source:
    choices = grammar.choices
    if grammar.depth > 0 and choices.once_in(4):
        return aliased(choices, grammar.parts.query(grammar.below(), None))
    if choices.once_in(12):
        alias = choices.name("v")
        return Source(
            f"(VALUES (1, 'a'), (2, NULL), (NULL, 'b'), (1, 'a')) {alias}(k, s)",
            (Column(f"{alias}.k", Kind.INTEGER), Column(f"{alias}.s", Kind.STRING)),
        )
    return table_source(grammar)


def _join(grammar: Grammar, left: Source, right: Source, kind: str) -> Source:
    both = left.scope + right.scope
    condition = "" if kind == "CROSS JOIN" else f" ON {_join_condition(grammar, left.scope, right.scope)}"
    scope = left.scope if "SEMI" in kind or "ANTI" in kind else both
    return Source(f"{left.sql} {kind} {right.sql}{condition}", scope)


def _join_condition(grammar: Grammar, left: Scope, right: Scope) -> str:
    choices = grammar.choices
    if grammar.depth > 0 and choices.once_in(8):
        # Spark takes a subquery in ON if it names one side only.
        side = choices.pick((left, right))
        subquery = choices.pick((grammar.parts.condition, grammar.parts.null_test))(grammar, side)
        return choices.pick((subquery, f"({subquery}) AND {link(choices, left, right, ('=', '<'))}"))
    if choices.once_in(6):
        return predicate(choices, left + right, 1)
    if choices.once_in(6):
        return f"{link(choices, left, right, ('<', '<='))} AND {link(choices, left, right, ('>', '>=', '='))}"
    equality = link(choices, left, right, ("=", "=", "=", "=", "<=>", "<", ">="))
    return f"{equality} AND {predicate(choices, left + right, 1)}" if choices.once_in(3) else equality


def _lateral(grammar: Grammar, left: Source) -> Source:
    """A join with a subquery that names columns of what stands before it: its first rows, some of them, or their groups."""
    choices, inner = grammar.choices, joined(grammar.below().below())
    where = f" WHERE {correlation(choices, inner.scope, left.scope)}" if plain(left.scope) else ""
    if choices.once_in(3):
        shown = (aggregate(choices, inner.scope), aggregate(choices, inner.scope))
        made = select_list(choices, shown, f"FROM {inner.sql}{where}")
    elif choices.once_in(3):
        made = select_list(
            choices, tuple(any_value(choices, inner.scope, 1) for _ in range(2)), f"FROM {inner.sql}{where}"
        )
    else:
        made = top_of(choices, inner.sql, where, inner.scope, None)
    alias = choices.name("l")
    scope = left.scope + qualified(alias, made.columns)
    forms = (
        f"{left.sql} JOIN LATERAL ({made.sql}) {alias}",
        f"{left.sql} LEFT JOIN LATERAL ({made.sql}) {alias}",
        f"{left.sql} CROSS JOIN LATERAL ({made.sql}) {alias}",
        f"{left.sql} LEFT JOIN LATERAL ({made.sql}) {alias} ON {link(choices, left.scope, scope, ('=', '<', '<='))}",
    )
    return Source(choices.pick(forms), scope)


def _using(grammar: Grammar) -> Source:
    """A join of two tables by the columns they share, which then have one unqualified name."""
    choices = grammar.choices
    left, right = choices.pick(grammar.tables), choices.pick(grammar.tables)
    kinds = {c.sql: c.kind for c in right.columns}
    shared = [c for c in left.columns if kinds.get(c.sql) is c.kind]
    if not shared or left.name.startswith("w"):
        return joined(grammar)
    used = choices.some(shared, 1, 2)
    aliases = choices.name("a"), choices.name("a")
    kind = choices.pick(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    names = [c.sql for c in used]
    # Without a qualifier they are not plain: inside a subquery the same name would be a column of its own.
    merged = tuple(Column(c.sql, c.kind, is_plain=False) for c in used)
    rest = (
        qualified(alias, tuple(c for c in t.columns if c.sql not in names))
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
