"""``everview explain FILE.sql``: how each view of a script would be maintained."""

from __future__ import annotations

from pathlib import Path

import click

import everview as ev
from everview.cli.connection import backend_option
from everview.cli.script import read_statements

MODES = ("text", "json", "svg", "triggers", "code", "analyze")


@click.command()
@click.argument("script", metavar="FILE.sql", type=click.Path(path_type=Path))
@click.option("--mode", type=click.Choice(MODES), default="text", show_default=True, help="What to print.")
@backend_option
def explain(script: Path, mode: str, backend: str) -> None:
    """Print how each view that FILE.sql creates is maintained.

    The script runs in memory and leaves nothing behind.
    """
    statements = read_statements(script)
    with ev.connect(backend=backend) as db:
        for statement in statements:
            db.sql(statement)
        for name, view in db.views.items():
            click.echo(f"-- {name}\n{view.explain(mode).rstrip()}\n")
