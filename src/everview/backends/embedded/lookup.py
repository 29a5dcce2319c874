"""Finding the rows of a view by the values of some columns."""

from __future__ import annotations

from collections.abc import Mapping

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import constant_vector
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.vectors import Batch
from everview.catalog import find_column
from everview.relational.expressions import Literal
from everview.relational.nodes import Schema
from everview.relational.types import Value


def rows_with(root: Operator, fields: Schema, key: Mapping[str, Value], name: str, dictionary: Dictionary) -> Batch:
    """The rows in which each named column has its value; None matches NULL."""
    at = {find_column(f"'{name}'", fields, column): value for column, value in key.items()}
    columns = tuple(sorted(at))
    if not columns:
        return root.content()
    if any(at[c] is None and not root.layout.nullable[c] for c in columns):
        return root.nothing()
    vectors = [constant_vector(Literal(at[c], root.types[c]), 1, dictionary) for c in columns]
    return root.lookup(columns, vectors)
