"""The backends by name and how each is opened: what ``connect`` was asked for in, an engine or a clear refusal out."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.backends.base import Backend
from everview.backends.reference import ReferenceBackend
from everview.errors import UnsupportedOperation, did_you_mean
from everview.session.places import local_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    """The embedded backend; ``history`` is the number of versions whose deltas it keeps.

    Its module is imported here, because machine code is loaded with it, which ``import everview`` should not wait for.
    """
    if path is not None:
        raise UnsupportedOperation(
            f"durable databases are not part of this version, so '{path}' cannot be opened.", hint="leave the path out."
        )
    backend: Backend = importlib.import_module("everview.backends.embedded.backend").EmbeddedBackend(_history(options))
    return backend


def _history(options: Mapping[str, Any]) -> int:
    return _number(options, "history", 1000, "versions to keep")


def _number(options: Mapping[str, Any], name: str, default: int, unit: str) -> int:
    value = options.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnsupportedOperation(f"{name}={value!r} is not a number of {unit}.")
    return value


def open_spark(path: str | None, spark: SparkSession | None, options: Mapping[str, Any]) -> Backend:
    """The Spark backend in a directory of this machine, a temporary one without a path; a session starts when needed.

    ``history`` is the number of versions whose deltas can be asked for, ``local_rows`` the size up to which segments are kept
    at the driver, ``lookup_bytes`` how much disk the driver may take for copies of larger ones, to look rows up in.
    """
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
        shown_in=running_session,
    )
    return backend


backends: dict[str, BackendChoice] = {
    "embedded": BackendChoice(open_embedded, ("history",)),
    "spark": BackendChoice(open_spark, ("history", "local_rows", "lookup_bytes")),
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
