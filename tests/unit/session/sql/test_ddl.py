from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark_types

from everview.errors import InvalidQuery, UnknownName, UnsupportedQuery
from everview.relational.types import INT64, STRING, Map
from everview.session.sql.ddl import parse_schema, read_schema


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("a int, b integer, c long, d bigint", ["int", "int", "bigint", "bigint"]),
        ("a tinyint, b byte, c smallint, d short", ["tinyint", "tinyint", "smallint", "smallint"]),
        ("a float, b real, c double", ["float", "float", "double"]),
        ("a decimal, b dec(4), c numeric(38, 38)", ["decimal(10,0)", "decimal(4,0)", "decimal(38,38)"]),
        ("a timestamp, b timestamp_ltz, c timestamp_ntz", ["timestamp", "timestamp", "timestamp_ntz"]),
        ("a: int, b: array<array<int>>", ["int", "array<array<int>>"]),
        ("a struct<x: int, y: struct<z: string COMMENT 'deep'>>", ["struct<x:int,y:struct<z:string>>"]),
        ("a interval day to second, b INTERVAL HOUR", ["interval day to second"] * 2),
        ("date date, key int, `primary` string, `a b` binary", ["date", "int", "string", "binary"]),
        ("a BOOLEAN /* , b int */ -- , c int", ["boolean"]),
    ],
)
def test_types(text: str, types: list[str]) -> None:
    """Spark's names for types are understood in DDL."""
    assert [str(f.type) for f in parse_schema(text).fields] == types


def test_constraints() -> None:
    """NOT NULL, NULL, COMMENT and PRIMARY KEY may follow a type, and a key may stand on its own."""
    read = parse_schema("a int NOT NULL COMMENT 'it''s', b int NULL, CONSTRAINT pk PRIMARY KEY (b, a)")
    assert [f.nullable for f in read.fields] == [False, True]
    assert read.primary_key == ("b", "a")
    assert parse_schema("a int PRIMARY KEY").primary_key == ("a",)


def test_declared_constraints() -> None:
    """UNIQUE and REFERENCES at a column, and with CONSTRAINT or without on their own; names of columns may be keywords."""
    text = """a int UNIQUE NOT NULL, unique int, b int REFERENCES p, UNIQUE (A, b), CONSTRAINT fk FOREIGN KEY (b)
              REFERENCES q (x), foreign string"""
    assert [c.text for c in read_schema("t", text, None, ["b"], {("a", "B"): ("r", ("y", "z"))}).constraints] == [
        "UNIQUE (a)",
        "FOREIGN KEY (b) REFERENCES p",
        "UNIQUE (a, b)",
        "FOREIGN KEY (b) REFERENCES q (x)",
        "UNIQUE (b)",
        "FOREIGN KEY (a, b) REFERENCES r (y, z)",
    ]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("a int, UNIQUE (b)", UnknownName, "column 'b' is not in table 't'."),
        ("a int, UNIQUE (a, a)", InvalidQuery, "UNIQUE (a, a) of table 't' names a column twice: a, a."),
        ("a array<int> UNIQUE", UnsupportedQuery, "column 'a' is array<int> and cannot be in UNIQUE (a) of table 't'."),
        ("a struct<x: int UNIQUE>", InvalidQuery, "has 'UNIQUE' where NOT NULL"),
        ("a int, FOREIGN KEY (a)", InvalidQuery, "has the end where REFERENCES should be."),
    ],
)
def test_constraints_that_do_not_fit(text: str, error: type[Exception], message: str) -> None:
    """What a constraint names is checked, and arrays have no keys."""
    with pytest.raises(error, match=re.escape(message)):
        read_schema("t", text, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the schema is empty. Hint: name a column and its type, as in 'id bigint, name string'."),
        ("a", "the schema 'a' has the end where a type should be."),
        ("a int,, b int", "the schema 'a int,, b int' has ',' where a name should be."),
        (
            "a int b",
            "the schema 'a int b' has 'b' where NOT NULL, PRIMARY KEY, UNIQUE, REFERENCES, COMMENT or a comma should be.",
        ),
        ("a array<int", "the schema 'a array<int' has the end where '>' should be."),
        ("a strng", "'strng' is not a data type. Hint: did you mean 'string'?"),
        (
            "a decimal(39,2)",
            "decimal(39,2) is not a data type. Hint: the precision is 1 to 38, the scale 0 to the precision.",
        ),
        (
            "a int PRIMARY KEY, b int PRIMARY KEY",
            "a schema declares one primary key. Hint: write PRIMARY KEY (a, b) for several columns.",
        ),
        (
            "a int COMMENT 'x",
            "the schema has a string, a quoted name or a comment without an end. Hint: look for an odd quote.",
        ),
        ("a int, A int", "table 't' would have two columns named 'A'. Hint: give each its own name (AS …)."),
        (
            "_weight int",
            "table 't' cannot have a column named '_weight': changes use it. Hint: rename the column (AS …).",
        ),
    ],
)
def test_schemas_that_are_none(text: str, message: str) -> None:
    """What is wrong with a schema is said with the words around it."""
    with pytest.raises(InvalidQuery) as caught:
        read_schema("t", text, None)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("a char(3)", "char"),
        ("a varchar(3)", "varchar"),
        ("a array<time>", "time"),
        ("a string collate UTF8_LCASE", "string collate UTF8_LCASE"),
        ("a interval year to month", "interval year to month"),
    ],
)
def test_refused_types(text: str, operator: str) -> None:
    """A type that everview does not store is refused by name, with what to use instead."""
    with pytest.raises(UnsupportedQuery) as caught:
        read_schema("t", text, None)
    assert caught.value.message == f"a table cannot have a column of type {operator}."
    assert caught.value.operator == operator
    assert caught.value.hint


