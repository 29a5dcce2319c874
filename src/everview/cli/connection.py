"""Which database and which backend a command works on: without ``--backend``, that of the directory."""

from __future__ import annotations

from pathlib import Path

import click

import everview as ev

DEFAULT_BACKEND = "embedded"
"""The backend of a new database, without ``--backend``."""

backend_option = click.option(
    "--backend", default=DEFAULT_BACKEND, show_default=True, help="The engine that maintains the views."
)

backend_of_directory_option = click.option(
    "--backend", default=None, help="The engine that maintains the views.  [default: that of DIR, else embedded]"
)


def open_database(directory: str | None, backend: str | None) -> ev.Database:
    """Opens a database to work with: the one in a directory, or a new one there, or one in memory."""
    return ev.connect(directory, backend=backend or _backend_of(directory))


def open_to_look(directory: str, backend: str | None) -> ev.Database:
    """Opens the database in a directory, which must be there; beside a process that writes to it, where the backend can."""
    if not Path(directory).is_dir():
        hint = " Hint: DIR is a directory of this machine, not a URI." if "://" in directory else ""
        raise click.ClickException(f"there is no database at '{directory}'.{hint}")
    chosen = backend or _backend_of(directory)
    if chosen == "embedded":
        return ev.connect(directory, backend=chosen, read_only=True)
    return ev.connect(directory, backend=chosen)


def _backend_of(directory: str | None) -> str:
    return (None if directory is None else ev.backend_of(directory)) or DEFAULT_BACKEND
