"""The commit log: one record a transaction, which makes many Delta tables move together.

A transaction first writes its segments, then its record (a new file that appears whole, if there is none of that name), then
adds the segments to the tables' own Delta logs. The record is the commit: before it nothing has happened; after it, what the
Delta logs lack is added when the database is opened. A record holds the whole state by reference: the version of every table,
the catalog, the last batch of every stream; so opening reads the last record alone, and an older one can be travelled back to.
"""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from everview.backends.base import Suspension
from everview.backends.spark.segments import Segment, segment_from_json
from everview.errors import CorruptDatabase, DatabaseLocked
from everview.folder_lock import lock_folder

_FORMAT: Final = 1
_DIGITS: Final = 20
_SCRATCH: Final = ".tmp"
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


@dataclass(frozen=True, slots=True)
class Move:
    """What a transaction does to one relation's files."""

    add: tuple[Segment, ...] = ()
    remove: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One commit.

    ``relations`` gives for every relation its folder and the version of its Delta log that belongs to this commit; ``moves``
    what this commit changed; ``kind`` is ``apply``, ``catalog`` or ``compact``.
    """

    sequence: int
    version: int
    kind: str
    committed_at: str
    catalog: int
    relations: dict[str, tuple[str, int]]
    moves: dict[str, Move] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    received: tuple[str, ...] = ()
    suspended: dict[str, Suspension] = field(default_factory=dict)
    """The views that have no answer, by key: their relations are as they were when they last had one."""

    def to_json(self) -> dict[str, Any]:
        """A value that ``json`` can write."""
        return {
            "format": _FORMAT,
            "sequence": self.sequence,
            "version": self.version,
            "kind": self.kind,
            "committed_at": self.committed_at,
            "catalog": self.catalog,
            "relations": {name: list(place) for name, place in self.relations.items()},
            "moves": {
                name: {"add": [s.to_json() for s in m.add], "remove": [s.to_json() for s in m.remove]}
                for name, m in self.moves.items()
            },
            "sources": self.sources,
            "received": list(self.received),
            "suspended": {name: [s.version, s.reason, s.condition] for name, s in self.suspended.items()},
        }


class CommitLog:
    """The records of a database directory, which this process has to itself.

    Raises:
        DatabaseLocked: it is open already, here or in another process.
        CorruptDatabase: the last record cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._commits, self._catalogs = path / "_commits", path / "_catalog"
        for folder in (self._commits, self._catalogs):
            folder.mkdir(parents=True, exist_ok=True)
        self._lock: TextIO | None = lock_folder(path)
        self.last: Record | None = None
        try:
            for left in (p for folder in (self._commits, self._catalogs) for p in folder.glob(f"*{_SCRATCH}")):
                left.unlink()
            sequences = self._sequences()
            self.last = self.read(sequences[-1]) if sequences else None
        except BaseException:
            self.close()
            raise

    def append(self, record: Record) -> None:
        """Commits: afterwards the record is on disk whatever happens.

        Raises:
            DatabaseLocked: another process has committed meanwhile, on a store where the lock does not hold it off.
        """
        try:
            put_if_absent(self._file(record.sequence), json.dumps(record.to_json()))
        except FileExistsError as error:
            raise self._overtaken(record.sequence) from error
        self.last = record

    def _overtaken(self, sequence: int) -> DatabaseLocked:
        return DatabaseLocked(
            f"commit {sequence} of the database '{self.path}' was made by another process.",
            hint="close the database here and open it again; one process may write at a time.",
        )

    def read(self, sequence: int) -> Record:
        """One record."""
        path = self._file(sequence)
        try:
            written = json.loads(path.read_text(encoding="utf-8"))
            if written["format"] != _FORMAT:
                raise CorruptDatabase(f"'{path}' was written by another version of everview.")
            return Record(
                written["sequence"],
                written["version"],
                written["kind"],
                written["committed_at"],
                written["catalog"],
                {name: (place[0], place[1]) for name, place in written["relations"].items()},
                {
                    name: Move(
                        tuple(segment_from_json(s) for s in m["add"]), tuple(segment_from_json(s) for s in m["remove"])
                    )
                    for name, m in written["moves"].items()
                },
                written["sources"],
                tuple(written["received"]),
                {name: Suspension(*why) for name, why in written.get("suspended", {}).items()},
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptDatabase(f"the commit record '{path}' cannot be read: {error!r}.") from error

    def first(self) -> Record | None:
        """The oldest record that is kept."""
        sequences = self._sequences()
        return self.read(sequences[0]) if sequences else None

    def backwards(self) -> Iterator[Record]:
        """The records, newest first."""
        for sequence in reversed(self._sequences()):
            yield self.read(sequence)

    def write_catalog(self, number: int, catalog: Any) -> None:
        """Writes a catalog for a record to refer to."""
        try:
            put_if_absent(self._catalog_file(number), json.dumps(catalog))
        except FileExistsError as error:
            if self._file(number).exists():
                raise self._overtaken(number) from error
            self._catalog_file(number).unlink()  # of a commit that failed before its record
            put_if_absent(self._catalog_file(number), json.dumps(catalog))

    def read_catalog(self, number: int) -> Any:
        """The catalog that a record refers to."""
        path = self._catalog_file(number)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CorruptDatabase(f"the catalog '{path}' cannot be read: {error}.") from error

    def forget_before(self, sequence: int) -> None:
        """Removes older records; their versions can no longer be travelled to."""
        for old in self._sequences():
            if old < sequence:
                self._file(old).unlink(missing_ok=True)

    def close(self) -> None:
        """Lets other processes in."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _sequences(self) -> list[int]:
        return sorted(int(p.stem) for p in self._commits.glob("*.json"))

    def _file(self, sequence: int) -> Path:
        return self._commits / f"{sequence:0{_DIGITS}d}.json"

    def _catalog_file(self, number: int) -> Path:
        return self._catalogs / f"{number:0{_DIGITS}d}.json"


def put_if_absent(path: Path, text: str) -> None:
    """A file that is there whole or not at all, also after a power cut, and that never takes the place of another.

    It appears under its name by a link, which unlike a rename fails if there is one. Stores without links, as mounted object
    stores, show a file when it is closed: there it is made under its own name.

    Raises:
        FileExistsError: there is a file of this name.
    """
    scratch = path.with_name(f"{path.stem}-{uuid.uuid4().hex}{_SCRATCH}")
    try:
        _write_durably(scratch, text)
        os.link(scratch, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write_durably(path, text)
    finally:
        scratch.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_durably(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
