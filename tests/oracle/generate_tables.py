"""Small tables to query: a few columns of the common types, full of NULLs and duplicates, sometimes empty.

Values are few, so that joins meet. Those of the plain columns are small, so that arithmetic stays far from overflow, and
doubles are multiples of 1/8: their sums are exact, hence the same in every order of addition. The columns of *edges* hold the
ends of their types; their kinds say what may be done with them so that the answer does not depend on the order of rows.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass, replace
from decimal import Decimal as Number
from enum import Enum, auto
from typing import Any, Final

from hypothesis import strategies as st

from everview.relational.nodes import Field, Schema
from everview.relational.types import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    NAN,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    Row,
)
from tests.oracle.choices import Choices


class Kind(Enum):
    """What an expression may be used for: types that Spark coerces into each other are one kind."""

    INTEGER = auto()
    """int or bigint, far from overflow."""
    DECIMAL = auto()
    DOUBLE = auto()
    """A double whose sums are exact."""
    RATIO = auto()
    """A double with digits to lose: fit for comparing and grouping, but its sum depends on the order of addition."""
    EDGE = auto()
    """A float or double at an end of its type: fit for comparing and grouping."""
    HUGE = auto()
    """A double that is not negative: its sums overflow, and do so in every order."""
    EXTREME = auto()
    """An integer at an end of its type: fit for comparing and grouping, and any arithmetic could fail."""
    LARGE = auto()
    """A bigint that is not negative: a sum fails, and does so in every order."""
    WIDE = auto()
    """A decimal of 38 digits: fit for comparing and grouping."""
    STRING = auto()
    DATE = auto()
    MOMENT = auto()
    """A timestamp, of which the session's time zone makes dates and hours."""
    BOOLEAN = auto()


@dataclass(frozen=True, slots=True)
class TableData:
    """A table: its columns and its rows, as internal values; ``key`` has the names of its primary key, if it has one."""

    name: str
    fields: Schema
    rows: tuple[Row, ...]
    key: tuple[str, ...] = ()

    def key_of(self, row: Row) -> Row:
        """The values of the primary key."""
        return tuple(v for f, v in zip(self.fields, row, strict=True) if f.name in self.key)

    def __repr__(self) -> str:
        """The table as an argument that ``test_found.py`` takes."""
        columns = ", ".join(f"{f.name} {f.type}{'' if f.nullable else ' not null'}" for f in self.fields)
        rows = ", ".join(show_row(row, self.fields) for row in self.rows)
        return f'table("{self.name}", "{columns}", [{rows}]{f", {self.key!r}" if self.key else ""})'

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """What Hypothesis prints, which would otherwise be the fields."""
        printer.text(repr(self))


def table(name: str, columns: str, rows: list[tuple[Any, ...]], key: tuple[str, ...] = ()) -> TableData:
    """The table that a failing example printed."""
    fields = tuple(_read_field(column.split(" ", 2)) for column in columns.split(", "))
    return TableData(name, fields, tuple(internal_row(row) for row in rows), key)


def day(text: str) -> int:
    """A date as its internal value.

    >>> day("1970-01-02")
    1
    """
    return (datetime.date.fromisoformat(text) - _EPOCH).days


def kind_of(field: Field) -> Kind:
    """What a column may be used for. The name decides where the type does not: that of ``x`` and ``h`` is double."""
    return _KIND_OF_NAME.get(field.name) or (Kind.DECIMAL if isinstance(field.type, Decimal) else _KINDS[field.type])


