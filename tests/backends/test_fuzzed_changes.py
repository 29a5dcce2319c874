"""Random Arrow schemas and batches into ``apply``, in every container: the rows as given, or an error and no trace."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies
from hypothesis.strategies import DrawFn

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "id": "bigint NOT NULL",
    "s": "string",
    "x": "int",
    "t": "tinyint",
    "d": "double",
    "f": "float",
    "n": "decimal(6,2)",
    "b": "boolean",
    "bin": "binary",
    "day": "date",
    "ts": "timestamp",
    "ntz": "timestamp_ntz",
    "a": "array<int>",
}
_QUERY = "SELECT s, x, count(*) AS n, min(d) AS low FROM t GROUP BY s, x"

_UTC = datetime.UTC
_integers = strategies.integers(-3, 3) | strategies.sampled_from([127, 128, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
_floats = strategies.floats(width=32) | strategies.sampled_from([0.1, -0.0, 1e300, 2.0**24 + 1])
_times = strategies.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
_decimals = strategies.decimals(-9999, 9999, places=2) | strategies.sampled_from([decimal.Decimal("0.001")])
_LONGEST = datetime.timedelta(days=10**8)  # Python's longest do not fit 64 bits of microseconds
_texts = strategies.sampled_from(["", "a", "b", "é", "insert", "1"])
VALUES: list[tuple[pa.DataType, strategies.SearchStrategy[Any]]] = [
    (pa.int64(), _integers),
    (pa.int64(), strategies.integers(-3, 3)),
    (pa.int32(), strategies.integers(-3, 3)),
    (pa.int8(), strategies.integers(-3, 3)),
    (pa.uint64(), strategies.sampled_from([0, 1, 2**63])),
    (pa.float64(), _floats),
    (pa.float64(), strategies.sampled_from([1.0, 2.0])),
    (pa.float32(), strategies.floats(width=32)),
    (pa.float16(), strategies.sampled_from([0.5, 1.0])),
    (pa.bool_(), strategies.booleans()),
    (pa.string(), _texts),
    (pa.large_string(), _texts),
    (pa.string_view(), _texts),
    (pa.dictionary(pa.int8(), pa.string()), _texts),
    (pa.binary(), strategies.binary(max_size=2)),
    (pa.large_binary(), strategies.binary(max_size=2)),
    (pa.decimal128(6, 2), strategies.decimals(-9999, 9999, places=2)),
    (pa.decimal128(20, 3), _decimals),
    (pa.decimal256(40, 2), strategies.decimals(-9999, 9999, places=2)),
    (pa.date32(), strategies.dates()),
    (pa.date64(), strategies.dates()),
    (pa.timestamp("us", "UTC"), _times.map(lambda t: t.replace(tzinfo=_UTC))),
    (pa.timestamp("ms", "Asia/Tokyo"), _times.map(lambda t: t.replace(tzinfo=_UTC, microsecond=0))),
    (pa.timestamp("ns"), _times),
    (pa.timestamp("us"), _times),
    (pa.duration("us"), strategies.timedeltas(-_LONGEST, _LONGEST)),
    (pa.list_(pa.int32()), strategies.lists(strategies.none() | strategies.integers(-3, 3), max_size=2)),
    (pa.large_list(pa.int64()), strategies.lists(_integers, max_size=2)),
    (pa.struct([("p", pa.int32())]), strategies.just({"p": 1})),
    (pa.null(), strategies.none()),
    (pa.string(), strategies.sampled_from([b"a", b"\xff"])),  # Arrow takes any bytes for text
    (pa.timestamp("s"), strategies.sampled_from([0, 2**62])),  # which Python does not know
    (pa.time64("us"), strategies.times()),
]
USUAL = {
    "id": 1,
    "s": 10,
    "x": 2,
    "t": 3,
    "d": 5,
    "f": 7,
    "n": 16,
    "b": 9,
    "bin": 14,
    "day": 19,
    "ts": 21,
    "ntz": 24,
    "a": 26,
}


@strategies.composite
def given_tables(draw: DrawFn) -> pa.Table:
    """A table of up to four rows: mostly with the right columns, some in other types, sometimes too many or too few."""
    size = draw(strategies.integers(0, 4))
    names = list(COLUMNS)
    if draw(strategies.booleans()):
        names = list(draw(strategies.permutations(names)))
    if draw(strategies.integers(0, 9)) == 0:
        names = names[1:] + draw(strategies.sampled_from([[], ["id", "ID"], ["nothing"], ["id", "x y"]]))
    others = draw(strategies.sets(strategies.sampled_from(names), max_size=2))
    arrays = []
    for name in names:
        choice = len(VALUES) - 1 if name not in USUAL else USUAL[name]
        arrow, values = draw(strategies.sampled_from(VALUES)) if name in others else VALUES[choice]
        can_miss = name != "id" or draw(strategies.integers(0, 19)) == 0
        column = draw(
            strategies.lists(strategies.none() | values if can_miss else values, min_size=size, max_size=size)
        )
        arrays.append(_array(column, arrow))
    extra = draw(strategies.sampled_from(["", "", "_weight", "_change_type", "both"]))
    if extra in ("_weight", "both"):
        weights = strategies.sampled_from([1, 1, 2, 3, 0, -1])
        names, arrays = [*names, "_weight"], [*arrays, pa.array(draw(_sized(weights, size)), pa.int64())]
    if extra in ("_change_type", "both"):
        words = strategies.sampled_from(["insert", "insert", "update_postimage", "delete", "upsert"])
        names, arrays = [*names, "_change_type"], [*arrays, pa.array(draw(_sized(words, size)), pa.string())]
    return pa.Table.from_arrays(arrays, names=names)


def _sized(values: strategies.SearchStrategy[Any], size: int) -> strategies.SearchStrategy[list[Any]]:
    return strategies.lists(values, min_size=size, max_size=size)


def _array(values: list[Any], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(arrow):
        return pa.array(values, arrow.value_type).dictionary_encode()
    if any(isinstance(v, bytes) for v in values) and pa.types.is_string(arrow):
        return pa.array(values, pa.binary()).view(arrow)
    return pa.array(values, arrow)


CONTAINERS: dict[str, Any] = {
    "table": lambda table: table,
    "chunks": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(1)]),
    "batch": lambda table: table.combine_chunks().to_batches()[0] if len(table) else table,
    "reader": lambda table: table.to_reader(),
    "pandas": lambda table: table.to_pandas(),
    "nullable pandas": lambda table: table.to_pandas().convert_dtypes(),
    "dicts": lambda table: table.to_pylist(),
    "tuples": lambda table: list(zip(*(c.to_pylist() for c in table.columns), strict=True)),
}


def _contained(table: pa.Table, container: str) -> Any:
    """The rows in a container; as they are, where it cannot have them (a time beyond what pandas knows)."""
    try:
        return CONTAINERS[container](table)
    except (pa.ArrowException, OverflowError, ValueError, TypeError, RuntimeWarning):
        return table


@pytest.fixture(scope="module")
def databases(spark: SparkSession) -> Iterator[tuple[ev.Database, ev.Database]]:
    """The embedded backend and the reference, with the same table and view."""
    with ev.connect(spark=spark) as embedded, ev.connect(backend="reference", spark=spark) as reference:
        for db in (embedded, reference):
            db.create_table("t", ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()))
            db.create_view("v", _QUERY)
        yield embedded, reference


@given(given_tables(), strategies.sampled_from(sorted(CONTAINERS)), strategies.booleans())
def test_changes_are_taken_exactly_or_refused(
    databases: tuple[ev.Database, ev.Database], table: pa.Table, container: str, again: bool
) -> None:
    """Both backends take the same rows or refuse them with an EverviewError; the table then holds the rows as given."""
    before = _content(databases[1])
    outcomes = set()
    for db in databases:
        data = _contained(table, container)
        try:
            db.apply({"t": data})
            outcomes.add("taken")
        except ev.InternalError:
            raise
        except ev.EverviewError as error:
            outcomes.add(type(error).__name__)
    assert len(outcomes) == 1
    after = [_content(db) for db in databases]
    assert after[0] == after[1]
    if outcomes != {"taken"}:
        assert after[0] == before
    elif "_weight" not in table.column_names and "_change_type" not in table.column_names:
        added = Counter(after[0][0])
        added.subtract(before[0])
        if "pandas" not in container:  # whose NaN is NULL
            assert {row: n for row, n in added.items() if n} == dict(_rows(table, by_position=container == "tuples"))
    if again and len(after[0][0]) > 40:
        for db in databases:
            db.table("t").delete(db.table("t").to_arrow())
        assert [_content(db) for db in databases] == [(Counter(), Counter())] * 2


def _content(db: ev.Database) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    return Counter(map(_comparable, db.table("t").rows())), Counter(map(_comparable, db.view("v").rows()))


def _rows(table: pa.Table, by_position: bool) -> Counter[tuple[Any, ...]]:
    if len(table) == 0:  # an empty list names no columns
        return Counter()
    folded = {name.lower(): i for i, name in enumerate(table.column_names)}
    places = range(len(COLUMNS)) if by_position else [folded[name] for name in COLUMNS]
    columns = [table.column(i).to_pylist() for i in places]
    return Counter(_comparable(row) for row in zip(*columns, strict=True))


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_value(v) for v in row)


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_value, value))
    return "NaN" if isinstance(value, float) and value != value else value  # noqa: PLR0124 -- only NaN differs from itself
