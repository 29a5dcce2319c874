"""Ctrl-C, at any moment: a transaction is there whole or not at all, in memory and on disk, and the database goes on."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

import everview as ev
from tests.durable.shop import check, contents, make_shop, transaction

_STRIDE = 11
"""Calls of functions between one interruption and the next."""


@pytest.fixture(autouse=True)
def interruptions() -> Iterator[None]:
    """Workers of pytest ignore Ctrl-C; an alarm is raised in its stead."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.signal(signal.SIGALRM, before)


def interrupted_at(step: int, work: Callable[[], object]) -> bool:
    """Runs something with a signal when it calls its function number ``step``; whether it was interrupted."""
    left = step

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal left
        left -= event == "call"
        if left == 0:
            left = -1
            signal.raise_signal(signal.SIGALRM)

    sys.setprofile(count)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_a_transaction_is_interrupted_anywhere(place: str, folder: Path) -> None:
    """It has happened or it has not, views are those of its tables, and the transactions behind it succeed."""
    db, expected = ev.connect(folder if place == "disk" else None), ev.connect()
    make_shop(db)
    make_shop(expected)
    committed, reached = 0, 0

    def work() -> None:
        db.apply(transaction(committed))

    for step in itertools.count(1, _STRIDE):
        if not interrupted_at(step, work):
            break
        reached = step
        if db.version - 1 == committed + 1:
            expected.apply(transaction(committed))
            committed += 1
        assert db.version - 1 == committed, step
        assert contents(db) == contents(expected), step
    check(db)
    assert reached > 100
    db.close()
    if place == "disk":
        expected.apply(transaction(committed))
        with ev.connect(folder) as again:
            assert contents(again) == contents(expected)
            check(again)
