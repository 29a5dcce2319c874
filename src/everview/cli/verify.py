"""``everview verify DIR``: every view of a database on disk against Spark's recomputation."""

from __future__ import annotations

import click

import everview as ev
from everview.cli.connection import backend_option, existing_database


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=str))
@backend_option
def verify(directory: str, backend: str) -> None:
    """Recompute every view of the database in DIR with Spark, and compare."""
    with ev.connect(existing_database(directory), backend=backend) as db:
        click.echo(repr(db.verify()))
