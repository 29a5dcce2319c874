"""The tables and queries that tests and benchmarks share.

Three data sets: TPC-H at any scale (made by `tpchgen-cli`, cached under the repository), the order-book stream of
`tests/data/finance`, and the small hand-made tables of `small.py`. Every table is a `pyarrow.Table` with plain
types: keys int64, money decimal128(15, 2), text `pa.string()`.

The queries are the .sql files beside this module. A file holds either one query, named after the file, or several,
each after a line `-- name: snake_case_name`; each ends with `;`.
"""

import csv
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from .small import schemas, small_tables

__all__ = [
    "BOOK_SCHEMA",
    "TPCH_KEYS",
    "BookEvent",
    "Query",
    "finance_stream",
    "finance_tables",
    "queries",
    "schemas",
    "small_tables",
    "tpch_files",
    "tpch_tables",
]

CORPUS = Path(__file__).resolve().parent
REPOSITORY = CORPUS.parent.parent
FINANCE = CORPUS.parent / "data" / "finance"

TPCH_KEYS: dict[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
"""The TPC-H tables, those referred to first, with their primary keys."""

BOOK_SCHEMA: pa.Schema = pa.schema(
    [("t", pa.int64()), ("id", pa.int64()), ("broker_id", pa.int32()), ("volume", pa.int64()), ("price", pa.int64())]
)
"""The schema of `bids` and `asks`; integers, so that answers are exact."""

BookRow = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Query:
    """One query of the corpus.

    Attributes:
        name: Unique within its folder.
        sql: The statement, without the closing semicolon.
        file: Where it was read from.
    """

    name: str
    sql: str
    file: Path


@dataclass(frozen=True, slots=True)
class BookEvent:
    """One change of one row of an order book.

    Attributes:
        table: The book that changes.
        row: The row, in the order of `BOOK_SCHEMA`.
        weight: +1 for an insert, -1 for a delete.
        line: The number, from 1, of the input line that caused it; an execution causes two events with one number.
    """

    table: Literal["bids", "asks"]
    row: BookRow
    weight: int
    line: int


def queries(folder: str) -> list[Query]:
    """Reads the queries of a folder of the corpus, or of one .sql file, in the order of file names and lines.

    Args:
        folder: Relative to this module: `"tpch"`, `"general"`, `"unsupported.sql"`, …

    Raises:
        FileNotFoundError: There is no such folder or file.
        ValueError: A file has a query without an end, text between queries, or a name used twice in the folder.

    >>> [query.name for query in queries("tpch")][:2]
    ['q01', 'q02']
    """
    path = CORPUS / folder
    if not path.exists():
        raise FileNotFoundError(f"no folder or file {folder!r} in the corpus at {CORPUS}")
    files = sorted(path.glob("*.sql")) if path.is_dir() else [path]
    found = [query for file in files for query in _parse(file)]
    seen: set[str] = set()
    for query in found:
        if query.name in seen:
            raise ValueError(f"query name {query.name!r} is used twice in {folder!r}, again in {query.file.name}")
        seen.add(query.name)
    return found


_NAME_LINE = re.compile(r"^-- name: ([a-z][a-z0-9_]*)$", re.MULTILINE)


def _parse(file: Path) -> list[Query]:
    """Splits a file at its `-- name:` lines; a file without any is one query."""
    text = file.read_text(encoding="utf-8")
    parts = _NAME_LINE.split(text)
    if len(parts) > 1 and _without_comments(parts[0]):
        raise ValueError(f"{file} has text before its first '-- name:' line")
    named = [(file.stem, parts[0])] if len(parts) == 1 else list(zip(parts[1::2], parts[2::2], strict=True))
    return [Query(name, _statement(name, body, file), file) for name, body in named]


def _statement(name: str, body: str, file: Path) -> str:
    """Drops comment lines and the semicolon that ends the statement, which must be the only one to end a line."""
    sql = _without_comments(body)
    if not sql.endswith(";"):
        raise ValueError(f"query {name!r} in {file} does not end with ';'")
    sql = sql[:-1].rstrip()
    if any(line.rstrip().endswith(";") for line in sql.splitlines()):
        raise ValueError(f"query {name!r} in {file} is more than one statement. Hint: is a '-- name:' line missing?")
    return sql


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--")).strip()


def finance_stream(name: str) -> Iterator[BookEvent]:
    """Yields the changes of `bids` and `asks` caused by an order-book file of `tests/data/finance`, in order.

    An execution takes volume from an order: a delete of the old row and, if volume is left, an insert of the new one.
    Events of orders that are not in a book, and the kinds that change nothing, yield nothing.

    Args:
        name: `"tiny"` or `"standard"`.

    >>> next(finance_stream("tiny"))
    BookEvent(table='bids', row=(25260635, 36721, 1, 100, 10000), weight=1, line=1)
    """
    books: dict[int, tuple[Literal["bids", "asks"], BookRow]] = {}
    with (FINANCE / f"{name}.csv").open(newline="") as lines:
        for number, (time, order, kind, taken, price) in enumerate(csv.reader(lines), start=1):
            key, volume = int(order), int(taken)
            if kind in ("B", "S"):
                table: Literal["bids", "asks"] = "bids" if kind == "B" else "asks"
                row = (int(time), key, key % 10, volume, int(price))
                books[key] = (table, row)
                yield BookEvent(table, row, 1, number)
            elif kind in ("D", "F", "E") and key in books:
                table, row = books.pop(key)
                yield BookEvent(table, row, -1, number)
                if kind == "E" and volume < row[3]:
                    left = (*row[:3], row[3] - volume, row[4])
                    books[key] = (table, left)
                    yield BookEvent(table, left, 1, number)


def finance_tables(name: str) -> dict[str, pa.Table]:
    """The books `bids` and `asks` after the last event of `finance_stream(name)`.

    >>> sorted(finance_tables("tiny"))
    ['asks', 'bids']
    """
    books: dict[str, dict[BookRow, int]] = {"bids": {}, "asks": {}}
    for event in finance_stream(name):
        book = books[event.table]
        book[event.row] = book.get(event.row, 0) + event.weight
    return {
        table: pa.Table.from_pylist(
            [dict(zip(BOOK_SCHEMA.names, row, strict=True)) for row, weight in book.items() for _ in range(weight)],
            schema=BOOK_SCHEMA,
        )
        for table, book in books.items()
    }


def tpch_tables(scale: float) -> dict[str, pa.Table]:
    """The eight TPC-H tables at a scale factor, generated once and then read from `<repository>/.cache`.

    Args:
        scale: 1.0 is the official gigabyte; tests use 0.001 and 0.01.
    """
    folder = tpch_files(scale)
    return {name: _plain(pq.read_table(folder / f"{name}.parquet")) for name in TPCH_KEYS}


def tpch_files(scale: float) -> Path:
    """The folder with the same tables as one Parquet file each, generated if it is not there.

    Generates into a private folder and renames it, so that readers only ever see a complete one.
    """
    folder = REPOSITORY / ".cache" / f"tpch-{scale:g}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as scratch:
        made = Path(scratch) / "tables"
        made.mkdir()
        command = [_generator(), "parquet", "--scale-factor", f"{scale:g}", "--output-dir", str(made), "--quiet"]
        subprocess.run(command, check=True)
        try:
            os.rename(made, folder)
        except OSError:
            # Another process was first; its folder holds the same bytes.
            if not folder.is_dir():
                raise
    return folder


def _generator() -> str:
    """The tpchgen-cli of this interpreter's environment, whether or not the environment is activated."""
    for scripts in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        program = scripts / "tpchgen-cli"
        if program.exists():
            return str(program)
    raise FileNotFoundError("tpchgen-cli is not installed. Hint: pip install tpchgen-cli")


def _plain(table: pa.Table) -> pa.Table:
    """Casts string views to strings and drops Parquet's metadata."""
    schema = pa.schema(
        [
            pa.field(field.name, pa.string() if field.type == pa.string_view() else field.type, field.nullable)
            for field in table.schema
        ]
    )
    return table.cast(schema)
