"""Changes given as products of relations over disjoint columns (section 6 of F-IVM), and their expansion into rows.

    δR[A, B, C]  =  Σ over products p of   p₁[A] ⊗ p₂[B, C]          weights multiply

A product of n and m rows is n · m rows of the table in n + m. Whoever needs rows reads ``given`` and ``weights`` as of any
other change, and gets the expansion; whoever can do without reads ``products``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.catalog import TableDefinition
from everview.errors import InvalidChange
from everview.relational.arrow import arrow_schema

LARGEST_WEIGHT = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class FactorRows:
    """A relation over some columns of a table, in the table's Arrow types; without weights, every weight is 1."""

    columns: tuple[int, ...]
    rows: pa.RecordBatch
    weights: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def each_weight(self) -> npt.NDArray[np.int64]:
        """The weights, also where every one is 1."""
        return np.ones(len(self), dtype=np.int64) if self.weights is None else self.weights


ProductRows: TypeAlias = tuple[FactorRows, ...]
"""Factors over disjoint columns that together are all columns of the table."""


def positions_in_product(sizes: Sequence[int]) -> list[npt.NDArray[np.int64]]:
    """For each factor of these sizes, which of its rows stands in each row of the product; the last factor turns fastest.

    >>> positions_in_product([2, 3])
    [array([0, 0, 0, 1, 1, 1]), array([0, 1, 2, 0, 1, 2])]
    """
    total = math.prod(sizes)
    positions, inner = [], total
    for size in sizes:
        inner = inner // size if size else 0
        once = np.repeat(np.arange(size, dtype=np.int64), inner)
        positions.append(np.tile(once, total // len(once)) if len(once) else once)
    return positions


class FactorizedChange(Change):
    """A weighted change that is a sum of products.

    Args:
        table: The table that it changes.
        products: Its terms.
        decomposed: The columns by factor, where the factors were found in rows that the caller gave.
    """

    __slots__ = ("_expanded", "_schema", "products")

    products: tuple[ProductRows, ...]
    _schema: pa.Schema
    _expanded: tuple[pa.Table, pa.Array | None] | None

    def __init__(
        self,
        table: TableDefinition,
        products: Sequence[ProductRows],
        decomposed: tuple[tuple[str, ...], ...] | None = None,
    ) -> None:
        self.table = table.name
        self.kind = ChangeKind.WEIGHTED
        self.decomposed = decomposed
        self.products = tuple(p for p in products if all(len(f) for f in p))
        self._schema = arrow_schema(table.fields)
        self._expanded = None
        _check_weights(table, self.products)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self._schema

    @property
    def given(self) -> pa.Table:
        """The rows, expanded."""
        return self._expansion()[0]

    @property
    def weights(self) -> pa.Array | None:  # type: ignore[override]  # expanded rows have them, when somebody asks
        """The weights of the expanded rows."""
        return self._expansion()[1]

    def _expansion(self) -> tuple[pa.Table, pa.Array | None]:
        if self._expanded is None:
            expanded = _expand(self._schema, self.products)
            self._expanded = expanded
            return expanded
        return self._expanded

    def __repr__(self) -> str:
        sizes = " + ".join(" × ".join(str(len(f)) for f in p) for p in self.products)
        return f"<change of {self.table}: {sizes or 'no'} rows>"


def _check_weights(table: TableDefinition, products: Sequence[ProductRows]) -> None:
    """Weights are 64-bit integers, those of products too."""
    for product in products:
        largest = math.prod(1 if f.weights is None else int(np.abs(f.weights).max()) for f in product)
        if largest > LARGEST_WEIGHT:
            raise InvalidChange(f"the weights of a product for table '{table.name}' multiply to more than 64 bits.")


def _expand(schema: pa.Schema, products: Sequence[ProductRows]) -> tuple[pa.Table, pa.Array | None]:
    tables, weights, has_weights = [], [], False
    for product in products:
        positions = positions_in_product([len(f) for f in product])
        columns: dict[int, pa.Array] = {}
        weight = np.ones(len(positions[0]), dtype=np.int64)
        for factor, at in zip(product, positions, strict=True):
            taken = factor.rows.take(pa.array(at))
            columns.update(zip(factor.columns, taken.columns, strict=True))
            if factor.weights is not None:
                has_weights = True
                weight *= factor.weights[at]
        tables.append(pa.Table.from_arrays([columns[i] for i in range(len(schema))], schema=schema))
        weights.append(weight)
    if not tables:
        return schema.empty_table(), None
    return pa.concat_tables(tables), pa.array(np.concatenate(weights)) if has_weights else None
