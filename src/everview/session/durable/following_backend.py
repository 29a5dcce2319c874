"""Reading a database that another process writes: an engine of our own, which takes in the writer's log.

``follow`` reads what has been committed since, whole transactions only; the session calls it before every call of the user's.
The writer is not asked, does not wait, and need not run. Contract: every answer is that of one committed version, and
versions never go back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from everview.backends.base import AlteredTable, Change
from everview.backends.embedded.backend import EmbeddedBackend
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import UnsupportedOperation
from everview.session.durable.engine_reads import EngineReads
from everview.session.durable.recovery import RecoveredEngine
from everview.storage.change_log import ChangeLog


class FollowingBackend(EngineReads):
    """Implements ``backends.base.Backend`` for ``connect(path, read_only=True)``."""

    def __init__(self, path: Path, make_engine: Callable[[], EmbeddedBackend]) -> None:
        self._log = ChangeLog(path, read_only=True)
        try:
            super().__init__(RecoveredEngine(path, self._log, make_engine))
            self._seen = self._log.data_version()
            self._recovered.open()
        except BaseException:
            self._log.close()
            raise

    def follow(self) -> list[tuple[int, Mapping[str, pa.Table]]]:
        """Takes in what has been committed since; returns the new versions, with the changes of views."""
        seen = self._log.data_version()
        if seen == self._seen:
            return []
        moved = self._recovered.follow()
        self._seen = seen
        return moved

    def create_table(self, table: TableDefinition) -> None:
        """Raises: nothing is changed here."""
        self._refuse()

    def create_view(self, view: ViewDefinition) -> None:
        """Raises: nothing is changed here."""
        self._refuse()

    def alter_table(self, name: str, altered: AlteredTable) -> None:
        """Raises: nothing is changed here."""
        self._refuse()

    def drop(self, name: str) -> None:
        """Raises: nothing is changed here."""
        self._refuse()

    def apply(self, changes: Sequence[Change], *, source: tuple[str, int] | None = None) -> Mapping[str, pa.Table]:
        """Raises: nothing is changed here."""
        self._refuse()

    def checkpoint(self) -> None:
        """Raises: nothing is changed here."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnsupportedOperation(
            "the database was opened with read_only=True.", hint="the process that opened it to write can do that."
        )

    def close(self) -> None:
        """Lets go of the log."""
        self._log.close()
        self._recovered.engine.close()
