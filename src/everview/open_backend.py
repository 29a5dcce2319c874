"""How each backend is opened: what ``connect`` was asked for in, an engine or a clear refusal out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from everview.backends.base import Backend
from everview.backends.reference import ReferenceBackend
from everview.errors import UnsupportedOperation

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
    history = options.get("history", 1000)
    if not isinstance(history, int) or isinstance(history, bool) or history < 0:
        raise UnsupportedOperation(f"history={history!r} is not a number of versions to keep.")
    return ReferenceBackend(history)


def not_there_yet(name: str) -> Callable[[str | None, SparkSession | None, Mapping[str, Any]], Backend]:
    """The opener of a backend that this version does not have."""

    def refuse(_path: str | None, _spark: SparkSession | None, _options: Mapping[str, Any]) -> NoReturn:
        raise UnsupportedOperation(
            f"the {name} backend is not part of this version.", hint="connect(backend='reference') is."
        )

    return refuse
