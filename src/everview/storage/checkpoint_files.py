"""The rows of a table in a file of a checkpoint: an Arrow IPC file, and a checksum for every megabyte of it.

Rows stand in batches of some hundred thousand, their weights in a last column where any is not 1. The checksums are kept with
the manifest, in the log. Contract: what ``read_rows`` gives is what ``write_rows`` was given, or it raises, with the file
and the offset of the first megabyte that is another.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from everview.errors import CorruptDatabase
from everview.storage.disk import Disk

BLOCK: Final = 2**20
_BATCH_ROWS: Final = 2**18
_WEIGHT: Final = "_weight"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of a checkpoint: its length, and the CRC-32 of each block."""

    length: int
    checksums: tuple[int, ...]


def write_rows(disk: Disk, path: Path, rows: pa.Table, weights: pa.Array | None) -> WrittenFile:
    """Writes rows, and their weights if not all are 1; the file is synced and whole when this returns.

    Raises:
        StorageFailed: the disk did not take it.
    """
    if weights is not None:
        rows = rows.append_column(pa.field(_WEIGHT, pa.int64(), nullable=False), weights)
    written = _Checksums()

    def fill(file: IO[Any]) -> None:
        sink = pa.PythonFile(_Tee(file, written), mode="w")
        with pa.ipc.new_file(sink, rows.schema) as writer:
            for start in range(0, rows.num_rows, _BATCH_ROWS):
                writer.write_table(rows.slice(start, _BATCH_ROWS).combine_chunks())

    disk.write(path, fill)
    return written.result()


def read_rows(path: Path, written: WrittenFile) -> tuple[pa.Table, pa.ChunkedArray | None]:
    """The rows of a file, and their weights if not all are 1.

    Raises:
        FileNotFoundError: there is no file.
        CorruptDatabase: it is not what was written.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CorruptDatabase(f"'{path}' cannot be read: {error.strerror or error}.") from error
    _check(path, data, written)
    try:
        rows = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    except (pa.ArrowException, OSError) as error:
        raise CorruptDatabase(f"'{path}' is not what was written: {error}.") from error
    if rows.schema.names[-1:] != [_WEIGHT]:
        return rows, None
    return rows.drop_columns([_WEIGHT]), rows.column(_WEIGHT)


def _check(path: Path, data: bytes, written: WrittenFile) -> None:
    whole = memoryview(data)
    for i, checksum in enumerate(written.checksums):
        if zlib.crc32(whole[i * BLOCK : (i + 1) * BLOCK]) != checksum:
            raise CorruptDatabase(
                f"'{path}' is not what was written: the checksum of the bytes from offset {i * BLOCK} is another.",
                hint="restore the database from a backup.",
            )
    if len(data) != written.length:
        raise CorruptDatabase(
            f"'{path}' is not what was written: it ends at offset {len(data)} instead of {written.length}.",
            hint="restore the database from a backup.",
        )


class _Checksums:
    """The CRC-32 of each block of what is written."""

    def __init__(self) -> None:
        self._length = 0
        self._done: list[int] = []
        self._open = 0

    def add(self, data: memoryview) -> None:
        """Goes on with some bytes."""
        while len(data):
            taken = data[: BLOCK - self._length % BLOCK]
            self._open = zlib.crc32(taken, self._open)
            self._length += len(taken)
            if self._length % BLOCK == 0:
                self._done.append(self._open)
                self._open = 0
            data = data[len(taken) :]

    def result(self) -> WrittenFile:
        """What was written so far."""
        last = (self._open,) if self._length % BLOCK else ()
        return WrittenFile(self._length, (*self._done, *last))


class _Tee:
    """A file for Arrow that sums up what goes through it."""

    closed = False

    def __init__(self, file: IO[Any], checksums: _Checksums) -> None:
        self._file = file
        self._checksums = checksums

    def write(self, data: Any) -> int:
        """Writes some bytes."""
        view = memoryview(data).cast("B")
        self._checksums.add(view)
        self._file.write(view)
        return len(view)

    def flush(self) -> None:
        """Nothing waits here."""

    def tell(self) -> int:
        """Where the next byte goes."""
        return self._file.tell()

    def close(self) -> None:
        """The file is closed by whoever opened it."""
