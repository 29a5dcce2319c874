"""Change streams: transactions prepared in memory before anything is timed.

A stream is a list of steps, each a batch of rows of one table. ``round_robin`` is the order of the papers' experiments: a
batch of one table, then one of the next, until all are exhausted; a table that ends early drops out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction: a batch of one table. ``rows`` counts its rows, deletes and inserts alike."""

    table: str
    batch: pa.RecordBatch

    @property
    def rows(self) -> int:
        """How many rows it brings."""
        return int(self.batch.num_rows)


def batches_of(name: str, table: pa.Table, size: int) -> Iterator[Step]:
    """The rows of a table as inserts, ``size`` at a time."""
    # One chunk first: a batch must not end where a Parquet row group happened to.
    return (Step(name, batch) for batch in table.combine_chunks().to_batches(max_chunksize=size))


def in_turn(queues: Iterable[Iterable[Step]]) -> list[Step]:
    """One step of each queue after the other until all are exhausted."""
    return [step for step in chain.from_iterable(zip_longest(*queues)) if step is not None]


def round_robin(tables: Mapping[str, pa.Table], size: int) -> list[Step]:
    """All rows of the tables as inserts in batches of ``size`` rows of one table, round robin."""
    return in_turn(batches_of(name, table, size) for name, table in tables.items())


def inserted(steps: Sequence[Step], schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """What tables of these schemas hold after the steps, all of them inserts; one without a step is empty."""
    return {
        name: pa.Table.from_batches([step.batch for step in steps if step.table == name], schema)
        for name, schema in schemas.items()
    }


def shuffled(tables: Mapping[str, pa.Table], seed: int) -> dict[str, pa.Table]:
    """The tables with the rows of each in random order."""
    rng = np.random.default_rng(seed)
    return {name: table.take(pa.array(rng.permutation(len(table)))) for name, table in tables.items()}
