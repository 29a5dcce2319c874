"""Translations of queries, kept on disk between processes, so that the second run of a program starts no JVM.

A translation is a function of the query's text, the columns of the tables and views that the text may mean, what the session
sees beside them, the registered rings, and the versions of Spark and of our own front end. An entry is one file, named by a
hash of all of these, holding JSON with a checksum: nothing in it can be executed. It is put in place in one move, so processes
that write the same entry at the same time do no harm. Contract: ``find`` answers what was kept under exactly this key, or
nothing; a file that is not whole counts as nothing, and so does a folder that cannot be read or written.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

VARIABLE: Final = "EVERVIEW_TRANSLATION_CACHE"
"""The environment variable with the folder to use, or ``off``."""
MOST_ENTRIES: Final = 8192
MOST_BYTES: Final = 128 * 2**20
LARGEST_ENTRY: Final = 4 * 2**20
KEPT_FOLDERS: Final = 4
"""Folders of translations, of as many versions of the front end."""
_OFF: Final = frozenset({"off", "0", "no", "false"})
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_SOURCES: Final = ("frontend", "relational", "algebra")
_DIGEST: Final = 16
_WRITES_BETWEEN_SWEEPS: Final = 256


def open_cache(wanted: bool | str | os.PathLike[str] = True) -> TranslationCache | None:
    """The cache in the folder that is asked for: by the caller, else by the environment, else at the user's home.

    ``False``, or ``off`` in the environment, is none.
    """
    given = os.environ.get(VARIABLE, "")
    if wanted is False or (wanted is True and given.lower() in _OFF):
        return None
    if wanted is not True:
        return TranslationCache(Path(wanted))
    return TranslationCache(Path(given) if given else user_cache_folder())


class TranslationCache:
    """Small JSON values by the hash of their key, in a folder for this version of the front end."""

    def __init__(self, root: Path) -> None:
        self.folder = root / f"translations-{front_end_version()}"
        self._is_marked = False
        self._writes = 0

    def find(self, key: Any) -> Any | None:
        """The value kept under this key, or None."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        data = content[_DIGEST:]
        if content[:_DIGEST] != hashlib.blake2b(data, digest_size=_DIGEST).digest():
            return None
        self._mark_used(path)
        return json.loads(data)

    def keep(self, key: Any, value: Any) -> None:
        """Keeps a value, if there is room for it."""
        data = json.dumps(value, separators=(",", ":")).encode()
        if len(data) > LARGEST_ENTRY:
            return
        path = self._path(key)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._remove_old_folders()
            temporary.write_bytes(hashlib.blake2b(data, digest_size=_DIGEST).digest() + data)
            temporary.replace(path)
            if self._writes % _WRITES_BETWEEN_SWEEPS == 0:
                self._remove_old_entries()
            self._writes += 1
        except OSError:  # no room, or no right to write: the next process asks Spark again
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        text = json.dumps(key, separators=(",", ":"), sort_keys=True)
        name = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST).hexdigest()
        return self.folder / f"{name}.json"

    def _mark_used(self, path: Path) -> None:
        """The time of a file is when it was last of use."""
        try:
            os.utime(path)
            if not self._is_marked:
                self._is_marked = True
                os.utime(self.folder)
        except OSError:  # a folder that can only be read, or an entry that another process has just removed
            return

    def _remove_old_entries(self) -> None:
        """Removes what was used longest ago once there is too much, and what dead processes have left half written."""
        files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in os.scandir(self.folder))
        count, size = len(files), sum(size for _, size, _ in files)
        if count <= MOST_ENTRIES and size <= MOST_BYTES:
            return
        for _, length, path in files:
            if count <= MOST_ENTRIES // 2 and size <= MOST_BYTES // 2:
                break
            Path(path).unlink(missing_ok=True)
            count, size = count - 1, size - length

    def _remove_old_folders(self) -> None:
        others = [f for f in self.folder.parent.glob("translations-*") if f != self.folder]
        others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in others[KEPT_FOLDERS - 1 :]:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def front_end_version() -> str:
    """A hash of Spark's version and of all sources that a translation passes through."""
    hashed = hashlib.blake2b(digest_size=_DIGEST)
    hashed.update(f"{metadata.version('pyspark')} {sys.implementation.cache_tag}".encode())
    for path in sorted(path for part in _SOURCES for path in (_PACKAGE / part).rglob("*.py")):
        content = hashlib.blake2b(path.read_bytes(), digest_size=_DIGEST).digest()
        hashed.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + content)
    return hashed.hexdigest()


def user_cache_folder() -> Path:
    """The user's folder for what can be made again, by the custom of the system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "everview" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "everview"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everview"
