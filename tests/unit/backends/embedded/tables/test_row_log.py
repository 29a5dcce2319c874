"""The log of rows joins small batches when there are many, and looks for them no sooner."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from everview.backends.embedded.tables.row_log import FAN_IN, RowLog

SCHEMA = pa.schema([("a", pa.int64())])


@pytest.mark.parametrize("seed", range(4))
def test_batches_are_joined_as_soon_as_there_are_many(seed: int) -> None:
    """A log that looks at its batches after every transaction has the same: sizes mix, some are undone, rows die."""
    rng = random.Random(seed)
    logs = RowLog(SCHEMA), RowLog(SCHEMA)
    for _ in range(700):
        batch = pa.record_batch([np.arange(rng.choice([1, 1, 1, 2, 5, 40, 40, 600]))], schema=SCHEMA)
        marks = [log.mark() for log in logs]
        for log in logs:
            log.append(batch)
        if rng.random() < 0.1:
            for log, mark in zip(logs, marks, strict=True):
                log.cut_back(mark)
            continue
        dice = rng.random()
        for log in logs:
            if dice < 0.01 and len(log) > 10:
                log.take(np.array([0, 1]))  # it is searched from now on, and joins larger batches too
            elif dice > 0.99:
                log.bury(np.flatnonzero(np.arange(len(log)) == len(log) // 2))
                log.compact()
        logs[1]._tidy_until = 0
        for log in logs:
            log.tidy()
        assert [b.num_rows for b in logs[0]._batches] == [b.num_rows for b in logs[1]._batches]
    assert len(logs[0]._batches) < 8 * FAN_IN
