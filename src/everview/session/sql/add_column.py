"""``ALTER TABLE … ADD COLUMN``: the column as DDL reads it, and what the rows that are there get in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.catalog import TableDefinition
from everview.errors import InvalidQuery, UnsupportedOperation
from everview.relational.arrow import rows_from_arrow
from everview.relational.expressions import Literal
from everview.relational.nodes import Field, Project
from everview.relational.schema import columns
from everview.session.changing.alter_table import with_column
from everview.session.sql.assignment import assigned, new_rows
from everview.session.sql.ddl import parse_schema

if TYPE_CHECKING:
    from everview.session.core import Core


def add_column(core: Core, name: str, column: str, default: str | None) -> TableDefinition:
    """Adds a column to a table.

    Raises:
        InvalidQuery: it is no column, or NOT NULL without a default.
        UnsupportedOperation: it has a constraint, or comes with others.
    """
    with core.locked():
        table = core.catalog.table(name)
        read = parse_schema(column)
        if len(read.fields) != 1 or read.primary_key or read.constraints:
            raise UnsupportedOperation(
                f"ALTER TABLE '{table.name}' adds one column at a time, without keys and constraints.",
                hint="declare these in CREATE TABLE.",
            )
        (field,) = read.fields
        filling = Literal(None, field.type) if default is None else _value(core, table, field, default)
        if filling.value is None and not field.nullable:
            raise InvalidQuery(
                f"column '{field.name}' would be NULL in the rows of table '{table.name}'.",
                hint="give it a DEFAULT, or leave NOT NULL out.",
            )
        return with_column(core, table, field, filling)


def _value(core: Core, table: TableDefinition, field: Field, default: str) -> Literal:
    """The value of a constant expression, as the column stores it."""
    translated = core.translate(f"SELECT ({default}\n) AS `new value`")
    (source,) = columns(translated.plan)
    value = assigned(table, field, source, translated.settings.time_zone)
    rows = rows_from_arrow(new_rows(core, table, Project(translated.plan, (value,), (field.name,))), (field,))
    if len(rows) != 1:
        raise InvalidQuery(f"the default of column '{field.name}' is not one value.")
    return Literal(rows[0][0], field.type)
