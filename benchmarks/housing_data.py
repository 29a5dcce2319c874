"""Housing: a star of six tables around the postcode, 27 variables, as in section 9.1 of F-IVM's paper.

At scale ``s`` each postcode has ``s`` houses and shops, ``s // 2`` institutions and restaurants (at least one), and one row of
demographics and transport. At scale 20 with 25,000 postcodes that is 1.55 million rows whose join has a thousand million.
Postcodes are equally frequent; what is skewed is the join, which multiplies within one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.joins_workload import Workload

POSTCODES = 25_000
SCALE = 20
SEED = 20

_CATEGORIES = {
    "nbbedrooms": 6, "nbbathrooms": 4, "house": 2, "flat": 2, "unknown": 2, "garden": 2, "parking": 2,
    "sainsburys": 2, "tesco": 2, "ms": 2, "typeeducation": 5, "nbhospitals": 4,
}  # fmt: skip
"""The 12 categorical variables and their numbers of values."""

_CONTINUOUS = {
    "livingarea": 200, "price": 900_000, "kitchensize": 40, "openinghoursshop": 24, "pricerangeshop": 100,
    "sizeinstitution": 5_000, "openinghoursrest": 24, "pricerangerest": 100, "averagesalary": 80_000,
    "crimesperyear": 1_000, "unemployment": 30, "nbbuslines": 40, "nbtrainstations": 8, "distancecitycentre": 60,
}  # fmt: skip
"""The 14 continuous variables and their largest values."""

_VARIABLES = {
    "house": ("livingarea", "price", "nbbedrooms", "nbbathrooms", "kitchensize", "house", "flat", "unknown", "garden",
              "parking"),
    "shop": ("openinghoursshop", "pricerangeshop", "sainsburys", "tesco", "ms"),
    "institution": ("typeeducation", "sizeinstitution"),
    "restaurant": ("openinghoursrest", "pricerangerest"),
    "demographics": ("averagesalary", "crimesperyear", "unemployment", "nbhospitals"),
    "transport": ("nbbuslines", "nbtrainstations", "distancecitycentre"),
}  # fmt: skip


def housing(postcodes: int = POSTCODES, scale: int = SCALE) -> Workload:
    """The tables, sorted by postcode, and the sum of the postcode over their join."""
    half = max(1, scale // 2)
    each = {"house": scale, "shop": scale, "institution": half, "restaurant": half, "demographics": 1, "transport": 1}
    rng = np.random.default_rng(SEED)
    tables = {name: _table(rng, variables, postcodes, each[name]) for name, variables in _VARIABLES.items()}
    return Workload(
        name="housing",
        tables=tables,
        keys={"demographics": ("postcode",), "transport": ("postcode",)},
        summed="postcode",
        key="postcode",
        counted_by=_counted(),
        params={"scale": scale, "postcodes": postcodes},
    )


def _table(rng: np.random.Generator, variables: tuple[str, ...], postcodes: int, each: int) -> pa.Table:
    rows = postcodes * each
    columns: dict[str, np.ndarray] = {"postcode": np.repeat(np.arange(postcodes), each)}
    for name in variables:
        values = _CATEGORIES.get(name)
        columns[name] = rng.integers(0, values, rows) if values else rng.random(rows) * _CONTINUOUS[name]
    return pa.table(columns)


def _counted() -> str:
    """Counts of each table by postcode first: they multiply to the number of rows of the join."""
    counts = ", ".join(
        f"n_{name} AS (SELECT postcode, COUNT(*)::BIGINT AS {name}_rows FROM {name} GROUP BY postcode)"
        for name in _VARIABLES
    )
    product = " * ".join(f"{name}_rows" for name in _VARIABLES)
    joined = " NATURAL JOIN ".join(f"n_{name}" for name in _VARIABLES)
    return f"WITH {counts} SELECT SUM(postcode * {product}), COALESCE(SUM({product}), 0) FROM {joined}"
