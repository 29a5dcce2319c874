"""What the log is made of: records, each one transaction or one change of the catalog, cut into pieces with a checksum.

A record is a header, which is JSON, and a body, which is the Arrow messages of its batches, one behind the other. A piece is a
row of the log; the first has the header. Pieces are numbered without gaps, so a missing one shows; each has a CRC-32 of its
number, header and bytes, so a changed one shows. Contract: what is read is what was written, or ``BrokenPiece`` is raised.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

Bytes = bytes | memoryview
LARGEST_PIECE: Final = 16 * 2**20
"""Bytes of a body in one row; SQLite takes a thousand million at most, and a megabyte is handled as fast as any more."""


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A row of the log."""

    number: int
    header: str
    body: bytes
    checksum: int


@dataclass(frozen=True, slots=True)
class LogRecord:
    """What was written at once: the number of its last piece, its header, and its body."""

    number: int
    header: dict[str, Any]
    body: memoryview
    first: int


class BrokenPiece(Exception):
    """A piece is not what was written."""

    def __init__(self, number: int, why: str, near: bytes = b"") -> None:
        super().__init__(why)
        self.number = number
        self.near = near
        """Bytes of it as they are on disk, to find the place."""


def checksum_of(number: int, header: str, body: Bytes) -> int:
    """The CRC-32 of a piece."""
    return zlib.crc32(body, zlib.crc32(header.encode(), number & 0xFFFFFFFF))


def pieces_of(header: dict[str, Any], body: Sequence[Bytes], first: int) -> list[LogPiece]:
    """The pieces of a record, of which the first has this number.

    >>> [p.number for p in pieces_of({"kind": "apply"}, [b"abc"], 7)]
    [7]
    """
    bodies = list(_cut(body))
    text = json.dumps({**header, "pieces": len(bodies)}, separators=(",", ":"))
    made = []
    for i, part in enumerate(bodies):
        own = text if i == 0 else ""
        made.append(LogPiece(first + i, own, part, checksum_of(first + i, own, part)))
    return made


def _cut(body: Sequence[Bytes]) -> Iterator[bytes]:
    """The body in parts of no more than ``LARGEST_PIECE``, at least one."""
    if sum(len(b) for b in body) <= LARGEST_PIECE:
        yield b"".join(body)
        return
    waiting: list[Bytes] = []
    size = 0
    for segment in body:
        view = memoryview(segment)
        while view:
            taken = view[: LARGEST_PIECE - size]
            waiting.append(taken)
            size += len(taken)
            view = view[len(taken) :]
            if size == LARGEST_PIECE:
                yield b"".join(waiting)
                waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def records_from(pieces: Iterable[LogPiece], after: int) -> Iterator[LogRecord]:
    """The records of pieces that stand in order, the first of which is to have the number after ``after``.

    Raises:
        BrokenPiece: one is missing, or not what was written.
    """
    waiting: list[bytes] = []
    header: dict[str, Any] = {}
    first = expected = after + 1
    for piece in pieces:
        near = piece.body[:256] or piece.header.encode()[:256]
        if piece.number != expected:
            raise BrokenPiece(expected, f"piece {expected} is missing, the next is {piece.number}", near)
        if checksum_of(piece.number, piece.header, piece.body) != piece.checksum:
            raise BrokenPiece(piece.number, "its checksum is another", near)
        expected += 1
        if not waiting:
            header, first = _read_header(piece), piece.number
        waiting.append(piece.body)
        if len(waiting) == header["pieces"]:
            yield LogRecord(
                piece.number, header, memoryview(b"".join(waiting) if len(waiting) > 1 else waiting[0]), first
            )
            waiting = []
    if waiting:
        raise BrokenPiece(expected, "the end of a record is missing")


def _read_header(piece: LogPiece) -> dict[str, Any]:
    try:
        header = json.loads(piece.header)
        if isinstance(header, dict) and isinstance(header["pieces"], int):
            return header
    except (ValueError, KeyError):
        pass
    raise BrokenPiece(piece.number, "it has no header", piece.body[:256])
