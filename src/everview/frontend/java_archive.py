"""An archive of the classes that Spark loads, with which a JVM of ours starts in half the time.

Java can write the classes that a process has loaded to a file when it exits, and map them into later processes (class data
sharing). A JVM that is to write one is slow all along, so no user waits for it: where there is no archive, a process of its
own makes one after ours has ended (``write_java_archive.py``), of some 150 MB. Java itself checks that an archive belongs to
its version and to the very jar files, and goes on without one that does not. Contract: an archive changes how soon Spark starts
and nothing else; a folder that cannot be written is no error.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import subprocess
import sys
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


def archive_options() -> str:
    """What to tell a new JVM: to read the archive. Where there is none: nothing, and one is made when this process ends."""
    folder = _folder()
    if folder is None:
        return ""
    archive = folder / f"classes-{_key()}.jsa"
    try:
        if archive.exists():
            _note_use(archive)
            return f"-XX:SharedArchiveFile={archive} {_QUIET}"
        if _may_try(_mark_of(archive)):
            atexit.register(make_later, archive)
    except OSError:  # no right to look there: Spark starts as it does without
        return ""
    return ""


def writing_options(archive: Path) -> str:
    """What to tell the JVM whose classes are to be written."""
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}"


def make_later(archive: Path) -> None:
    """Lets a process of its own make the archive, silent and of the least priority; one process a day tries."""
    mark = _mark_of(archive)
    try:
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _may_try(mark) or not sys.executable:
            return
        for older in mark.parent.glob("classes-*"):  # of versions that are used no longer, or left half written
            if older.name.startswith(f"{mark.stem}.") or time.time() - older.stat().st_mtime > _UNUSED:
                older.unlink(missing_ok=True)
        mark.touch()
        subprocess.Popen(
            [sys.executable, "-P", "-m", "everview.frontend.write_java_archive", str(archive)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, RuntimeError):  # no right to write, or the interpreter starts no more processes: no archive today
        return


def _folder() -> Path | None:
    given = os.environ.get(VARIABLE, "")
    folder = Path(given) if given else user_cache_folder()
    # The launcher's scripts cut their options at blanks.
    return None if given.lower() in _OFF or any(c.isspace() for c in str(folder)) else folder


def _mark_of(archive: Path) -> Path:
    """The file whose age says when an archive was tried last."""
    return archive.with_suffix(".tried")


def _may_try(mark: Path) -> bool:
    return not mark.exists() or time.time() - mark.stat().st_mtime >= _BETWEEN_ATTEMPTS


def _note_use(archive: Path) -> None:
    """Notes when the archive was last of use, where the folder may be written."""
    if os.access(archive, os.W_OK):
        os.utime(archive)


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
