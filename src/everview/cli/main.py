"""The ``everview`` command and how its errors end.

Contract: exit status 0 on success; 1 on an error of the user's, with one clear line on stderr and no traceback; 2 on
wrong usage, which is click's own.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

import everview as ev
from everview.cli.bench import bench
from everview.cli.demo import demo
from everview.cli.explain import explain
from everview.cli.inspect import inspect
from everview.cli.run import run
from everview.cli.verify import verify

NO_JAVA = (
    "Spark does not start: it needs Java 17 or newer. Hint: apt-get install openjdk-17-jre-headless, or "
    "brew install openjdk@17, or point JAVA_HOME at one."
)


class OneLineErrors(click.Group):
    """A group whose commands end an ``EverviewError`` with a line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command and turns everview's errors into click's."""
        try:
            return super().invoke(ctx)
        except ev.EverviewError as error:
            raise click.ClickException(one_line(error)) from error
        except RuntimeError as error:
            if "JAVA_GATEWAY_EXITED" in str(error):
                raise click.ClickException(NO_JAVA) from error
            raise


def one_line(error: ev.EverviewError) -> str:
    r"""The message and its hint on one line; the picture of the query below a syntax error of Spark's is left out.

    >>> one_line(ev.InvalidQuery("a syntax error at\nline 1.\n\n== SQL ==\nSELEC", hint="look there."))
    'a syntax error at line 1. Hint: look there.'
    """
    text = " ".join(error.message.partition("\n\n== SQL ==")[0].split())
    return f"{text} Hint: {error.hint}" if error.hint else text


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="everview", message="%(package)s %(version)s")
def cli() -> None:
    """Keep the answers of Spark SQL queries fresh while their tables change."""


for command in (demo, run, explain, verify, bench, inspect):
    cli.add_command(command)


def main() -> None:
    """The entry point of the installed command; with EVERVIEW_VERBOSE set, Spark's own messages are shown."""
    if not os.environ.get("EVERVIEW_VERBOSE"):
        _silence_child_processes()
    cli()


def _silence_child_processes() -> None:
    """Spark's JVM greets on the stderr that it inherits; what we print there must stay the only line."""
    own = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    sys.stderr = os.fdopen(own, "w", buffering=1, encoding=sys.stderr.encoding, errors="backslashreplace")
