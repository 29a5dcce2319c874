"""ORDER BY over bags of rows: NULLs where asked, NaN above all numbers, ties broken by the whole row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from everview.relational.evaluate import compile_expression
from everview.relational.functions import sort_key
from everview.relational.nodes import Schema, SortKey
from everview.relational.types import Row


def ordered_rows(rows: Iterable[Row], order: tuple[SortKey, ...], fields: Schema) -> list[Row]:
    """The rows in order. Sorting is stable, so the last key sorts first, and the whole row before all of them."""
    result = sorted(rows, key=_whole_row_key(fields))
    for key in reversed(order):
        result.sort(key=_order_key(key), reverse=key.descending)
    return result


def order_values(order: tuple[SortKey, ...]) -> Callable[[Row], tuple[Any, ...]]:
    """The function from a row to something that is equal for peers: rows that the order does not tell apart."""
    keys = [_order_key(k) for k in order]
    return lambda row: tuple([k(row) for k in keys])


def _order_key(key: SortKey) -> Callable[[Row], tuple[Any, ...]]:
    value_of = compile_expression(key.expression)
    comparable = sort_key(key.expression.type)
    # Descending order is the reverse of ascending order, so there the NULLs change places too.
    null_rank, value_rank = (0, 1) if key.nulls_first != key.descending else (1, 0)

    def rank(row: Row) -> tuple[Any, ...]:
        value = value_of(row)
        return (null_rank,) if value is None else (value_rank, comparable(value))

    return rank


def _whole_row_key(fields: Schema) -> Callable[[Row], tuple[Any, ...]]:
    comparable = [sort_key(f.type) for f in fields]

    def key(row: Row) -> tuple[Any, ...]:
        return tuple([(0,) if v is None else (1, c(v)) for v, c in zip(row, comparable, strict=True)])

    return key
