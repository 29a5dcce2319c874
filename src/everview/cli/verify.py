"""``everview verify DIR``: every view of a database on disk against Spark's recomputation."""

from __future__ import annotations

import click

from everview.cli.connection import backend_of_directory_option, open_to_look


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=str))
@backend_of_directory_option
def verify(directory: str, backend: str | None) -> None:
    """Recompute every view of the database in DIR with Spark, and compare."""
    with open_to_look(directory, backend) as db:
        click.echo(repr(db.verify()))
