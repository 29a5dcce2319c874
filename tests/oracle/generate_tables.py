"""Small tables to query: a few columns of the common types, full of NULLs and duplicates, sometimes empty.

Values are few, so that joins meet, and small, so that arithmetic stays far from overflow. Doubles are multiples of 1/8:
their sums are exact, hence the same in every order of addition. NaN and the infinities keep that property.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import Decimal as Number
from enum import Enum, auto
from typing import Any, Final

from hypothesis import strategies as st

from everview.relational.nodes import Field, Schema
from everview.relational.types import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    NAN,
    STRING,
    DataType,
    Decimal,
    Row,
)


class Kind(Enum):
    """What an expression may be used for: types that Spark coerces into each other are one kind."""

    INTEGER = auto()
    """int or bigint."""
    DECIMAL = auto()
    DOUBLE = auto()
    """A double whose sums are exact."""
    RATIO = auto()
    """A double with digits to lose: fit for comparing and grouping, but its sum depends on the order of addition."""
    STRING = auto()
    DATE = auto()
    BOOLEAN = auto()


@dataclass(frozen=True, slots=True)
class TableData:
    """A table: its columns and its rows, as internal values."""

    name: str
    fields: Schema
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        """The table as an argument that ``test_found.py`` takes."""
        columns = ", ".join(f"{f.name} {f.type}{'' if f.nullable else ' not null'}" for f in self.fields)
        rows = ", ".join(_show_row(row, self.fields) for row in self.rows)
        return f'table("{self.name}", "{columns}", [{rows}])'

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """What Hypothesis prints, which would otherwise be the fields."""
        printer.text(repr(self))


def table(name: str, columns: str, rows: list[tuple[Any, ...]]) -> TableData:
    """The table that a failing example printed."""
    fields = tuple(_read_field(column.split(" ", 2)) for column in columns.split(", "))
    return TableData(name, fields, tuple(tuple(_internal(v) for v in row) for row in rows))


def day(text: str) -> int:
    """A date as its internal value.

    >>> day("1970-01-02")
    1
    """
    return (datetime.date.fromisoformat(text) - _EPOCH).days


def kind_of(data_type: DataType) -> Kind:
    """The kind of a column's type."""
    return Kind.DECIMAL if isinstance(data_type, Decimal) else _KINDS[data_type]


_EPOCH: Final = datetime.date(1970, 1, 1)
_PRICE: Final = Decimal(6, 2)
_KINDS: Final = {
    INT32: Kind.INTEGER,
    INT64: Kind.INTEGER,
    FLOAT64: Kind.DOUBLE,
    STRING: Kind.STRING,
    DATE: Kind.DATE,
    BOOLEAN: Kind.BOOLEAN,
}
_COLUMNS: Final = {
    "k": INT32,
    "i": INT32,
    "j": INT64,
    "n": _PRICE,
    "x": FLOAT64,
    "s": STRING,
    "d": DATE,
    "b": BOOLEAN,
}
"""What a table may have. Tables share names, so that USING has something to use."""

_TEXTS: Final = ("a", "b", "ab", "a,b", "", "B", "a_b", "b,,a", " a ", "10")
_SPECIAL: Final = (NAN, math.inf, -math.inf)
_VALUES: Final[dict[DataType, st.SearchStrategy[Any]]] = {
    INT32: st.integers(-2, 4),
    INT64: st.integers(-3, 6),
    _PRICE: st.integers(-8, 12).map(lambda quarters: (Number(quarters) / 4).quantize(Number("0.01"))),
    FLOAT64: st.integers(-12, 20).map(lambda eighths: eighths / 8),
    STRING: st.sampled_from(_TEXTS),
    DATE: st.integers(day("2024-02-27"), day("2024-03-02")),
    BOOLEAN: st.booleans(),
}


def tables(max_rows: int = 8) -> st.SearchStrategy[tuple[TableData, ...]]:
    """Two to four tables ``t0``, ``t1``, … with a column ``k`` to join on and up to four more."""
    return st.integers(2, 4).flatmap(lambda n: st.tuples(*(_table(f"t{i}", max_rows) for i in range(n))))


@st.composite
def _table(draw: st.DrawFn, name: str, max_rows: int) -> TableData:
    chosen = draw(st.sets(st.sampled_from(sorted(_COLUMNS)), min_size=1, max_size=4)) | {"k"}
    fields = tuple(Field(n, t, nullable=draw(st.integers(0, 5)) < 5) for n, t in _COLUMNS.items() if n in chosen)
    has_special = draw(st.integers(0, 3)) == 3
    rows = draw(st.lists(row_of(fields, has_special=has_special), max_size=max_rows))
    return TableData(name, fields, tuple(rows))


def row_of(fields: Schema, *, has_special: bool = False) -> st.SearchStrategy[Row]:
    """A row of a table with these columns; ``has_special``: perhaps with NaN and the infinities."""
    return st.tuples(*(_value_of(f, has_special) for f in fields))


def _value_of(field: Field, has_special: bool) -> st.SearchStrategy[Any]:
    values = _VALUES[field.type]
    if has_special and field.type == FLOAT64:
        values = values | st.sampled_from(_SPECIAL)
    return st.one_of(values, values, values, st.none()) if field.nullable else values


def _read_field(words: list[str]) -> Field:
    name, type_name, *rest = words
    types = {str(t): t for t in _VALUES}
    return Field(name, types[type_name], nullable=not rest)


def _internal(value: Any) -> Any:
    return NAN if isinstance(value, float) and math.isnan(value) else value


def _show_row(row: Row, fields: Schema) -> str:
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
