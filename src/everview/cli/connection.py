"""Which database and which backend a command works on."""

from __future__ import annotations

from pathlib import Path

import click

DEFAULT_BACKEND = "embedded"
"""The backend of a command without ``--backend``."""

backend_option = click.option(
    "--backend", default=DEFAULT_BACKEND, show_default=True, help="The engine that maintains the views."
)


def existing_database(directory: Path) -> Path:
    """The directory, which must be there: the commands that only look must not create a database."""
    if not directory.is_dir():
        raise click.ClickException(f"there is no database at '{directory}'.")
    return directory
