"""Several threads and several processes at one database: whole versions only, one writer, and nobody waits for long."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import everview as ev
from everview.backends.base import VersionedDelta
from tests.durable.shop import check, contents, make_shop, prepared, transaction

ROOT = Path(__file__).resolve().parents[2]

READER = """
import sys, everview as ev
from pathlib import Path
from tests.durable.shop import torn
db = ev.connect(sys.argv[1], read_only=True)
versions = []
while not versions or versions[-1] < int(sys.argv[2]):
    problem, version = torn(db)
    assert problem is None, problem
    if not versions or version != versions[-1]:
        versions.append(version)
assert versions == sorted(versions)
print(len(versions), versions[-1])
"""


def in_threads(*works: Callable[[], None]) -> list[BaseException]:
    """Runs functions at the same time; what they raise."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return failures


def test_threads_write_and_read(folder: Path) -> None:
    """Transactions of several threads are all there, and no reader sees a part of one."""
    with ev.connect(folder, durability="none") as db:
        db.create_table("pairs", "id BIGINT NOT NULL, writer INT", primary_key="id")
        ended = threading.Event()

        def write(writer: int) -> None:
            for i in range(60):
                db.apply({"pairs": [(1000 * writer + 2 * i, writer), (1000 * writer + 2 * i + 1, writer)]})

        def read() -> None:
            last = 0
            while not ended.is_set():
                count = db.table("pairs").to_arrow().num_rows
                assert count % 2 == 0
                assert count >= last
                last = count

        readers = [threading.Thread(target=lambda: failures.extend(in_threads(read))) for _ in range(2)]
        failures: list[BaseException] = []
        for reader in readers:
            reader.start()
        failures += in_threads(*(lambda w=w: write(w) for w in range(3)))
        ended.set()
        for reader in readers:
            reader.join(60)
        assert failures == []
        assert (db.version, db.table("pairs").to_arrow().num_rows) == (180, 360)
    with ev.connect(folder) as db:
        assert db.table("pairs").to_arrow().num_rows == 360


def test_processes_read_along(folder: Path) -> None:
    """Readers in other processes follow a writer, through its checkpoints, and every answer is that of one version."""
    prepared(folder, 0)
    last = 400
    command = [sys.executable, "-c", READER, str(folder), str(last + 1)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    readers = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    with ev.connect(folder, durability="none", checkpoint_bytes=100_000) as db:
        for number in range(last):
            db.apply(transaction(number))
        for reader in readers:
            out, err = reader.communicate(timeout=120)
            assert reader.returncode == 0, err[-2000:]
            assert int(out.split()[1]) == last + 1


FORKED = """
import os, sys, everview as ev
db = ev.connect(sys.argv[1])
table = db.create_table("t", "a INT")
table.insert([(1,)])
if (child := os.fork()) == 0:
    for change in (lambda: table.insert([(2,)]), lambda: db.create_table("u", "a INT"), db.checkpoint):
        try:
            change()
        except ev.DatabaseLocked as error:
            assert f"opened by process {os.getppid()}" in str(error)
        else:
            os._exit(2)
    assert table.rows() == [(1,)]
    db.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
table.insert([(3,)])
db.close()
"""


def test_a_forked_process_is_no_second_writer(folder: Path) -> None:
    """It has inherited the database and the lock: it may read its copy, changes are refused, and its parent goes on."""
    command = [sys.executable, "-c", FORKED, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    with ev.connect(folder) as db:
        assert db.table("t").rows() == [(1,), (3,)]


def test_a_reader_follows(folder: Path) -> None:
    """It sees rows, new views and drops of the writer, tells its subscribers, and changes nothing itself."""
    with ev.connect(folder) as db:
        make_shop(db)
        with ev.connect(folder, read_only=True) as reader:
            told: list[VersionedDelta] = []
            view = reader.view("by_kind")
            view.subscribe(told.append)
            db.apply(transaction(0))
            assert reader.refresh() == db.version == 2
            assert [t.version for t in told] == [2]
            assert contents(reader) == contents(db)
            db.checkpoint()
            db.apply(transaction(1))
            db.checkpoint()
            db.apply(transaction(2))
            assert sorted(view.rows()) == sorted(db.view("by_kind").rows())
            db.drop("large")
            assert "large" not in reader.views
            for call in (
                lambda: reader.apply({"events": []}),
                lambda: reader.create_table("t", "a INT"),
                lambda: reader.drop("by_kind"),
                reader.checkpoint,
            ):
                with pytest.raises(ev.UnsupportedOperation, match="read_only"):
                    call()


def test_a_reader_of_a_closed_database(folder: Path) -> None:
    """No writer is needed, and a writer may come later."""
    prepared(folder, 3)
    with ev.connect(folder, read_only=True) as reader:
        assert reader.version == 4
        check(reader)
        with ev.connect(folder) as db:
            db.apply(transaction(3))
        assert reader.version == 5
        check(reader)


def test_an_iteration_is_of_one_version(folder: Path) -> None:
    """Rows of a later version never follow those of an earlier one."""
    with ev.connect(folder) as db:
        make_shop(db)
        for number in range(10):
            db.apply(transaction(number))
        rows = iter(db.table("orders"))
        next(rows)
        db.apply(transaction(10))
        with pytest.raises(ev.UnsupportedOperation, match="was at version 11"):
            list(rows)
        assert len(list(db.table("orders"))) == len(db.table("orders").rows())
