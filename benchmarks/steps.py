"""Change streams: transactions prepared in memory before anything is timed.

A stream is a list of steps. ``round_robin`` is the order of F-IVM's experiments: a batch of one table, then one of the next,
until all are exhausted; a table that ends early drops out. ``mixed`` is that of DBToaster's: the tables take turns row by row,
and a transaction is the next so many rows, of whatever tables they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TypeAlias

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

    @property
    def changes(self) -> dict[str, pa.RecordBatch]:
        """What ``db.apply`` takes."""
        return {self.table: self.batch}


@dataclass(frozen=True, slots=True)
class MixedStep:
    """One transaction: a batch of each of several tables."""

    changes: dict[str, pa.RecordBatch]

    @property
    def rows(self) -> int:
        """How many rows it brings."""
        return sum(int(batch.num_rows) for batch in self.changes.values())


AnyStep: TypeAlias = Step | MixedStep


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


def mixed(tables: Mapping[str, pa.Table], size: int) -> list[MixedStep]:
    """All rows of the tables as inserts: one of each table in turn until all are exhausted, ``size`` to a transaction.

    >>> few, many = pa.table({"x": [1, 2]}), pa.table({"y": range(5)})
    >>> [{t: b.num_rows for t, b in step.changes.items()} for step in mixed({"few": few, "many": many}, 3)]
    [{'few': 2, 'many': 1}, {'many': 3}, {'many': 1}]
    """
    whole = {name: _one_batch(table) for name, table in tables.items() if len(table)}
    lengths = [batch.num_rows for batch in whole.values()]
    owners = np.repeat(np.arange(len(whole)), lengths)
    turns = np.concatenate([np.arange(length) for length in lengths])
    order = owners[np.lexsort((owners, turns))]
    ends = [np.append(np.cumsum(order == i)[size - 1 :: size], lengths[i]) for i in range(len(whole))]
    steps, taken = [], [0] * len(whole)
    for number in range(math.ceil(len(order) / size)):
        changes = {}
        for i, (name, batch) in enumerate(whole.items()):
            end = int(ends[i][number])
            if end > taken[i]:
                changes[name] = batch.slice(taken[i], end - taken[i])
                taken[i] = end
        steps.append(MixedStep(changes))
    return steps


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    (batch,) = table.combine_chunks().to_batches()
    return batch


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
