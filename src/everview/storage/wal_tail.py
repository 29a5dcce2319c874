"""What SQLite leaves unread at the end of its write-ahead log: the rest of a crash, or bytes that have changed since.

SQLite checks every frame of the WAL and ends reading at the first that is wrong. After a crash that is the transaction which
was being written, and nothing else: every commit is synced before the next begins. Two commits or more behind the first
wrong frame therefore were acknowledged, and the frame has been changed since. (One could be the torn transaction itself, of
which a power cut may leave the later frames without the earlier: it is taken for that.) The format is section 4 of
https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

_HEADER: Final = struct.Struct(">8I")
"""Magic, format, page size, sequence, two salts, two checksums."""
_FRAME: Final = struct.Struct(">6I")
"""Page, pages after a commit (0 for other frames), two salts, two checksums."""
_MAGIC: Final = (0x377F0682, 0x377F0683)
"""With checksums over little-endian and big-endian words."""
_MASK: Final = 0xFFFFFFFF


def changed_at(wal: Path, frames_read: int) -> int | None:
    """The offset at which a WAL of whole commits was changed; None where it ends as a crash may leave it.

    Args:
        wal: The file; it need not be there.
        frames_read: How many frames SQLite has taken for good.
    """
    try:
        file = wal.open("rb")
    except FileNotFoundError:
        return None
    with file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size or not any(header):
            return None
        magic, _, page_size, _, *salts, first, second = _HEADER.unpack(header)
        if magic not in _MAGIC or _checksum(header[:24], big=magic == _MAGIC[1]) != (first, second):
            return 0
        wrong = _HEADER.size + frames_read * (_FRAME.size + page_size)
        at, commits = wrong, 0
        while True:
            file.seek(at)
            frame = file.read(_FRAME.size)
            if len(frame) < _FRAME.size:
                break
            _, pages, *own, _, _ = _FRAME.unpack(frame)
            commits += own == salts and pages != 0
            at += _FRAME.size + page_size
        return wrong if commits > 1 else None


def _checksum(data: bytes, *, big: bool) -> tuple[int, int]:
    words = struct.unpack(f"{'>' if big else '<'}{len(data) // 4}I", data)
    first = second = 0
    for a, b in zip(words[::2], words[1::2], strict=True):
        first = (first + a + second) & _MASK
        second = (second + b + first) & _MASK
    return first, second
