"""The demo's data: customers, orders and lineitems after TPC-H, and a stream of changes to them.

Names, types and value ranges are TPC-H's; the rows come from a seeded generator, so that the demo needs no download and
two runs print the same answers. Every change is a row with a ``_weight``: an update is the old row with -1 and the new
one with +1.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

Row = dict[str, Any]

SCHEMAS: dict[str, str] = {
    "customer": "c_custkey BIGINT NOT NULL, c_name STRING, c_mktsegment STRING",
    "orders": "o_orderkey BIGINT NOT NULL, o_custkey BIGINT, o_orderdate DATE, o_orderpriority STRING",
    "lineitem": (
        "l_orderkey BIGINT NOT NULL, l_linenumber INT NOT NULL, l_quantity DECIMAL(15,2), "
        "l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_commitdate DATE, l_receiptdate DATE"
    ),
}
KEYS: dict[str, list[str]] = {
    "customer": ["c_custkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
}

_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_FIRST_DAY = date(1995, 1, 1)


@dataclass(frozen=True, slots=True)
class DemoBatch:
    """The rows that one transaction changes, by table, and what they are about."""

    title: str
    changes: dict[str, list[Row]]

    @property
    def size(self) -> int:
        """How many rows it brings."""
        return sum(map(len, self.changes.values()))


class Shop:
    """A small wholesale supplier whose books move on: what is in its tables now, and what happens next."""

    def __init__(self, customers: int, orders: int, seed: int = 1995) -> None:
        self._random = random.Random(seed)
        self._next_order = 1
        self._customers = [self._customer(key) for key in range(1, customers + 1)]
        self._orders: dict[int, Row] = {}
        self._lines: dict[int, list[Row]] = {}
        for _ in range(orders):
            self._order()

    def tables(self) -> dict[str, list[Row]]:
        """The rows of each table at this moment."""
        lines = [line for order in self._lines.values() for line in order]
        return {"customer": list(self._customers), "orders": list(self._orders.values()), "lineitem": lines}

    def batches(self, rounds: int, size: int) -> Iterator[DemoBatch]:
        """New orders, corrected prices and cancelled orders by turns, ``size`` orders each."""
        for _ in range(rounds):
            yield self._new_orders(size)
            yield self._corrected_prices(size)
            yield self._cancelled_orders(size)

    def _new_orders(self, size: int) -> DemoBatch:
        keys = [self._order() for _ in range(size)]
        lines = [line for key in keys for line in self._lines[key]]
        return DemoBatch("new orders", {"orders": _weigh(map(self._orders.get, keys), 1), "lineitem": _weigh(lines, 1)})

    def _corrected_prices(self, size: int) -> DemoBatch:
        changes: list[Row] = []
        for key in self._some_orders(size):
            line = self._random.choice(self._lines[key])
            changes += _weigh([line], -1)
            line["l_extendedprice"] += Decimal(self._random.randint(-500, 5000))
            changes += _weigh([line], 1)
        return DemoBatch("corrected prices", {"lineitem": changes})

    def _cancelled_orders(self, size: int) -> DemoBatch:
        keys = self._some_orders(size)
        orders = [self._orders.pop(key) for key in keys]
        lines = [line for key in keys for line in self._lines.pop(key)]
        return DemoBatch("cancelled orders", {"orders": _weigh(orders, -1), "lineitem": _weigh(lines, -1)})

    def _some_orders(self, size: int) -> list[int]:
        return self._random.sample(sorted(self._orders), size)

    def _customer(self, key: int) -> Row:
        return {
            "c_custkey": key,
            "c_name": f"Customer#{key:09}",
            "c_mktsegment": self._random.choice(_SEGMENTS),
        }

    def _order(self) -> int:
        """Books one more order with its lines and returns its key."""
        key = self._next_order
        self._next_order += 1
        ordered = _FIRST_DAY + timedelta(days=self._random.randrange(365))
        self._orders[key] = {
            "o_orderkey": key,
            "o_custkey": self._random.choice(self._customers)["c_custkey"],
            "o_orderdate": ordered,
            "o_orderpriority": self._random.choice(_PRIORITIES),
        }
        self._lines[key] = [self._line(key, n, ordered) for n in range(1, self._random.randint(1, 7) + 1)]
        return key

    def _line(self, order: int, number: int, ordered: date) -> Row:
        quantity = self._random.randint(1, 50)
        return {
            "l_orderkey": order,
            "l_linenumber": number,
            "l_quantity": Decimal(quantity),
            "l_extendedprice": quantity * Decimal(self._random.randint(90_000, 200_000)) / 100,
            "l_discount": Decimal(self._random.randint(0, 10)) / 100,
            "l_commitdate": ordered + timedelta(days=self._random.randint(30, 90)),
            "l_receiptdate": ordered + timedelta(days=self._random.randint(2, 120)),
        }


def _weigh(rows: Any, weight: int) -> list[Row]:
    """Copies of the rows, as changes."""
    return [{**row, "_weight": weight} for row in rows]
