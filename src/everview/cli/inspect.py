"""``everview inspect DIR``: what a database on disk holds."""

from __future__ import annotations

import click
from rich import filesize
from rich.console import Console
from rich.table import Table

import everview as ev
from everview.cli.connection import backend_of_directory_option, open_to_look


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=str))
@backend_of_directory_option
def inspect(directory: str, backend: str | None) -> None:
    """Show the tables, views, sizes and version of the database in DIR."""
    console = Console()
    with open_to_look(directory, backend) as db:
        console.print(f"{directory}: version {db.version}", highlight=False)
        console.print(_tables(db))
        console.print(_views(db))


def _tables(db: ev.Database) -> Table:
    listing = Table("table", "columns", "primary key", "rows", title="tables", title_justify="left")
    for name, table in db.tables.items():
        try:
            rows = f"{len(table):,}"
        except ev.UnsupportedOperation:  # created with retain=False
            rows = "not kept"
        listing.add_row(name, ", ".join(table.columns), ", ".join(table.primary_key), rows)
    return listing


def _views(db: ev.Database) -> Table:
    """What each view holds; what a backend tells besides is shown as it names it."""
    listing = Table("view", "rows", "state", "updates", "seconds", "", title="views", title_justify="left")
    for name, view in db.views.items():
        told = view.stats()
        rows, sizes, updates, seconds = (told.pop(key) for key in ("rows", "bytes", "updates", "seconds"))
        state = filesize.decimal(sum(sizes.values()))
        others = ", ".join(f"{key}: {value}" for key, value in told.items())
        listing.add_row(name, "-" if rows is None else f"{rows:,}", state, str(updates), f"{seconds:.3f}", others)
    return listing
