"""Aggregates in rings that everview has never seen, in SQL, on every backend, against Spark."""

from __future__ import annotations

from decimal import Decimal as Number

import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from everview.algebra.registry import forget
from everview.algebra.ring import ColumnValues, Payloads
from tests.backends.user_rings import COMPLEX, POLYNOMIALS, Complex, Polynomials, register_all


@pytest.fixture(autouse=True)
def _rings() -> None:
    register_all()


def test_complex_numbers_in_one_table(db: ev.Database) -> None:
    """A sum of complex numbers by group follows inserts, deletes and updates; NULL rows do not count."""
    table = db.create_table("t", "id int, k string, x double, y double", primary_key="id")
    view = db.create_view("v", "SELECT k, complex_sum(x) AS xs, complex_sum(x, y) AS products FROM t GROUP BY k")
    table.insert([(1, "a", 1.5, 2.0), (2, "a", -0.5, 4.0), (3, "b", 8.0, None), (4, "b", None, 1.0)])
    assert sorted(view.rows()) == [
        ("a", {"re": 1.0, "im": 0.0}, {"re": 0.0, "im": 1.0}),
        ("b", {"re": 8.0, "im": 0.0}, None),
    ]
    db.verify()
    table.upsert([(2, "b", 0.25, 1.0)])
    table.delete([(1, "a", 1.5, 2.0)])
    assert sorted(view.rows()) == [("b", {"re": 8.25, "im": 0.0}, {"re": 0.0, "im": 0.25})]
    db.verify()


def test_polynomials_over_three_tables(db: ev.Database) -> None:
    """Factors from three joined tables multiply: how many rows of the join have a total of 0, 1, 2 and 3."""
    r = db.create_table("r", "a int, b int")
    s = db.create_table("s", "a int, c int")
    t = db.create_table("t", "c int, d int")
    sql = "SELECT r.a, totals(b, d) AS by_total, COUNT(*) AS n FROM r JOIN s ON r.a = s.a JOIN t ON s.c = t.c GROUP BY r.a"
    view = db.create_view("v", sql)
    everything = db.create_view("w", "SELECT totals(b, s.c, d) AS z FROM r JOIN s ON r.a = s.a JOIN t ON s.c = t.c")
    assert list(everything.rows()) == [(None,)]
    db.verify()
    r.insert([(1, 0), (1, 1), (2, 2), (1, 1)])
    s.insert([(1, 1), (1, 0), (2, 1), (3, 1)])
    t.insert([(1, 2), (1, 0), (0, 1)])
    expected = {1: [1, 3, 3, 2], 2: [0, 0, 1, 0]}
    assert {a: z for a, z, _ in view.rows()} == expected
    db.verify()
    with db.transaction() as tx:
        tx.delete("r", [(1, 1)])
        tx.insert("t", [(1, 1)])
        tx.delete("s", [(2, 1)])
    db.verify()
    r.delete([(1, 0), (1, 1)])
    assert list(view.rows()) == []
    assert list(everything.rows()) == [(None,)]
    db.verify()


def test_random_changes_to_a_join(db: ev.Database) -> None:
    """Under random inserts and deletes the view stays what Spark computes, down to the last float's neighbourhood."""
    random = np.random.default_rng(11)
    tables = [db.create_table("r", "k int, x double"), db.create_table("s", "k int, y decimal(6,2)")]
    db.create_view("v", "SELECT r.k, phasor(x, y) AS z, SUM(x) AS total FROM r JOIN s ON r.k = s.k GROUP BY r.k")
    db.create_view("big", "SELECT k, z[0] AS re FROM v WHERE z[0] > 0")
    held: list[list[tuple[int, object]]] = [[], []]
    for _ in range(4):
        for table, rows, number in zip(tables, held, (float, Number), strict=True):
            drawn = zip(random.integers(0, 4, 6), random.normal(0, 5, 6), strict=True)
            new = [(int(k), number(f"{x:.2f}")) for k, x in drawn]
            gone = [rows.pop(int(random.integers(len(rows)))) for _ in range(min(3, len(rows)))]
            table.insert(new)
            table.delete(gone)
            rows.extend(new)
        db.verify()


def test_float_rings_over_compensated_parts_forget(db: ev.Database) -> None:
    """What came and went leaves no residue: a group is as if it had never been there."""
    table = db.create_table("t", "k int, x double")
    view = db.create_view("v", "SELECT k, phasor(x, CAST(1 AS DECIMAL(3,1))) AS z FROM t GROUP BY k")
    table.insert([(1, 0.5)])
    before = list(view.rows())
    for x in (0.1, 0.2, 0.3):
        table.insert([(1, x)])
    for x in (0.2, 0.1, 0.3):
        table.delete([(1, x)])
    assert list(view.rows()) == before


