"""Aggregates and window functions, as columns that a SELECT list may use.

Only what is a function of the bag: windows that number rows have a total order, and what loses digits (variances,
covariances, sums of ratios) is kept apart, because nothing may compare it.
"""

from __future__ import annotations

from typing import Final

from tests.oracle.choices import Choices
from tests.oracle.generate_expressions import (
    NUMBERS,
    SUMMABLE,
    Column,
    Scope,
    any_value,
    columns_of,
    predicate,
    value,
)
from tests.oracle.generate_tables import Kind

_APPROXIMATE: Final = ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev")
_APPROXIMATE_OF_TWO: Final = ("covar_pop", "covar_samp", "corr")
_OF_TRUTHS: Final = ("bool_and", "bool_or", "every", "any", "count_if")
_FRAMES: Final = (
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
)
_RANGES: Final = (
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING",
)


def aggregate(choices: Choices, scope: Scope) -> Column:
    """An aggregate whose value is exact, over expressions of the scope."""
    forms = (_count, _sum, _extreme, _sum, _extreme, _of_truths, _count_distinct, _sum_distinct, _overflowing, _ordered)
    call = choices.pick(forms)(choices, scope)
    condition = f" FILTER (WHERE {predicate(choices, scope, 0)})" if choices.once_in(5) else ""
    return Column(call.sql + condition, call.kind, is_plain=False)


def approximate_aggregate(choices: Choices, scope: Scope) -> str:
    """An aggregate with digits to lose."""
    numbers = [value(choices, scope, choices.pick(NUMBERS), 0) for _ in range(2)]
    condition = f" FILTER (WHERE {predicate(choices, scope, 0)})" if choices.once_in(5) else ""
    if choices.once_in(3):
        return f"{choices.pick(_APPROXIMATE_OF_TWO)}({', '.join(numbers)}){condition}"
    distinct = "DISTINCT " if choices.once_in(5) else ""
    return f"{choices.pick((*_APPROXIMATE, 'avg'))}({distinct}{numbers[0]}){condition}"


def _count(choices: Choices, scope: Scope) -> Column:
    counted = "*" if choices.once_in(2) or not scope else any_value(choices, scope, 1).sql
    return Column(f"count({counted})", Kind.INTEGER)


def _count_distinct(choices: Choices, scope: Scope) -> Column:
    counted = [any_value(choices, scope, 0).sql for _ in range(choices.count(1, 2))]
    return Column(f"count(DISTINCT {', '.join(counted)})", Kind.INTEGER)


def _sum(choices: Choices, scope: Scope, distinct: str = "") -> Column:
    present = columns_of(scope, *SUMMABLE)
    kind = choices.pick(present).kind if present else Kind.INTEGER
    function = choices.pick(("sum", "sum", "avg"))
    result = Kind.RATIO if function == "avg" and kind is not Kind.DECIMAL else kind
    return Column(f"{function}({distinct}{value(choices, scope, kind, 1)})", result)


def _sum_distinct(choices: Choices, scope: Scope) -> Column:
    return _sum(choices, scope, "DISTINCT ")


def _overflowing(choices: Choices, scope: Scope) -> Column:
    """A sum of doubles that leaves their range; no term is negative, so it does so in every order."""
    huge, large = columns_of(scope, Kind.HUGE), columns_of(scope, Kind.LARGE)
    if not huge and not large:
        return _sum(choices, scope)
    forms = [f"avg({c.sql})" for c in (*huge, *large)] + [f"sum({c.sql})" for c in huge]
    forms += [f"sum({a.sql} * {b.sql})" for a in huge for b in huge]
    forms += [f"sum({a.sql} * abs({b.sql}))" for a in huge for b in columns_of(scope, Kind.INTEGER)]
    return Column(choices.pick(forms), Kind.EDGE)


def _extreme(choices: Choices, scope: Scope) -> Column:
    operand = any_value(choices, scope, 1)
    return Column(f"{choices.pick(('min', 'max'))}({operand.sql})", operand.kind)


