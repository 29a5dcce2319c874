"""Table schemas as users write them: a Spark DDL string, a ``StructType`` or a ``pyarrow.Schema``.

DDL is read from the tokens of sqlglot's Spark dialect, never by starting a JVM. The grammar, keywords in any case::

    schema  := item ("," item)*
    item    := name [":"] type (NOT NULL | NULL | PRIMARY KEY | UNIQUE | refers | COMMENT 'text')*
             | [CONSTRAINT name] (PRIMARY KEY names | UNIQUE names | FOREIGN KEY names refers)
    refers  := REFERENCES name [names]
    names   := "(" name ("," name)* ")"
    type    := int | decimal(p, s) | array<type> | struct<name: type, …> | interval day to second | …
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

import pyarrow as pa

from everview.catalog import Constraint
from everview.errors import InvalidQuery, UnsupportedQuery, did_you_mean
from everview.frontend.spark_types import from_spark_json
from everview.relational.arrow import fields_from_arrow
from everview.relational.column_names import check_columns, find_column
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
    VARIANT,
    Array,
    DataType,
    Decimal,
    Map,
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
    "variant": VARIANT,
}
_DECIMALS: Final = ("decimal", "dec", "numeric")
_REFUSED: Final[dict[str, str]] = {
    "char": "use string; everview does not pad or check lengths.",
    "character": "use string; everview does not pad or check lengths.",
    "varchar": "use string; everview does not check lengths.",
    "void": "give the column a type.",
    "time": "use timestamp_ntz, or bigint for microseconds.",
    "geometry": "use binary.",
    "geography": "use binary.",
}
_COLLATION_HINT: Final = "use string and compare lower(column) in the query."
_CONSTRAINTS: Final = (("primary", "key"), ("foreign", "key"), ("unique", "("), ("constraint",))
_DAY_TIME_UNITS: Final = ("day", "hour", "minute", "second")


Columns: TypeAlias = str | tuple[str, ...]
"""A column or several, as arguments name them."""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table, and the primary key and other constraints if the schema declares some."""

    fields: Schema
    primary_key: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()


def read_schema(
    name: str,
    schema: str | pa.Schema | StructType,
    primary_key: str | Iterable[str] | None,
    unique: Iterable[Columns] = (),
    foreign_keys: Mapping[Columns, str | tuple[str, Columns]] | None = None,
) -> TableSchema:
    """The schema of table ``name`` in whichever form it was given, with what is declared of it; key columns become NOT NULL.

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
    given = _listed(primary_key or ())
    if given and read.primary_key:
        raise InvalidQuery(f"{owner} has its primary key declared twice: in the schema and as an argument.")
    keyed = _with_key(owner, read.fields, given or read.primary_key)
    declared = [*read.constraints, *(Constraint(name, _listed(key)) for key in _listed(unique))]
    if foreign_keys is not None and not isinstance(foreign_keys, Mapping):
        raise InvalidQuery(
            f"the foreign keys of {owner} are of type {type(foreign_keys).__name__}.",
            hint="give a dict from columns to tables, as in {'customer': 'customers'}.",
        )
    for columns, parent in (foreign_keys or {}).items():
        table, referenced = (parent, ()) if isinstance(parent, str) else parent
        declared.append(Constraint(name, _listed(columns), table, _listed(referenced)))
    return replace(keyed, constraints=tuple(_of_table(owner, keyed.fields, name, c) for c in declared))


def _listed(given: str | Iterable[Any]) -> tuple[Any, ...]:
    """One of something, or several."""
    return (given,) if isinstance(given, str) else tuple(given)


def _of_table(owner: str, fields: Schema, name: str, constraint: Constraint) -> Constraint:
    positions = _key_positions(f"{constraint.text} of {owner}", owner, fields, constraint.columns)
    return replace(constraint, table=name, columns=tuple(fields[i].name for i in positions))


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


def _key_positions(what: str, owner: str, fields: Schema, key: tuple[str, ...]) -> list[int]:
    positions = [find_column(owner, fields, column) for column in key]
    if len(set(positions)) < len(positions):
        raise InvalidQuery(f"{what} names a column twice: {', '.join(key)}.")
    for column in (fields[i] for i in positions):
        if isinstance(column.type, Array | Struct | Map):
            raise UnsupportedQuery(
                f"column '{column.name}' is {column.type} and cannot be in {what}.",
                operator=str(column.type),
                hint="choose columns of simple types.",
            )
    return positions


def _with_key(owner: str, fields: Schema, key: tuple[str, ...]) -> TableSchema:
    positions = _key_positions(f"the primary key of {owner}", owner, fields, key)
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
        if not text.strip():
            raise InvalidQuery(
                "the schema is empty.", hint="name a column and its type, as in 'id bigint, name string'."
            )
        self._cursor = TokenCursor(text, "schema")
        self._constraints: list[Constraint] = []

    def schema(self) -> TableSchema:
        cursor = self._cursor
        fields: list[Field] = []
        inline_keys: list[str] = []
        declared: list[tuple[str, ...]] = []
        while True:
            if any(cursor.next_is(*words) for words in _CONSTRAINTS):
                declared += self._table_constraint()
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
        key = declared[0] if declared else tuple(inline_keys)
        return TableSchema(tuple(fields), key, tuple(self._constraints))

    def _table_constraint(self) -> list[tuple[str, ...]]:
        """The primary key, if it is one; others are noted."""
        cursor = self._cursor
        if cursor.skip("constraint"):
            cursor.name()
        if cursor.skip("unique"):
            self._constraints.append(Constraint("", cursor.names_in_parentheses()))
        elif cursor.skip("foreign", "key"):
            columns = cursor.names_in_parentheses()
            cursor.expect("references")
            self._refers(columns)
        else:
            cursor.expect("primary", "key")
            return [cursor.names_in_parentheses()]
        return []

    def _refers(self, columns: tuple[str, ...]) -> None:
        cursor = self._cursor
        parent = cursor.name("a table")
        referenced = cursor.names_in_parentheses() if cursor.next_is("(") else ()
        self._constraints.append(Constraint("", columns, parent, referenced))

    def _column(self, *, is_of_table: bool = True) -> tuple[Field, bool]:
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
            elif is_of_table and cursor.skip("unique"):
                self._constraints.append(Constraint("", (name,)))
            elif is_of_table and cursor.skip("references"):
                self._refers((name,))
            elif cursor.skip("comment"):
                cursor.take(lambda w: w.is_string, "a text in quotes")
                while cursor.word is not None and cursor.word.is_string:  # 'it''s' comes as two
                    cursor.take(lambda w: w.is_string, "a text in quotes")
            elif cursor.skip("collate"):
                raise _refused_type(f"string collate {cursor.name()}", _COLLATION_HINT)
            elif not cursor.skip("null"):
                raise cursor.unexpected("NOT NULL, PRIMARY KEY, UNIQUE, REFERENCES, COMMENT or a comma")
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
        if name == "map":
            self._cursor.expect("<")
            key = self._type()
            self._cursor.expect(",")
            value = self._type()
            self._cursor.expect(">")
            return Map(key, value)
        if name == "struct":
            return self._struct()
        if name == "interval":
            return self._interval()
        if name in _REFUSED:
            raise _refused_type(name, _REFUSED[name])
        known = [*_SIMPLE_TYPES, *_DECIMALS, "array", "struct", "map"]
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
            fields.append(self._column(is_of_table=False)[0])
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
