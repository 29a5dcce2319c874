"""What a crash leaves behind: every step of a commit fails once, and the database opened again is before or after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from everview.backends.base import Change, ChangeKind
from everview.backends.spark.backend import SparkBackend
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import CorruptDatabase, DatabaseLocked, InvalidChange, UnsupportedOperation
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Aggregate, AggregateCall, Field, Join, JoinKind, Scan
from everview.relational.types import BOOLEAN, INT64, STRING
from tests.spark.replay import refuse_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ITEMS = (Field("k", STRING), Field("x", INT64))
NAMES = (Field("k", STRING), Field("name", STRING))
JOINED = Join(
    Scan("items", ITEMS),
    Scan("names", NAMES),
    JoinKind.INNER,
    Call("=", (Column(0, STRING), Column(2, STRING)), BOOLEAN),
)
TOTALS = Aggregate(JOINED, (Column(3, STRING),), (AggregateCall("sum", (Column(1, INT64),), INT64),), ("name", "total"))
STEPS = ("before the record", "after the record", "between the Delta commits", "after the commit")


class Killed(BaseException):
    """The process ends here."""


class KillAt:
    """Raises at the n-th time that a step is reached."""

    def __init__(self, step: str, times: int = 1) -> None:
        self.step = step
        self.left = times
        self.is_armed = False

    def __call__(self, step: str) -> None:
        if self.is_armed and step == self.step:
            self.left -= 1
            if self.left == 0:
                raise Killed(step)


def _open(path: Path, fault: Callable[[str], None] = lambda _step: None) -> SparkBackend:
    return SparkBackend(str(path), refuse_spark, fault=fault)


def _create(path: Path) -> None:
    backend = _open(path)
    backend.create_table(TableDefinition("items", ITEMS))
    backend.create_table(TableDefinition("names", NAMES, ("k",)))
    backend.create_view(ViewDefinition("totals", TOTALS, None, "UTC"))
    _insert(backend, "names", [{"k": "a", "name": "ann"}, {"k": "b", "name": "bob"}], ("names", 0))
    backend.close()


def _insert(
    backend: SparkBackend, table: str, rows: list[dict[str, object]], source: tuple[str, int] | None = None
) -> None:
    fields = ITEMS if table == "items" else NAMES
    schema = pa.schema([(f.name, pa.string() if f.type == STRING else pa.int64()) for f in fields])
    if table == "names":
        schema = pa.schema([pa.field("k", pa.string(), nullable=False), ("name", pa.string())])
    backend.apply([Change(table, ChangeKind.WEIGHTED, pa.Table.from_pylist(rows, schema))], source=source)


def _batch(number: int) -> list[dict[str, object]]:
    return [{"k": "ab"[number % 2], "x": number}, {"k": "a", "x": 10 * number}]


def _expected(batches: int) -> dict[str, int]:
    totals: dict[str, int] = {}
    for number in range(1, batches + 1):
        for row in _batch(number):
            name = {"a": "ann", "b": "bob"}[str(row["k"])]
            totals[name] = totals.get(name, 0) + int(str(row["x"]))
    return totals


def _totals(backend: SparkBackend) -> dict[str, int]:
    return {r["name"]: r["total"] for r in backend.read("totals").to_pylist()}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("step", STEPS)
def test_killed_during_a_commit(step: str, times: int, tmp_path: Path) -> None:
    """A batch is there whole or not at all, and a source that sends it again has it applied once."""
    _create(tmp_path)
    fault = KillAt(step, times)
    backend = _open(tmp_path, fault)
    _insert(backend, "items", _batch(1), ("feed", 1))
    fault.is_armed = True
    with pytest.raises(Killed):  # noqa: PT012 -- the second batch may be the one that is hit
        for number in (2, 3):
            _insert(backend, "items", _batch(number), ("feed", number))
    backend.close()
    backend = _open(tmp_path)
    done = backend.last_batch("feed")
    assert done in (1, 2, 3)
    assert _totals(backend) == _expected(done)
    assert backend.version == done + 1
    for number in range(2, 6):
        _insert(backend, "items", _batch(number), ("feed", number))
        backend.close()
        backend = _open(tmp_path)
    assert _totals(backend) == _expected(5)
    assert (backend.version, backend.last_batch("feed")) == (6, 5)
    deltas = [d.version for d in backend.changes("totals", 1)]
    assert deltas == [2, 3, 4, 5, 6]
    backend.close()


def test_killed_while_a_view_is_made(tmp_path: Path) -> None:
    """A view whose making was cut off after its record is there, with its rows."""
    _create(tmp_path)
    fault = KillAt("between the Delta commits")
    backend = _open(tmp_path, fault)
    _insert(backend, "items", _batch(1))
    fault.is_armed = True
    with pytest.raises(Killed):
        backend.create_view(ViewDefinition("pairs", JOINED, None, "UTC"))
    backend.close()
    backend = _open(tmp_path)
    assert backend.read("pairs").num_rows == 2
    _insert(backend, "items", _batch(2))
    assert backend.read("pairs").num_rows == 4
    backend.close()


def test_a_repeated_batch_is_committed_once(tmp_path: Path) -> None:
    """The same batch of the same source, again and after a restart, changes nothing."""
    _create(tmp_path)
    backend = _open(tmp_path)
    for _ in range(2):
        _insert(backend, "items", _batch(1), ("feed", 1))
    backend.close()
    backend = _open(tmp_path)
    _insert(backend, "items", _batch(1), ("feed", 1))
    assert _totals(backend) == _expected(1)
    assert backend.version == 2
    backend.close()


def test_a_rejected_transaction_leaves_no_files(tmp_path: Path) -> None:
    """What a transaction wrote before it was rejected is gone, and the database goes on."""
    _create(tmp_path)
    backend = _open(tmp_path)
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(InvalidChange, match="primary key"):
        _insert(backend, "names", [{"k": "a", "name": "again"}])
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert backend.version == 1
    backend.close()


def _segments(path: Path) -> Iterator[Path]:
    return (p for p in sorted(path.rglob("segment-*.parquet")) if p.parent.name.startswith("names"))


def test_a_missing_segment_is_named(tmp_path: Path) -> None:
    """A database with a hole does not open, and says which file is missing."""
    _create(tmp_path)
    lost = next(_segments(tmp_path))
    lost.unlink()
    with pytest.raises(CorruptDatabase, match=lost.name):
        _open(tmp_path)


@pytest.mark.parametrize("damage", ["shorter", "other bytes"])
def test_a_damaged_segment_is_named(damage: str, tmp_path: Path) -> None:
    """Neither do damaged files pass for data, whether they show on opening or on reading."""
    _create(tmp_path)
    broken = next(_segments(tmp_path))
    content = broken.read_bytes()
    broken.write_bytes(content[:-5] if damage == "shorter" else b"x" * len(content))
    with pytest.raises(CorruptDatabase, match=broken.name):  # noqa: PT012 -- either call may find it
        backend = _open(tmp_path)
        try:
            backend.read("names")
        finally:
            backend.close()


@pytest.mark.parametrize("lookup_bytes", [0, 1 << 30], ids=["jobs", "copies"])
@pytest.mark.parametrize("damage", ["missing", "other bytes"])
def test_a_segment_that_spark_reads_is_named(
    damage: str, lookup_bytes: int, tmp_path: Path, spark: SparkSession
) -> None:
    """The same while the database is open and the rows are too many for the driver; nothing is committed from it."""
    _create(tmp_path)
    backend = SparkBackend(str(tmp_path), lambda: spark, local_rows=0, lookup_bytes=lookup_bytes)
    broken = next(_segments(tmp_path))
    if damage == "missing":
        broken.unlink()
    else:
        broken.write_bytes(b"x" * broken.stat().st_size)
    spark.sparkContext.setLogLevel("OFF")
    try:
        for read in (
            lambda: backend.lookup("names", {"k": "a"}),
            lambda: backend.read("names"),
            lambda: _insert(backend, "items", _batch(1)),
        ):
            with pytest.raises(CorruptDatabase, match=broken.name):
                read()
        assert backend.version == 1
    finally:
        spark.sparkContext.setLogLevel("ERROR")
        backend.close()


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    """The last commit record must be whole."""
    _create(tmp_path)
    last = max((tmp_path / "_commits").glob("*.json"))
    last.write_text("{")
    with pytest.raises(CorruptDatabase, match=last.name):
        _open(tmp_path)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A directory that is open cannot be opened a second time."""
    backend = _open(tmp_path)
    with pytest.raises(DatabaseLocked):
        _open(tmp_path)
    backend.close()
    _open(tmp_path).close()


