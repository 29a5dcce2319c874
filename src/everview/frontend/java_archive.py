"""An archive of the classes that Spark loads, so that a JVM of ours starts in less than half the time.

Java can write the classes that a process has loaded to a file when it exits, and map them into later processes (class data
sharing). The first JVM that we start writes one, of some 150 MB, after Python has ended; later ones read it. Java itself
checks that an archive belongs to its version and to the very jar files, and goes on without one that does not. Contract: an
archive changes how soon Spark starts and nothing else; a folder that cannot be written is no error. A JVM writes under a name
of its own, the header last, so a file with a header is whole: the next process gives it the name that all read.
"""

from __future__ import annotations

import hashlib
import os
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from everview.frontend.spark_environment import java_home
from everview.frontend.translation_cache import user_cache_folder

VARIABLE: Final = "EVERVIEW_JAVA_ARCHIVE"
"""The environment variable with the folder to use, or ``off``."""
_OFF: Final = frozenset({"off", "0", "no", "false"})
_BETWEEN_ATTEMPTS: Final = 86_400.0
"""Seconds before an archive is tried again that has not come to be: killed with its process, or no room for it."""
_UNUSED: Final = 30 * 86_400.0
"""Seconds after which an archive that nobody has read is removed."""
_QUIET: Final = "-Xlog:cds*=off"
"""Java would print on standard output why it does without an archive."""
_MAGIC: Final = 4


def archive_options() -> str:
    """What to tell a new JVM: to read the archive, to write it when it exits, or nothing."""
    folder = _folder()
    if folder is None:
        return ""
    archive = folder / f"classes-{_key()}.jsa"
    try:
        if archive.exists() or _take_finished(archive):
            os.utime(archive)  # when it was last of use
            return f"-XX:SharedArchiveFile={archive} {_QUIET}"
        if not _begin_attempt(archive.with_suffix(".tried")):
            return ""
    except OSError:  # no right to write there: Spark starts as it does without
        return ""
    return f"-XX:ArchiveClassesAtExit={archive}.{os.getpid()} {_QUIET}"


def _folder() -> Path | None:
    given = os.environ.get(VARIABLE, "")
    folder = Path(given) if given else user_cache_folder()
    # The launcher's scripts cut their options at blanks.
    return None if given.lower() in _OFF or any(c.isspace() for c in str(folder)) else folder


def _take_finished(archive: Path) -> bool:
    """Puts an archive in place that an earlier JVM has finished, and says whether there was one."""
    for written in archive.parent.glob(f"{archive.name}.*"):
        with written.open("rb") as file:
            is_whole = any(file.read(_MAGIC))
        if is_whole:
            written.replace(archive)
            return True
    return False


def _begin_attempt(mark: Path) -> bool:
    """Whether to write an archive now: only one process a day tries."""
    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if mark.exists() and time.time() - mark.stat().st_mtime < _BETWEEN_ATTEMPTS:
        return False
    for older in mark.parent.glob("classes-*"):  # of versions that are used no longer, or left half written
        is_own = older.name.startswith(f"{mark.stem}.")
        if is_own or time.time() - older.stat().st_mtime > _UNUSED:
            older.unlink(missing_ok=True)
    mark.touch()
    return True


def _key() -> str:
    """A hash of the Java and of the jar files that an archive is for."""
    hashed = hashlib.blake2b(f"{java_home()}\0".encode(), digest_size=16)
    home = os.environ.get("SPARK_HOME")
    found = find_spec("pyspark")
    places = [home] if home else list((found.submodule_search_locations if found else None) or ())
    release = java_home() / "release"
    for path in (release, *(jar for place in places for jar in sorted(Path(place, "jars").glob("*.jar")))):
        if path.exists():
            hashed.update(f"{path}\0{path.stat().st_size}\0{path.stat().st_mtime_ns}\0".encode())
    return hashed.hexdigest()
