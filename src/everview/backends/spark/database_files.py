"""The files of a database: its relations, and the commits that move them together.

Contract: ``commit`` either leaves a record on disk, and then the commit has happened, or has changed nothing. Opening reads the
last record, adds to the Delta logs what an interrupted commit left out, and checks that every segment is there.
"""

from __future__ import annotations

import datetime
import re
import shutil
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from everview.backends.base import Suspension
from everview.backends.spark.catalog_file import Entry, catalog_from_json, catalog_to_json
from everview.backends.spark.commit_log import CommitLog, Move, Record
from everview.backends.spark.lookup_copies import LOOKUP_BYTES, LookupCopies
from everview.backends.spark.relation_store import Layout, StoredRelation
from everview.backends.spark.stages import view_of_relation
from everview.errors import CorruptDatabase

if TYPE_CHECKING:
    from everview.backends.spark.staged_frames import StagedChange

Fault = Callable[[str], None]


class DatabaseFiles:
    """The directory of one database, which this process has to itself.

    Args:
        path: The directory; made if it is not there.
        fault: Called with the name of each step of a commit; tests make it raise.
        lookup_bytes: How much disk the driver's copies of large segments may take.
    """

    def __init__(self, path: Path, fault: Fault = lambda _step: None, lookup_bytes: int = LOOKUP_BYTES) -> None:
        self.path = path
        self.fault = fault
        path.mkdir(parents=True, exist_ok=True)
        self._log = CommitLog(path)
        self.copies = LookupCopies(path / "_lookup", lookup_bytes)
        self.relations: dict[str, StoredRelation] = {}
        self.entries: list[Entry] = []
        self.staged: weakref.WeakSet[StagedChange] = weakref.WeakSet()
        """Changes whose files wait for their commit."""
        self._unfinished: Record | None = None

    @property
    def last(self) -> Record:
        """The last commit; an empty one for a new database."""
        return self._log.last or Record(-1, 0, "catalog", _now(), -1, {})

    def open(self, layouts_of: Callable[[list[Entry]], Mapping[str, Layout]]) -> None:
        """Reads the catalog and the relations that its definitions need, which ``layouts_of`` knows.

        Relations of a view that is there, and that it does not need, are of another program: the next commit leaves them out.

        Raises:
            CorruptDatabase: something is missing or not what was written.
        """
        last = self._log.last
        if last is None:
            return
        self.entries = catalog_from_json(self._log.read_catalog(last.catalog)) if last.catalog >= 0 else []
        wanted = layouts_of(self.entries)
        for name, (folder, version) in last.relations.items():
            if name not in wanted:
                if view_of_relation(name) in wanted:
                    continue
                raise CorruptDatabase(f"the last commit names a relation '{name}' that the catalog does not have.")
            relation = StoredRelation(name, self.path / "relations" / folder, wanted[name], copies=self.copies)
            relation.recover(version, last.moves.get(name), last.sequence)
            relation.check_files()
            self.relations[name] = relation

    def new_relation(self, name: str, layout: Layout) -> StoredRelation:
        """A relation that the next commit may add."""
        safe = re.sub(r"[^A-Za-z0-9_]", ".", name)
        folder = self.path / "relations" / f"{safe}-{self.last.sequence + 1}"
        return StoredRelation(name, folder, layout, copies=self.copies)

    def commit(
        self,
        kind: str,
        version: int,
        moves: Mapping[str, Move],
        *,
        sources: Mapping[str, int] | None = None,
        received: frozenset[str] | None = None,
        entries: list[Entry] | None = None,
        added: Mapping[str, StoredRelation] | None = None,
        dropped: frozenset[str] = frozenset(),
        suspended: Mapping[str, Suspension] | None = None,
    ) -> Record:
        """Commits moves of relations, and perhaps a new catalog with relations added and dropped, and other suspended views."""
        self._finish()
        last = self.last
        sequence = last.sequence + 1
        relations = {n: r for n, r in {**self.relations, **(added or {})}.items() if n not in dropped}
        places = {
            name: (r.folder.name, r.version + (1 if name in moves or r.version < 0 else 0))
            for name, r in relations.items()
        }
        every = {**{n: Move() for n in (added or {})}, **moves}
        self.fault("before the record")
        if entries is not None:
            self._log.write_catalog(sequence, catalog_to_json(entries))
        record = Record(
            sequence,
            version,
            kind,
            _now(),
            last.catalog if entries is None else sequence,
            places,
            every,
            dict(last.sources if sources is None else sources),
            tuple(sorted(last.received if received is None else received)),
            {n: s for n, s in (last.suspended if suspended is None else suspended).items() if n not in dropped},
        )
        self._log.append(record)
        for name in dropped:
            self.relations[name].forget_copies()
        self.relations = relations
        for name, move in every.items():
            relations[name].moved(move)
        if entries is not None:
            self.entries = entries
        self._unfinished = record
        self.fault("after the record")
        self._finish()
        self.fault("after the commit")
        return record

    def _finish(self) -> None:
        """Adds the last commit's moves to the Delta logs; what fails is tried again before the next commit."""
        record = self._unfinished
        if record is None:
            return
        for name, move in record.moves.items():
            relation = self.relations.get(name)
            if relation is not None and relation.version < record.relations[name][1]:
                relation.commit(move, record.sequence)
                self.fault("between the Delta commits")
        self._unfinished = None

    def last_batch(self, source: str) -> int | None:
        """The last committed batch of a source."""
        return self.last.sources.get(source)

    def records_since(self, version: int) -> list[Record]:
        """The records of the transactions after a version, oldest first, as far as they are kept."""
        found = []
        for record in self._log.backwards():
            if record.version <= version:
                break
            if record.kind == "apply":
                found.append(record)
        return found[::-1]

    def record_at(self, version: int) -> Record | None:
        """The last record of a version, if it is kept."""
        for record in self._log.backwards():
            if record.version == version:
                return record
            if record.version < version:
                break
        return None

    def check_outside(self) -> None:
        """Raises UnsupportedOperation if files of a followed Delta table that are needed are gone."""
        for relation in self.relations.values():
            relation.check_outside()

    def oldest_version(self) -> int:
        """The version before the oldest transaction whose record is kept."""
        first = self._log.first()
        return 0 if first is None else max(0, first.version - (1 if first.kind == "apply" else 0))

    def vacuum(self) -> int:
        """Removes the files and records that only older versions need; returns the number of files."""
        self._finish()
        if self._log.last is None:
            return 0
        removed = 0
        staged = {path for change in self.staged for path in change.paths}
        self._log.forget_before(self.last.sequence)  # first: a version that can be travelled to has its files
        for relation in self.relations.values():
            needed = {s.path for s in relation.held}
            for path in list(relation.folder.rglob("*.parquet")):
                inside = path.relative_to(relation.folder)
                if inside.parts[0] != "_delta_log" and inside.as_posix() not in needed and path not in staged:
                    path.unlink()
                    removed += 1
        live = {r.folder.name for r in self.relations.values()}
        for folder in (self.path / "relations").glob("*"):
            if folder.name not in live:
                shutil.rmtree(folder)
                removed += 1
        return removed

    def close(self) -> None:
        """Lets other processes in."""
        self.copies.close()
        self._log.close()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()
