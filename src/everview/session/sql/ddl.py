"""Table schemas as users write them: a Spark DDL string, a ``StructType`` or a ``pyarrow.Schema``.

DDL is read from the tokens of sqlglot's Spark dialect, never by starting a JVM. The grammar, keywords in any case::

    schema  := item ("," item)*
    item    := name [":"] type (NOT NULL | NULL | PRIMARY KEY | COMMENT 'text')*
             | [CONSTRAINT name] PRIMARY KEY "(" name ("," name)* ")"
    type    := int | decimal(p, s) | array<type> | struct<name: type, …> | interval day to second | …
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeGuard

import pyarrow as pa

from everview.catalog import check_columns, find_column
from everview.errors import InvalidQuery, UnsupportedQuery, did_you_mean
from everview.frontend.spark_types import from_spark_json
from everview.relational.arrow import fields_from_arrow
from everview.relational.nodes import Field, Schema
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    Struct,
)
from everview.session.sql.tokens import TokenCursor

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SIMPLE_TYPES: Final[dict[str, DataType]] = {
    "boolean": BOOLEAN,
    "tinyint": INT8,
    "byte": INT8,
    "smallint": INT16,
    "short": INT16,
    "int": INT32,
    "integer": INT32,
    "bigint": INT64,
    "long": INT64,
    "float": FLOAT32,
    "real": FLOAT32,
    "double": FLOAT64,
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
_DECIMALS: Final = ("decimal", "dec", "numeric")
_REFUSED: Final[dict[str, str]] = {
    "char": "use string; everview does not pad or check lengths.",
    "character": "use string; everview does not pad or check lengths.",
    "varchar": "use string; everview does not check lengths.",
    "map": "use array<struct<key: …, value: …>>.",
    "variant": "use string and parse it in the query.",
    "void": "give the column a type.",
    "time": "use timestamp_ntz, or bigint for microseconds.",
    "geometry": "use binary.",
    "geography": "use binary.",
}
_COLLATION_HINT: Final = "use string and compare lower(column) in the query."
_DAY_TIME_UNITS: Final = ("day", "hour", "minute", "second")


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table, and the primary key if the schema declares one."""

    fields: Schema
    primary_key: tuple[str, ...] = ()


def read_schema(
    name: str, schema: str | pa.Schema | StructType, primary_key: str | Iterable[str] | None
) -> TableSchema:
    """The schema of table ``name`` in whichever form it was given; key columns become NOT NULL.

    >>> read_schema("t", "id: int, note string", "id").fields[0]
    Field(name='id', type=Int32(), nullable=False)

    Raises:
        InvalidQuery: the text is no schema, or names do not fit.
        UnsupportedQuery: a column has a type that everview does not store.
    """
    owner = f"table '{name}'"
    if isinstance(schema, str):
        read = parse_schema(schema)
    elif isinstance(schema, pa.Schema):
        read = TableSchema(fields_from_arrow(schema))
    elif _is_struct_type(schema):
        read = TableSchema(_fields_of_struct_type(schema))
    else:
        raise InvalidQuery(
            f"the schema of {owner} is of type {type(schema).__name__}.",
            hint="give a Spark DDL string such as 'id bigint, name string', a StructType or a pyarrow.Schema.",
        )
    check_columns(owner, read.fields)
    given = (primary_key,) if isinstance(primary_key, str) else tuple(primary_key or ())
    if given and read.primary_key:
        raise InvalidQuery(f"{owner} has its primary key declared twice: in the schema and as an argument.")
    return _with_key(owner, read.fields, given or read.primary_key)


def _is_struct_type(schema: object) -> TypeGuard[StructType]:
    # A StructType can only come from a program that has imported pyspark; asking for the module costs nothing then.
    types = sys.modules.get("pyspark.sql.types")
    return types is not None and isinstance(schema, types.StructType)


def _fields_of_struct_type(schema: StructType) -> Schema:
    columns = schema.jsonValue()["fields"]
    for column in columns:
        if "__COLLATIONS" in column["metadata"]:  # where Spark's JSON keeps what its type names leave out
            raise _refused_type("string with a collation", _COLLATION_HINT)
    return tuple(Field(c["name"], from_spark_json(c["type"]), c["nullable"]) for c in columns)


def _with_key(owner: str, fields: Schema, key: tuple[str, ...]) -> TableSchema:
    positions = [find_column(owner, fields, column) for column in key]
    if len(set(positions)) < len(positions):
        raise InvalidQuery(f"the primary key of {owner} names a column twice: {', '.join(key)}.")
    for column in (fields[i] for i in positions):
        if isinstance(column.type, Array | Struct):
            raise UnsupportedQuery(
                f"column '{column.name}' of {owner} is {column.type} and cannot be in the primary key.",
                operator=str(column.type),
                hint="choose columns of simple types.",
            )
    required = tuple(replace(f, nullable=False) if i in positions else f for i, f in enumerate(fields))
    return TableSchema(required, tuple(fields[i].name for i in positions))