def test_any_delta_reader_reads_a_view(tmp_path: Path) -> None:
    """The files are Delta tables under the view's own column names, whose weights sum up to the content."""
    _create(tmp_path)
    backend = _open(tmp_path)
    _insert(backend, "items", _batch(1))
    folder = next(p for p in (tmp_path / "relations").iterdir() if p.name.startswith("totals-"))
    rows = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    assert {(r["name"], r["total"]): r["_weight"] for r in rows} == {("ann", 10): 1, ("bob", 1): 1}
    backend.close()


def test_compaction_and_vacuum(tmp_path: Path) -> None:
    """Many small commits do not make many files, older versions stay until a vacuum, and the rows stay in any case."""
    _create(tmp_path)
    backend = _open(tmp_path)
    for number in range(1, 31):
        _insert(backend, "items", _batch(number))
    kinds = [json.loads(p.read_text())["kind"] for p in sorted((tmp_path / "_commits").glob("*.json"))]
    assert "compact" in kinds
    assert len(backend._files.relations["items"].segments) < 12
    assert [d.version for d in backend.changes("totals", 1)] == list(range(2, 32))
    files = len(list(tmp_path.rglob("segment-*.parquet")))
    assert backend.vacuum() > 0
    assert len(list(tmp_path.rglob("segment-*.parquet"))) < files
    assert _totals(backend) == _expected(30)
    assert backend.changes_kept_since("totals") >= backend.version - 1
    with pytest.raises(UnsupportedOperation, match="are not kept"):
        backend.changes("totals", 1)
    backend.close()
    backend = _open(tmp_path)
    _insert(backend, "items", _batch(31))
    assert _totals(backend) == _expected(31)
    backend.close()