def test_rejected_changes_leave_no_trace(db: ev.Database) -> None:
    """A lift that fails rejects the transaction whole, with the ring's name and the view's."""
    table = db.create_table("t", "w string")
    view = db.create_view("v", "SELECT walks(w) AS z FROM t", on_error="reject")
    table.insert([("lr",), ("l",)])
    before = list(view.rows())
    with pytest.raises(ev.EvaluationError) as caught:
        table.insert([("rr",), ("up",)])
    assert str(caught.value) == "view 'v' cannot be computed: ring 'walks': lifting argument 1 failed: KeyError: 'u'."
    assert list(view.rows()) == before
    table.insert([("rl",)])
    assert list(view.rows()) == [([2 + 1 + 1, 1 + 1 + 1, 1 + 1, 1 + 1 + 2],)]
    db.verify()


def test_a_transaction_that_fails_later_is_taken_back(db: ev.Database) -> None:
    """An assertion that breaks undoes what the ring has already added, in old groups and in new ones."""
    table = db.create_table("t", "k int, x int")
    view = db.create_view("v", "SELECT k, totals(x) AS z FROM t GROUP BY k")
    db.create_assertion("few", "SELECT k FROM t GROUP BY k HAVING COUNT(*) > 2")
    table.insert([(1, 1), (1, 2)])
    with pytest.raises(ev.AssertionViolated):
        table.insert([(1, 0), (2, 3)])
    assert list(view.rows()) == [(1, [0, 1, 1, 0])]
    table.delete([(1, 2)])
    table.insert([(2, 0)])
    assert sorted(view.rows()) == [(1, [0, 1, 0, 0]), (2, [1, 0, 0, 0])]
    db.verify()


def test_ad_hoc_queries_and_having(db: ev.Database) -> None:
    """The aggregate works in HAVING, in expressions, in subqueries and in db.sql."""
    table = db.create_table("t", "k int, x int")
    table.insert([(1, 1), (1, 2), (2, 0)])
    db.create_view("v", "SELECT k, totals(x)[2] + 1 AS twos FROM t GROUP BY k HAVING totals(x)[0] = 0")
    db.create_view("w", "SELECT k FROM t WHERE x < (SELECT totals(x)[1] + 1 FROM t)")
    assert list(db.view("v").rows()) == [(1, 2)]
    assert sorted(db.view("w").rows()) == [(1,), (2,)]
    db.verify()
    result = db.sql("SELECT totals(x) AS z FROM t")
    assert isinstance(result, ev.Result)
    assert list(result.rows()) == [([1, 1, 1, 0],)]


def test_dataframes(db: ev.Database) -> None:
    """A DataFrame names the aggregate in expr, and is verified like SQL."""
    from pyspark.sql.functions import expr

    table = db.create_table("t", "k int, x int")
    view = db.create_view("v", db.spark_table("t").groupBy("k").agg(expr("totals(x, k) AS z"), expr("max(x) AS top")))
    table.insert([(1, 1), (1, 2), (2, 0), (2, None)])
    table.delete([(1, 1)])
    assert sorted(view.rows()) == [(1, [0, 0, 0, 1], 2), (2, [0, 0, 1, 0], 0)]
    db.verify()


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("SELECT walks(w, w) FROM t", ev.UnsupportedQuery, "the ring 'walks' does not commute"),
        ("SELECT phasor(x) FROM t", ev.InvalidQuery, "phasor takes 2 arguments, and is given 1."),
        ("SELECT totals(x) OVER (PARTITION BY w) FROM t", ev.UnsupportedQuery, "over a window is not supported"),
        ("SELECT totals(x) FILTER (WHERE x > 0) FROM t", ev.InvalidQuery, "has no FILTER"),
        ("SELECT totals(DISTINCT x) FROM t", ev.InvalidQuery, "has no DISTINCT"),
        ("SELECT total(x) FROM t", ev.InvalidQuery, "there is no function 'total'."),
    ],
)
def test_misuse_is_refused_when_the_view_is_created(
    db: ev.Database, query: str, error: type[Exception], message: str
) -> None:
    """What a ring's aggregate cannot do is said at once, with what to do instead."""
    db.create_table("t", "x int, w string")
    with pytest.raises(error) as caught:
        db.create_view("v", query)
    assert message in str(caught.value)


def test_a_name_of_spark_is_refused_when_it_meets_spark(db: ev.Database) -> None:
    """A function that only Spark knows is found on first use; the ring is forgotten and nothing is poisoned."""
    ev.register_ring("theta_sketch_agg", COMPLEX, returns="array<double>")
    db.create_table("t", "x int")
    with pytest.raises(ev.AlreadyExists) as caught:
        db.create_view("v", "SELECT x FROM t")
    assert "Spark SQL has a function 'theta_sketch_agg'" in str(caught.value)
    assert db.create_view("v", "SELECT x FROM t").name == "v"


