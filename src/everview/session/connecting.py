"""``connect``: from a place and a backend's name to an open ``Database``."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from everview.errors import UnsupportedOperation
from everview.frontend.translation_cache import open_cache
from everview.session.database import Database
from everview.session.open_backend import open_backend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    backend: str = "embedded",
    spark: SparkSession | None = None,
    translation_cache: bool | str | os.PathLike[str] = True,
    **options: Any,
) -> Database:
    """Opens a database.

    Args:
        path: A directory to keep it in; in memory without one.
        backend: The engine that maintains the views.
        spark: The Spark session to resolve queries with; without one, the active session, or one started when needed.
        translation_cache: Where translated queries are kept, so that a program that runs again starts no Spark for them: a
            directory, True for the one that EVERVIEW_TRANSLATION_CACHE names or the user's own, False for none.
        **options: What the backend takes. ``history``: for how many versions to keep the deltas of views. Embedded:
            ``history_bytes``: how much memory these deltas may take (128 MiB), beyond that the oldest go; ``memory_limit``: how
            many bytes all state may take, as a number or text (``"2GB"``); a transaction or view that needs more is rejected.
            With a path: ``durability``: ``commit`` (a transaction is on disk when its call returns), ``batch`` (50 ms later) or
            ``none``; ``read_only=True``: read what another process writes, and follow it; ``checkpoint_bytes``: how long the
            log may become.

    Raises:
        UnsupportedOperation: the backend has no such option, or the session has a setting that everview cannot follow.
        DatabaseLocked: another process writes to it, or this one.
        CorruptDatabase: its files are not what was written, or a newer version of everview wrote them.
        StorageFailed: the directory cannot be written.
    """
    if spark is not None:
        importlib.import_module("everview.frontend.session_settings").read_settings(spark)
    if path is not None and not isinstance(path, str | os.PathLike):
        raise UnsupportedOperation(
            f"the place of a database is of type {type(path).__name__}.",
            hint="give the path of a folder, or nothing for a database in memory.",
        )
    chosen = open_backend(backend, None if path is None else os.fspath(path), spark, options)
    opened = Database(chosen, spark, open_cache(translation_cache))
    opened.go_on()
    return opened
