"""What a product costs: rank-1 changes of a chain of matrices take n² steps, their n² rows n³ (section 8.4 of F-IVM)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import everview as ev
from everview.backends.embedded.dependencies import below
from everview.backends.embedded.tree.layout import PAIRS_AT_ONCE
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.tree.tree_state import TreeState
from everview.session.rows.given_rows import Mode
from tests.backends.test_ring_trees import COFACTORS
from tests.backends.user_rings import register_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Matrix = npt.NDArray[np.float64]
NAMES = {"a": "ij", "b": "jk", "c": "kl"}
CHAIN = """SELECT a.i, c.l, SUM(a.v * a.w * b.v * b.w * c.v * c.w) AS s FROM a JOIN b ON a.j = b.j JOIN c ON b.k = c.k
GROUP BY a.i, c.l"""


@pytest.fixture
def db(spark: SparkSession) -> Iterator[ev.Database]:
    """A chain of three matrices."""
    with ev.connect(spark=spark) as database:
        for table, (one, other) in NAMES.items():
            database.create_table(table, f"{one} int, {other} int, v double, w double", retain=False)
        database.create_view("m", CHAIN)
        yield database


def state_of(db: ev.Database, view: str = "m") -> TreeState:
    """The tree of a view."""
    root = db._core.backend._graph.roots[view]  # type: ignore[attr-defined]
    return next(o.state for o in below(root) if isinstance(o, TreeOperator))


def rank_one(table: str, left: Matrix, right: Matrix) -> ev.Product:
    """The matrix left · rightᵀ, whose entries are v · w."""
    one, other = NAMES[table]
    rows, columns = np.arange(len(left), dtype=np.int32), np.arange(len(right), dtype=np.int32)
    return ev.Product({one: rows, "v": left}, {other: columns, "w": right})


def fill(db: ev.Database, rng: np.random.Generator, n: int) -> dict[str, Matrix]:
    """Puts random matrices into the tables."""
    matrices = {}
    for table, (one, other) in NAMES.items():
        matrix = matrices[table] = rng.integers(-4, 5, (n, n)).astype(np.float64)
        rows, columns = np.indices((n, n), dtype=np.int32)
        values = {one: rows.ravel(), other: columns.ravel(), "v": matrix.ravel(), "w": np.ones(n * n)}
        db.apply({table: pa.table(values)})
    return matrices


def result(db: ev.Database, n: int) -> Matrix:
    """The product of the chain, as the view has it."""
    found = db.view("m").to_arrow()
    matrix = np.zeros((n, n))
    matrix[found["i"].to_numpy(), found["l"].to_numpy()] = found["s"].to_numpy()
    return matrix


def test_rank_one_changes_are_exact(db: ev.Database) -> None:
    """Of every matrix of the chain, in sums and with signs."""
    rng, n = np.random.default_rng(5), 9
    matrices = fill(db, rng, n)
    for table in ("b", "a", "c", "b"):
        u, v, x, y = rng.integers(-4, 5, (4, n)).astype(np.float64)
        db.apply({table: rank_one(table, u, v) - rank_one(table, x, y)})
        matrices[table] += np.outer(u, v) - np.outer(x, y)
    assert np.array_equal(result(db, n), matrices["a"] @ matrices["b"] @ matrices["c"])


@pytest.mark.parametrize("table", list(NAMES))
def test_work_grows_with_the_square(db: ev.Database, table: str) -> None:
    """Also for the matrix in the middle; that of the rows grows faster."""
    work: dict[str, list[int]] = {"product": [], "rows": []}
    for n in (12, 48):
        with ev.connect(spark=db._core.spark) as fresh:
            for name, (one, other) in NAMES.items():
                fresh.create_table(name, f"{one} int, {other} int, v double, w double", retain=False)
            fresh.create_view("m", CHAIN)
            fill(fresh, np.random.default_rng(7), n)
            state = state_of(fresh)
            left, right = np.random.default_rng(8).integers(1, 5, (2, n)).astype(np.float64)
            product = rank_one(table, left, right)
            work["product"].append(spent(state, lambda db=fresh, p=product: db.apply({table: p})))
            rows = fresh._core.read_change(table, product, Mode.APPLY).rows
            work["rows"].append(spent(state, lambda db=fresh, r=rows: db.apply({table: r})))
    exponent = {how: math.log(large / small, 48 / 12) for how, (small, large) in work.items()}
    assert exponent["product"] < 2.15
    assert exponent["rows"] > 2.6
    assert work["product"][1] < 12 * 48**2


def spent(state: TreeState, action: Callable[[], Any]) -> int:
    """The rows that the machines read or made meanwhile."""
    before = state.work
    action()
    return state.work - before


def test_no_rows_without_a_view_that_needs_them(spark: SparkSession) -> None:
    """10^10 rows, in a view that has a hundred groups."""
    with ev.connect(spark=spark) as db:
        db.create_table("r", "a int, b int, x double", retain=False)
        db.create_table("s", "b int, g int")
        db.create_view("m", "SELECT s.g, COUNT(*) AS n, SUM(r.x) AS t FROM r JOIN s ON r.b = s.b GROUP BY s.g")
        n = 100_000
        db.apply({"s": pa.table({"b": np.arange(n, dtype=np.int32), "g": (np.arange(n) % 100).astype(np.int32)})})
        state = state_of(db)
        everything = np.arange(n, dtype=np.int32)
        product = ev.Product({"a": everything, "x": np.full(n, 0.5)}, {"b": everything})
        assert spent(state, lambda: db.apply({"r": product})) < 8 * n
        found = db.view("m").to_arrow().to_pydict()
        assert len(found["g"]) == 100
        assert set(found["n"]) == {1000 * n}
        assert set(found["t"]) == {500.0 * n}


def test_a_view_over_several_factors_is_multiplied_in_chunks(spark: SparkSession) -> None:
    """A stored view with the keys of both factors takes as much as it stores, and no frame holds it all."""
    with ev.connect(spark=spark) as db:
        db.create_table("r", "a int, b int, c int", retain=False)
        db.create_view("m", "SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b")
        n = 500
        column = np.arange(n, dtype=np.int32)
        state = state_of(db)
        assert (
            spent(state, lambda: db.apply({"r": ev.Product({"a": column}, {"b": column}, {"c": [1, 2]})})) < 3 * n * n
        )
        assert db.view("m").to_arrow().num_rows == n * n
        (trigger,) = state._products._made.values()
        assert trigger is not None
        assert max(trigger._machine._capacities) <= PAIRS_AT_ONCE
        db.apply({"r": -ev.Product({"a": column}, {"b": column}, {"c": [1, 2]})})
        assert db.view("m").to_arrow().num_rows == 0


def test_a_sibling_over_two_factors_is_not_multiplied_out(spark: SparkSession) -> None:
    """In a triangle, the view that closes it has a key of each factor; the work is that of its matches with the first."""
    with ev.connect(spark=spark) as db:
        db.create_table("r", "a int, b int", retain=False)
        db.create_table("s", "b int, c int", static=True)
        db.create_table("t", "c int, a int", static=True)
        n = 1000
        column = np.arange(n, dtype=np.int32)
        db.apply({"s": pa.table({"b": column, "c": column}), "t": pa.table({"c": column, "a": column})})
        db.create_view("m", "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND t.a = r.a")
        state = state_of(db)
        assert spent(state, lambda: db.apply({"r": ev.Product({"a": column[::2]}, {"b": column[:600]})})) < 20 * n
        assert db.view("m").to_arrow().to_pydict() == {"n": [300]}


def test_what_is_not_finite_is_multiplied_row_by_row(db: ev.Database) -> None:
    """∞ · 0 is NaN, and ∞ · -1 is -∞: a product of sums would not know."""
    db.apply({"a": [(1, 1, 1.0, 1.0)], "c": [(1, 1, 1.0, 1.0), (2, 2, 1.0, 1.0)]})
    odd = ev.Product({"j": [1], "v": [math.inf]}, {"k": [1, 2], "w": [-1.0, 2.0]})
    with pytest.raises(ev.EvaluationError, match="NaN, infinite, or too large"):  # the tables keep no rows
        db.apply({"b": odd})
    db.apply({"b": ev.Product({"j": [1], "v": [2.0**600]}, {"k": [1, 2], "w": [2.0**-600, 0.0]})})
    assert db.view("m").to_arrow().to_pydict() == {"i": [1, 1], "l": [1, 2], "s": [1.0, 0.0]}


MOMENTS = """SELECT s.g, COUNT(*) AS n, SUM(r.x) AS x, VAR_SAMP(r.x) AS v, COVAR_SAMP(r.x, r.y) AS c, CORR(r.y, s.z) AS k,
REGR_SLOPE(r.x, s.z) AS b FROM r JOIN s ON r.b = s.b GROUP BY s.g"""


def test_moments_of_a_product_are_those_of_its_factors(spark: SparkSession) -> None:
    """VAR, COVAR, CORR and REGR over 10^10 rows: each factor has the moments of its own features, and these are multiplied."""
    with ev.connect(spark=spark) as db:
        db.create_table("r", "a int, x double not null, b int, y double not null", retain=False)
        db.create_table("s", "b int, g int, z double not null")
        db.create_view("m", MOMENTS)
        rng, n, groups = np.random.default_rng(9), 100_000, 100
        everything = np.arange(n, dtype=np.int32)
        x, y, z = rng.normal(50, 10, (3, n))
        z += y
        db.apply({"s": pa.table({"b": everything, "g": everything % groups, "z": z})})
        state = state_of(db)
        product = ev.Product({"a": everything, "x": x}, {"b": everything, "y": y})
        assert spent(state, lambda: db.apply({"r": product})) < 8 * n
        (trigger,) = state._products._made.values()
        assert trigger is not None
        found = sorted(db.view("m").to_arrow().to_pylist(), key=lambda row: row["g"])
        rows = n * (n // groups)  # of a group: each x beside the y and z of its keys
        for group in (0, 57, 99):
            mine, theirs = y[group::groups], z[group::groups]
            assert found[group]["n"] == rows
            ours = [found[group][name] for name in "xvck"]
            variance = np.var(x) * (rows / (rows - 1))
            wanted = [x.sum() * (n // groups), variance, 0.0, np.corrcoef(mine, theirs)[0, 1]]
            np.testing.assert_allclose(ours, wanted, rtol=1e-9, atol=1e-9)
            assert abs(found[group]["b"]) < 1e-12
        db.apply({"r": -product})
        assert db.view("m").rows() == []


def test_a_covariance_takes_products_as_their_rows(spark: SparkSession) -> None:
    """Over stored views with keys of several factors, with weights, and with a feature that two factors make."""
    with ev.connect(spark=spark) as db:
        db.create_table(
            "r", "a int, x double not null, b int, y double not null, c int, w double not null", retain=False
        )
        db.create_table("s", "a int, b int, z double not null")
        query = "SELECT x, y, z, w, x * w AS xw FROM r JOIN s USING (a, b)"
        cov = db.create_covariance("cov", query, continuous=["x", "y", "z", "w"])
        made = db.create_covariance("made", query, continuous=["xw", "y", "z"])
        rng, n = np.random.default_rng(10), 6
        a, b = (i.ravel().astype(np.int32) for i in np.indices((n, n)))
        z = rng.normal(size=n * n)
        db.apply({"s": pa.table({"a": a, "b": b, "z": z})})
        x, y, w = rng.normal(size=(3, n))
        keys = np.arange(n, dtype=np.int32)
        weights = rng.integers(1, 4, n)
        factors = {"a": keys, "x": x}, {"b": keys, "y": y, "_weight": weights}, {"c": keys[:2], "w": w[:2]}
        db.apply({"r": ev.Product(*factors)})
        rows = np.array(
            [(x[i], y[j], v, u) for i, j, v in zip(a, b, z, strict=True) for u in w[:2] for _ in range(weights[j])]
        )
        for handle, columns in ((cov, rows), (made, np.column_stack([rows[:, 0] * rows[:, 3], rows[:, 1:3]]))):
            whole = np.column_stack([np.ones(len(rows)), columns])
            np.testing.assert_allclose(handle.to_numpy(), whole.T @ whole, rtol=1e-12)
        db.apply({"r": -ev.Product(*factors)})
        assert not cov.to_numpy().any()
        assert not made.to_numpy().any()


def test_elements_of_rings_are_multiplied_factor_by_factor(spark: SparkSession) -> None:
    """A ring's arguments from both factors and from a sibling, over 10^10 rows; by its table and by its own ``multiply``."""
    register_all()
    ev.register_ring("cofactors", COFACTORS, returns="array<double>")
    with ev.connect(spark=spark) as db:
        db.create_table("r", "a int, x double, b int, y double", retain=False)
        db.create_table("s", "b int, g int, z double")
        joined = "FROM r JOIN s ON r.b = s.b"
        db.create_view("m", f"SELECT g, cofactors(x, y, z) AS m {joined} GROUP BY g")
        db.create_view("c", f"SELECT complex_sum(x, y) AS c, complex_sum(y, z) AS d {joined}")
        n, groups = 100_000, 100
        everything = np.arange(n, dtype=np.int32)
        x, y, z = (np.random.default_rng(9).integers(-8, 9, (3, n)) / 8).astype(np.float64)
        db.apply({"s": pa.table({"b": everything, "g": everything % groups, "z": z})})
        product = ev.Product({"a": everything, "x": x}, {"b": everything, "y": y})
        assert spent(state_of(db), lambda: db.apply({"r": product})) < 12 * n
        (trigger,) = state_of(db, "c")._products._made.values()
        assert trigger is not None  # else it would have made the rows
        of_group = {row["g"]: row["m"] for row in db.view("m").to_arrow().to_pylist()}
        for group in (0, 57, 99):
            mine, theirs, times = y[group::groups], z[group::groups], n // groups
            sums = [times * x.sum(), n * mine.sum(), n * theirs.sum()]
            products = [times * (x @ x), x.sum() * mine.sum(), x.sum() * theirs.sum()]
            products += [n * (mine @ mine), n * (mine @ theirs), n * (theirs @ theirs)]
            np.testing.assert_allclose(of_group[group], [n * times, *sums, *products], rtol=1e-12)
        (found,) = db.view("c").rows()
        assert found == ({"re": 0.0, "im": x.sum() * y.sum()}, {"re": 0.0, "im": n * (y @ z)})
        db.apply({"r": -product})
        assert db.view("m").rows() == []
        assert db.view("c").rows() == [(None, None)]


