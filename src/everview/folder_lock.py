"""The lock of a database's folder: one process writes at a time, and whoever comes second is told who that is.

The lock is an ``flock`` on the file ``_lock``, which the kernel gives back when its holder ends, however it ends. The file says
who holds it. Contract: while a lock is held no other of the same folder is given out, in this process or in another.
"""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import TextIO

from everview.errors import DatabaseLocked


def lock_folder(path: Path, instead: str = "open another directory") -> TextIO:
    """The lock file, held until it is closed.

    Args:
        path: The folder.
        instead: What whoever comes second may do, for the hint.

    Raises:
        DatabaseLocked: somebody else holds it.
    """
    file = (path / "_lock").open("a+", encoding="utf-8", errors="replace")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read()
        file.close()
        raise _locked_by(holder, path, instead) from error
    file.truncate(0)
    file.write(_this_process())
    file.flush()
    return file


def _this_process() -> str:
    return f"{os.getpid()} on {socket.gethostname()}"


def _locked_by(holder: str, path: Path, instead: str) -> DatabaseLocked:
    if holder == _this_process():
        return DatabaseLocked(
            f"the database '{path}' is already open in this process.",
            hint="use the Database that is open, or close it first.",
        )
    who = f"process {holder}" if holder else "another process"  # which may not have written its number yet
    return DatabaseLocked(f"the database '{path}' is open in {who}.", hint=f"close it there, or {instead}.")
