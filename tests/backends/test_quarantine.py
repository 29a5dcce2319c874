"""Assertions that sort rows out: drop and quarantine."""

from __future__ import annotations

import pytest

import everview as ev


@pytest.fixture
def orders(db: ev.Database) -> ev.Table:
    """Orders of customers, one of whom is known."""
    db.create_table("customer", "id int, name string", primary_key="id").insert([(1, "ann")])
    return db.create_table("orders", "id int, customer int, price int", primary_key="id")


def test_rows_in_quarantine(db: ev.Database, orders: ev.Table) -> None:
    """The others are committed with them, in one transaction; views read the table of those put aside."""
    db.create_assertion("priced", "SELECT id FROM orders WHERE price <= 0", on_violation="quarantine")
    view = db.create_view("bad", "SELECT count(*) AS n FROM priced_quarantine")
    commit = orders.insert([(1, 1, 5), (2, 1, 0), (3, 1, -1)])
    assert (commit.version, orders.rows(), view.rows()) == (1 + 1, [(1, 1, 5)], [(2,)])
    assert sorted(commit.caught["priced"].to_pylist(), key=repr) == [
        {"id": 2, "customer": 1, "price": 0},
        {"id": 3, "customer": 1, "price": -1},
    ]
    assert "2 rows caught by priced" in repr(commit)
    kept = sorted(db.table("priced_quarantine").rows())
    assert [row[:4] for row in kept] == [(2, 1, 0, 2), (3, 1, -1, 2)]
    orders.upsert([(1, 1, -7), (4, 1, 2)])
    assert sorted(orders.rows()) == [(1, 1, 5), (4, 1, 2)]
    db.apply(
        {
            "orders": [
                {"id": 4, "customer": 1, "price": 2, "_weight": -1},
                {"id": 5, "customer": 1, "price": 0, "_weight": 1},
            ]
        }
    )
    assert orders.rows() == [(1, 1, 5)]
    assert view.rows() == [(4,)]
    orders.delete_keys([1])
    db.drop("priced")
    orders.insert([(9, 1, -9)])
    db.create_view("again", "SELECT * FROM priced_quarantine")


def test_rows_without_a_partner_are_dropped(db: ev.Database, orders: ev.Table) -> None:
    """As the other table is after the transaction; what was there already rejects it."""
    db.create_assertion(
        "known",
        "SELECT * FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customer c WHERE c.id = o.customer)",
        on_violation="drop",
    )
    commit = orders.insert([(1, 1, 5), (2, 7, 5)])
    assert (orders.rows(), commit.caught["known"].num_rows) == ([(1, 1, 5)], 1)
    with db.transaction() as tx:
        tx.insert("orders", [(3, 8, 1), (4, 9, 1)])
        tx.upsert("customer", [(8, "bob")])
    assert sorted(orders.rows()) == [(1, 1, 5), (3, 8, 1)]
    with pytest.raises(ev.AssertionViolated):
        db.table("customer").delete_keys([8])
    assert not orders.insert([(5, 8, 1)]).caught
    assert "known_quarantine" not in db.tables


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT customer FROM orders GROUP BY customer HAVING count(*) > 3", "Aggregate|Filter"),
        ("SELECT o.id FROM orders o JOIN customer c ON o.customer = c.id WHERE c.name = 'x'", "Join"),
        ("SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM orders p WHERE p.id = o.customer)", "Scan"),
    ],
)
def test_what_does_not_catch_single_rows_is_refused(db: ev.Database, orders: ev.Table, query: str, says: str) -> None:
    """By name, when the assertion is created, and nothing is left behind."""
    with pytest.raises(ev.UnsupportedQuery, match="cannot have on_violation='quarantine'") as caught:
        db.create_assertion("odd", query, on_violation="quarantine")
    assert caught.value.operator in says
    assert not db.assertions
    assert "odd_quarantine" not in db.tables
    with pytest.raises(ev.UnsupportedOperation, match="there is no on_violation 'ignore'"):
        db.create_assertion("odd", query, on_violation="ignore")


def test_it_holds_when_it_is_created(db: ev.Database, orders: ev.Table) -> None:
    """Rows that are there already are not put aside."""
    orders.insert([(1, 1, 0)])
    with pytest.raises(ev.AssertionViolated):
        db.create_assertion("priced", "SELECT id FROM orders WHERE price <= 0", on_violation="quarantine")
    assert "priced_quarantine" not in db.tables


def test_an_assertion_that_fails_rejects(db: ev.Database, orders: ev.Table) -> None:
    """A row on which its query has no answer is neither caught nor let in."""
    db.create_assertion("cheap", "SELECT id FROM orders WHERE 100 div price > 10", on_violation="drop")
    with pytest.raises(ev.EvaluationError, match="assertion 'cheap' cannot be computed: division by zero"):
        orders.insert([(1, 1, 0)])
    assert orders.insert([(1, 1, 5), (2, 1, 50)]).caught["cheap"].num_rows == 1
