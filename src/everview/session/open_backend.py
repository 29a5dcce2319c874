"""The backends by name and how each is opened: what ``connect`` was asked for in, an engine or a clear refusal out."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everview.backends.base import Backend
from everview.backends.reference import ReferenceBackend
from everview.errors import UnsupportedOperation, did_you_mean
from everview.session.places import local_directory
from everview.storage.change_log import DURABILITIES, FILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WITH_PATH: Final = ("durability", "read_only", "checkpoint_bytes")
"""Options of the embedded backend that say something of files."""


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """A backend that ``connect`` can open, and the options that it takes."""

    open: Callable[[str | None, SparkSession | None, Mapping[str, Any]], Backend]
    options: tuple[str, ...] = ()


def open_reference(path: str | None, _spark: SparkSession | None, options: Mapping[str, Any]) -> Backend:
    """The reference backend, which lives in memory; ``history`` is the number of versions whose deltas it keeps."""
    if path is not None:
        raise UnsupportedOperation(
            f"the reference backend lives in memory and cannot open '{path}'.", hint="leave the path out."
        )
    return ReferenceBackend(_history(options))


def open_embedded(path: str | None, _spark: SparkSession | None, options: Mapping[str, Any]) -> Backend:
    """The embedded backend, in memory or in a directory of this machine; the options are those of ``connect``.

    Its module is imported here, because machine code is loaded with it, which ``import everview`` should not wait for.
    """
    history, limit = _history(options), _bytes(options, "memory_limit")
    kept = {} if (most := _bytes(options, "history_bytes")) is None else {"history_bytes": most}
    engine = partial(importlib.import_module("everview.backends.embedded.backend").EmbeddedBackend, history, **kept)
    if path is None:
        for option in _WITH_PATH:
            if option in options:
                raise UnsupportedOperation(f"{option} has no meaning for a database in memory.", hint="give a path.")
        in_memory = _shown(engine())
        if limit is not None:
            in_memory.limit_memory(limit)
        opened: Backend = in_memory
        return opened
    folder = Path(local_directory(path, "a database"))
    check_backend_of(folder, "embedded")
    if _flag(options, "read_only"):
        for option in ("durability", "checkpoint_bytes", "memory_limit"):
            if option in options:
                raise UnsupportedOperation(f"{option} has no meaning with read_only=True, which writes nothing.")
        if backend_of(folder) is None:
            raise UnsupportedOperation(f"there is no database at '{path}' to read.", hint="leave out read_only=True.")
        module = importlib.import_module("everview.session.durable.following_backend")
        following: Backend = module.FollowingBackend(folder, engine)
        return following
    durability = options.get("durability", "commit")
    if durability not in DURABILITIES:
        hint = did_you_mean(str(durability), DURABILITIES) or f"it is one of {', '.join(DURABILITIES)}."
        raise UnsupportedOperation(f"there is no durability {durability!r}.", hint=hint)
    module = importlib.import_module("everview.session.durable.durable_backend")
    durable: Backend = module.DurableBackend(
        folder,
        lambda: _shown(engine()),
        durability=durability,
        checkpoint_bytes=_number(options, "checkpoint_bytes", module.CHECKPOINT_BYTES, "bytes"),
        memory_limit=limit,
    )
    return durable


def _shown(engine: Any) -> Any:
    """An engine that shows how far a very large transaction is, once it has taken two seconds, where somebody can see it."""

    def progress(rows: int) -> Any:
        shown = importlib.import_module("everview.session.durable.progress")  # with rich, which others do not wait for
        return shown.OpeningProgress("taking in rows", rows)

    engine.progress = progress
    return engine


def check_backend_of(folder: Path, backend: str) -> None:
    """Raises if a database of another backend is in a directory."""
    there = backend_of(folder)
    if there not in (None, backend):
        raise UnsupportedOperation(
            f"the database at '{folder}' is one of the {there} backend.",
            hint=f"connect(path, backend='{there}') opens it.",
        )


def backend_of(path: str | os.PathLike[str]) -> str | None:
    """The backend whose database is in a directory; None for one without, and for what is no directory."""
    folder = Path(path)
    if (folder / FILE).exists():
        return "embedded"
    return "spark" if (folder / "_commits").is_dir() else None


def _history(options: Mapping[str, Any]) -> int:
    return _number(options, "history", 1000, "versions to keep")


_BYTES: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?b)?|b)?\s*", re.IGNORECASE)


def _bytes(options: Mapping[str, Any], name: str) -> int | None:
    """Bytes as a number or text: ``2GB`` is 2 * 10**9, ``2GiB`` and, as in Spark's settings, ``2g`` are 2 * 2**30."""
    value = options.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = _BYTES.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        number, letter, unit = found.groups()
        step = 1000 if (unit or "").lower() == "b" else 1024
        size = int(float(number) * step ** (1 + "kmgt".index(letter.lower()) if letter else 0))
        if size > 0:
            return size
    raise UnsupportedOperation(
        f"{name}={value!r} is not a number of bytes.", hint="give a number, or text such as '2GB' or '512MiB'."
    )