def _ordered(choices: Choices, scope: Scope) -> Column:
    """Of the ordered values of a group; an order that Spark leaves open is not asked for."""
    present = columns_of(scope, *SUMMABLE)
    number = value(choices, scope, choices.pick(present).kind if present else Kind.INTEGER, 1)
    operand = any_value(choices, scope, 1)
    direction = choices.pick(("", " DESC"))
    share = choices.pick(("0.0", "0.3", "0.5", "1.0"))
    text = value(choices, scope, Kind.STRING, 0)
    return choices.pick(
        (
            Column(f"median({number})", Kind.RATIO),
            Column(f"percentile({number}, {share})", Kind.RATIO),
            Column(f"percentile_cont({share}) WITHIN GROUP (ORDER BY {number}{direction})", Kind.RATIO),
            Column(f"percentile_disc({share}) WITHIN GROUP (ORDER BY {number}{direction})", Kind.RATIO),
            Column(f"mode() WITHIN GROUP (ORDER BY {operand.sql}{direction})", operand.kind),
            Column(f"size(collect_list({operand.sql}))", Kind.INTEGER),
            Column(f"size(collect_set({operand.sql}))", Kind.INTEGER),
            Column(f"bit_xor({value(choices, scope, Kind.INTEGER, 0)})", Kind.INTEGER),
            Column(f"listagg({text}, '|') WITHIN GROUP (ORDER BY {text})", Kind.STRING),
        )
    )


def _of_truths(choices: Choices, scope: Scope) -> Column:
    function = choices.pick(_OF_TRUTHS)
    kind = Kind.INTEGER if function == "count_if" else Kind.BOOLEAN
    return Column(f"{function}({predicate(choices, scope, 0)})", kind)


def window_function(choices: Choices, scope: Scope) -> Column:
    """A window function over the rows of the scope."""
    form = choices.pick((_ranking, _numbering, _neighbour, _windowed_aggregate, _windowed_aggregate, _range_aggregate))
    call = form(choices, scope)
    return Column(call.sql, call.kind, is_plain=False)


def _partition(choices: Choices, scope: Scope) -> str:
    if choices.once_in(4):
        return ""
    return "PARTITION BY " + ", ".join(c.sql for c in choices.some(scope, 1, 2))


def _order(choices: Choices, scope: Scope) -> str:
    return "ORDER BY " + ", ".join(_sort_key(choices, c) for c in choices.some(scope, 1, 2))


def _total_order(choices: Choices, scope: Scope) -> str:
    """An order in which only equal rows are peers, so that it does not matter which of them comes first."""
    return "ORDER BY " + ", ".join(_sort_key(choices, c) for c in choices.some(scope, len(scope), len(scope)))


def _sort_key(choices: Choices, column: Column) -> str:
    return f"{column.sql}{choices.pick(('', '', ' DESC', ' NULLS LAST', ' DESC NULLS FIRST'))}"


def _ranking(choices: Choices, scope: Scope) -> Column:
    function = choices.pick(("rank", "dense_rank", "percent_rank", "cume_dist"))
    kind = Kind.INTEGER if "rank" in function and function != "percent_rank" else Kind.RATIO
    return Column(f"{function}() OVER ({_partition(choices, scope)} {_order(choices, scope)})", kind)


def _numbering(choices: Choices, scope: Scope) -> Column:
    function = choices.pick(("row_number()", "ntile(2)", "ntile(3)"))
    return Column(f"{function} OVER ({_partition(choices, scope)} {_total_order(choices, scope)})", Kind.INTEGER)


def _neighbour(choices: Choices, scope: Scope) -> Column:
    operand = any_value(choices, scope, 0)
    default = value(choices, (), operand.kind, 0)
    calls = (f"lag({operand.sql})", f"lead({operand.sql}, 2)", f"lag({operand.sql}, 1, {default})")
    values = (f"first_value({operand.sql})", f"last_value({operand.sql})", f"nth_value({operand.sql}, 2)")
    nulls = " IGNORE NULLS" if choices.once_in(4) else ""
    over = f"{_partition(choices, scope)} {_total_order(choices, scope)}"
    if choices.once_in(2):
        return Column(f"{choices.pick(calls)}{nulls} OVER ({over})", operand.kind)
    return Column(f"{choices.pick(values)}{nulls} OVER ({over} {choices.pick(('', *_FRAMES))})", operand.kind)


def _windowed_aggregate(choices: Choices, scope: Scope) -> Column:
    call = choices.pick((_count, _sum, _extreme, _of_truths))(choices, scope)
    partition = _partition(choices, scope)
    orders = ("", _order(choices, scope), f"{_total_order(choices, scope)} {choices.pick(_FRAMES)}")
    return Column(f"{call.sql} OVER ({partition} {choices.pick(orders)})", call.kind)


def _range_aggregate(choices: Choices, scope: Scope) -> Column:
    numbers = columns_of(scope, Kind.INTEGER)
    if not numbers:
        return _ranking(choices, scope)
    call = choices.pick((_count, _sum, _extreme))(choices, scope)
    order = f"ORDER BY {_sort_key(choices, choices.pick(numbers))} {choices.pick(_RANGES)}"
    return Column(f"{call.sql} OVER ({_partition(choices, scope)} {order})", call.kind)
