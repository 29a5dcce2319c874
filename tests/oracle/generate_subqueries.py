"""Conditions and subqueries: EXISTS, IN and scalar ones, correlated or not, with windows, groups and set operations inside."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.oracle.choices import Choices
from tests.oracle.generate_aggregates import aggregate, window_function
from tests.oracle.generate_expressions import LITERALS, Column, Scope, any_value, predicate, value
from tests.oracle.generate_grammar import Grammar, link, plain, table_source
from tests.oracle.generate_orders import first_value, top_of
from tests.oracle.generate_tables import Kind

SET_OPERATIONS: Final = ("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")


def where_clause(grammar: Grammar, scope: Scope) -> str:
    """A WHERE clause, or none."""
    return "" if grammar.choices.once_in(2) else f" WHERE {condition(grammar, scope)}"


def condition(grammar: Grammar, scope: Scope) -> str:
    """A predicate, subqueries as its conjuncts, or both mixed in any way."""
    choices = grammar.choices
    if grammar.depth == 0 or choices.once_in(2):
        return predicate(choices, scope, 2)
    if choices.once_in(2):
        return predicate(choices, with_subqueries(grammar, scope, at_least=1), 2)
    if choices.once_in(8):
        return null_test(grammar, scope)
    test = choices.pick((_exists, _in, _in_pair))(grammar, scope)
    other = predicate(choices, scope, 1)
    return choices.pick((test, f"NOT {test}", f"{test} AND {other}", f"({test} OR {other})"))


def null_test(grammar: Grammar, scope: Scope) -> str:
    """Whether an IN is NULL."""
    return f"{_in(grammar, scope)} IS {grammar.choices.pick(('', 'NOT '))}NULL"


def with_subqueries(grammar: Grammar, scope: Scope, at_least: int = 0) -> Scope:
    """The scope and perhaps subqueries as further columns."""
    choices = grammar.choices
    if grammar.depth == 0 or (at_least == 0 and not choices.once_in(3)):
        return scope
    forms = (scalar_subquery, truth_subquery, first_value)
    return scope + tuple(choices.pick(forms)(grammar, scope) for _ in range(choices.count(1, 2)))


def scalar_subquery(grammar: Grammar, outer: Scope) -> Column:
    """An aggregate as a value."""
    choices, source = grammar.choices, grammar.parts.joined(grammar.below())
    call = aggregate(choices, source.scope)
    result = choices.pick((call.sql, call.sql, f"coalesce({call.sql}, {value(choices, (), call.kind, 0)})"))
    where = _correlated(grammar, source.scope, outer)
    return Column(f"(SELECT {result} FROM {source.sql}{where})", call.kind, is_plain=False)


def truth_subquery(grammar: Grammar, outer: Scope) -> Column:
    """EXISTS or IN as a value, and never NULL.

    Where IN is NULL, Spark has NULL or FALSE, depending on what its optimizer has rewritten before; only as a condition,
    where both are the same, is it well defined.
    """
    form = grammar.choices.pick((_exists, _in_without_nulls))
    return Column(form(grammar, outer), Kind.BOOLEAN, is_plain=False)


def _exists(grammar: Grammar, outer: Scope) -> str:
    choices, source = grammar.choices, grammar.parts.joined(grammar.below())
    where = _correlated(grammar, source.scope, outer)
    negation = choices.pick(("", "NOT "))
    match choices.count(1, 10):
        case 1 | 2:
            inner = f"SELECT 1 FROM {source.sql}{where}{_grouped_tail(choices, source.scope)}"
        case 3:
            inner = f"SELECT {window_function(choices, source.scope).sql} FROM {source.sql}{where}"
        case 4:
            inner = _combined(grammar, f"SELECT {source.scope[0].sql} FROM {source.sql}{where}", source.scope[0].kind)
        case 5:
            inner = top_of(choices, source.sql, where, source.scope, None).sql
        case _:
            inner = f"SELECT 1 FROM {source.sql}{where}"
    return f"({negation}EXISTS ({inner}))"


def _combined(grammar: Grammar, left: str, kind: Kind) -> str:
    """The rows of a subquery and those of another, which is not correlated."""
    right = grammar.parts.query(replace(grammar.below(), depth=0), [kind]).sql
    return f"({left}) {grammar.choices.pick(SET_OPERATIONS)} ({right})"


def _grouped_tail(choices: Choices, scope: Scope) -> str:
    column = choices.pick(scope).sql
    return f" GROUP BY {column} HAVING {predicate(choices, (aggregate(choices, scope),), 0)}"


def _in(grammar: Grammar, outer: Scope) -> str:
    choices = grammar.choices
    operand = any_value(choices, plain(outer), 1)
    negation = choices.pick(("", "NOT "))
    if choices.once_in(3):
        inner = grammar.parts.query(replace(grammar.below(), depth=0), [operand.kind]).sql
        return f"({operand.sql} {negation}IN ({inner}))"
    source = grammar.parts.joined(grammar.below())
    column = value(choices, source.scope, operand.kind, 0)
    where = _correlated(grammar, source.scope, outer)
    match choices.count(1, 8):
        case 1:
            inner = _combined(grammar, f"SELECT {column} FROM {source.sql}{where}", operand.kind)
        case 2:
            inner = top_of(choices, source.sql, where, source.scope, [operand.kind]).sql
        case 3:
            windows = [c for c in (window_function(choices, source.scope) for _ in range(3)) if c.kind is operand.kind]
            shown = windows[0].sql if windows else column
            inner = f"SELECT {shown} FROM {source.sql}{where}"
        case _:
            inner = f"SELECT {column} FROM {source.sql}{where}"
    return f"({operand.sql} {negation}IN ({inner}))"


def _in_without_nulls(grammar: Grammar, outer: Scope) -> str:
    choices, source = grammar.choices, grammar.parts.joined(grammar.below())
    operand = any_value(choices, plain(outer), 1)
    inner = value(choices, source.scope, operand.kind, 0)
    default = LITERALS[operand.kind][0]
    where = _correlated(grammar, source.scope, outer)
    listed = f"SELECT coalesce({inner}, {default}) FROM {source.sql}{where}"
    return f"(coalesce({operand.sql}, {default}) {choices.pick(('', 'NOT '))}IN ({listed}))"


def _in_pair(grammar: Grammar, outer: Scope) -> str:
    choices, source = grammar.choices, table_source(grammar)
    named = plain(outer)
    operands = [any_value(choices, named, 0) for _ in range(2)]
    columns = [value(choices, source.scope, o.kind, 0) for o in operands]
    negation = choices.pick(("", "NOT "))
    where = _correlated(grammar, source.scope, outer)
    return (
        f"(({operands[0].sql}, {operands[1].sql}) {negation}IN (SELECT {', '.join(columns)} FROM {source.sql}{where}))"
    )


def _correlated(grammar: Grammar, inner: Scope, outer: Scope) -> str:
    """The WHERE clause of a subquery: links to the query around it, and conditions of its own."""
    choices = grammar.choices
    named = plain(outer)
    conjuncts = []
    if named and not choices.once_in(4):
        conjuncts.append(link(choices, inner, named, ("=", "=", "=", "<", ">=", "<>", "<=>")))
        if choices.once_in(4):
            conjuncts.append(link(choices, inner, named, ("=", "<", ">")))
    if choices.once_in(2):
        conjuncts.append(condition(grammar.below(), inner) if grammar.depth > 1 else predicate(choices, inner, 1))
    return f" WHERE {' AND '.join(f'({c})' for c in conjuncts)}" if conjuncts else ""
