"""Queries of the shapes that have a way of their own through the planner.

Cycles and paths of joins, nested aggregates that compare in order, pivots, time windows, and recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.oracle.choices import Choices
from tests.oracle.generate_aggregates import aggregate
from tests.oracle.generate_expressions import LITERALS, SUMMABLE, Column, Scope, any_value, columns_of, predicate, value
from tests.oracle.generate_grammar import Grammar, Named, Query, Source, link, qualified, select_list
from tests.oracle.generate_tables import Kind

_ORDERS: Final = ("<", "<=", ">", ">=")
_ORDERED: Final = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.DATE, Kind.STRING, Kind.MOMENT)


def select_shape(grammar: Grammar) -> Query | None:
    """A query of one of the shapes, or None where no table has the columns for it."""
    return grammar.choices.pick(_SHAPES)(grammar)


def _cycle(grammar: Grammar) -> Query | None:
    """A ring or a path of tables, each joined with the next by integers, summed or listed."""
    choices = grammar.choices
    wide = [t for t in grammar.tables if len(columns_of(t.columns, Kind.INTEGER)) >= 2]
    if not wide:
        return None
    atoms = [_aliased(choices, choices.pick(wide)) for _ in range(choices.pick((3, 3, 3, 4)))]
    ends = [choices.some(columns_of(atom.scope, Kind.INTEGER), 2, 2) for atom in atoms]
    is_ring = not choices.once_in(4)
    links = [f"{ends[i][1].sql} = {ends[i + 1][0].sql}" for i in range(len(atoms) - 1)]
    links += [f"{ends[-1][1].sql} = {ends[0][0].sql}"] if is_ring else []
    links += [predicate(choices, choices.pick(atoms).scope, 0)] if choices.once_in(4) else []
    scope = sum((atom.scope for atom in atoms), ())
    tail = f"FROM {', '.join(atom.sql for atom in atoms)} WHERE {' AND '.join(links)}"
    if choices.once_in(5):
        return select_list(choices, [end[0] for end in ends], tail)
    return _summed(choices, scope, [end[0] for end in ends], tail)


def _nested(grammar: Grammar) -> Query | None:
    """An aggregate of rows for which aggregates over rows before or after them compare with a value."""
    choices = grammar.choices
    outer = _aliased(choices, choices.pick(grammar.tables))
    tests = [t for t in (_nested_test(grammar, outer.scope) for _ in range(choices.pick((1, 1, 2)))) if t is not None]
    if not tests:
        return None
    if choices.once_in(4):
        tests.append(predicate(choices, outer.scope, 0))
    tail = f"FROM {outer.sql} WHERE {' AND '.join(tests)}"
    if choices.once_in(5):
        return select_list(choices, outer.scope, tail)
    return _summed(choices, outer.scope, outer.scope, tail)


def _nested_test(grammar: Grammar, outer: Scope) -> str | None:
    choices = grammar.choices
    inner = _aliased(choices, choices.pick(grammar.tables))
    pairs = [(a, b) for a in columns_of(inner.scope, *_ORDERED) for b in columns_of(outer, a.kind)]
    if not pairs:
        return None
    mine, theirs = choices.pick(pairs)
    compared = value(choices, (mine,), mine.kind, 1) if choices.once_in(4) else mine.sql
    where = [f"{compared} {choices.pick(_ORDERS)} {theirs.sql}"]
    where += [link(choices, inner.scope, outer, ("=",))] if choices.once_in(3) else []
    where += [predicate(choices, inner.scope, 0)] if choices.once_in(4) else []
    numbers = columns_of(inner.scope, *SUMMABLE)
    number = choices.pick(numbers) if numbers else Column("1", Kind.INTEGER)
    call = choices.pick(("sum", "sum", "count", "avg", "min", "max"))
    nested = f"(SELECT {call}({number.sql}) FROM {inner.sql} WHERE {' AND '.join(where)})"
    total = f"(SELECT sum({number.sql}) FROM {inner.sql})"
    against = choices.pick(
        (total, f"0.25 * {total}", choices.pick(LITERALS[number.kind]), any_value(choices, outer, 0).sql)
    )
    if against in {c.sql for c in outer if c.kind not in SUMMABLE}:
        against = "1"
    sides = choices.shuffled((nested, against))
    return f"{sides[0]} {choices.pick((*_ORDERS, '=', '<>'))} {sides[1]}"


def _pivot(grammar: Grammar) -> Query | None:
    choices, table = grammar.choices, grammar.choices.pick(grammar.tables)
    numbers = columns_of(table.columns, *SUMMABLE)
    if len(table.columns) < 3 or not numbers:
        return None
    summed = choices.pick(numbers)
    spread = choices.pick(
        [c for c in columns_of(table.columns, Kind.INTEGER, Kind.STRING, Kind.BOOLEAN) if c != summed] or [summed]
    )
    keys = choices.some([c for c in table.columns if c not in (summed, spread)], 1, 2)
    if spread == summed or not keys:
        return None
    values = choices.some([v for v in LITERALS[spread.kind] if "CAST" not in v], 2, 3)
    names = [choices.name("v") for _ in values]
    calls = {
        choices.name("f"): f"{choices.pick(('sum', 'max', 'count'))}({summed.sql})" for _ in range(choices.count(1, 2))
    }
    listed = ", ".join(c.sql for c in (*keys, spread, summed))
    aggregates = ", ".join(f"{sql} AS {name}" for name, sql in calls.items())
    marks = ", ".join(f"{v} AS {n}" for v, n in zip(values, names, strict=True))
    text = f"(SELECT {listed} FROM {table.name} ) PIVOT ({aggregates} FOR {spread.sql} IN ({marks}))"
    made = [n if len(calls) == 1 else f"{n}_{f}" for n in names for f in calls]
    return select_list(choices, [*keys, *(Column(name, summed.kind) for name in made)], f"FROM {text}")


def _time_windows(grammar: Grammar) -> Query | None:
    """Groups by tumbling or sliding windows of time, or by sessions."""
    choices = grammar.choices
    timed = [t for t in grammar.tables if columns_of(t.columns, Kind.MOMENT)]
    if not timed:
        return None
    source = _aliased(choices, choices.pick(timed))
    time = choices.pick(columns_of(source.scope, Kind.MOMENT)).sql
    calls = (f"window({time}, '1 hour')", f"window({time}, '1 day', '12 hours')", f"session_window({time}, '2 hours')")
    call = choices.pick(calls)
    name = call.partition("(")[0]
    keys = [choices.pick(source.scope)] if choices.once_in(2) else []
    ends = [Column(f"{name}.start", Kind.MOMENT, is_plain=False), Column(f"{name}.end", Kind.MOMENT, is_plain=False)]
    answers = [aggregate(choices, source.scope) for _ in range(choices.count(1, 2))]
    group = ", ".join((call, *(k.sql for k in keys)))
    return select_list(choices, [*keys, *ends, *answers], f"FROM {source.sql} GROUP BY {group}")


def _recursive(grammar: Grammar) -> Query | None:
    """What is reached from some values along the rows of a table, at most three steps away."""
    choices = grammar.choices
    wide = [t for t in grammar.tables if len(columns_of(t.columns, Kind.INTEGER)) >= 2]
    if not wide:
        return None
    first, edges = _aliased(choices, choices.pick(wide)), _aliased(choices, choices.pick(wide))
    start = choices.pick(columns_of(first.scope, Kind.INTEGER)).sql
    here, there = (c.sql for c in choices.some(columns_of(edges.scope, Kind.INTEGER), 2, 2))
    name = choices.name("r")
    where = f" WHERE {predicate(choices, first.scope, 0)}" if choices.once_in(2) else ""
    step = f"SELECT CAST({there} AS BIGINT), {name}.d + 1 FROM {name} JOIN {edges.sql} ON {here} = {name}.n WHERE {name}.d < 3"
    scope = (Column("n", Kind.INTEGER), Column("d", Kind.INTEGER))
    body = choices.pick(
        (
            select_list(choices, scope, f"FROM {name}"),
            select_list(choices, [Column("d", Kind.INTEGER), aggregate(choices, scope)], f"FROM {name} GROUP BY d"),
            select_list(choices, scope[:1], f"FROM {name} WHERE {predicate(choices, scope, 0)}"),
        )
    )
    text = (
        f"WITH RECURSIVE {name}(n, d) AS (SELECT CAST({start} AS BIGINT), 0 FROM {first.sql}{where} UNION ALL {step})"
    )
    return Query(f"{text} {body.sql}", body.columns)


def _unpivot(grammar: Grammar) -> Query | None:
    choices, table = grammar.choices, grammar.choices.pick(grammar.tables)
    integers = columns_of(table.columns, Kind.INTEGER)
    rest = [c for c in table.columns if c not in integers]
    if len(integers) < 2:
        return None
    nulls = choices.pick(("", "INCLUDE NULLS ", "EXCLUDE NULLS "))
    text = f"{table.name} UNPIVOT {nulls}(u FOR c IN ({', '.join(c.sql for c in integers)}))"
    scope = (*rest, Column("u", Kind.INTEGER), Column("c", Kind.STRING))
    return (
        _summed(choices, scope, scope, f"FROM {text}")
        if choices.once_in(2)
        else select_list(choices, scope, f"FROM {text}")
    )


def _summed(choices: Choices, scope: Scope, keys: list[Column] | Scope, tail: str) -> Query:
    chosen = choices.some(keys, 1, 2) if choices.once_in(3) else []
    answers = [aggregate(choices, scope) for _ in range(choices.count(1, 2))]
    group = f" GROUP BY {', '.join(k.sql for k in chosen)}" if chosen else ""
    return select_list(choices, [*chosen, *answers], f"{tail}{group}")


def _aliased(choices: Choices, table: Named) -> Source:
    alias = choices.name("a")
    return Source(f"{table.name} {alias}", qualified(alias, table.columns))


_SHAPES: Final[tuple[Callable[[Grammar], Query | None], ...]] = (
    _cycle,
    _cycle,
    _nested,
    _nested,
    _pivot,
    _time_windows,
    _recursive,
    _unpivot,
)
