"""The demo's shop: a stream of changes that fits the tables it changes."""

from __future__ import annotations

from collections import Counter

from everview.cli.demo_data import KEYS, Row, Shop


def bag(rows: list[Row]) -> Counter[tuple[object, ...]]:
    """Rows by their values, with the weight where they have one."""
    counts: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        values = {name: value for name, value in row.items() if name != "_weight"}
        counts[tuple(values.values())] += row.get("_weight", 1)
    return +counts


def test_batches_lead_from_the_first_tables_to_the_last() -> None:
    """The sum of the initial rows and of all changes is what the shop says it has."""
    shop = Shop(customers=5, orders=40)
    totals = {name: [dict(row) for row in rows] for name, rows in shop.tables().items()}
    for batch in shop.batches(rounds=3, size=4):
        assert batch.size > 0
        for name, rows in batch.changes.items():
            totals[name] += rows
    assert {name: bag(rows) for name, rows in totals.items()} == {n: bag(rows) for n, rows in shop.tables().items()}


def test_keys_are_unique_after_every_batch() -> None:
    """No batch would be rejected for its keys."""
    shop = Shop(customers=5, orders=40)
    for _ in shop.batches(rounds=3, size=4):
        for name, rows in shop.tables().items():
            keys = [tuple(row[column] for column in KEYS[name]) for row in rows]
            assert len(set(keys)) == len(keys)


def test_same_seed_same_shop() -> None:
    """Two runs of the demo print the same answers."""
    assert Shop(5, 40).tables() == Shop(5, 40).tables()
