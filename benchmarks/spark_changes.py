"""The changes of lineitem and orders for the Spark suite, prepared as files and in memory before anything is timed.

As in TPC-H's own refresh functions, whole orders come and go with their lines. A change of share s deletes s/2 of the orders
and inserts as many that were held back from the load. Where they are is the change's order: ``recent`` takes the last orders
by key, which is how the tables are sorted, so that a reader can leave most of a file out; ``scattered`` draws from the rest at
random, so that nearly every block of a file has some. The orders of a smaller change are among those of a larger one. Undoing
a change is a change of the same size.
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
ORDERS = ("recent", "scattered")
SEED = 11
LOADED_ROWS = 8_000_000
"""Rows of a transaction of the load: at scale 1 each table is one."""
_READ_ROWS = 1 << 20
_GROUP_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a share of the rows.

    Attributes:
        order: Where in the tables the rows are: one of ``ORDERS``.
        share: Changed rows over rows, of each table that changes.
        rows: By table: inserted and deleted rows with their weights, 1 and -1.
        files: By table: the Parquet file with what each of all tables holds after the change.
    """

    order: str
    share: float
    rows: Mapping[str, pa.Table]
    files: Mapping[str, Path]

    def of(self, tables: Sequence[str]) -> dict[str, pa.Table]:
        """The rows of some tables."""
        return {name: rows for name, rows in self.rows.items() if name in tables}


@dataclass(frozen=True, slots=True)
class Workload:
    """What is loaded, by table, and the changes, of each order the smallest first."""

    loaded: Mapping[str, Path]
    changes: tuple[Change, ...]

    def row_count(self, tables: Sequence[str]) -> int:
        """The number of rows that are loaded into some tables."""
        return sum(pq.read_metadata(self.loaded[name]).num_rows for name in tables)


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


def prepare(tables: Path, folder: Path, shares: Sequence[float], orders: Sequence[str] = ORDERS) -> Workload:
    """Draws the orders that change and writes the tables before and after each change.

    Args:
        tables: One Parquet file a table, at the scale that is wanted.
        folder: Where to write.
        shares: Of the changes, ascending; at most a half.
        orders: Where the changes are to be.
    """
    assert list(shares) == sorted(shares), "shares ascend"
    assert shares[-1] <= 0.5, "two orders of changes find different rows"
    every = {path.stem: path for path in tables.glob("*.parquet")}
    keys = pq.read_table(every["orders"], columns=["o_orderkey"]).column(0).to_numpy()
    halves = [max(1, round(len(keys) * share / 2)) for share in shares]
    turn = _turns(keys, halves[-1])
    drawn = [(order, n) for order in orders for n in range(len(shares))]
    cuts = [(2 * halves[-1] * ORDERS.index(order), halves[n]) for order, n in drawn]
    written: dict[str, list[Path]] = {}
    changed: dict[str, list[pa.Table]] = {}
    for name, key in CHANGED.items():
        paths = [folder / f"{name}-{number}.parquet" for number in range(len(drawn) + 1)]
        written[name] = paths
        changed[name] = _split(every[name], key, turn, halves[-1], cuts, paths)
    states = [{**every, **{name: paths[at] for name, paths in written.items()}} for at in range(len(drawn) + 1)]
    changes = tuple(
        Change(order, shares[n], {name: changed[name][at] for name in CHANGED}, states[at + 1])
        for at, (order, n) in enumerate(drawn)
    )
    return Workload(states[0], changes)


def _turns(keys: npt.NDArray[np.int64], half: int) -> npt.NDArray[np.int32]:
    """By order key, the order's place in the sequence in which changes take them; a key that no order has is last.

    For each of ``ORDERS`` the sequence has ``half`` orders that are held back from the load, then ``half`` that can be
    deleted; all other orders follow.
    """
    latest = np.sort(keys)[::-1]
    recent, rest = latest[: 2 * half], np.random.default_rng(SEED).permutation(latest[2 * half :])
    sequence = np.concatenate([recent[::2], recent[1::2], rest])
    turn = np.full(int(latest[0]) + 1, len(keys), dtype=np.int32)
    turn[sequence] = np.arange(len(keys), dtype=np.int32)
    return turn


def _split(
    source: Path,
    key: str,
    turn: npt.NDArray[np.int32],
    half: int,
    cuts: Sequence[tuple[int, int]],
    paths: Sequence[Path],
) -> list[pa.Table]:
    """Writes what is there before and after each change, in the source's order; returns the changes' weighted rows.

    A cut (at, count) stands for the change that inserts the ``count`` orders from turn ``at`` on and deletes as many from
    turn ``at + half`` on.
    """
    found: list[list[pa.Table]] = [[] for _ in cuts]
    with pq.ParquetFile(source) as file:
        schema = plain(file.schema_arrow.empty_table()).schema
        writers = [pq.ParquetWriter(path, schema) for path in paths]
        for batch in file.iter_batches(batch_size=_READ_ROWS):
            rows = plain(pa.Table.from_batches([batch]))
            place = turn[rows.column(key).to_numpy()]
            before = (place // half % 2 == 1) | (place >= 2 * half * len(ORDERS))
            writers[0].write_table(rows.filter(pa.array(before)), row_group_size=_GROUP_ROWS)
            for number, (at, count) in enumerate(cuts):
                inserted = (place >= at) & (place < at + count)
                deleted = (place >= at + half) & (place < at + half + count)
                after = rows.filter(pa.array(inserted | (before & ~deleted)))
                writers[number + 1].write_table(after, row_group_size=_GROUP_ROWS)
                found[number] += [_weighted(rows, inserted, 1), _weighted(rows, deleted, -1)]
        for writer in writers:
            writer.close()
    return [pa.concat_tables(parts).combine_chunks() for parts in found]


def _weighted(rows: pa.Table, chosen: npt.NDArray[np.bool_], weight: int) -> pa.Table:
    taken = rows.filter(pa.array(chosen))
    return taken.append_column(WEIGHT, pa.array(np.full(len(taken), weight, dtype=np.int64)))
