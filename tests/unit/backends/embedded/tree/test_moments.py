"""Moments as one part of a payload: after every change what NumPy makes of the joined rows, and no trace of what has gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.catalog import CovarianceFeatures, TableDefinition, ViewDefinition
from everview.errors import EvaluationError
from everview.relational.arrow import rows_to_arrow
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Field, Join, JoinKind, Project, Relation, Scan, Schema
from everview.relational.schema import columns
from everview.relational.types import BOOLEAN, FLOAT64, INT64
from everview.session.covariance_plans import covariance_plans

Row: TypeAlias = tuple[Any, ...]
Held: TypeAlias = dict[str, Counter[Row]]

TABLES: dict[str, Schema] = {
    "a": (Field("k", INT64), Field("x", FLOAT64), Field("y", INT64), Field("c", INT64)),
    "b": (Field("k", INT64), Field("j", INT64), Field("z", FLOAT64)),
    "d": (Field("j", INT64), Field("u", FLOAT64), Field("v", FLOAT64), Field("g", INT64)),
}
CONTINUOUS = ("v", "x", "z", "y", "u")
"""Not in the order of the tables: those of one table stand in several places."""


def chain_join() -> Relation:
    """a(k, x, y, c) ⋈ b(k, j, z) ⋈ d(j, u, v, g), with each variable once."""
    a, b, d = (Scan(name, fields) for name, fields in TABLES.items())
    first = Join(a, b, JoinKind.INNER, Call("=", (Column(0, INT64), Column(4, INT64)), BOOLEAN))
    whole = Join(first, d, JoinKind.INNER, Call("=", (Column(5, INT64), Column(7, INT64)), BOOLEAN))
    kept = [i for i in range(11) if i not in (4, 7)]
    names = [f.name for fields in TABLES.values() for f in fields]
    return Project(whole, tuple(columns(whole)[i] for i in kept), tuple(names[i] for i in kept))


def self_join() -> Relation:
    """Pairs of rows of a with the same k: x and y of the one, z and u of the other."""
    left, right = Scan("a", TABLES["a"]), Scan("a", TABLES["a"])
    whole = Join(left, right, JoinKind.INNER, Call("=", (Column(0, INT64), Column(4, INT64)), BOOLEAN))
    kept = (0, 1, 2, 5, 6)
    return Project(whole, tuple(columns(whole)[i] for i in kept), ("k", "x", "y", "z", "u"))


def change(table: str, rows: pa.Table, weight: int) -> Change:
    """Rows that come, or go."""
    return Change(table, ChangeKind.WEIGHTED, rows, pa.array([weight] * rows.num_rows, pa.int64()))


class Kept:
    """A backend with a covariance, and the rows that its tables hold."""

    def __init__(self, source: Relation, features: CovarianceFeatures, *, retain: bool = True) -> None:
        self.backend = EmbeddedBackend()
        self.features, plans = covariance_plans("cov", source, features)
        for name, fields in TABLES.items():
            self.backend.create_table(TableDefinition(name, fields, retain=retain))
        for name, plan in zip(("cov", *features.parts("cov")), plans, strict=True):
            self.backend.create_view(ViewDefinition(name, plan, None, "UTC"))
        self.held: Held = {name: Counter() for name in TABLES}

    def apply(self, *changes: tuple[str, int, Sequence[Row]]) -> None:
        """Commits some rows."""
        self.backend.apply([change(t, rows_to_arrow(list(rows), TABLES[t]), w) for t, w, rows in changes if rows])
        for table, weight, rows in changes:
            (self.held[table].update if weight > 0 else self.held[table].subtract)(rows)

    def insert(self, table: str, *rows: Row) -> None:
        """Inserts rows."""
        self.apply((table, 1, rows))

    def delete(self, table: str, *rows: Row) -> None:
        """Deletes rows."""
        self.apply((table, -1, rows))

    @property
    def tree(self) -> TreeOperator:
        """The operator that keeps the moments."""
        root = self.backend._graph.roots["cov"]
        assert isinstance(root, TreeOperator)
        return root

    def sums(self, view: str = "cov") -> dict[Row, npt.NDArray[np.float64]]:
        """By key the number of rows and the sums."""
        keys = len(self.features.group_by) + (view.count("_c") if view != "cov" else 0)
        found: pa.Table = self.backend.read(view)
        rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
        return {row[:keys]: np.array([0.0 if v is None else v for v in row[keys:]]) for row in rows if row[keys]}


def chain_rows(held: Held) -> list[dict[str, Any]]:
    """The joined rows, whose features are all there."""
    a, b, d = (list(held[t].elements()) for t in TABLES)
    found = [
        {"x": p[1], "y": p[2], "c": p[3], "z": q[2], "u": r[1], "v": r[2], "g": r[3]}
        for p, q, r in product(a, b, d)
        if p[0] is not None and p[0] == q[0] and q[1] is not None and q[1] == r[0]
    ]
    return [row for row in found if all(row[f] is not None for f in CONTINUOUS)]


def expected(
    rows: list[dict[str, Any]], keys: Sequence[str], continuous: Sequence[str], *, has_products: bool
) -> dict[Row, npt.NDArray[np.float64]]:
    """The sums by key, of rows."""
    groups: dict[Row, list[list[float]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in keys), []).append([float(row[f]) for f in continuous])
    found = {}
    for key, members in groups.items():
        matrix = np.array(members).reshape(len(members), len(continuous))
        cells = (matrix.T @ matrix)[np.triu_indices(len(continuous))] if has_products else []
        found[key] = np.concatenate(([len(members)], matrix.sum(axis=0), cells))
    return found


def check(kept: Kept, rows: list[dict[str, Any]]) -> None:
    """All sums of a covariance against those of rows."""
    features = kept.features
    views = [("cov", (), True)]
    views += [(f"cov__c{i}", (c,), False) for i, c in enumerate(features.categorical)]
    for view, categories, has_products in views:
        wanted = expected(rows, (*features.group_by, *categories), features.continuous, has_products=has_products)
        found = kept.sums(view)
        assert found.keys() == wanted.keys()
        for key, sums in wanted.items():
            scale = np.abs(sums).max()
            np.testing.assert_allclose(found[key], sums, rtol=1e-9, atol=1e-9 * scale)
    for i, j in features.pairs:
        names = features.categorical[i], features.categorical[j]
        counted = Counter(tuple(row[k] for k in (*features.group_by, *names)) for row in rows)
        found = kept.sums(f"cov__c{i}_c{j}")
        assert {key: int(sums[0]) for key, sums in found.items()} == dict(counted)


NUMBERS = st.sampled_from([None, 0.0, 1.0, -2.5, 3.25, 1e3, -1e-3])
KEYS = st.sampled_from([None, 0, 1, 2])
ROWS: dict[str, Any] = {
    "a": st.tuples(KEYS, NUMBERS, st.sampled_from([None, 0, 1, -7]), KEYS),
    "b": st.tuples(KEYS, KEYS, NUMBERS),
    "d": st.tuples(KEYS, NUMBERS, NUMBERS, KEYS),
}


@given(st.data(), st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_covariance_is_what_numpy_says_after_every_batch(data: st.DataObject, is_grouped: bool) -> None:
    """Inserts and deletes of all tables, with NULLs, duplicates, categories that come and go, and joins that become empty."""
    groups = ("g",) if is_grouped else ()
    kept = Kept(chain_join(), CovarianceFeatures(CONTINUOUS, ("c", "g"), groups))
    assert kept.tree.program.block.moments is not None
    for _ in range(4):
        changes = []
        for table in TABLES:
            changes.append((table, 1, data.draw(st.lists(ROWS[table], max_size=6))))
            there = sorted(kept.held[table].elements(), key=repr)
            gone = data.draw(st.lists(st.sampled_from(range(len(there))), unique=True)) if there else []
            changes.append((table, -1, [there[i] for i in gone]))
        kept.apply(*changes)
        check(kept, chain_rows(kept.held))
    kept.apply(*((table, -1, list(kept.held[table].elements())) for table in TABLES))
    check(kept, [])


def test_a_self_join_has_moments_of_its_own() -> None:
    """The features of the two sides are different ones, although they are the same columns."""
    kept = Kept(self_join(), CovarianceFeatures(("x", "u", "z", "y"), (), ()))
    rng = np.random.default_rng(3)
    rows = [(int(rng.integers(3)), float(rng.normal()), int(rng.integers(5)), 0) for _ in range(12)]
    for some in (rows[:5], rows[5:]):
        kept.insert("a", *some)
        held = list(kept.held["a"].elements())
        joined = [{"x": p[1], "y": p[2], "z": q[1], "u": q[2]} for p, q in product(held, held) if p[0] == q[0]]
        check(kept, joined)
    kept.delete("a", *rows)
    check(kept, [])


def test_a_million_rows_that_come_and_go_leave_no_trace() -> None:
    """What stays has the same sums to 1e-9 as if nothing else had ever been there."""
    features = CovarianceFeatures(("x", "y", "z"), (), ())
    kept = Kept(chain_join(), features)
    kept.insert("a", (0, 0.25, 3, 0), (0, -1.5, 2, 0), (1, 10.0, 1, 0))
    kept.insert("b", (0, 0, 2.0), (0, 0, -0.125), (1, 0, 1.0))
    kept.insert("d", (0, 1.0, 1.0, 0))
    before = kept.sums()[()]
    rng = np.random.default_rng(4)
    count = 1_000_000
    columns_of_a = {
        "k": rng.integers(0, 2, count),
        "x": rng.normal(0, 1e4, count),
        "y": rng.integers(-1000, 1000, count),
        "c": np.zeros(count, dtype=np.int64),
    }
    many = pa.table(columns_of_a).cast(rows_to_arrow([], TABLES["a"]).schema)
    shuffled = many.take(rng.permutation(count))
    for weight, rows in ((1, many), (-1, shuffled)):
        for start in range(0, count, 100_000):
            kept.backend.apply([change("a", rows.slice(start, 100_000), weight)])
    np.testing.assert_allclose(kept.sums()[()], before, rtol=1e-9)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf"), 1e200, 3e40])
def test_numbers_beyond_the_range_go_without_a_trace(odd: float) -> None:
    """While they are there the sums are those of the rows, one by one; afterwards they are what they were before."""
    kept = Kept(chain_join(), CovarianceFeatures(("x", "z"), ("c",), ()))
    kept.insert("a", (0, 2.0, 1, 0), (0, 3.0, 1, 1))
    kept.insert("b", (0, 0, 5.0))
    kept.insert("d", (0, 0.0, 0.0, 0))
    before, by_category = kept.sums()[()], kept.sums("cov__c0")
    kept.insert("a", (0, odd, 1, 1))
    total = kept.sums()[()][1]
    assert total == 5.0 + odd or (np.isnan(odd) and np.isnan(total))
    kept.delete("a", (0, odd, 1, 1))
    assert kept.sums()[()].tolist() == before.tolist()
    assert {k: v.tolist() for k, v in kept.sums("cov__c0").items()} == {k: v.tolist() for k, v in by_category.items()}


def test_a_sum_that_has_lost_its_digits_is_made_anew() -> None:
    """A value that is far too large for the others to be seen beside it goes, and the tree is filled again from the rows."""
    kept = Kept(chain_join(), CovarianceFeatures(("x", "z", "u"), (), ()))
    kept.insert("b", (0, 0, 0.5))
    kept.insert("d", (0, 0.25, 0.0, 0))
    kept.insert("a", (0, 1e25, 1, 0))
    kept.insert("a", (0, 1e-3, 1, 0))
    kept.delete("a", (0, 1e25, 1, 0))
    assert kept.tree.rows is None
    np.testing.assert_allclose(kept.sums()[()][1:5], [1e-3, 0.5, 0.25, 1e-6], rtol=1e-12)


def test_a_failed_transaction_leaves_every_word_as_it_was() -> None:
    """What moments were before is restored bit for bit, sums, errors and marks."""
    kept = Kept(chain_join(), CovarianceFeatures(CONTINUOUS, (), ()))
    rng = np.random.default_rng(5)

    def some(count: int) -> list[Row]:
        return [(int(rng.integers(3)), float(rng.normal()), 1, 0) for _ in range(count)]

    kept.insert("a", *some(20))
    kept.insert("b", *((i % 3, i % 2, float(i)) for i in range(9)))
    kept.insert("d", (0, 0.1, 0.2, 0), (1, 0.3, 0.7, 1))
    maps = kept.tree.state.maps
    before = {name: m.entries[np.sort(m.live_slots())].copy() for name, m in maps.items()}
    rows = rows_to_arrow(some(30), TABLES["a"])
    missing = rows_to_arrow([(9, 9, 9.0)], TABLES["b"])
    with pytest.raises(Exception, match="not"):
        kept.backend.apply([change("a", rows, 1), change("b", missing, -1)])
    for name, view in maps.items():
        assert np.array_equal(view.entries[np.sort(view.live_slots())], before[name])


def test_tables_without_rows_keep_moments_of_products_only() -> None:
    """Nothing could stand in for them, so what is not finite rejects the transaction; single sums count NaNs instead."""
    kept = Kept(chain_join(), CovarianceFeatures(CONTINUOUS, ("c",), ()), retain=False)
    assert kept.tree.program.block.moments is not None
    parts = kept.backend._graph.roots["cov__c0"]
    assert isinstance(parts, TreeOperator)
    assert parts.program.block.moments is None
    kept.insert("a", (0, 1.0, 2, 3))
    kept.insert("b", (0, 0, 0.5))
    kept.insert("d", (0, 4.0, 8.0, 0))
    check(kept, chain_rows(kept.held))
    with pytest.raises(EvaluationError, match="NaN"):
        kept.insert("a", (0, float("nan"), 2, 3))
    kept.delete("a", (0, 1.0, 2, 3))
    check(kept, [])


def test_the_program_says_moments() -> None:
    """explain(mode="triggers") has one word for all sums of a view, and code has the instructions."""
    kept = Kept(chain_join(), CovarianceFeatures(("x", "z", "u"), (), ()))
    triggers = kept.backend.explain("cov", "triggers")
    assert "view b[k, j]: #, sums" not in triggers
    assert "moments(" in triggers
    assert "x * z" not in triggers.partition("\n  view")[2]
    code = kept.backend.explain("cov", "code")
    assert "lift " in code
    assert "moments " in code


def test_registers_grow_while_groups_are_known() -> None:
    """A change that is summed in several turns keeps the moments of the turns before."""
    kept = Kept(chain_join(), CovarianceFeatures(("x", "z", "v"), (), ("g",)))
    kept.insert("a", *((i % 7, float(i), i, 0) for i in range(40)))
    kept.insert("b", *((i % 7, i % 5, float(i)) for i in range(600)))
    kept.insert("d", *((i % 5, 0.5, float(i), i) for i in range(200)))
    rows = chain_rows(kept.held)
    check(kept, rows)


def test_long_products_are_summed_as_they_are_made() -> None:
    """A product of many factors is added to its group at once, also where rows find nothing, and where others follow."""
    kept = Kept(chain_join(), CovarianceFeatures(CONTINUOUS, (), ()))
    assert "moments " in kept.backend.explain("cov", "code")
    rng = np.random.default_rng(6)
    kept.insert("d", *((i, float(rng.normal()), float(i), 0) for i in range(60)))
    kept.insert("a", *((i % 50, float(rng.normal()), i, 0) for i in range(100)))
    kept.insert("b", *((i % 130, i % 70, float(rng.normal())) for i in range(150)))
    check(kept, chain_rows(kept.held))
    kept.delete("d", *(row for row in list(kept.held["d"]) if row[0] % 3))
    kept.insert("a", *((i, 0.5, -i, 0) for i in range(90, 140)))
    check(kept, chain_rows(kept.held))
    kept.delete("b", *list(kept.held["b"].elements()))
    check(kept, [])


@pytest.mark.parametrize("weight", [1, 3, 1 << 19])
def test_multiplicities_are_exact(weight: int) -> None:
    """Rows that are there many times count as often, also where their product has more digits than a float."""
    kept = Kept(chain_join(), CovarianceFeatures(CONTINUOUS, (), ()), retain=False)
    rows = {
        "a": [(1, 0.1, 7, 0), (1, 1e9 + 0.3, 2, 0)],
        "b": [(1, 2, 0.7)],
        "d": [(2, -1.1, 0.3, 0), (2, 1e-9, 5.5, 0)],
    }
    for table, some in rows.items():
        kept.apply((table, weight, some))
    times = Fraction((weight + 1) * weight**2)
    kept.apply(("a", 1, rows["a"]))
    joined = [
        {n: Fraction(v) for n, v in zip(CONTINUOUS, (d[2], a[1], b[2], a[2], d[1]), strict=True)}
        for a, b, d in product(*rows.values())
    ]
    pairs = [(f, g) for i, f in enumerate(CONTINUOUS) for g in CONTINUOUS[i:]]
    wanted = [sum(r[f] for r in joined) for f in CONTINUOUS] + [sum(r[f] * r[g] for r in joined) for f, g in pairs]
    (found,) = kept.sums().values()
    np.testing.assert_allclose(found[1:], [float(w * times) for w in wanted], rtol=1e-15)


def test_groups_may_come_in_any_order() -> None:
    """Rows of a group that are scattered over a change, more than are lifted together, are summed as sorted ones are."""
    rng = np.random.default_rng(9)
    rows = [(int(rng.integers(0, 9)), float(rng.normal()), int(rng.integers(0, 99)), 0) for _ in range(500)]
    found = []
    for order in (rows, sorted(rows)):
        kept = Kept(chain_join(), CovarianceFeatures(CONTINUOUS, (), ()))
        kept.insert("b", *((k, 0, 1.5) for k in range(9)))
        kept.insert("d", (0, 2.5, -3.5, 0))
        kept.insert("a", *order)
        check(kept, chain_rows(kept.held))
        found.append(kept.sums()[()])
    np.testing.assert_array_equal(*found)
