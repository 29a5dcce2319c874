"""Retailer: a snowflake of five tables around the inventory, 39 variables besides the four that join (F-IVM, section 9.1).

Every location reports 72 of 5,618 items on each of 53 dates: 5.03 million rows of inventory, 69,801 of weather, 5,618 items,
1,317 locations, 1,302 census rows. Few items are reported nearly everywhere and most hardly anywhere; some locations share a
zip code. Sorted by location, date, item. ``scale`` shrinks the number of locations, and with it all but the items.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.joins_workload import Workload, skewed_choices

LOCATIONS, DATES, ITEMS, EACH = 1_317, 53, 5_618, 72
SHARED_ZIPS = 15
SEED = 85

_LOCATION = (
    "rgn_cd", "clim_zn_nbr", "tot_area_sq_ft", "sell_area_sq_ft", "avghhi", "supertargetdistance",
    "supertargetdrivetime", "targetdistance", "targetdrivetime", "walmartdistance", "walmartdrivetime",
    "walmartsupercenterdistance", "walmartsupercenterdrivetime",
)  # fmt: skip
_CENSUS = (
    "population", "white", "asian", "pacific", "blackafrican", "medianage", "occupiedhouseunits", "houseunits",
    "families", "households", "husbwife", "males", "females", "householdschildren", "hispanic",
)  # fmt: skip
_WEATHER = ("rain", "snow", "maxtemp", "mintemp", "meanwind", "thunder")
_ITEM = ("subcategory", "category", "categorycluster", "price")
_CATEGORIES = {
    "rgn_cd": 8, "clim_zn_nbr": 6, "rain": 2, "snow": 2, "thunder": 2, "subcategory": 60, "category": 20,
    "categorycluster": 8,
}  # fmt: skip
"""Variables with few values, and how many."""


def retailer(scale: float = 1.0) -> Workload:
    """The tables, and the sum of the inventory units over their join."""
    locations = max(2, round(LOCATIONS * scale))
    zips = locations - min(round(SHARED_ZIPS * scale), locations - 1)
    rng = np.random.default_rng(SEED)
    places = locations * DATES
    location, date = np.repeat(np.arange(locations), DATES), np.tile(np.arange(DATES), locations)
    items = np.sort(skewed_choices(rng, places, EACH, ITEMS), axis=1)
    inventory = {
        "locn": np.repeat(location, EACH),
        "dateid": np.repeat(date, EACH),
        "ksn": items.ravel(),
        "inventoryunits": rng.poisson(9, places * EACH),
    }
    tables = {
        "inventory": pa.table(inventory),
        "weather": pa.table({"locn": location, "dateid": date, **_values(rng, _WEATHER, places)}),
        "location": pa.table(
            # The last ones share the zip codes of the first: zip does not determine the location there.
            {"locn": np.arange(locations), "zip": np.arange(locations) % zips, **_values(rng, _LOCATION, locations)}
        ),
        "census": pa.table({"zip": np.arange(zips), **_values(rng, _CENSUS, zips)}),
        "item": pa.table({"ksn": np.arange(ITEMS), **_values(rng, _ITEM, ITEMS)}),
    }
    return Workload(
        name="retailer",
        tables=tables,
        keys={
            "inventory": ("locn", "dateid", "ksn"),
            "weather": ("locn", "dateid"),
            "location": ("locn",),
            "census": ("zip",),
            "item": ("ksn",),
        },
        summed="inventoryunits",
        key="locn",
        facts="inventory",
        params={"scale": scale},
    )


def _values(rng: np.random.Generator, names: tuple[str, ...], rows: int) -> dict[str, np.ndarray]:
    return {
        name: rng.integers(0, _CATEGORIES[name], rows) if name in _CATEGORIES else np.round(rng.gamma(2, 50, rows), 2)
        for name in names
    }
