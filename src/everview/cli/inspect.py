"""``everview inspect DIR``: what a database on disk holds."""

from __future__ import annotations

import click
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
    listing = Table("table", "columns", "primary key", title="tables", title_justify="left")
    for name, table in db.tables.items():
        listing.add_row(name, ", ".join(table.columns), ", ".join(table.primary_key))
    return listing


def _views(db: ev.Database) -> Table:
    """A view's statistics are the backend's own; they are shown as it names them."""
    listing = Table("view", "statistics", title="views", title_justify="left")
    for name, view in db.views.items():
        listing.add_row(name, ", ".join(f"{key} {value}" for key, value in view.stats().items()))
    return listing
