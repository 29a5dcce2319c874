"""``everview run FILE.sql``: a script of statements, one by one, with the answers of its SELECTs."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

import everview as ev
from everview.cli.connection import backend_of_directory_option, open_database
from everview.cli.output import rows_as_table
from everview.cli.script import read_statements


@click.command()
@click.argument("script", metavar="FILE.sql", type=click.Path(path_type=Path))
@click.option("--path", metavar="DIR", type=click.Path(path_type=str), help="Keep the database in DIR.")
@backend_of_directory_option
def run(script: Path, path: str | None, backend: str | None) -> None:
    """Run the statements of FILE.sql, in memory or on the database in DIR.

    A statement that fails ends the run; those before it have happened.
    """
    statements = read_statements(script)
    console = Console()
    with open_database(path, backend) as db:
        for statement in statements:
            answer = db.sql(statement)
            if isinstance(answer, ev.Result):
                console.print(rows_as_table(answer.to_arrow()))
            elif isinstance(answer, str):
                click.echo(answer)
