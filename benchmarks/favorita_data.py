"""Favorita: a star of six tables around the sales of a grocer, 15 variables besides the three that join (F-IVM, section 9.1).

54 stores on 100 dates sell 926 of 4,100 items each: 5.0 million sales, 5,400 rows of transactions, 100 of oil prices and of
holidays. Few items are sold everywhere, most hardly anywhere. Sorted by date, store, item. ``scale`` shrinks the number of
items that a store sells on a date.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.joins_workload import Workload, skewed_choices

STORES, DATES, ITEMS, EACH = 54, 100, 4_100, 926
SEED = 125


def favorita(scale: float = 1.0) -> Workload:
    """The tables, and the sum of the unit sales over their join."""
    each = max(1, round(EACH * scale))
    rng = np.random.default_rng(SEED)
    days = DATES * STORES
    date, store = np.repeat(np.arange(DATES), STORES), np.tile(np.arange(STORES), DATES)
    items = np.sort(skewed_choices(rng, days, each, ITEMS), axis=1)
    sales = {
        "dateid": np.repeat(date, each),
        "store": np.repeat(store, each),
        "item": items.ravel(),
        "unit_sales": np.round(rng.gamma(1.5, 6, days * each), 3),
        "onpromotion": rng.integers(0, 2, days * each),
    }
    tables = {
        "sales": pa.table(sales),
        "items": pa.table(
            {"item": np.arange(ITEMS), **_categories(rng, ITEMS, family=33, itemclass=337, perishable=2)}
        ),
        "stores": pa.table(
            {"store": np.arange(STORES), **_categories(rng, STORES, city=22, state=16, storetype=5, cluster=17)}
        ),
        "transactions": pa.table({"dateid": date, "store": store, "txns": rng.poisson(1_700, days)}),
        "oil": pa.table({"dateid": np.arange(DATES), "oilprice": np.round(rng.normal(68, 25, DATES), 2)}),
        "holiday": pa.table(
            {
                "dateid": np.arange(DATES),
                **_categories(rng, DATES, holidaytype=6, locale=3, localeid=24, transferred=2),
            }
        ),
    }
    return Workload(
        name="favorita",
        tables=tables,
        keys={
            "sales": ("dateid", "store", "item"),
            "items": ("item",),
            "stores": ("store",),
            "transactions": ("dateid", "store"),
            "oil": ("dateid",),
            "holiday": ("dateid",),
        },
        summed="unit_sales",
        key="dateid",
        facts="sales",
        params={"scale": scale},
    )


def _categories(rng: np.random.Generator, rows: int, **values: int) -> dict[str, np.ndarray]:
    return {name: rng.integers(0, count, rows) for name, count in values.items()}