_EPOCH: Final = datetime.date(1970, 1, 1)
_PRICE: Final = Decimal(6, 2)
_WIDE: Final = Decimal(38, 4)
_KINDS: Final = {
    INT32: Kind.INTEGER,
    INT64: Kind.INTEGER,
    FLOAT64: Kind.DOUBLE,
    STRING: Kind.STRING,
    DATE: Kind.DATE,
    TIMESTAMP: Kind.MOMENT,
    BOOLEAN: Kind.BOOLEAN,
}
_PLAIN: Final = {
    "k": INT32,
    "p": INT64,
    "i": INT32,
    "j": INT64,
    "n": _PRICE,
    "x": FLOAT64,
    "s": STRING,
    "d": DATE,
    "b": BOOLEAN,
}
"""What a table may have. Tables share names, so that USING has something to use."""
_EDGES: Final = {
    "h": FLOAT64,
    "f": FLOAT64,
    "y": FLOAT32,
    "e": INT64,
    "q": INT8,
    "g": INT64,
    "w": _WIDE,
    "t": TIMESTAMP,
}
"""What some tables have besides."""
_KIND_OF_NAME: Final = {
    "h": Kind.HUGE,
    "f": Kind.EDGE,
    "y": Kind.EDGE,
    "e": Kind.EXTREME,
    "q": Kind.EXTREME,
    "g": Kind.LARGE,
    "w": Kind.WIDE,
}
_FIRST_DAY: Final = day("2024-02-27")
_MINUTE: Final = 60_000_000
_PLAIN_VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "k": (0, 1, 2, 3),
    "p": tuple(range(12)),
    "i": tuple(range(-2, 5)),
    "j": tuple(range(-3, 7)),
    "n": tuple((Number(quarters) / 4).quantize(Number("0.01")) for quarters in range(-8, 13)),
    "x": tuple(eighths / 8 for eighths in range(-12, 21)),
    "s": ("a", "b", "ab", "a,b", "", "B", "a_b", "b,,a", " a ", "10"),
    "d": tuple(range(_FIRST_DAY, _FIRST_DAY + 5)),
    "b": (False, True),
    "t": tuple(_FIRST_DAY * 1440 * _MINUTE + minutes * _MINUTE for minutes in (0, 1, 59, 719, 1410, 1440, 2879)),
}
_EDGE_VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "x": (NAN, math.inf, -math.inf),
    "s": ("é", "日本", "😀", "ß", "a" * 300, "\t", "'"),
    "d": (day("9999-12-31"), day("0001-01-01"), day("1582-10-04"), day("1969-12-31")),
    "t": (253_402_300_799_999_999 - 1440 * _MINUTE, -62_135_596_800_000_000 + 1440 * _MINUTE, -1),
    "h": (0.0, 1.0, 1e200, 1e308, math.inf, NAN, 5e-324, 1e-200),
    "f": (0.0, 1e308, -1e308, math.inf, -math.inf, NAN, 5e-324, 1.5),
    "y": (0.0, 1.5, math.inf, -math.inf, NAN, 3.4028234663852886e38, 1.401298464324817e-45),
    "e": (0, 1, -1, 2**63 - 1, -(2**63), 2**62, 2**53 + 1, 2**53),
    "q": (0, 1, -1, 127, -128),
    "g": (0, 1, 2**62, 2**63 - 1, 2**31),
    "w": tuple(Number(f"{n}e-4") for n in (0, 1, -1, 10**38 - 1, -(10**38) + 1, 12345678901234567890)),
}


_KEYS: Final = (("k",), ("p",), ("k", "p"))
"""The columns of a primary key: one that others join, one that none does, or both."""


def tables(max_rows: int = 8) -> st.SearchStrategy[tuple[TableData, ...]]:
    """Two to four tables ``t0``, ``t1``, … with a column ``k`` to join on and up to four more."""
    return st.composite(lambda draw: make_tables(Choices.drawn(draw), max_rows))()


def make_tables(choices: Choices, max_rows: int = 8) -> tuple[TableData, ...]:
    """The same by any choices."""
    return tuple(_make_table(choices, f"t{i}", max_rows) for i in range(choices.count(2, 4)))


def _make_table(choices: Choices, name: str, max_rows: int) -> TableData:
    key = choices.pick(_KEYS) if choices.once_in(3) else ()
    chosen = {"k", *key, *choices.some([n for n in _PLAIN if n not in ("k", "p")], 1, 4)}
    if choices.once_in(2):
        chosen |= set(choices.some(list(_EDGES), 1, 2))
    listed = {n: t for n, t in (_PLAIN | _EDGES).items() if n in chosen}
    fields = tuple(Field(n, t, nullable=not (n in key or choices.once_in(6))) for n, t in listed.items())
    has_edges = choices.once_in(4)
    made = TableData(name, fields, (), key)
    rows = [make_row(choices, fields, has_edges=has_edges) for _ in range(choices.count(0, max_rows))]
    if key:
        rows = list({made.key_of(row): row for row in rows}.values())
    return replace(made, rows=tuple(rows))


def make_row(choices: Choices, fields: Schema, *, has_edges: bool = False) -> Row:
    """A row of a table with these columns; ``has_edges``: perhaps with the ends of types in the plain columns too."""
    return tuple(_make_value(choices, f, has_edges) for f in fields)


def _make_value(choices: Choices, field: Field, has_edges: bool) -> Any:
    if field.nullable and choices.once_in(8 if field.name == "k" else 4):
        return None
    plain, edges = _PLAIN_VALUES.get(field.name), _EDGE_VALUES.get(field.name, ())
    if plain is None or (has_edges and edges and choices.once_in(3)):
        return choices.pick(edges)
    return choices.pick(plain)


def _read_field(words: list[str]) -> Field:
    name, type_name, *rest = words
    types: dict[str, DataType] = {str(t): t for t in (_PLAIN | _EDGES).values()}
    return Field(name, types[type_name], nullable=not rest)


def internal_row(row: Row) -> Row:
    """The row with the one NaN, which equals itself: bags count by it."""
    return tuple(NAN if isinstance(v, float) and math.isnan(v) else v for v in row)


def show_row(row: Row, fields: Schema) -> str:
    """The row as Python text that ``table`` takes."""
    shown = [_show(v, f.type) for v, f in zip(row, fields, strict=True)]
    return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"


def _show(value: Any, data_type: DataType) -> str:
    if value is None:
        return "None"
    if data_type == DATE:
        return f'day("{_EPOCH + datetime.timedelta(days=value)}")'
    if isinstance(data_type, Decimal):
        return f'Number("{value}")'
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)
