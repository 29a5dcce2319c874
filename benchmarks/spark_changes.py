"""The changes of lineitem and orders for the Spark suite, prepared as files and in memory before anything is timed.

As in TPC-H's own refresh functions, whole orders come and go with their lines. A change of share s deletes s/2 of the orders
and inserts as many that were held back from the load, both drawn at random, so that keys, dates and files are hit all over.
The orders of a smaller change are among those of a larger one. Undoing a change is a change of the same size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CHANGED = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""The tables that change, with the column that says of which order a row is."""
WEIGHT = "_weight"
SEED = 11
LOADED_ROWS = 8_000_000
"""Rows of a transaction of the load: at scale 1 each table is one."""
_READ_ROWS = 1 << 20
_GROUP_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a share of the rows.

    Attributes:
        share: Changed rows over rows, of each table that changes.
        rows: By table: inserted and deleted rows with their weights, 1 and -1.
        files: By table: the Parquet file with what each of all tables holds after the change.
    """

    share: float
    rows: Mapping[str, pa.Table]
    files: Mapping[str, Path]

    def of(self, tables: Sequence[str]) -> dict[str, pa.Table]:
        """The rows of some tables."""
        return {name: rows for name, rows in self.rows.items() if name in tables}


@dataclass(frozen=True, slots=True)
class Workload:
    """What is loaded, by table, and the changes, smallest first."""

    loaded: Mapping[str, Path]
    changes: tuple[Change, ...]


def undone(rows: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The change that takes another back."""
    return {
        name: table.set_column(table.num_columns - 1, WEIGHT, pc.negate(table.column(WEIGHT)))
        for name, table in rows.items()
    }


def plain(table: pa.Table) -> pa.Table:
    """String views as strings, without Parquet's metadata: what the other suites load."""
    fields = [pa.field(f.name, pa.string() if f.type == pa.string_view() else f.type, f.nullable) for f in table.schema]
    return table.cast(pa.schema(fields))


def load_batches(path: Path) -> Iterator[pa.Table]:
    """The rows of a file as few tables."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=LOADED_ROWS):
            yield plain(pa.Table.from_batches([batch]))


def prepare(tables: Path, folder: Path, shares: Sequence[float]) -> Workload:
    """Draws the orders that change and writes the tables before and after each change.

    Args:
        tables: One Parquet file a table, at the scale that is wanted.
        folder: Where to write.
        shares: Of the changes, ascending.
    """
    every = {path.stem: path for path in tables.glob("*.parquet")}
    turn = _turns(pq.read_table(every["orders"], columns=["o_orderkey"]).column(0).to_numpy())
    halves = [max(1, round(int((turn >= 0).sum()) * share / 2)) for share in shares]
    written: dict[str, list[Path]] = {}
    changed: dict[str, list[pa.Table]] = {}
    for name, key in CHANGED.items():
        paths = [folder / f"{name}-{number}.parquet" for number in range(len(shares) + 1)]
        written[name] = paths
        changed[name] = _split(every[name], key, turn, halves, paths)
    states = [{**every, **{name: paths[n] for name, paths in written.items()}} for n in range(len(shares) + 1)]
    changes = tuple(
        Change(share, {name: changed[name][n] for name in CHANGED}, states[n + 1]) for n, share in enumerate(shares)
    )
    return Workload(states[0], changes)


def _turns(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """By order key, the order's place in a random sequence; -1 for keys that no order has."""
    turn = np.full(int(keys.max()) + 1, -1, dtype=np.int32)
    turn[keys] = np.random.default_rng(SEED).permutation(len(keys))
    return turn


def _split(
    source: Path, key: str, turn: npt.NDArray[np.int32], halves: Sequence[int], paths: Sequence[Path]
) -> list[pa.Table]:
    """Writes what is there before and after each change, in the source's order; returns the changes' weighted rows.

    In the random sequence the first ``halves[-1]`` orders are held back from the load, as many after them can be deleted; a
    change takes as many of both, from the first on, as is its half.
    """
    held = halves[-1]
    found: list[list[pa.Table]] = [[] for _ in halves]
    with pq.ParquetFile(source) as file:
        schema = plain(file.schema_arrow.empty_table()).schema
        writers = [pq.ParquetWriter(path, schema) for path in paths]
        for batch in file.iter_batches(batch_size=_READ_ROWS):
            rows = plain(pa.Table.from_batches([batch]))
            place = turn[rows.column(key).to_numpy()]
            writers[0].write_table(rows.filter(pa.array(place >= held)), row_group_size=_GROUP_ROWS)
            for number, half in enumerate(halves):
                inserted, deleted = place < half, (place >= held) & (place < held + half)
                after = inserted | (place >= held + half)
                writers[number + 1].write_table(rows.filter(pa.array(after)), row_group_size=_GROUP_ROWS)
                found[number] += [_weighted(rows, inserted, 1), _weighted(rows, deleted, -1)]
        for writer in writers:
            writer.close()
    return [pa.concat_tables(parts).combine_chunks() for parts in found]


def _weighted(rows: pa.Table, chosen: npt.NDArray[np.bool_], weight: int) -> pa.Table:
    taken = rows.filter(pa.array(chosen))
    return taken.append_column(WEIGHT, pa.array(np.full(len(taken), weight, dtype=np.int64)))
