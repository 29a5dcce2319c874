"""How the commands print rows and durations."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from rich.table import Table
from rich.text import Text

MOST_ROWS = 50
"""Longer answers are cut, and say so."""


def rows_as_table(rows: pa.Table, title: str | None = None, most: int = MOST_ROWS) -> Table:
    """An Arrow table as a table of the terminal, numbers to the right; NULL is not the string ``NULL``."""
    table = Table(title=title, title_justify="left", caption_justify="left")
    for field in rows.schema:
        table.add_column(field.name, justify="right" if _is_number(field.type) else "left")
    for row in zip(*(column.to_pylist() for column in rows.slice(0, most).columns), strict=True):
        table.add_row(*map(_cell, row))
    if rows.num_rows > most:
        table.caption = f"the first {most} of {rows.num_rows:,} rows"
    return table


def duration(seconds: float) -> str:
    """A time as people read it.

    >>> duration(0.0000042), duration(0.01234), duration(2.5)
    ('4.2 µs', '12.3 ms', '2.50 s')
    """
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cell(value: Any) -> Text:
    return Text("NULL", style="dim") if value is None else Text(str(value))
