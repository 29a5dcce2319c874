"""Scalar SQL expressions over a typed scope: values of every kind, and predicates in three-valued logic.

Expressions that could fail in ANSI mode are guarded (``x / nullif(y, 0)``), because Spark does not say in which order, or
whether at all, it evaluates what a query does not need. ``may_fail`` makes the unguarded ones, for queries that need all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.oracle.choices import Choices
from tests.oracle.generate_functions import TEMPLATES, call
from tests.oracle.generate_tables import Kind


@dataclass(frozen=True, slots=True)
class Column:
    """Something that can stand in an expression; ``is_plain`` if it is the name of a column and nothing more."""

    sql: str
    kind: Kind
    is_plain: bool = True


Scope = tuple[Column, ...]


NUMBERS: Final = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.RATIO)
SUMMABLE: Final = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)
_COMPARABLE: Final = (*NUMBERS, Kind.EDGE, Kind.HUGE, Kind.EXTREME, Kind.LARGE)
_COMPARISONS: Final = ("=", "<", "<=", ">", ">=", "<>", "<=>")
LITERALS: Final = {
    Kind.INTEGER: ("0", "1", "2", "3", "-1", "CAST(2 AS BIGINT)", "CAST(NULL AS INT)"),
    Kind.DECIMAL: ("1.25", "0.50", "-0.75", "2.0", "CAST(1 AS DECIMAL(6,2))", "CAST(NULL AS DECIMAL(6,2))"),
    Kind.DOUBLE: ("1.125D", "0D", "-0.25D", "CAST(2 AS DOUBLE)", "CAST(NULL AS DOUBLE)"),
    Kind.RATIO: ("0.5D", "1D", "CAST(NULL AS DOUBLE)"),
    Kind.EDGE: ("double('inf')", "double('NaN')", "1e308D", "float('-inf')", "CAST(NULL AS DOUBLE)"),
    Kind.HUGE: ("1e200D", "0D", "double('inf')", "CAST(NULL AS DOUBLE)"),
    Kind.EXTREME: ("9223372036854775807", "CAST(-128 AS TINYINT)", "0", "CAST(NULL AS BIGINT)"),
    Kind.LARGE: ("4611686018427387904", "1L", "CAST(NULL AS BIGINT)"),
    Kind.WIDE: (
        "CAST('9999999999999999999999999999999999.9999' AS DECIMAL(38,4))",
        "CAST(0 AS DECIMAL(38,4))",
        "CAST(NULL AS DECIMAL(38,4))",
    ),
    Kind.STRING: ("'a'", "'b'", "''", "'ab'", "CAST(NULL AS STRING)"),
    Kind.DATE: ("DATE'2024-02-29'", "DATE'2024-03-01'", "CAST(NULL AS DATE)"),
    Kind.MOMENT: ("TIMESTAMP'2024-02-29 23:30:00 UTC'", "TIMESTAMP'2024-02-28'", "CAST(NULL AS TIMESTAMP)"),
    Kind.BOOLEAN: ("TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"),
}
"""The first of each kind is not NULL."""
_PATTERNS: Final = ("a%", "%b", "%a%", "_", "", "%", "a\\\\_b", "_,%")


def columns_of(scope: Scope, *kinds: Kind) -> Scope:
    """The columns of these kinds."""
    return tuple(c for c in scope if c.kind in kinds)


def value(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    """An expression of this kind: mostly a column, sometimes a literal, and combinations of both."""
    if depth > 0 and choices.once_in(2):
        return choices.pick((*_COMBINATIONS[kind], *_GENERIC))(choices, scope, kind, depth - 1)
    columns = columns_of(scope, kind)
    if columns and not choices.once_in(6):
        return choices.pick(columns).sql
    return choices.pick(LITERALS[kind])


def any_value(choices: Choices, scope: Scope, depth: int) -> Column:
    """An expression over the scope, of a kind that the scope has."""
    kind = choices.pick(scope).kind if scope else Kind.INTEGER
    return Column(value(choices, scope, kind, depth), kind, is_plain=False)


def predicate(choices: Choices, scope: Scope, depth: int) -> str:
    """A condition: comparisons, tests and their connectives, NULL in every place."""
    if depth > 0 and choices.once_in(2):
        return choices.pick(_CONNECTIVES)(choices, scope, depth - 1)
    return choices.pick(_TESTS)(choices, scope, depth)


def key(choices: Choices, scope: Scope) -> Column:
    """What one can group by: a column, or an expression of one. Never a bare literal, which would be a position."""
    column = choices.pick(scope)
    if not choices.once_in(3):
        return column
    other = choices.pick(LITERALS[column.kind])
    forms: dict[str, Kind] = {
        f"({column.sql} IS NULL)": Kind.BOOLEAN,
        f"coalesce({column.sql}, {other})": column.kind,
        f"CASE WHEN {predicate(choices, (column,), 0)} THEN {column.sql} END": column.kind,
    }
    match column.kind:
        case Kind.INTEGER:
            forms[f"({column.sql} % 2)"] = Kind.INTEGER
        case Kind.STRING:
            forms[f"upper({column.sql})"] = Kind.STRING
        case Kind.DATE:
            forms[f"month({column.sql})"] = Kind.INTEGER
        case Kind.MOMENT:
            forms[f"CAST({column.sql} AS DATE)"] = Kind.DATE
        case _:
            pass
    sql = choices.pick(list(forms))
    return Column(sql, forms[sql], is_plain=False)


def may_fail(choices: Choices, scope: Scope) -> str:
    """An expression that fails in ANSI mode on some rows, and only on them."""
    forms = []
    for c in scope:
        match c.kind:
            case Kind.INTEGER:
                forms += [
                    f"6 / {c.sql}",
                    f"7 % {c.sql}",
                    f"{c.sql} div ({c.sql} - 1)",
                    f"CAST({c.sql} + 2147483645 AS INT)",
                ]
                forms += [f"array(1, 2)[coalesce({c.sql}, 0)]", f"CAST(99999.5 * {c.sql} AS DECIMAL(6,1))"]
            case Kind.STRING:
                forms += [f"CAST({c.sql} AS INT)", f"CAST({c.sql} AS DATE)", f"CAST({c.sql} AS DOUBLE)"]
            case Kind.DECIMAL:
                forms += [f"1 / {c.sql}", f"CAST({c.sql} * 1000 AS DECIMAL(5,2))"]
            case Kind.EXTREME | Kind.LARGE:
                forms += [f"{c.sql} + 1", f"-{c.sql}", f"CAST({c.sql} AS INT)", f"{c.sql} * 2"]
            case Kind.WIDE:
                forms += [f"{c.sql} * 10", f"{c.sql} + {c.sql}", f"CAST({c.sql} AS DECIMAL(20,2))"]
            case Kind.EDGE | Kind.HUGE:
                forms += [f"CAST({c.sql} AS BIGINT)", f"1 / {c.sql}", f"CAST({c.sql} AS DECIMAL(38,4))"]
            case Kind.DOUBLE:
                forms += [f"1 / {c.sql}", f"CAST({c.sql} AS INT)", f"CAST({c.sql} * 100 AS TINYINT)"]
            case _:
                pass
    return choices.pick(forms)


# How values of each kind are combined. All take the kind, so that they can stand in one table.

_Combination = Callable[[Choices, Scope, Kind, int], str]


def _arithmetic(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    left, right = value(choices, scope, kind, depth), value(choices, scope, kind, 0)
    return f"({left} {choices.pick(('+', '-', '*'))} {right})"


def _with_integer(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    left, right = value(choices, scope, kind, depth), value(choices, scope, Kind.INTEGER, 0)
    return f"({left} {choices.pick(('+', '-', '*'))} {right})"


def _remainder(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    return f"({value(choices, scope, kind, depth)} % nullif({value(choices, scope, kind, 0)}, 0))"


def _integral_division(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    return f"({value(choices, scope, kind, depth)} div nullif({value(choices, scope, kind, 0)}, 0))"


def _quotient(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    operand = kind if kind is Kind.DECIMAL else choices.pick((Kind.INTEGER, Kind.DOUBLE))
    return f"({value(choices, scope, operand, depth)} / nullif({value(choices, scope, operand, 0)}, 0))"


def _unary(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    return f"{choices.pick(('-', 'abs'))}({value(choices, scope, kind, depth)})"


def _measured(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    """Integers out of other kinds."""
    text, date = value(choices, scope, Kind.STRING, depth), value(choices, scope, Kind.DATE, depth)
    other = value(choices, scope, Kind.DATE, 0)
    forms = (f"length({text})", f"instr({text}, 'b')", f"day({date})", f"datediff({date}, {other})")
    forms += (f"CAST({value(choices, scope, Kind.BOOLEAN, depth)} AS INT)",)
    return choices.pick((*forms, f"hour({value(choices, scope, Kind.MOMENT, depth)})"))


def _rounded(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    return f"round({value(choices, scope, kind, depth)}, {choices.pick((0, 1))})"


def _as_double(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    return f"CAST({value(choices, scope, Kind.INTEGER, depth)} AS DOUBLE)"


def _as_decimal(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    return f"CAST({value(choices, scope, Kind.INTEGER, depth)} AS DECIMAL(12,3))"


def _text(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    inner, other = value(choices, scope, kind, depth), value(choices, scope, kind, 0)
    forms = (f"upper({inner})", f"concat({inner}, {other})", f"({inner} || {other})", f"substring({inner}, 1, 2)")
    return choices.pick((*forms, f"trim({inner})", f"replace({inner}, ',', '-')"))


def _shown(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    shown = choices.pick((Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.DATE, Kind.BOOLEAN))
    return f"CAST({value(choices, scope, shown, 0)} AS STRING)"


def _moved_date(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    inner, days = value(choices, scope, kind, depth), value(choices, scope, Kind.INTEGER, 0)
    forms = (f"date_add({inner}, {choices.count(-1, 2)})", f"last_day({inner})", f"({inner} + INTERVAL 1 MONTH)")
    moment = value(choices, scope, Kind.MOMENT, 0)
    return choices.pick((*forms, f"date_sub({inner}, CAST({days} AS INT))", f"CAST({moment} AS DATE)"))


def _moved_moment(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    inner = value(choices, scope, kind, depth)
    return choices.pick(
        (f"date_trunc('HOUR', {inner})", f"date_trunc('MONTH', {inner})", f"({inner} - INTERVAL 1 DAY)")
    )


def _ratio_of_edges(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    """Whatever comes of it, NaN and the infinities included, is the same for the same row."""
    left, right = value(choices, scope, kind, depth), value(choices, scope, kind, 0)
    return f"({left} {choices.pick(('+', '-', '*'))} {right})"


def _truth(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    return f"({predicate(choices, scope, depth)})"


def _case(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    then, otherwise = value(choices, scope, kind, depth), value(choices, scope, kind, 0)
    tail = "" if choices.once_in(3) else f" ELSE {otherwise}"
    return f"CASE WHEN {predicate(choices, scope, depth)} THEN {then}{tail} END"


def _simple_case(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    subject = any_value(choices, scope, 0)
    when = value(choices, scope, subject.kind, 0)
    then, otherwise = value(choices, scope, kind, depth), value(choices, scope, kind, 0)
    return f"CASE {subject.sql} WHEN {when} THEN {then} ELSE {otherwise} END"


def _either(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    left, right = value(choices, scope, kind, depth), value(choices, scope, kind, 0)
    return f"{choices.pick(('coalesce', 'nullif', 'greatest', 'least', 'nvl'))}({left}, {right})"


def _function(choices: Choices, scope: Scope, kind: Kind, depth: int) -> str:
    """A call of one of many functions; most of those of text are computed by Spark's own code."""
    templates = TEMPLATES.get(kind)
    if templates is None:
        return _either(choices, scope, kind, depth)
    return call(choices.pick(templates), lambda argument: value(choices, scope, argument, 0))


