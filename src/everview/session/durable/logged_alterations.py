"""Alterations of tables as records of the log, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.backends.base import AlteredTable
from everview.catalog import TableDefinition
from everview.errors import CorruptDatabase
from everview.relational.expressions import Literal
from everview.relational.serialize import value_from_json, value_to_json
from everview.storage.definitions import definition_from_json, definition_to_json


def altered_to_log(altered: AlteredTable) -> dict[str, Any]:
    """What the header of a record says of it, beside the name that the table had."""
    return {
        "definition": definition_to_json(altered.definition),
        "columns": list(altered.columns),
        "filling": value_to_json(altered.filling),
    }


def altered_from_log(said: Mapping[str, Any]) -> AlteredTable:
    """What was said.

    Raises:
        CorruptDatabase: it is no alteration.
    """
    definition, filling = definition_from_json(said["definition"]), value_from_json(said["filling"])
    columns = tuple(said["columns"])
    if not isinstance(definition, TableDefinition) or not isinstance(filling, Literal):
        raise CorruptDatabase("the log has an alteration of a table that cannot be read.")
    if len(columns) != len(definition.fields) or not all(c is None or isinstance(c, int) for c in columns):
        raise CorruptDatabase(f"the log has an alteration of table '{definition.name}' that cannot be read.")
    return AlteredTable(definition, columns, filling)
