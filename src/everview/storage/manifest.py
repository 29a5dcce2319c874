"""What a checkpoint is: the catalog, the tables' files, and how far the sources had come, all at one version.

The manifest stands in the log's SQLite file, which says by it which checkpoint is in force. Contract:
``manifest_from_json(manifest_to_json(m)) == m``, or ``CorruptDatabase``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from everview.catalog import Definition
from everview.errors import CorruptDatabase
from everview.storage.checkpoint_files import WrittenFile
from everview.storage.definitions import definition_from_json, definition_to_json


@dataclass(frozen=True, slots=True)
class TableFile:
    """Where the rows of a table are, in the checkpoint's folder; ``received`` is whether any change ever came."""

    table: str
    file: str
    rows: int
    received: bool
    written: WrittenFile


@dataclass(frozen=True, slots=True)
class Manifest:
    """A checkpoint: everything up to the log's piece ``log_number``."""

    version: int
    log_number: int
    definitions: tuple[Definition, ...] = ()
    tables: tuple[TableFile, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    publications: tuple[tuple[str, str, bool], ...] = ()
    """Views, the places where they are published, and whether that took storage options, which are not kept."""

    @property
    def length(self) -> int:
        """Bytes of the files."""
        return sum(t.written.length for t in self.tables)


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """A value that ``json`` can write."""
    return {
        "version": manifest.version,
        "log_number": manifest.log_number,
        "definitions": [definition_to_json(d) for d in manifest.definitions],
        "tables": [
            {
                "table": t.table,
                "file": t.file,
                "rows": t.rows,
                "received": t.received,
                "length": t.written.length,
                "checksums": list(t.written.checksums),
            }
            for t in manifest.tables
        ],
        "sources": dict(manifest.sources),
        "publications": [list(p) for p in manifest.publications],
    }


def manifest_from_json(written: dict[str, Any]) -> Manifest:
    """The manifest that was written.

    Raises:
        CorruptDatabase: it is none.
    """
    try:
        return Manifest(
            written["version"],
            written["log_number"],
            tuple(definition_from_json(d) for d in written["definitions"]),
            tuple(
                TableFile(
                    t["table"], t["file"], t["rows"], t["received"], WrittenFile(t["length"], tuple(t["checksums"]))
                )
                for t in written["tables"]
            ),
            written["sources"],
            tuple((view, uri, has_options) for view, uri, has_options in written["publications"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptDatabase(f"the manifest of a checkpoint cannot be read: {error!r}.") from error
