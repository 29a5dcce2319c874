from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa

from everview.relational.display import show_numbers, show_row, show_table, show_value


def test_values_are_shown_as_in_sql() -> None:
    """People see 2024-05-01, not datetime.date(2024, 5, 1)."""
    row = (None, True, datetime.date(2024, 5, 1), Decimal("1.50"), "it's", {"a": [1, None]}, b"\x00")
    assert show_row(row) == "(NULL, true, 2024-05-01, 1.50, \"it's\", {a: [1, NULL]}, b'\\x00')"
    assert show_value("x" * 100) == repr("x" * 60) + "…"


def test_row_numbers() -> None:
    """The first row numbers, and how many more."""
    assert show_numbers([3]) == "row 3"
    assert show_numbers(list(range(8))) == "rows 0, 1, 2, 3, 4 and 3 more"


def test_tables_are_aligned() -> None:
    """Numbers stand right, text left, and line breaks do not break the table."""
    table = pa.table({"n": [1, 100], "text": ["a\nb", None]})
    assert show_table(table) == "   n | text\n-----+------\n   1 | a⏎b\n 100 | NULL\n(2 rows)"
    assert show_table(table.slice(0, 1)).endswith("(1 row)")
    assert show_table(table.select([])) == "(2 rows without columns)"
