"""Every scalar function that Spark lists is maintained as Spark computes it, with NULLs and edge values, or refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkTypeError

import everview as ev
from everview.errors import EverviewError, InvalidQuery, UnsupportedQuery
from everview.frontend.catalyst_plan import quiet_spark_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OTHER_GROUPS = {"agg_funcs", "window_funcs", "generator_funcs", "table_funcs"}
_SAMPLE = (
    "array_sort",
    "date_trunc",
    "from_json",
    "get_json_object",
    "hash",
    "make_timestamp",
    "mask",
    "rand",
    "to_char",
    "trunc",
    "url_decode",
    "uuid",
)
_EDGES: dict[pa.DataType, list[Any]] = {
    pa.int32(): [0, -1, 100],  # a larger one is a length for which Spark itself takes all memory
    pa.int64(): [0, -1, 2**40],
    pa.float64(): [0.0, -1.5, float("nan"), float("inf"), 1e300],
    pa.string(): ["", " ", "a,b;c d", "żółw 🐢", "12", '{"a": [1, null]}'],
    pa.binary(): [b"", b"\xff\x00", b"abc"],
    pa.bool_(): [True, False],
}
_CLASS_NAME = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
_OUR_WORDS = {"PySpark"}


@pytest.fixture(scope="module")
def infos(spark: SparkSession) -> dict[str, Any]:
    """What Spark says of each of its scalar functions."""
    listed = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    return {i.getName(): i for i in listed if i.getGroup() not in _OTHER_GROUPS and i.getName().isidentifier()}


def test_a_sample_of_the_functions_is_right_or_refused_by_name(spark: SparkSession, infos: dict[str, Any]) -> None:
    """Functions of all kinds, over columns that hold the documented arguments, NULLs and edge values."""
    _assert_right(spark, {name: infos[name] for name in _SAMPLE if name in infos})


@pytest.mark.slow
def test_all_functions_are_right_or_refused_by_name(spark: SparkSession, infos: dict[str, Any]) -> None:
    """The same for all of them."""
    _assert_right(spark, infos)


def _assert_right(spark: SparkSession, infos: dict[str, Any]) -> None:
    wrong, tried = {}, 0
    for name, info in infos.items():
        for arguments in _documented_calls(spark, name, info):
            try:
                why = _why_wrong(spark, name, arguments)
            except _NoCall:
                continue
            tried += 1
            if why is not None:
                wrong[f"{name}({', '.join(arguments)})"] = why
    assert tried >= len(infos) // 2
    assert not wrong, "\n".join(f"{call}: {why}" for call, why in wrong.items())


def _documented_calls(spark: SparkSession, name: str, info: Any) -> Iterator[list[str]]:
    """The arguments of the first documented call of a function: ``> SELECT name(…);``."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    for written in re.findall(r"> SELECT (.*);", info.getExamples().replace("_FUNC_", name)):
        try:
            with quiet_spark_log():
                parsed = parser.parseExpression(written)
            if parsed.getClass().getSimpleName() != "UnresolvedFunction" or parsed.nameParts().last().lower() != name:
                continue
            arguments = parsed.arguments()
            texts = [_text_of(written, arguments.apply(i)) for i in range(arguments.size())]
        except Exception:
            continue
        if all(t is not None for t in texts):
            yield [t for t in texts if t is not None]
            return


def _text_of(written: str, argument: Any) -> str | None:
    origin = argument.origin()
    if not (origin.startIndex().isDefined() and origin.stopIndex().isDefined()):
        return None
    return written[origin.startIndex().get() : origin.stopIndex().get() + 1]


def _why_wrong(spark: SparkSession, name: str, arguments: list[str]) -> str | None:
    """What is wrong with a call whose first arguments are columns; None if nothing is."""
    for count in range(len(arguments), -1, -1):  # some functions insist on constants, and not all types can be columns
        try:
            table = _table_of(spark, arguments[:count])
            with ev.connect(spark=spark) as db:
                db.create_table("f", table.schema)
                return _outcome(db, name, arguments, count, table)
        except InvalidQuery:
            continue
        except _NoColumn:
            continue
    raise _NoCall


class _NoCall(Exception):
    """Spark takes no such call as a scalar expression, or has no Arrow form of its result to compare with."""


class _NoColumn(Exception):
    """An argument whose type no table of ours has."""


def _table_of(spark: SparkSession, texts: list[str]) -> pa.Table:
    chosen = ", ".join(["1 AS k", *(f"{t} AS c{i}" for i, t in enumerate(texts))])
    try:
        with quiet_spark_log():
            row = spark.sql(f"SELECT {chosen}").toArrow()
    except Exception as error:
        raise _NoColumn from error
    kinds = pa.types
    if any(kinds.is_null(f.type) or kinds.is_interval(f.type) or kinds.is_time(f.type) for f in row.schema):
        raise _NoColumn
    nulls = {"k": [2], **{n: [None] for n in row.column_names[1:]}}
    rows = [row.cast(_nullable(row.schema)), pa.table(nulls, schema=_nullable(row.schema))]
    for edge in range(6):
        values = [[edge + 3]]
        for column in row.columns[1:]:
            edges = _EDGES.get(column.type, [column[0].as_py()])
            values.append([edges[edge % len(edges)]])
        rows.append(pa.table(values, schema=_nullable(row.schema)))
    return pa.concat_tables(rows)


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_nullable(True).remove_metadata() for f in schema])


def _outcome(db: ev.Database, name: str, arguments: list[str], count: int, table: pa.Table) -> str | None:
    given = [f"c{i}" for i in range(count)] + arguments[count:]
    query = f"SELECT k, {name}({', '.join(given)}) AS r FROM f"
    try:
        view = db.create_view("v", query)
    except UnsupportedQuery as refused:
        return _bad_refusal(refused, name)
    for row in table.to_batches(max_chunksize=1):
        if row.num_rows:
            db.table("f").insert(pa.Table.from_batches([row]))
            if view.suspension is not None:  # an error is right where Spark has one
                why = _spark_succeeds(db, query)
                if why is not None:
                    return why
                db.sql(f"DELETE FROM f WHERE k = {row.column(0)[0].as_py()}")
    try:
        db.verify("v")
    except EverviewError as error:
        return str(error)[:300]
    except PySparkTypeError as error:  # PySpark gives out no intervals of years and months
        raise _NoCall from error
    return None


def _spark_succeeds(db: ev.Database, query: str) -> str | None:
    try:
        with quiet_spark_log():
            db._core.gateway.answer(query, db._core.backend.read)
    except Exception:
        return None
    return "suspended, and Spark has an answer"


def _bad_refusal(refused: UnsupportedQuery, name: str) -> str | None:
    named = set(_CLASS_NAME.findall(str(refused))) - _OUR_WORDS
    return f"refused with names of Catalyst's: {refused}" if named else None