_GENERIC: Final[tuple[_Combination, ...]] = (_case, _either, _simple_case, _function)
_COMBINATIONS: Final[dict[Kind, tuple[_Combination, ...]]] = {
    Kind.INTEGER: (_arithmetic, _measured, _remainder, _integral_division, _unary),
    Kind.DECIMAL: (_arithmetic, _with_integer, _quotient, _rounded, _as_decimal, _unary),
    Kind.DOUBLE: (_arithmetic, _with_integer, _as_double, _unary),
    Kind.RATIO: (_quotient,),
    Kind.EDGE: (_ratio_of_edges, _unary),
    Kind.HUGE: (),
    Kind.EXTREME: (),
    Kind.LARGE: (),
    Kind.WIDE: (),
    Kind.STRING: (_text, _shown),
    Kind.DATE: (_moved_date,),
    Kind.MOMENT: (_moved_moment,),
    Kind.BOOLEAN: (_truth,),
}

# Conditions


def _comparison(choices: Choices, scope: Scope, depth: int) -> str:
    left = any_value(choices, scope, depth)
    kind = choices.pick(_COMPARABLE) if left.kind in _COMPARABLE and choices.once_in(4) else left.kind
    return f"{left.sql} {choices.pick(_COMPARISONS)} {value(choices, scope, kind, depth)}"


