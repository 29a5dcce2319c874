"""Changes given as products: ``ev.Product({"A": …}, {"B": …})`` stands for every combination of its factors' rows.

A product of relations over disjoint columns that together are all columns of a table is a change of that table, in the sum of
the sizes of its factors instead of their product. View trees take it in without making the rows (section 6 of F-IVM).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from everview.backends.factorized_rows import FactorizedChange, FactorRows, ProductRows
from everview.catalog import TableDefinition
from everview.errors import InvalidChange, UnsupportedOperation, did_you_mean
from everview.relational.arrow import arrow_schema
from everview.relational.column_names import WEIGHT
from everview.session.rows.change_weights import CHANGE_TYPE, read_weights
from everview.session.rows.changes import read_column
from everview.session.rows.given_rows import GivenRows, Mode, read_rows


class Product:
    """Every combination of the rows of some relations, as a change of one table.

    Args:
        *factors: Relations over disjoint columns: dicts from column names to lists of values, all of a length, or whatever
            else has rows with names (dicts, Arrow, pandas). A column ``_weight`` says how often each row is there; the weights
            of a combination multiply. All columns of the table are in some factor.

    Products can be added up and negated: ``ev.Product(…) + ev.Product(…)``, ``-ev.Product(…)``.

    Example:
        >>> Product({"a": [1, 2, 3]}, {"b": ["x", "y"], "c": [0.5, 1.5]})
        <Product a (3 rows) × b, c (2 rows)>
    """

    def __init__(self, *factors: Any) -> None:
        if not factors:
            raise InvalidChange(
                "a product has at least one factor.", hint='for example ev.Product({"A": [1, 2]}, {"B": [3]}).'
            )
        self._factors = tuple(_as_given(f) if isinstance(f, Mapping) else f for f in factors)
        self._sign = 1

    def __neg__(self) -> Product:
        negated = Product.__new__(Product)
        negated._factors, negated._sign = self._factors, -self._sign
        return negated

    def __add__(self, other: Product | Products) -> Products:
        return Products([self]) + other

    def __sub__(self, other: Product | Products) -> Products:
        return self + -other

    def __repr__(self) -> str:
        return f"<{'-' if self._sign < 0 else ''}Product {' × '.join(_describe(f) for f in self._factors)}>"

    def read(self, table: TableDefinition, mode: Mode) -> ProductRows:
        """The factors in the table's types.

        Raises:
            InvalidChange: they do not fit the table.
        """
        given = [f if isinstance(f, GivenRows) else _read_factor(table, f) for f in self._factors]
        _check_columns(table, given)
        if self._sign < 0 and mode is not Mode.APPLY:
            raise InvalidChange(
                f"a negative product for table '{table.name}', which {mode.value} does not take.",
                hint="use db.apply().",
            )
        sign = -self._sign if mode is Mode.DELETE else self._sign
        rows = []
        for number, one in enumerate(given):
            rows.append(_factor_rows(table, one, mode, sign if number == 0 else 1))
        return tuple(rows)


class Products:
    """A sum of products, made with ``+`` and ``-``."""

    def __init__(self, terms: Iterable[Product]) -> None:
        self._terms = tuple(terms)

    def __iter__(self) -> Iterator[Product]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)

    def __neg__(self) -> Products:
        return Products(-t for t in self._terms)

    def __add__(self, other: Product | Products) -> Products:
        if not isinstance(other, Product | Products):
            return NotImplemented
        return Products([*self._terms, *([other] if isinstance(other, Product) else other)])

    def __sub__(self, other: Product | Products) -> Products:
        return self + -other

    def __repr__(self) -> str:
        return " + ".join(repr(t) for t in self._terms) or "<no products>"


def is_factorized(data: Any) -> TypeGuard[Product | Products | Sequence[Product]]:
    """Whether a change was given as products."""
    if isinstance(data, (Product, Products)):
        return True
    return isinstance(data, (list, tuple)) and len(data) > 0 and isinstance(data[0], Product)


def read_products(table: TableDefinition, data: Product | Products | Sequence[Product], mode: Mode) -> FactorizedChange:
    """The change of a table that a product, or a sum of products, stands for.

    Raises:
        InvalidChange: it does not fit the table.
        UnsupportedOperation: it is given as rows to find by key.
    """
    if mode in (Mode.UPSERT, Mode.DELETE_KEYS):
        raise UnsupportedOperation(
            f"{mode.value} on table '{table.name}' takes rows, not products.",
            hint="products go to insert, delete and apply.",
        )
    terms = [data] if isinstance(data, Product) else list(data)
    for term in terms:
        if not isinstance(term, Product):
            raise InvalidChange(
                f"the products for table '{table.name}' have a {type(term).__name__} among them.",
                hint="give products only.",
            )
    return FactorizedChange(table, [term.read(table, mode) for term in terms])


def _as_given(factor: Mapping[Any, Any]) -> GivenRows:
    """The columns of a dict; copied, since the product may be applied later."""
    if not factor:
        raise InvalidChange("a factor of a product has no columns.")
    names = [str(name) for name in factor]
    columns = [_column(name, values) for name, values in zip(names, factor.values(), strict=True)]
    lengths = [len(c) for c in columns]
    if len(set(lengths)) > 1:
        shown = ", ".join(f"'{n}' has {length}" for n, length in zip(names, lengths, strict=True))
        raise InvalidChange(
            f"the columns of a factor have different numbers of values: {shown}.",
            hint="values of one factor belong together, row by row; what is to be combined goes into factors of its own.",
        )
    return GivenRows(names, columns, lengths[0])


def _column(name: str, values: Any) -> pa.ChunkedArray | list[Any]:
    module = sys.modules.get("pandas")
    pandas: Any = tuple(
        getattr(module, n) for n in ("Series", "Index") if hasattr(module, n)
    )  # none while it is imported
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if isinstance(values, pandas):
        return pa.chunked_array([pa.array(values.copy(), from_pandas=True)])
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidChange(
                f"column '{name}' of a product is an array of {values.ndim} dimensions.", hint="it takes one."
            )
        return list(values) if values.dtype == object else pa.chunked_array([pa.array(values.copy())])
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidChange(
            f"column '{name}' of a product is of type {type(values).__name__}.", hint="give a list of values."
        )
    return list(values)


def _read_factor(table: TableDefinition, factor: Any) -> GivenRows:
    """The columns of a factor that is no dict: rows with names."""
    if isinstance(factor, list | tuple):
        unnamed = next((r for r in factor if not isinstance(r, Mapping) and not hasattr(r, "__fields__")), None)
        if unnamed is not None or not factor:
            raise InvalidChange(
                f"a factor of a product for table '{table.name}' has rows without names of columns.",
                hint='give a dict such as {"A": [1, 2]}, a list of dicts, or an Arrow or pandas table.',
            )
    return read_rows(table, (), factor, Mode.APPLY)


def _check_columns(table: TableDefinition, factors: Sequence[GivenRows]) -> None:
    known = [f.name for f in table.fields]
    folded = {name.lower() for name in known}
    seen: dict[str, int] = {}
    for number, factor in enumerate(factors):
        for name in factor.names:
            key = name.lower()
            if key in (WEIGHT, CHANGE_TYPE):
                continue
            if key not in folded:
                raise InvalidChange(f"column '{name}' is not in table '{table.name}'.", hint=did_you_mean(name, known))
            if key in seen:
                where = "in two factors" if seen[key] != number else "twice in a factor"
                raise InvalidChange(
                    f"column '{name}' is {where} of the product for table '{table.name}'.",
                    hint="factors have no column in common.",
                )
            seen[key] = number
        if all(name.lower() in (WEIGHT, CHANGE_TYPE) for name in factor.names):
            raise InvalidChange(f"a factor of the product for table '{table.name}' has weights only.")
    missing = [name for name in known if name.lower() not in seen]
    if missing:
        listed = ", ".join(f"'{m}'" for m in missing)
        many = len(missing) > 1
        raise InvalidChange(
            f"column{'s' if many else ''} {listed} of table '{table.name}' "
            f"{'are' if many else 'is'} in no factor of the product.",
            hint='a column with one value is a factor too: {"C": [0]}.',
        )


def _factor_rows(table: TableDefinition, given: GivenRows, mode: Mode, sign: int) -> FactorRows:
    own = {name.lower() for name in given.names}
    columns = tuple(i for i, field in enumerate(table.fields) if field.name.lower() in own)
    fields = tuple(table.fields[i] for i in columns)
    read = pa.Table.from_arrays([read_column(table, f, given) for f in fields], schema=arrow_schema(fields))
    # Of a delete, weights say how often; the sign is that of the whole product.
    weights = read_weights(table, given, Mode.APPLY if mode is Mode.APPLY else Mode.INSERT)
    numbers = None if weights is None else np.array(weights.to_numpy(zero_copy_only=False), dtype=np.int64)
    if sign < 0:
        numbers = np.full(given.rows, -1, dtype=np.int64) if numbers is None else -numbers
    return FactorRows(columns, _one_batch(read), numbers)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _describe(factor: Any) -> str:
    if isinstance(factor, GivenRows):
        names, rows = list(factor.names), factor.rows
    elif isinstance(factor, pa.Table | pa.RecordBatch):
        names, rows = factor.schema.names, factor.num_rows
    elif hasattr(factor, "columns") and hasattr(factor, "__len__"):
        names, rows = [str(c) for c in factor.columns], len(factor)
    elif isinstance(factor, list) and factor and isinstance(factor[0], Mapping):
        names, rows = [str(n) for n in factor[0]], len(factor)
    else:
        return type(factor).__name__
    return f"{', '.join(n for n in names if n != WEIGHT)} ({rows} row{'' if rows == 1 else 's'})"
