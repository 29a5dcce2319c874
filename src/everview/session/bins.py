"""Continuous features as categories: a column is cut into bins of equal width, which are declared when the covariance is made.

Bin n of ``count`` over [low, high) has the values from low + n · width on; values below are in the first bin, values from high
on in the last, and NULL is in none. A bin never moves: what comes later is put into the bins that there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from everview.errors import InvalidQuery
from everview.relational.column_names import find_column
from everview.relational.quoting import quote
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN, is_numeric

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.core import Core

Bins: TypeAlias = int | tuple[float, float, int]
"""How many bins there are over the range of the values that are there now; or low, high and how many."""


def bin_name(column: str) -> str:
    """What the categorical feature is called that says in which bin a column is."""
    return f"{column}_bin"


def with_bins(core: Core, query: str | DataFrame, bins: Mapping[str, Bins]) -> str | DataFrame:
    """The query with a column ``<name>_bin`` for each column that is cut.

    Raises:
        InvalidQuery: a column is no number, a number of bins or a range is wrong, or there are no rows yet to take one from.
        UnknownName: the query has no such column.
    """
    if not bins:
        return query
    fields = schema(core.translate(query).plan)
    for name in bins:
        field = fields[find_column("the query of the covariance", fields, name)]
        if not is_numeric(field.type) and field.type != BOOLEAN:
            raise InvalidQuery(
                f"column '{field.name}' is {field.type}, and only numbers are cut into bins.",
                hint="make it categorical, or cast it in the query.",
            )
    added = ", ".join(f"{_bin(core, query, name, given)} AS {quote(bin_name(name))}" for name, given in bins.items())
    if isinstance(query, str):
        return f"SELECT *, {added} FROM ({query}\n)"
    return query.selectExpr("*", *(f"{_bin(core, query, n, g)} AS {quote(bin_name(n))}" for n, g in bins.items()))


def _bin(core: Core, query: str | DataFrame, name: str, given: Bins) -> str:
    low, high, count = _range(core, query, name, given) if isinstance(given, int) else given
    if not (math.isfinite(low) and math.isfinite(high) and low < high) or count < 1:
        raise InvalidQuery(
            f"bins of '{name}' are {given!r}.", hint="give how many, or (low, high, how many) with low below high."
        )
    width, x = (high - low) / count, f"CAST({quote(name)} AS DOUBLE)"
    inside = f"CAST(LEAST(FLOOR(({x} - {_number(low)}) / {_number(width)}), {count - 1}) AS INT)"
    return (
        f"CASE WHEN {quote(name)} IS NULL THEN NULL WHEN {x} < {_number(low)} THEN 0 "
        f"WHEN {x} >= {_number(high)} THEN {count - 1} ELSE {inside} END"
    )


def _number(value: float) -> str:
    return f"{value!r}D" if isinstance(value, float) else f"{float(value)!r}D"


def _range(core: Core, query: str | DataFrame, name: str, count: int) -> tuple[float, float, int]:
    """The range of the values that are there now."""
    bounds = f"CAST(MIN({quote(name)}) AS DOUBLE) AS low", f"CAST(MAX({quote(name)}) AS DOUBLE) AS high"
    asked = f"SELECT {', '.join(bounds)} FROM ({query}\n)" if isinstance(query, str) else query.selectExpr(*bounds)
    (found,) = core.backend.query(core.translate(asked).plan).to_pylist()
    low, high = found["low"], found["high"]
    if low is None or not math.isfinite(high - low):
        raise InvalidQuery(
            f"'{name}' has no values yet, or none with a range, to cut into {count} bins.",
            hint=f"give the range: bins={{'{name}': (0, 100, {count})}}.",
        )
    return low, (high if high > low else low + 1.0), count