def _null_test(choices: Choices, scope: Scope, depth: int) -> str:
    return f"{any_value(choices, scope, depth).sql} IS {choices.pick(('', 'NOT '))}NULL"


def _distinct_from(choices: Choices, scope: Scope, depth: int) -> str:
    left = any_value(choices, scope, 0)
    return f"{left.sql} IS {choices.pick(('', 'NOT '))}DISTINCT FROM {value(choices, scope, left.kind, 0)}"


def _between(choices: Choices, scope: Scope, depth: int) -> str:
    left = any_value(choices, scope, depth)
    low, high = (value(choices, scope, left.kind, 0) for _ in range(2))
    return f"{left.sql} {choices.pick(('', 'NOT '))}BETWEEN {low} AND {high}"


def _in_list(choices: Choices, scope: Scope, depth: int) -> str:
    left = any_value(choices, scope, depth)
    listed = [value(choices, scope, left.kind, 0) for _ in range(choices.count(1, 3))]
    return f"{left.sql} {choices.pick(('', 'NOT '))}IN ({', '.join(listed)})"


def _like(choices: Choices, scope: Scope, depth: int) -> str:
    text = value(choices, scope, Kind.STRING, depth)
    return f"{text} {choices.pick(('', 'NOT '))}LIKE '{choices.pick(_PATTERNS)}'"


def _truth_test(choices: Choices, scope: Scope, depth: int) -> str:
    operand = value(choices, scope, Kind.BOOLEAN, 0)
    return choices.pick((operand, f"{operand} IS TRUE", f"{operand} IS NOT FALSE", f"{operand} IS UNKNOWN"))


def _both(choices: Choices, scope: Scope, depth: int) -> str:
    left, right = (predicate(choices, scope, depth) for _ in range(2))
    return f"({left} {choices.pick(('AND', 'OR'))} {right})"


def _not(choices: Choices, scope: Scope, depth: int) -> str:
    return f"NOT ({predicate(choices, scope, depth)})"


_TESTS: Final = (
    _comparison,
    _comparison,
    _comparison,
    _null_test,
    _in_list,
    _between,
    _distinct_from,
    _like,
    _truth_test,
)
_CONNECTIVES: Final = (_both, _both, _not)
