"""Changes given as products mean their rows, on every backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import everview as ev


@pytest.fixture
def table(plain_db: ev.Database) -> ev.Table:
    """A table without a key."""
    return plain_db.create_table("r", "a int, b string, c double")


def bag(relation: ev.Table | ev.View) -> Counter[tuple[Any, ...]]:
    """The rows, counted."""
    return Counter(tuple(row.values()) for row in relation.to_arrow().to_pylist())


def test_every_combination(table: ev.Table) -> None:
    """Of the rows of the factors, in whatever form they are."""
    forms: list[Any] = [
        {"b": ["x", "y"], "c": [0.5, 1.5]},
        [{"b": "x", "c": 0.5}, {"C": 1.5, "B": "y"}],
        pa.table({"c": [0.5, 1.5], "b": ["x", "y"]}),
        pd.DataFrame({"b": ["x", "y"], "c": [0.5, 1.5]}),
        {"b": pa.array(["x", "y"]), "c": np.array([0.5, 1.5])},
    ]
    for form in forms:
        table.insert(ev.Product({"A": [1, 2, 3]}, form))
    once = {(a, b, c): len(forms) for a in (1, 2, 3) for b, c in (("x", 0.5), ("y", 1.5))}
    assert bag(table) == Counter(once)


def test_weights_multiply(plain_db: ev.Database, table: ev.Table) -> None:
    """And a negative one takes away."""
    product = ev.Product({"a": [1, 2], "_weight": [2, 3]}, {"b": ["x"], "_weight": [5]}, {"c": [None]})
    plain_db.apply({"r": product})
    assert bag(table) == Counter({(1, "x", None): 10, (2, "x", None): 15})
    plain_db.apply({"r": ev.Product({"a": [1], "_weight": [-2]}, {"b": ["x"], "c": [None]})})
    assert bag(table)[1, "x", None] == 8
    table.delete(ev.Product({"a": [1, 2], "_weight": [8, 15]}, {"b": ["x"]}, {"c": [None]}))
    assert not bag(table)


def test_sums_of_products(plain_db: ev.Database, table: ev.Table) -> None:
    """By + and -, or in a list; what cancels was never there."""
    one = ev.Product({"a": [1, 2, 3]}, {"b": ["x", "y"]}, {"c": [0.0]})
    corner = ev.Product({"a": [3]}, {"b": ["y"]}, {"c": [-0.0]})
    plain_db.apply({"r": one - corner})
    assert len(bag(table)) == 5
    assert (3, "y", 0.0) not in bag(table)
    plain_db.apply({"r": [corner, corner]})
    assert bag(table)[3, "y", 0.0] == 2
    plain_db.apply({"r": -(one + corner)})
    assert not bag(table)


def test_in_a_transaction_with_rows(plain_db: ev.Database, table: ev.Table) -> None:
    """Products and rows of one transaction add up, and strictness is judged on the sum."""
    with plain_db.transaction() as tx:
        tx.delete("r", [(1, "x", 0.5)])
        tx.insert("r", ev.Product({"a": [1, 2]}, {"b": ["x"]}, {"c": [0.5]}))
        tx.apply({"r": ev.Product({"a": [7]}, {"b": ["z"], "c": [1.0]})})
    assert bag(table) == Counter({(2, "x", 0.5): 1, (7, "z", 1.0): 1})
    with pytest.raises(ev.InvalidChange, match="does not have"):
        table.delete(ev.Product({"a": [2, 3]}, {"b": ["x"]}, {"c": [0.5]}))
    assert bag(table)[2, "x", 0.5] == 1


def test_an_empty_factor_makes_an_empty_product(table: ev.Table) -> None:
    """No rows, no change."""
    table.insert(ev.Product({"a": [1, 2]}, {"b": [], "c": []}))
    assert not bag(table)


def test_a_table_with_a_key(plain_db: ev.Database) -> None:
    """Keys are checked as for rows."""
    table = plain_db.create_table("k", "a int, b int", primary_key=["a", "b"])
    table.insert(ev.Product({"a": [1, 2]}, {"b": [1, 2]}))
    with pytest.raises(ev.InvalidChange, match="same primary key"):
        table.insert(ev.Product({"a": [2, 3]}, {"b": [2, 3]}))
    with pytest.raises(ev.InvalidChange, match="NULL"):
        table.insert(ev.Product({"a": [None]}, {"b": [2, 3]}))
    assert len(bag(table)) == 4


WRONG: list[tuple[Callable[[], ev.Product], str]] = [
    (ev.Product, "at least one factor"),
    (lambda: ev.Product({}), "has no columns"),
    (lambda: ev.Product({"a": [1]}, {"b": ["x"]}), "column 'c' of table 'r' is in no factor"),
    (lambda: ev.Product({"a": [1]}), "columns 'b', 'c' of table 'r' are in no factor"),
    (lambda: ev.Product({"a": [1], "b": ["x"]}, {"B": ["y"], "c": [1.0]}), "column 'B' is in two factors"),
    (lambda: ev.Product({"a": [1], "bb": ["x"]}, {"c": [1.0]}), "column 'bb' is not in table 'r'.*'b'"),
    (lambda: ev.Product({"a": [1, 2], "b": ["x"]}, {"c": [1.0]}), "'a' has 2, 'b' has 1"),
    (lambda: ev.Product({"a": [1]}, {"b": "xy"}, {"c": [1.0]}), "column 'b' of a product is of type str"),
    (lambda: ev.Product({"a": ["one"]}, {"b": ["x"]}, {"c": [1.0]}), "column 'a' of table 'r' is int"),
    (lambda: ev.Product([(1,)], {"b": ["x"]}, {"c": [1.0]}), "rows without names"),
    (lambda: ev.Product({"a": [1], "_weight": [0]}, {"b": ["x"]}, {"c": [1.0]}), "changes nothing"),
    (lambda: ev.Product({"_weight": [2]}, {"a": [1], "b": ["x"], "c": [1.0]}), "weights only"),
    (lambda: -ev.Product({"a": [1]}, {"b": ["x"]}, {"c": [1.0]}), "insert does not take"),
    (lambda: ev.Product({"a": [1], "_weight": [-1]}, {"b": ["x"]}, {"c": [1.0]}), "insert does not take"),
    (
        lambda: ev.Product({"a": [1], "_weight": [2**40]}, {"b": ["x"], "_weight": [2**40]}, {"c": [1.0]}),
        "more than 64 bits",
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[m for _, m in WRONG])
def test_wrong_products(table: ev.Table, make: Callable[[], ev.Product], message: str) -> None:
    """Are said to be wrong, and change nothing."""
    with pytest.raises(ev.InvalidChange, match=message):
        table.insert(make())
    assert not bag(table)


def test_changes_by_key_take_rows(plain_db: ev.Database) -> None:
    """A product has no keys to look up."""
    table = plain_db.create_table("k", "a int, b int", primary_key="a")
    with pytest.raises(ev.UnsupportedOperation, match="takes rows, not products"):
        table.upsert(ev.Product({"a": [1]}, {"b": [1]}))


def test_what_a_product_looks_like() -> None:
    """Its factors and their sizes."""
    product = ev.Product({"a": [1]}, pa.table({"b": ["x", "y"], "_weight": [1, 2]}), pd.DataFrame({"c": [0.5]}))
    assert repr(product) == "<Product a (1 row) × b (2 rows) × c (1 row)>"
    assert repr(product - product).startswith("<Product a (1 row) × b (2 rows) × c (1 row)> + <-Product a")


def test_decompose(plain_db: ev.Database, table: ev.Table) -> None:
    """A commit says what it found; the rows are the same either way."""
    rows = [(a, b, 1.0) for a in range(4) for b in "xyz"]
    assert table.insert(rows, decompose=True).decomposed == {"r": (("a",), ("b",), ("c",))}
    assert bag(table) == Counter(rows)
    assert table.delete(rows, decompose=True).decomposed == {"r": (("a",), ("b",), ("c",))}
    assert not bag(table)
    paired = [(a, b, float(a)) for a in range(4) for b in "xyz"]
    assert plain_db.apply({"r": paired}, decompose=True).decomposed == {"r": (("a", "c"), ("b",))}
    with plain_db.transaction() as tx:
        tx.insert("r", paired[1:], decompose=True)
    assert tx.commit.decomposed == {"r": (("a", "b", "c"),)}
    assert table.insert(paired).decomposed == {}
    assert bag(table) == Counter(paired * 3) - Counter(paired[:1])


def test_views_over_products(db: ev.Database, backend: str) -> None:
    """See the rows, whatever they are made of; tables without retention too."""
    db.create_table("r", "a int, b int, x double", retain=False)
    db.create_table("s", "b int, y int")
    views = [
        db.create_view(
            "sums", "SELECT r.a, SUM(r.x * s.y) AS t, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a"
        ),
        db.create_view("rows", "SELECT r.a, r.b, s.y FROM r JOIN s ON r.b = s.b WHERE r.a + r.b > 2"),
        db.create_view("ends", "SELECT MIN(a) AS low, COUNT(DISTINCT b) AS n FROM r"),
        db.create_view("lazy", "SELECT b, COUNT(*) AS n FROM r GROUP BY b", lazy=backend != "spark"),
    ]
    db.apply({"s": [(1, 10), (2, 20), (2, 21)]})
    db.apply({"r": ev.Product({"a": [1, 2]}, {"b": [1, 2, 3]}, {"x": [0.5]})})
    db.apply({"r": ev.Product({"a": [1], "_weight": [-1]}, {"b": [3], "x": [0.5]})})
    assert bag(views[0]) == Counter({(1, 25.5, 3): 1, (2, 25.5, 3): 1})
    assert bag(views[1]) == Counter({(1, 2, 20): 1, (1, 2, 21): 1, (2, 1, 10): 1, (2, 2, 20): 1, (2, 2, 21): 1})
    assert bag(views[2]) == Counter({(1, 3): 1})
    assert bag(views[3]) == Counter({(1, 2): 1, (2, 2): 1, (3, 1): 1})


def test_a_rejected_product_leaves_no_trace(db: ev.Database) -> None:
    """An assertion is judged on the rows that the product stands for."""
    db.create_table("r", "a int, b int", retain=False)
    view = db.create_view("v", "SELECT a, COUNT(*) AS n FROM r GROUP BY a")
    db.create_assertion("few", "SELECT b FROM r GROUP BY b HAVING COUNT(*) > 4")
    db.apply({"r": ev.Product({"a": [1, 2]}, {"b": [5, 6]})})
    with pytest.raises(ev.AssertionViolated):
        db.apply({"r": ev.Product({"a": [3, 4, 5]}, {"b": [6, 7]})})
    assert bag(view) == Counter({(1, 2): 1, (2, 2): 1})
    db.apply({"r": ev.Product({"a": [3, 4, 5]}, {"b": [7]})})
    assert bag(view) == Counter({(1, 2): 1, (2, 2): 1, (3, 1): 1, (4, 1): 1, (5, 1): 1})


def test_a_static_table_is_loaded_once(plain_db: ev.Database) -> None:
    """By a product too."""
    table = plain_db.create_table("r", "a int, b int", static=True, retain=False)
    table.insert(ev.Product({"a": [1]}, {"b": [5, 6]}))
    with pytest.raises(ev.InvalidChange, match="static"):
        table.insert(ev.Product({"a": [1]}, {"b": [5, 6]}))