def test_other_python_aggregates_are_no_rings(db: ev.Database) -> None:
    """A UDAF that is no ring, even one of a ring's name, is not mistaken for one: it is called for each group that changes."""
    from pyspark.sql.pandas.functions import arrow_udf

    def totals(x: Payloads) -> float:
        return 1.0

    totals.__annotations__ = {"x": pa.Array, "return": float}
    table, frame = db.create_table("t", "x int"), db.spark_table("t")
    view = db.create_view("v", frame.agg(arrow_udf(totals, "double")(frame["x"]).alias("z")))
    assert view.rows() == []
    table.insert([(7,), (8,)])
    assert view.rows() == [(1.0,)]
    assert "aggregates computed by functions of Python" in view.explain()


def test_registration_is_checked() -> None:
    """Names, types and rings that cannot work are refused at once."""

    class Wide(Polynomials):
        width = 2

        def ones(self, count: int) -> Payloads:
            return np.ones((count, 3), dtype=np.int64)

    class Jealous(Complex):
        is_commutative = False

    class Text(Complex):
        def values(self, payloads: Payloads) -> list[str]:
            return ["?"] * len(payloads)

    cases: list[tuple[str, object, dict[str, object], type[Exception], str]] = [
        ("no good", COMPLEX, {}, ev.InvalidQuery, "'no good' is no name for a function."),
        ("sum", COMPLEX, {}, ev.AlreadyExists, "Spark SQL has a function 'sum'."),
        ("upper", COMPLEX, {}, ev.AlreadyExists, "Spark SQL has a function 'upper'."),
        ("totals", COMPLEX, {}, ev.AlreadyExists, "a ring 'totals' is registered already"),
        ("z", Complex, {}, ev.InvalidQuery, "ring 'z' is the class Complex."),
        ("z", object(), {}, ev.InvalidQuery, "ring 'z' is a object."),
        ("z", COMPLEX, {"lifts": [3]}, ev.InvalidQuery, "the lifts of ring 'z' are not functions."),
        ("z", COMPLEX, {"returns": "array<date>"}, ev.UnsupportedQuery, "cannot return array<date>"),
        ("z", COMPLEX, {"returns": "array<nothing>"}, ev.InvalidQuery, "'nothing' is not a data type"),
        ("z", COMPLEX, {"returns": "bigint"}, ev.InvalidQuery, "no bigint: (0.0, 0.0) is no integer"),
        ("z", Text(), {}, ev.InvalidQuery, "no array<double>: '?' is no sequence"),
        ("z", Wide(), {"returns": "array<bigint>"}, ev.InvalidQuery, "'z' is no ring: ones(2) returns"),
        ("z", Jealous(), {"lifts": [abs, abs]}, ev.InvalidQuery, "ring 'z' does not commute"),
        ("z", ev.Ring(), {}, ev.InvalidQuery, "'z' is no ring: its width is None"),
    ]
    for name, ring, options, error, message in cases:
        with pytest.raises(error) as caught:
            ev.register_ring(name, ring, **{"returns": "array<double>", **options})  # type: ignore[arg-type]
        assert message in str(caught.value), (name, str(caught.value))


def test_lifts_are_checked_as_they_run(db: ev.Database) -> None:
    """A lift of the wrong width or type is an error of the transaction, not a wrong answer."""

    def narrow(column: ColumnValues) -> Payloads:
        return np.zeros((len(column), 1))

    def whole(column: ColumnValues) -> Payloads:
        return np.zeros((len(column), 2), dtype=np.int64)

    ev.register_ring("narrow_ring", COMPLEX, lifts=[narrow], returns="array<double>")
    ev.register_ring("whole_ring", COMPLEX, lifts=[whole], returns="array<double>")
    try:
        table = db.create_table("t", "x int")
        db.create_view("v", "SELECT narrow_ring(x) AS z FROM t", on_error="reject")
        with pytest.raises(
            ev.EvaluationError, match=r"returned an array of shape \(1, 1\) where \(1, 2\) was expected"
        ):
            table.insert([(1,)])
        db.drop("v")
        db.create_view("v", "SELECT whole_ring(x) AS z FROM t", on_error="reject")
        with pytest.raises(ev.EvaluationError, match="an array of int64 where the ring has float64"):
            table.insert([(1,)])
    finally:
        forget("narrow_ring")
        forget("whole_ring")


def test_registering_the_same_again_changes_nothing() -> None:
    """A program may register its rings wherever it needs them."""
    ev.register_ring("totals", POLYNOMIALS, returns="array<bigint>")
