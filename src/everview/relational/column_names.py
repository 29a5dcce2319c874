"""Names of columns: those of a relation are told apart whatever their case, and one is found by its name."""

from __future__ import annotations

from everview.errors import InvalidQuery, UnknownName, did_you_mean
from everview.relational.nodes import Schema

WEIGHT = "_weight"
"""The column that says of a row of a change, or of a file of the Spark backend, how often it is meant."""
RESERVED_COLUMNS = (WEIGHT, "_change_type", "_commit_version", "_commit_timestamp")
"""Columns that changes and deltas carry beside the table's own."""


def check_columns(owner: str, fields: Schema) -> None:
    """Raises unless a table or view can have these columns; ``owner`` is its kind and name, for the message."""
    seen: dict[str, str] = {}
    for column in fields:
        folded = column.name.lower()
        if folded in seen:
            raise InvalidQuery(
                f"{owner} would have two columns named '{column.name}'.", hint="give each its own name (AS …)."
            )
        if folded in RESERVED_COLUMNS:
            raise InvalidQuery(
                f"{owner} cannot have a column named '{column.name}': changes use it.", hint="rename the column (AS …)."
            )
        seen[folded] = column.name
    if not fields:
        raise InvalidQuery(f"{owner} would have no columns.")


def find_column(owner: str, fields: Schema, name: str) -> int:
    """The position of a column, by its name in whatever case."""
    for i, column in enumerate(fields):
        if column.name.lower() == name.lower():
            return i
    raise UnknownName(f"column '{name}' is not in {owner}.", hint=did_you_mean(name, [f.name for f in fields]))