@pytest.mark.parametrize(
    "schema",
    [
        spark_types.StructType().add("a", spark_types.CharType(3)),
        spark_types.StructType().add("a", spark_types.StringType("UTF8_LCASE")),
        pa.schema([("a", pa.uint64())]),
        pa.schema([("a", pa.time64("us"))]),
    ],
)
def test_refused_types_of_other_schemas(schema: Any) -> None:
    """The same types are refused in every form of a schema."""
    with pytest.raises(UnsupportedQuery) as caught:
        read_schema("t", schema, None)
    assert caught.value.hint


@pytest.mark.parametrize(
    "schema",
    [
        "a map<string, bigint>",
        spark_types.StructType().add("a", spark_types.MapType(spark_types.StringType(), spark_types.LongType())),
        pa.schema([("a", pa.map_(pa.string(), pa.int64()))]),
    ],
)
def test_maps_in_every_form_of_a_schema(schema: Any) -> None:
    """A column may be a map, and is no key."""
    (column,) = read_schema("t", schema, None).fields
    assert column.type == Map(STRING, INT64)
    with pytest.raises(UnsupportedQuery, match="cannot be in the primary key"):
        read_schema("t", schema, ["a"])


def test_primary_keys() -> None:
    """Key columns are found in any case, become NOT NULL, and must make sense."""
    read = read_schema("t", "a int, b int", ["B", "a"])
    assert read.primary_key == ("b", "a")
    assert not any(f.nullable for f in read.fields)
    with pytest.raises(UnknownName) as unknown:
        read_schema("t", "price int", "pric")
    assert str(unknown.value) == "column 'pric' is not in table 't'. Hint: did you mean 'price'?"
    with pytest.raises(InvalidQuery) as caught:
        read_schema("t", "a int", ["a", "A"])
    assert str(caught.value) == "the primary key of table 't' names a column twice: a, A."
    with pytest.raises(InvalidQuery) as caught:
        read_schema("t", "a int PRIMARY KEY", "a")
    assert str(caught.value) == "table 't' has its primary key declared twice: in the schema and as an argument."
    with pytest.raises(UnsupportedQuery) as refused:
        read_schema("t", "a array<int>", "a")
    assert str(refused.value) == (
        "column 'a' is array<int> and cannot be in the primary key of table 't'. Hint: choose columns of simple types."
    )


def test_a_schema_of_the_wrong_kind() -> None:
    """A schema is text, a StructType or an Arrow schema."""
    with pytest.raises(InvalidQuery) as caught:
        read_schema("t", {"a": "int"}, None)  # type: ignore[arg-type]
    assert str(caught.value).startswith("the schema of table 't' is of type dict. Hint: give a Spark DDL string")
