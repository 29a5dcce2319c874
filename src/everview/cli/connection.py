"""Which database and which backend a command works on."""

from __future__ import annotations

from pathlib import Path

import click

DEFAULT_BACKEND = "embedded"
"""The backend of a command without ``--backend``."""

backend_option = click.option(
    "--backend", default=DEFAULT_BACKEND, show_default=True, help="The engine that maintains the views."
)


def existing_database(directory: str) -> str:
    """The directory, which must be there: the commands that only look must not create a database."""
    if not Path(directory).is_dir():
        hint = " Hint: DIR is a directory of this machine, not a URI." if "://" in directory else ""
        raise click.ClickException(f"there is no database at '{directory}'.{hint}")
    return directory