def _flag(options: Mapping[str, Any], name: str) -> bool:
    value = options.get(name, False)
    if not isinstance(value, bool):
        raise UnsupportedOperation(f"{name}={value!r} is not True or False.")
    return value


def _number(options: Mapping[str, Any], name: str, default: int, unit: str) -> int:
    value = options.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnsupportedOperation(f"{name}={value!r} is not a number of {unit}.")
    return value


def open_spark(path: str | None, spark: SparkSession | None, options: Mapping[str, Any]) -> Backend:
    """The Spark backend in a directory of this machine, a temporary one without a path; a session starts when needed.

    ``history`` is the number of versions whose deltas can be asked for, ``local_rows`` the size up to which segments are kept
    at the driver, ``lookup_bytes`` how much disk the driver may take for copies of larger ones, to look rows up in,
    and ``executor_bytes`` each executor for copies of those that its tasks search.
    """
    if path is not None:
        check_backend_of(Path(local_directory(path, "a database")), "spark")
    local_rows = _number(options, "local_rows", 200_000, "rows")
    lookup_bytes = _number(options, "lookup_bytes", 16 * 2**30, "bytes")

    def user_session() -> SparkSession:
        gateway = importlib.import_module("everview.frontend.gateway").SparkGateway(spark, computes=True)
        session: SparkSession = gateway.user_session
        return session

    def running_session() -> SparkSession | None:
        return spark or importlib.import_module("pyspark.sql").SparkSession.getActiveSession()

    module = importlib.import_module("everview.backends.spark.backend")
    backend: Backend = module.SparkBackend(
        None if path is None else local_directory(path, "a database"),
        user_session,
        _history(options),
        local_rows=local_rows,
        lookup_bytes=lookup_bytes,
        executor_bytes=_number(options, "executor_bytes", 16 * 2**30, "bytes"),
        shown_in=running_session,
    )
    return backend


backends: dict[str, BackendChoice] = {
    "embedded": BackendChoice(open_embedded, ("history", "history_bytes", "memory_limit", *_WITH_PATH)),
    "spark": BackendChoice(open_spark, ("history", "local_rows", "lookup_bytes", "executor_bytes")),
    "reference": BackendChoice(open_reference, ("history",)),
}
"""The backends by name."""


def open_backend(name: str, path: str | None, spark: SparkSession | None, options: Mapping[str, Any]) -> Backend:
    """The engine of this name.

    Raises:
        UnsupportedOperation: there is none, or it does not take one of the options.
    """
    choice = backends.get(name)
    if choice is None:
        hint = did_you_mean(str(name), backends) or f"it is one of {', '.join(backends)}."
        raise UnsupportedOperation(f"there is no backend '{name}'.", hint=hint)
    for option in options:
        if option not in choice.options:
            hint = did_you_mean(option, choice.options) or f"it takes {', '.join(choice.options)}."
            raise UnsupportedOperation(f"the {name} backend has no option '{option}'.", hint=hint)
    return choice.open(path, spark, options)