def test_a_chain_of_matrices_of_elements(spark: SparkSession) -> None:
    """A · B · C with cells in a ring: a rank-1 change of B, of which each factor has an argument, takes n² steps."""
    register_all()
    work = []
    for n in (8, 32):
        with ev.connect(spark=spark) as db:
            for table, (one, other) in NAMES.items():
                db.create_table(table, f"{one} int, {other} int, v double, w double", retain=False)
            cells = CHAIN.replace("SUM(a.v * a.w * b.v * b.w * c.v * c.w)", "complex_sum(a.v, b.v, c.v, b.w)")
            db.create_view("m", cells)
            rng = np.random.default_rng(5)
            matrices = fill(db, rng, n)
            left, right = rng.integers(-4, 5, (2, n)).astype(np.float64)
            work.append(spent(state_of(db), lambda db=db, u=left, v=right: db.apply({"b": rank_one("b", u, v)})))
            found = np.zeros((n, n), dtype=np.complex128)
            for i, column, element in db.view("m").rows():
                found[i, column] = complex(element["re"], element["im"])
            b = matrices["b"] * -1 + np.outer(left, -right)  # iv · iw of every cell; fill's w is 1
            assert np.array_equal(found, matrices["a"] @ b @ matrices["c"])
    assert math.log(work[1] / work[0], 32 / 8) < 2.15


def test_large_elements_are_multiplied_row_by_row(spark: SparkSession) -> None:
    """∞ - ∞ is NaN, where the product of the sums would be 0."""
    register_all()
    with ev.connect(spark=spark) as db:
        db.create_table("r", "a int, x double, b int, y double", retain=False)
        db.create_table("s", "b int")
        db.create_view("m", "SELECT complex_sum(x, y) AS c FROM r JOIN s ON r.b = s.b")
        db.apply({"s": [(1,), (2,)]})
        with np.errstate(over="ignore", invalid="ignore"):
            db.apply({"r": ev.Product({"a": [1], "x": [2.0**1000]}, {"b": [1, 2], "y": [2.0**30, -(2.0**30)]})})
        ((found,),) = db.view("m").rows()
        assert found["re"] == 0.0
        assert math.isnan(found["im"])
