"""Values and rows as people read them in messages and on the console.

Public values in (``datetime.date``, ``Decimal``, …), short text out: ``2024-05-01`` rather than
``datetime.date(2024, 5, 1)``, NULL rather than None.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from everview.relational.arrow import public_rows, rows_to_arrow
from everview.relational.nodes import Schema
from everview.relational.types import Row

_LONGEST = 60


def show_value(value: Any) -> str:
    """One value, as it would be written in SQL, more or less.

    >>> show_value(datetime.date(2024, 5, 1)), show_value("text"), show_value(None)
    ('2024-05-01', "'text'", 'NULL')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case datetime.datetime():
            return value.isoformat(sep=" ")
        case datetime.date() | decimal.Decimal() | datetime.timedelta():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{k}: {show_value(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(show_value(v) for v in value) + "]"
        case str() | bytes() if len(value) > _LONGEST:
            return f"{value[:_LONGEST]!r}…"
        case _:
            return repr(value)


def show_row(row: Iterable[Any]) -> str:
    """A row of public values.

    >>> show_row((1, decimal.Decimal("2.50"), None))
    '(1, 2.50, NULL)'
    """
    return "(" + ", ".join(show_value(v) for v in row) + ")"


def show_internal_rows(rows: Sequence[Row], fields: Schema, *, limit: int = 5) -> str:
    """The first of some internal rows, and how many are left out."""
    shown = [show_row(r) for r in public_rows(rows_to_arrow(rows[:limit], fields))]
    return ", ".join(shown) + _and_more(len(rows), limit)


def show_numbers(numbers: Sequence[int], *, limit: int = 5) -> str:
    """Row numbers as the end of a sentence: ``row 3`` or ``rows 1, 2 and 4 more``."""
    listed = ", ".join(str(n) for n in numbers[:limit])
    return ("row " if len(numbers) == 1 else "rows ") + listed + _and_more(len(numbers), limit)


def _and_more(total: int, limit: int) -> str:
    return f" and {total - limit} more" if total > limit else ""


def show_table(table: pa.Table, *, limit: int = 20) -> str:
    """The first rows under their column names, in aligned columns."""
    names = list(table.column_names)
    body = [[_cell(v) for v in row] for row in public_rows(table.slice(0, limit))]
    if not names:
        return f"({table.num_rows} rows without columns)"
    widths = [max(len(line[i]) for line in [names, *body]) for i in range(len(names))]
    numeric = [_is_numeric(column.type) for column in table.columns]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, numeric, strict=True))
        return " " + " | ".join(padded).rstrip()

    rule = "-" + "-+-".join("-" * w for w in widths) + "-"
    return "\n".join([line(names), rule, *(line(cells) for cells in body), _count(table.num_rows, limit)])


def html_table(table: pa.Table, *, limit: int = 20) -> str:
    """The same for a notebook.

    >>> html_table(pa.table({"a<b": [1]})).splitlines()[1]
    '<tr><th>a&lt;b</th></tr>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = [[escape(_cell(v)) for v in row] for row in public_rows(table.slice(0, limit))]
    body = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join(["<table>", f"<tr>{head}</tr>", *body, "</table>", f"<p>{_count(table.num_rows, limit)}</p>"])


def _count(rows: int, limit: int) -> str:
    shown = f", the first {limit} shown" if rows > limit else ""
    return f"({rows} row{'' if rows == 1 else 's'}{shown})"


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else show_value(value)
    text = text.replace("\n", "⏎").replace("\t", " ")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _is_numeric(arrow: pa.DataType) -> bool:
    kinds = pa.types
    return bool(kinds.is_integer(arrow) or kinds.is_floating(arrow) or kinds.is_decimal(arrow))
