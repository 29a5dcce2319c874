"""SQL scripts: a file in, its statements out."""

from __future__ import annotations

from pathlib import Path

import click

from everview.session.sql.statements import split_statements


def read_statements(path: Path) -> list[str]:
    """The statements of a script, without their semicolons.

    Raises:
        ClickException: there is no such file, or it is not text.
        InvalidQuery: a string, a quoted name or a comment has no end.
    """
    try:
        return split_statements(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.ClickException(f"cannot read '{path}': {(error.strerror or str(error)).lower()}.") from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"cannot read '{path}': it is not UTF-8 text.") from error
