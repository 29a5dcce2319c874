"""Reading tables and numbers, and finding the rows of tables and views by the values of some columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from everview.backends import rejections
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import constant_vector
from everview.backends.embedded.matrix.chain_operator import MatrixChainOperator
from everview.backends.embedded.matrix.stored_matrix import Floats
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.sources import ScanOperator, TableInput
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.vectors import Batch, Ints, Vector
from everview.relational.arrow import arrow_schema
from everview.relational.column_names import find_column
from everview.relational.expressions import Literal
from everview.relational.nodes import Schema
from everview.relational.types import Value


def rows_with(root: Operator, fields: Schema, key: Mapping[str, Value], name: str, dictionary: Dictionary) -> Batch:
    """The rows in which each named column has its value; None matches NULL."""
    at = _places(fields, key, name)
    columns = tuple(at)
    if not columns:
        return root.content()
    if any(at[c] is None and not root.layout.nullable[c] for c in columns):
        return root.nothing()
    return root.lookup(columns, _constants(root, at, dictionary))


def table_rows(source: TableInput) -> pa.Table:
    """The bag of a table.

    Raises:
        UnsupportedOperation: it keeps no rows.
    """
    check_retained(source)
    rows, weights = source.table.content(range(len(source.fields)))
    if (weights == 1).all():
        return rows.cast(arrow_schema(source.fields))
    return rows.take(pa.array(np.repeat(np.arange(len(weights)), weights))).cast(arrow_schema(source.fields))


def table_rows_with(source: TableInput, key: Mapping[str, Value], name: str, dictionary: Dictionary) -> Batch:
    """The rows of a table in which each named column has its value; they are hashed anew for each call."""
    check_retained(source)
    every = ScanOperator(source, tuple(range(len(source.fields))))  # outside the DAG
    return rows_with(every, source.fields, key, name, dictionary)


def check_retained(source: TableInput) -> None:
    """Raises if a table keeps no rows."""
    if not source.table.definition.retain:
        raise rejections.not_retained(source.table.definition)


def matrix_of(root: Operator) -> tuple[Ints, Ints, Floats]:
    """The indexes and cells of a product of matrices that is kept in arrays."""
    assert isinstance(root, MatrixChainOperator), "a product of matrices in arrays"
    return root.matrix()


def numbers_of(
    root: Operator, fields: Schema, key: Mapping[str, Value], name: str, dictionary: Dictionary
) -> Floats | None:
    """The row of a group of a view tree that has nothing but numbers of rows and sums of floats beside it; else None."""
    at = _places(fields, key, name)
    if not isinstance(root, TreeOperator) or any(v is None and not root.layout.nullable[c] for c, v in at.items()):
        return None
    return root.numbers(_constants(root, at, dictionary))


def _places(fields: Schema, key: Mapping[str, Value], name: str) -> dict[int, Value]:
    """The values by the places of their columns, in order."""
    at = {find_column(f"'{name}'", fields, column): value for column, value in key.items()}
    return dict(sorted(at.items()))


def _constants(root: Operator, at: Mapping[int, Value], dictionary: Dictionary) -> list[Vector]:
    return [constant_vector(Literal(value, root.types[c]), 1, dictionary) for c, value in at.items()]
