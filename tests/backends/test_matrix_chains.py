"""Products of matrices under changes of any of them, against NumPy and against the reference backend's recomputation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "i INT, j INT, v DOUBLE"


def cells(matrix: np.ndarray) -> pa.Table:
    """All cells of an array as rows."""
    i, j = np.indices(matrix.shape)
    return pa.table({"i": i.ravel().astype(np.int32), "j": j.ravel().astype(np.int32), "v": matrix.ravel()})


class Pair:
    """The same tables and the same chain on the backend under test and on the reference backend."""

    def __init__(self, names: list[str], schema: str = SCHEMA, storage: str = "dense", **options: object) -> None:
        self.databases = [ev.connect(), ev.connect(backend="reference")]
        self.names = names
        for db in self.databases:
            for name in dict.fromkeys(names):
                db.create_table(name, schema, **options)  # type: ignore[arg-type]
        ours, theirs = self.databases
        self.chain = ours.create_matrix_chain("P", names, storage=storage)
        self.reference = theirs.create_matrix_chain("P", names)

    def apply(self, changes: dict[str, object]) -> None:
        """One transaction in both."""
        for db in self.databases:
            db.apply(changes)

    def update(self, name: str, u: np.ndarray, v: np.ndarray) -> None:
        """One update of low rank in both."""
        for chain in (self.chain, self.reference):
            chain.update(name, u=u, v=v)

    def check(self) -> None:
        """Both have the same cells, and as an array they are the product of the tables."""
        ours = {row[:2]: row[2] for row in self.chain.rows()}
        theirs = {row[:2]: row[2] for row in self.reference.rows()}
        assert ours.keys() == theirs.keys()
        np.testing.assert_allclose(list(ours.values()), [theirs[k] for k in ours], rtol=1e-9, atol=1e-9)
        whole = np.zeros((9, 9))
        for key, value in theirs.items():
            whole[key] = value
        np.testing.assert_allclose(self.chain.to_numpy(shape=(9, 9)), whole, rtol=1e-9, atol=1e-9)


CELL = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(-8, 8).map(lambda n: n / 4))
VECTOR = st.lists(st.integers(-4, 4).map(lambda n: n / 2), min_size=1, max_size=6).map(np.array)


@given(st.data(), st.integers(1, 4), st.sampled_from(["dense", "sparse"]))
def test_every_kind_of_change(data: st.DataObject, count: int, storage: str) -> None:
    """After every insert, delete, product and update of low rank the product equals the recomputed one."""
    names = [f"A{n}" for n in range(count)]
    if data.draw(st.booleans()):
        names = [data.draw(st.sampled_from(names)) for _ in names]  # a matrix may occur more than once
    pair = Pair(names, storage=storage)
    held: dict[str, list[tuple[int, int, float]]] = {n: [] for n in names}
    for _ in range(data.draw(st.integers(1, 6))):
        name = data.draw(st.sampled_from(names))
        match data.draw(st.sampled_from(["insert", "delete", "product", "update", "several"])):
            case "insert":
                rows = data.draw(st.lists(CELL, min_size=1, max_size=12))
                held[name] += rows
                pair.apply({name: rows})
            case "delete" if held[name]:
                gone = data.draw(st.lists(st.sampled_from(held[name]), min_size=1, max_size=4, unique_by=id))
                gone = list(dict.fromkeys(gone))
                for row in gone:
                    held[name].remove(row)
                pair.apply({name: [{"i": i, "j": j, "v": v, "_weight": -1} for i, j, v in gone]})
            case "product":
                u, w = data.draw(VECTOR), data.draw(VECTOR)
                pair.apply({name: ev.Product({"i": list(range(len(u))), "v": u}, {"j": list(range(len(w)))})})
                held[name] += [(i, j, float(x)) for i, x in enumerate(u) for j in range(len(w))]
            case "update":
                rank = data.draw(st.integers(1, 3))
                u, w = (np.array(data.draw(st.lists(VECTOR, min_size=1, max_size=1))[0]) for _ in range(2))
                factors = [np.stack([np.roll(f, r) * (r + 1) for r in range(rank)], axis=1) for f in (u, w)]
                pair.update(name, factors[0], factors[1])
            case "several":
                other = data.draw(st.sampled_from(names))
                rows = data.draw(st.lists(CELL, min_size=1, max_size=4))
                changes = dict.fromkeys(dict.fromkeys((name, other)), rows)
                for n in changes:
                    held[n] += rows
                pair.apply(changes)
        pair.check()


def test_long_streams_do_not_drift() -> None:
    """Hundreds of updates that are taken back leave the product that there was, to the last digits."""
    random = np.random.default_rng(1)
    db = ev.connect()
    arrays = [random.normal(size=(12, 12)) for _ in range(3)]
    for n, array in enumerate(arrays):
        db.create_table(f"A{n}", SCHEMA).insert(cells(array))
    chain = db.create_matrix_chain("P", ["A0", "A1", "A2"])
    for sign in (1, -1):
        for k in range(150):
            u, v = (np.random.default_rng((k, n)).normal(size=12) for n in (0, 1))
            chain.update("A1", u=100 * sign * u, v=v)
    np.testing.assert_allclose(chain.to_numpy(), arrays[0] @ arrays[1] @ arrays[2], rtol=1e-9)


def test_a_rejected_transaction_leaves_the_same_bits() -> None:
    """What one table rejects is taken back in the product, bit for bit."""
    pair = Pair(["A", "B"])
    pair.apply({"A": cells(np.full((3, 4), 0.1)), "B": cells(np.full((4, 5), 0.7))})
    before = pair.chain.to_numpy()
    for rows in ([(0, 0, 1e9)], [(7, 7, 1.0)], cells(np.ones((8, 4)))):
        with pytest.raises(ev.InvalidChange):
            pair.databases[0].apply({"A": rows, "B": [{"i": 99, "j": 0, "v": 1.0, "_weight": -1}]})
        assert (pair.chain.to_numpy(shape=(3, 5)) == before).all()
    pair.check()
    pair.update("A", np.ones(3), np.ones(4))
    pair.check()


def test_a_table_with_a_key_gets_new_values() -> None:
    """An update of a table with a primary key replaces cells, and makes those that are missing."""
    pair = Pair(["A", "B"], primary_key=("i", "j"))
    pair.apply({"A": [(0, 0, 1.0), (1, 1, 2.0)], "B": [(0, 0, 3.0), (1, 2, 4.0)]})
    pair.update("A", np.array([1.0, 0.0, 2.0]), np.array([[1.0], [3.0]])[:, 0])
    pair.check()
    assert sorted(pair.databases[0].table("A").rows()) == [
        (0, 0, 2.0), (0, 1, 3.0), (1, 1, 2.0), (2, 0, 2.0), (2, 1, 6.0),
    ]  # fmt: skip
    for db in pair.databases:
        db.table("A").delete_keys([(2, 0), (2, 1)])
    pair.check()


def test_tables_that_keep_no_rows() -> None:
    """With retain=False nothing but the arrays is kept, and updates make no rows."""
    db = ev.connect()
    for name in ("A", "B"):
        db.create_table(name, SCHEMA, retain=False)
    chain = db.create_matrix_chain("P", ["A", "B"])
    a, b = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(4, 5)
    db.apply({"A": cells(a), "B": cells(b)})
    u, v = np.ones((3, 2)), np.arange(8.0).reshape(4, 2)
    chain.update("A", u=u, v=v)
    np.testing.assert_allclose(chain.to_numpy(), (a + u @ v.T) @ b)
    chain.update("A", u=u, v=v.T)  # Vᵀ is taken too
    np.testing.assert_allclose(chain.to_numpy(), (a + 2 * u @ v.T) @ b)
    with pytest.raises(ev.UnsupportedOperation, match="retain=False"):
        db.verify("P")


def test_other_views_see_the_rows_of_an_update(spark: SparkSession) -> None:
    """A view over a matrix is told of an update of low rank as rows."""
    db = ev.connect(spark=spark)
    for retain in (True, False):
        name = f"A{retain}"
        table = db.create_table(name, SCHEMA, retain=retain)
        total = db.create_view(f"total_{name}", f"SELECT i, SUM(v) AS s, COUNT(*) AS n FROM {name} GROUP BY i")
        chain = db.create_matrix_chain(f"P{retain}", [name, name])
        table.insert([(0, 1, 2.0), (1, 0, 1.0)])
        chain.update(name, u=[1.0, 2.0], v=[0.0, 3.0])
        assert sorted(total.rows()) == [(0, 5.0, 2), (1, 7.0, 2)]
        np.testing.assert_allclose(chain.to_numpy(), np.array([[0, 5], [1, 6.0]]) @ np.array([[0, 5], [1, 6.0]]))


def test_nulls_are_no_cells_and_indexes_may_be_anything() -> None:
    """Rows with NULLs are left out; negative and large indexes are cells, and arrays say where they have no place."""
    pair = Pair(["A", "B"])
    rows = [(None, 0, 1.0), (0, None, 1.0), (0, 0, None), (-5, 2_000_000_000, 2.0), (3, 0, 1.5)]
    pair.apply({"A": rows, "B": [(2_000_000_000, 1, 4.0), (0, 0, 2.0)]})
    assert sorted(pair.chain.rows()) == sorted(pair.reference.rows()) == [(-5, 1, 8.0), (3, 0, 3.0)]
    with pytest.raises(ev.UnsupportedOperation, match="no place for i = -5"):
        pair.chain.to_numpy()
    assert pair.chain.lookup(i=3) == [(3, 0, 3.0)]


def test_what_cannot_be_a_chain() -> None:
    """Wrong tables, names and factors are refused by name, and nothing has changed."""
    db = ev.connect()
    db.create_table("A", SCHEMA)
    db.create_table("B", "i BIGINT, j INT, v DOUBLE")
    db.create_table("C", "i INT, j INT")
    db.create_table("D", "i STRING, j INT, v DOUBLE")
    with pytest.raises(ev.InvalidQuery, match="indexed by int, the rows of 'B' by bigint"):
        db.create_matrix_chain("P", ["A", "B"])
    with pytest.raises(ev.InvalidQuery, match="has 2 columns"):
        db.create_matrix_chain("P", ["C"])
    with pytest.raises(ev.InvalidQuery, match="an index is an integer"):
        db.create_matrix_chain("P", ["D"])
    with pytest.raises(ev.UnsupportedOperation, match="no storage 'disk'"):
        db.create_matrix_chain("P", ["A"], storage="disk")
    chain = db.create_matrix_chain("P", ["A", "A"])
    with pytest.raises(ev.UnknownName, match="not one of the matrices"):
        chain.update("B", u=[1.0], v=[1.0])
    with pytest.raises(ev.InvalidChange, match="no factors"):
        chain.update("A", u=np.ones((2, 2)), v=np.ones((3, 3)))
    with pytest.raises(ev.InvalidChange, match="not finite"):
        chain.update("A", u=[np.inf], v=[1.0])
    with pytest.raises(ev.EvaluationError, match="finite"):
        db.table("A").insert([(0, 0, float("nan"))])
    with pytest.raises(ev.UnsupportedOperation, match="no listing"):
        chain.subscribe(print)
    assert chain.rows() == []
    assert chain.to_numpy().shape == (0, 0)


def test_a_chain_is_a_view() -> None:
    """It is among the views, explains its order and costs, and keeps its tables from being dropped."""
    db = ev.connect()
    shapes = [(2, 9), (9, 3), (3, 4)]
    for n, shape in enumerate(shapes):
        db.create_table(f"A{n}", SCHEMA).insert(cells(np.ones(shape)))
    chain = db.create_matrix_chain("P", ["A0", "A1", "A2"])
    assert list(db.views) == ["P"]
    assert db.matrix_chain("p").matrices == ("A0", "A1", "A2")
    assert "product of matrices (A0 · A1) · A2, dense" in chain.explain()
    assert "a change of A1 of rank r: 44 · r multiplications; multiplying again: 78" in chain.explain()
    assert "δ#1 := A0 · δA1 · A2    -- by the factors of δA1" in chain.explain("triggers")
    with pytest.raises(ev.DependencyError):
        db.drop("A1")
    db.drop("P")
    db.drop("A1")


def test_a_chain_is_verified_by_spark(spark: SparkSession) -> None:
    """db.verify recomputes the product with Spark's SQL, for arrays and for cells."""
    db = ev.connect(spark=spark)
    random = np.random.default_rng(2)
    for name in ("A", "B", "C"):
        db.create_table(name, SCHEMA).insert(cells(random.normal(size=(5, 5))))
    for storage in ("dense", "sparse"):
        chain = db.create_matrix_chain(storage, ["A", "B", "C"], storage=storage)
        chain.update("B", u=random.normal(size=(5, 2)), v=random.normal(size=(5, 2)))
    db.table("A").delete(db.table("A").rows()[:7])
    assert [v.name for v in db.verify().views] == ["dense", "sparse"]