def parse_schema(text: str) -> TableSchema:
    """Reads a DDL string.

    >>> [f"{f.name} {f.type}" for f in parse_schema("a decimal(9,2) NOT NULL, b array<struct<x: int>>").fields]
    ['a decimal(9,2)', 'b array<struct<x:int>>']
    """
    return _SchemaParser(text).schema()


class _SchemaParser:
    """A recursive-descent parser; one method a rule of the module's grammar."""

    def __init__(self, text: str) -> None:
        self._cursor = TokenCursor(text, "schema")

    def schema(self) -> TableSchema:
        cursor = self._cursor
        fields: list[Field] = []
        inline_keys: list[str] = []
        declared: list[tuple[str, ...]] = []
        while True:
            if cursor.next_is("primary", "key") or cursor.next_is("constraint"):
                declared.append(self._key_constraint())
            else:
                column, is_key = self._column()
                fields.append(column)
                inline_keys += [column.name] if is_key else []
            if not cursor.skip(","):
                break
        if not cursor.at_end:
            raise cursor.unexpected("a comma or the end")
        if len(inline_keys) + len(declared) > 1:
            raise InvalidQuery(
                "a schema declares one primary key.", hint="write PRIMARY KEY (a, b) for several columns."
            )
        return TableSchema(tuple(fields), declared[0] if declared else tuple(inline_keys))

    def _key_constraint(self) -> tuple[str, ...]:
        if self._cursor.skip("constraint"):
            self._cursor.name()
        self._cursor.expect("primary", "key")
        return self._cursor.names_in_parentheses()

    def _column(self) -> tuple[Field, bool]:
        cursor = self._cursor
        name = cursor.name()
        cursor.skip(":")
        data_type = self._type()
        nullable, is_key = True, False
        while not cursor.at_end and not cursor.next_is(",") and not cursor.next_is(">"):
            if cursor.skip("not"):
                cursor.expect("null")
                nullable = False
            elif cursor.skip("primary"):
                cursor.expect("key")
                is_key = True
            elif cursor.skip("comment"):
                cursor.take(lambda w: w.is_string, "a text in quotes")
                while cursor.word is not None and cursor.word.is_string:  # 'it''s' comes as two
                    cursor.take(lambda w: w.is_string, "a text in quotes")
            elif cursor.skip("collate"):
                raise _refused_type(f"string collate {cursor.name()}", _COLLATION_HINT)
            elif not cursor.skip("null"):
                raise cursor.unexpected("NOT NULL, PRIMARY KEY, COMMENT or a comma")
        return Field(name, data_type, nullable), is_key

    def _type(self) -> DataType:
        name = self._cursor.name("a type").lower()
        if name in _SIMPLE_TYPES:
            return _SIMPLE_TYPES[name]
        if name in _DECIMALS:
            return self._decimal()
        if name == "array":
            self._cursor.expect("<")
            element = self._type()
            self._cursor.expect(">")
            return Array(element)
        if name == "struct":
            return self._struct()
        if name == "interval":
            return self._interval()
        if name in _REFUSED:
            raise _refused_type(name, _REFUSED[name])
        known = [*_SIMPLE_TYPES, *_DECIMALS, "array", "struct"]
        raise InvalidQuery(f"'{name}' is not a data type.", hint=did_you_mean(name, known))

    def _decimal(self) -> Decimal:
        precision, scale = 10, 0  # Spark's own defaults
        if self._cursor.skip("("):
            precision = self._number()
            scale = self._number() if self._cursor.skip(",") else 0
            self._cursor.expect(")")
        if not (0 < precision <= 38 and 0 <= scale <= precision):
            raise InvalidQuery(
                f"decimal({precision},{scale}) is not a data type.",
                hint="the precision is 1 to 38, the scale 0 to the precision.",
            )
        return Decimal(precision, scale)

    def _struct(self) -> Struct:
        self._cursor.expect("<")
        fields: list[Field] = []
        while not self._cursor.skip(">"):
            if fields:
                self._cursor.expect(",")
            fields.append(self._column()[0])
        return Struct(tuple(f.name for f in fields), tuple(f.type for f in fields))

    def _interval(self) -> DataType:
        units = [self._cursor.name("day, hour, minute or second").lower()]
        if self._cursor.skip("to"):
            units.append(self._cursor.name("hour, minute or second").lower())
        if all(unit in _DAY_TIME_UNITS for unit in units):
            return DAY_TIME_INTERVAL
        raise _refused_type("interval " + " to ".join(units), "use int for a number of months.")

    def _number(self) -> int:
        return int(self._cursor.take(lambda w: w.text.isdigit() and not w.is_string, "a number").text)


def _refused_type(name: str, hint: str) -> UnsupportedQuery:
    return UnsupportedQuery(f"a table cannot have a column of type {name}.", operator=name, hint=hint)
