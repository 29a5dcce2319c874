"""Kills writers again and again, and looks at what they leave.

    python -m tests.durable.killed_writers DIR KILLS SEED        at random moments
    python -m tests.durable.killed_writers DIR steps             at each step of a checkpoint

A writer is forked, so that it costs no start: it opens the database and applies one numbered transaction after another, with a
checkpoint every few of them, and says through a pipe which ones have returned. It is killed with SIGKILL, at a random moment
from its first instruction on. Afterwards the database must hold every transaction that returned and at most one more, its
tables must be those of a database in memory that took the same transactions, and its views those of the reference backend.
"""

from __future__ import annotations

import os
import random
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import everview as ev
from everview.backends.embedded.backend import EmbeddedBackend
from everview.session.database import Database
from everview.session.durable.durable_backend import DurableBackend
from everview.storage.disk import Disk
from tests.durable.shop import check, contents, make_shop, prepared, transaction

NUMBER = struct.Struct("<q")
FEW = 40_000
"""Bytes of log before a checkpoint: about eight transactions."""


def write(path: Path, pipe: int, durability: str) -> None:
    """What the writer does, until it is killed."""
    db = ev.connect(path, durability=durability, checkpoint_bytes=FEW)
    number = db.version - 1
    while True:
        db.apply(transaction(number))
        os.write(pipe, NUMBER.pack(number))
        number += 1


def kill_a_writer(path: Path, seconds: float, durability: str, *, works: bool) -> int:
    """Kills a writer some seconds after its start, or after its first transaction (``works``).

    Returns:
        How many transactions of the shop it has said to be there; 0 where it said nothing.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(path, writing, durability)
        finally:
            os._exit(1)  # it never returns by itself
    os.close(writing)
    if works:
        select.select([reading], [], [], 60.0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    said = b""
    while more := os.read(reading, 2**16):
        said += more
    os.close(reading)
    return 1 + NUMBER.unpack(said[-NUMBER.size :])[0] if said else 0


def run(path: Path, kills: int, seed: int) -> None:
    """Kills writers of one database.

    Raises:
        AssertionError: something acknowledged is lost, or something else is there.
    """
    rng = random.Random(seed)
    expected = ev.connect()
    make_shop(expected)
    with ev.connect(path) as db:
        make_shop(db)
    applied = 0
    for kill in range(kills):
        durability = rng.choice(("commit", "commit", "batch", "none"))
        said = kill_a_writer(path, rng.random() * 0.3, durability, works=rng.random() < 0.7)
        acknowledged = max(said, applied)
        with ev.connect(path) as db:
            there = db.version - 1
            assert acknowledged <= there <= acknowledged + 1, (kill, acknowledged, there)
            while applied < there:
                expected.apply(transaction(applied))
                applied += 1
            found = contents(db)
            assert {n: c for n, c in found.items() if n in db.tables} == {
                n: c for n, c in contents(expected).items() if n in db.tables
            }
            check(db)
    print(f"{kills} kills, {applied} transactions")


def opened(path: Path, fault: Callable[[str, Path], None]) -> Database:
    """A database whose disk calls ``fault`` before each step."""
    return Database(DurableBackend(path, EmbeddedBackend, disk=Disk(fault)))


def run_steps(path: Path) -> None:
    """Kills a writer at each step of a checkpoint.

    Raises:
        AssertionError: something is lost.
    """
    steps: list[str] = []
    prepared(path / "counted", 5)
    with opened(path / "counted", lambda step, _file: steps.append(step)) as db:
        steps.clear()
        db.checkpoint()
    assert set(steps) == {"write", "fsync", "rename"}
    prepared(path / "shop", 5)
    with ev.connect(path / "shop") as db:
        before = contents(db)
    for at in range(len(steps)):
        child = os.fork()
        if child == 0:
            try:
                _die_in_checkpoint(path / "shop", at)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"step {at} of {steps}"
        with ev.connect(path / "shop") as db:
            assert contents(db) == before
            check(db)
    with ev.connect(path / "shop") as db:
        db.checkpoint()
        db.apply(transaction(5))
        check(db)
    assert len(list((path / "shop" / "checkpoints").iterdir())) == 1
    print(f"{len(steps)} steps")


def _die_in_checkpoint(path: Path, at: int) -> None:
    left: int | None = None

    def die(_step: str, _path: Path) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if left is not None:
            left -= 1

    db = opened(path, die)
    left = at
    db.checkpoint()


if __name__ == "__main__":
    if sys.argv[2] == "steps":
        run_steps(Path(sys.argv[1]))
    else:
        run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
