"""Changes given as products over view trees with ring payloads: LINVIEW's factorized updates for any join-aggregate query."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import everview as ev
from tests.backends.test_ring_trees import COFACTORS, QUERIES, TABLES, WHOLE_COFACTORS, _bag, _open, _value
from tests.backends.user_rings import register_all


@pytest.fixture(autouse=True)
def _rings() -> None:
    register_all()
    ev.register_ring("cofactors", COFACTORS, returns="array<double>")
    ev.register_ring("whole_cofactors", WHOLE_COFACTORS, returns="array<bigint>")


def some_product(rng: random.Random, table: str) -> ev.Product:
    """A product whose factors share out the columns of a table at random, with NULLs and weights."""
    columns = [column.split(" ") for column in TABLES[table].split(", ")]
    rng.shuffle(columns)
    cuts = sorted(rng.sample(range(1, len(columns)), rng.randrange(1, len(columns))))
    factors = []
    for start, end in zip([0, *cuts], [*cuts, len(columns)], strict=True):
        count = rng.randrange(1, 4)
        factor: dict[str, list[Any]] = {c: [_value(rng, kind) for _ in range(count)] for c, kind in columns[start:end]}
        if rng.random() < 0.5:
            factor["_weight"] = [rng.randrange(1, 3) for _ in range(count)]
        factors.append(factor)
    return ev.Product(*factors)


def test_products_reach_every_ring(spark: SparkSession) -> None:
    """Products into any table, and taken back in another order, leave the reference's answer in every view of every ring."""
    rng = random.Random(11)
    reference, db = _open(spark, backend="reference"), _open(spark)
    names = (
        "polynomials_over_three",
        "covariance_over_three",
        "several_rings",
        "does_not_commute",
        "arguments_of_one_table",
        "residual",
        "cross",
        "self_join",
        "cycle",
        "one_table",
    )
    for name in names:
        for database in (reference, db):
            database.create_view(name, QUERIES[name])
    given: list[tuple[str, ev.Product]] = []
    for step in range(12):
        if given and rng.random() < 0.4:
            table, product = given.pop(rng.randrange(len(given)))
            change: Any = -product
        else:
            table = rng.choice(list(TABLES))
            product = some_product(rng, table)
            given.append((table, product))
            change = product
        for database in (reference, db):
            database.apply({table: change})
        for name in names:
            assert _bag(db.view(name)) == _bag(reference.view(name)), (name, step)


def test_products_reach_a_covariance(spark: SparkSession) -> None:
    """A covariance takes in products as it takes in their rows: sums, categories and pairs are those of the reference."""
    rng = random.Random(13)
    reference, db = _open(spark, backend="reference"), _open(spark)
    query = "SELECT x, y, z, r.b AS b, t.d AS d FROM r JOIN s ON r.a = s.a JOIN t ON s.c = t.c"
    ours, theirs = (
        database.create_covariance("cov", query, continuous=["x", "y", "z"], categorical=["b", "d"])
        for database in (db, reference)
    )
    for _ in range(24):
        table = rng.choice(["r", "s", "t"])
        product = some_product(rng, table)
        for database in (reference, db):
            database.apply({table: product})
        a, b = ours.moments(), theirs.moments()
        assert a.count == b.count
        np.testing.assert_allclose(a.sums, b.sums, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(a.products, b.products, rtol=1e-12, atol=1e-12)
        for name in ("b", "d"):
            found, expected = a.categories[name], b.categories[name]
            assert dict(zip(found.values, found.counts, strict=True)) == dict(
                zip(expected.values, expected.counts, strict=True)
            )
        assert a.pairs["b", "d"].counts.sum() == b.pairs["b", "d"].counts.sum()
    assert ours.moments().count > 0
