"""Where compiled kernels are kept between processes.

Compiled code bakes in what its module imports: the fields of maps, the codes of instructions, the intrinsics, other kernels.
Code that is older than one of these would write through raw addresses to wrong places. So the key of all compiled code is one
hash over the sources of all kernels, beside what Numba asks for: its own version, LLVM's, Python's and the processor.

A compiled kernel is one file, named by its key and put in place in one move. Processes that compile the same kernel at the same
time write the same file; there is no index that they could spoil. Folders of other sources go, but for those used last.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import serialize
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.misc.appdirs import AppDirs

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = (
    "state/*.py",
    "tree/layout.py",
    "tree/instruction.py",
    "tree/instructions.py",
    "tree/kernels/*.py",
    "*/*_kernels.py",
)
"""All modules with kernels, and all whose constants, intrinsics and kernels these use, as seen from the embedded backend."""
IS_CHECKED = os.environ.get("EVERVIEW_CHECKED", "") not in ("", "0")
"""Whether kernels test what they read and write (see ``checks``)."""
KEPT_FOLDERS = 4
"""Folders of compiled kernels, of as many versions of the sources."""
_DIGEST = 16


def source_files() -> list[Path]:
    """The files that compiled code depends on."""
    return sorted({path for pattern in SOURCES for path in PACKAGE.glob(pattern)})


@cache
def _version() -> str:
    """The hash of all that compiled code depends on besides the processor."""
    hashed = hashlib.blake2b(digest_size=_DIGEST)
    tools = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag, IS_CHECKED)
    hashed.update(repr(tools).encode())
    for path in source_files():
        hashed.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + _hash(path))
    return hashed.hexdigest()


@cache
def _hash(path: Path) -> bytes:
    return hashlib.blake2b(path.read_bytes(), digest_size=_DIGEST).digest()


@cache
def _folders() -> tuple[Path, ...]:
    """Where to look, and where to write: ``NUMBA_CACHE_DIR``, or next to the sources, or where those are read-only, at home."""
    chosen: str = getattr(numba.config, "CACHE_DIR", "")
    if chosen:
        roots = [Path(chosen) / "everview"]
    else:
        home = AppDirs(appname="everview", appauthor=False)
        roots = [PACKAGE / "__pycache__", Path(home.user_cache_dir)]
    return tuple(root / f"kernels-{_version()}" for root in roots)


@cache
def _writable_folder() -> Path | None:
    """The first folder that can be written to, made if need be; None if there is none."""
    for folder in _folders():
        try:
            is_new = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        if is_new:
            _remove_old(folder)
        return folder
    return None


def _remove_old(own: Path) -> None:
    """Removes the folders of other sources but for the last that were used; whoever still runs them compiles anew."""
    others = [f for f in own.parent.glob("kernels-*") if f != own]
    others.sort(key=_last_use, reverse=True)
    for folder in others[KEPT_FOLDERS - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)


def _last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # another process has removed it
        return 0.0


@cache
def _mark_used(folder: Path) -> None:
    """Says once a process that a folder is in use; one that cannot be written to is not ours to remove either."""
    if os.access(folder, os.W_OK):
        os.utime(folder)


class KernelCache(_Cache):  # type: ignore[misc]  # Numba has no types
    """The compiled versions of one kernel, by the types of its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._is_enabled = True

    @property
    def cache_path(self) -> str:
        """Where compiled code is looked for first."""
        return str(_folders()[0])

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel for these types, or None."""
        target_context.refresh()
        data = _read(self._name(sig, target_context.codegen())) if self._is_enabled else None
        if data is None:
            return None
        return CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps a kernel. One that holds addresses of this process cannot be kept."""
        if self._is_enabled and not data.library.has_dynamic_globals:
            content = serialize.dumps(data._reduce())
            _write(self._name(sig, data.codegen), content)

    def _name(self, signature: Any, codegen: Any) -> str:
        function = self._function
        path = Path(function.__code__.co_filename).resolve()
        own = b"" if path.is_relative_to(PACKAGE) else _hash(path)
        place = (function.__module__, function.__qualname__, function.__code__.co_firstlineno, own)
        key = repr((place, str(signature), codegen.magic_tuple()))
        return f"{function.__name__}-{hashlib.blake2b(key.encode(), digest_size=_DIGEST).hexdigest()}.nbc"

    def enable(self) -> None:
        """Looks for compiled code, and keeps it."""
        self._is_enabled = True

    def disable(self) -> None:
        """Compiles always."""
        self._is_enabled = False

    def flush(self) -> None:
        """Nothing waits to be written."""


def _read(name: str) -> bytes | None:
    for folder in _folders():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            continue
        data = content[_DIGEST:]
        if content[:_DIGEST] == hashlib.blake2b(data, digest_size=_DIGEST).digest():
            _mark_used(folder)
            return data
    return None


def _write(name: str, data: bytes) -> None:
    folder = _writable_folder()
    if folder is None:
        return
    temporary = folder / f"{name}.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)  # another process may have removed it meanwhile
        temporary.write_bytes(hashlib.blake2b(data, digest_size=_DIGEST).digest() + data)
        temporary.replace(folder / name)
    except OSError:  # no room, or the folder has gone: the next process compiles this kernel again
        temporary.unlink(missing_ok=True)
