"""What the backends of databases on disk have besides: following a writer, and remembering publications."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import pyarrow as pa


@runtime_checkable
class Follows(Protocol):
    """A backend whose database somebody else writes."""

    def follow(self) -> list[tuple[int, Mapping[str, pa.Table]]]:
        """Takes in what has been committed since; returns the new versions, with the changes of views."""


@runtime_checkable
class LogsDefinitions(Protocol):
    """A backend that writes each definition to disk by itself, unless it is told that some belong together."""

    def together(self) -> AbstractContextManager[None]:
        """What is defined and dropped inside survives a crash as a whole, or not at all."""


@runtime_checkable
class KeepsPublications(Protocol):
    """A backend that remembers where views are published."""

    @property
    def publications(self) -> tuple[tuple[str, str, bool], ...]:
        """Views, the places where they are published, and whether that took storage options, which are not kept."""

    def note_publication(self, view: str, uri: str, has_options: bool) -> None:
        """Records that a view is published."""

    def forget_publication(self, view: str, uri: str) -> None:
        """Records that a view is no longer published there."""
