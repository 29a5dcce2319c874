"""The generated data: sizes, keys and skew as the papers' data sets have them, and counts that agree with the join itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import favorita_data, housing_data, retailer_data
from benchmarks.answers import duckdb_answer
from benchmarks.classes_data import CLASSES, QueryClass
from benchmarks.classes_measure import exponent, update_steps
from benchmarks.favorita_data import favorita
from benchmarks.housing_data import housing
from benchmarks.joins_workload import Workload, skewed_choices
from benchmarks.paths_data import copies, copies_sql, counted_sql, graph, self_join_sql
from benchmarks.retailer_data import retailer
from benchmarks.triangle_data import GRAPHS, SQL, known_count, static_count, tables

SMALL: dict[str, Callable[[], Workload]] = {
    "housing": lambda: housing(50, 4),
    "retailer": lambda: retailer(0.01),
    "favorita": lambda: favorita(0.005),
}


def test_housing_has_the_sizes_of_the_paper() -> None:
    """Scale 20 is 1.55 million rows with 27 variables whose join has a thousand million; scale 1 is six rows a postcode."""
    whole = housing()
    assert sum(len(t) for t in whole.tables.values()) == 1_550_000
    assert len(whole.columns) == 27
    assert len(housing_data._CATEGORIES) == 12
    assert len(housing_data._CONTINUOUS) == 14
    ((total, count),) = duckdb_answer(whole.counted, whole.tables)
    assert count == 25_000 * 20 * 20 * 10 * 10
    assert total == 40_000 * sum(range(25_000))
    assert sum(len(t) for t in housing(100, 1).tables.values()) == 600


def test_retailer_has_the_sizes_of_the_paper() -> None:
    """39 variables beside the four that join; locations, dates and items multiply to five million rows of inventory."""
    small = retailer(0.01)
    assert {name: len(t) for name, t in small.tables.items()} == {
        "inventory": 13 * 53 * 72, "weather": 13 * 53, "location": 13, "census": 13, "item": 5_618,
    }  # fmt: skip
    assert len(small.columns) == 39 + 4
    full = retailer_data
    assert full.LOCATIONS * full.DATES * full.EACH == 5_025_672
    assert full.LOCATIONS * full.DATES == 69_801
    shared = retailer(0.2)
    assert len(shared.tables["location"]) - len(shared.tables["census"]) == 3


def test_favorita_has_the_sizes_of_the_paper() -> None:
    """15 variables beside the three that join; five million sales at full size."""
    small = favorita(0.005)
    sizes = {name: len(t) for name, t in small.tables.items()}
    assert sizes == {
        "sales": 5_400 * 5, "items": 4_100, "stores": 54, "transactions": 5_400, "oil": 100, "holiday": 100,
    }  # fmt: skip
    assert len(small.columns) == 15 + 3
    assert favorita_data.DATES * favorita_data.STORES * favorita_data.EACH == 5_000_400


@pytest.mark.parametrize("name", SMALL)
def test_workloads_are_sorted_seeded_and_keyed(name: str) -> None:
    """The same rows each time, in the order of the join variables, with keys that are keys."""
    workload, again = SMALL[name](), SMALL[name]()
    for table, rows in workload.tables.items():
        assert rows.equals(again.tables[table])
        if workload.key in rows.column_names:
            assert (np.diff(rows.column(workload.key).to_numpy()) >= 0).all()
        key = workload.keys.get(table)
        if key:
            assert len(rows.group_by(list(key)).aggregate([])) == len(rows), table
    assert workload.facts is None or workload.facts in workload.tables


@pytest.mark.parametrize("name", SMALL)
def test_counted_answers_are_those_of_the_join(name: str) -> None:
    """What DuckDB is asked instead of the sum over the join is that sum, and the number of rows of the join."""
    workload = SMALL[name]()
    ((total, count),) = duckdb_answer(workload.counted, workload.tables)
    assert duckdb_answer(workload.sum_sql, workload.tables) == [(pytest.approx(total),)]
    assert duckdb_answer(f"SELECT COUNT(*) FROM ({workload.join_sql}) AS bag", workload.tables) == [(count,)]
    assert count > 0


def test_choices_are_distinct_and_skewed() -> None:
    """No group has a number twice, all numbers are in range, and a tenth of them makes up most choices."""
    chosen = skewed_choices(np.random.default_rng(1), 2_000, 72, 5_618)
    assert chosen.shape == (2_000, 72)
    assert all(len(set(row)) == 72 for row in chosen[:200].tolist())
    assert chosen.min() >= 0
    assert chosen.max() < 5_618
    assert (chosen < 562).mean() > 0.6
    assert skewed_choices(np.random.default_rng(1), 3, 5, 5).tolist() == [[0, 1, 2, 3, 4]] * 3


def test_the_graph_is_skewed_and_its_paths_countable() -> None:
    """Some nodes have hundreds of times the mean degree, and twenty edges make fewer paths than a BIGINT holds."""
    edges = graph()
    assert len(edges) == 1_000_000
    for column in ("src", "dst"):
        degrees = np.bincount(edges.column(column).to_numpy())
        assert degrees.max() > 500 * degrees.mean()
    ((paths,),) = duckdb_answer(counted_sql([("edge", "src", "dst")] * 20), {"edge": edges})
    assert 1e12 < paths < 2**62


@pytest.mark.parametrize("k", [2, 3, 5])
def test_paths_are_counted_without_listing_them(k: int) -> None:
    """The count by nodes is that of the join, over copies of the edges and over one table of them."""
    edges = graph(300)
    listed = duckdb_answer(self_join_sql(k), {"edge": edges})
    assert duckdb_answer(counted_sql([("edge", "src", "dst")] * k), {"edge": edges}) == listed
    tables = copies(edges, k)
    assert duckdb_answer(copies_sql(k), tables) == listed
    assert duckdb_answer(counted_sql([(f"e{i}", f"a{i}", f"a{i + 1}") for i in range(1, k + 1)]), tables) == listed


@pytest.mark.parametrize("chosen", CLASSES, ids=lambda c: c.name)
def test_classes_have_as_many_rows_as_they_say(chosen: QueryClass) -> None:
    """All tables together have n rows, none is there twice, and the query has the columns it is checked by."""
    small, large = (chosen.tables(n) for n in (1_000, 9_000))
    sizes = [sum(len(t) for t in tables.values()) for tables in (small, large)]
    assert sizes == [pytest.approx(1_000, abs=1), pytest.approx(9_000, abs=1)]
    for table in small.values():
        assert len(table.group_by(table.column_names).aggregate([])) == len(table)
    joined = duckdb_answer(f"SELECT COUNT({chosen.columns[0]}) FROM ({chosen.sql}) AS bag", small)
    assert joined[0][0] > 0
    assert chosen.keys.keys() <= small.keys()


def test_updates_leave_the_data_as_it_was() -> None:
    """Each delete is of a row that is there and is followed by its insert."""
    table = pa.table({"a": np.arange(10), "b": np.arange(10) * 3})
    steps = update_steps("t", table, 6, np.random.default_rng(1))
    rows = [step.batch.to_pylist() for step in steps]
    assert [row[0].pop("_weight") for row in rows] == [-1, 1, -1, 1, -1, 1]
    assert rows[::2] == rows[1::2]
    assert all(row[0]["b"] == 3 * row[0]["a"] for row in rows)


def test_exponents_are_slopes_of_logarithms() -> None:
    """Constant times have exponent 0, the square root one half."""
    sizes = [1_000, 10_000, 100_000]
    assert exponent(sizes, [3.0, 3.0, 3.0]) == pytest.approx(0, abs=1e-9)
    assert exponent(sizes, [n**0.5 for n in sizes]) == pytest.approx(0.5)


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_triangles_are_counted_statically(name: str) -> None:
    """The edges are distinct and about as many as asked for, and the static count is the join's."""
    graph = GRAPHS[name](3_000)
    near = 0.3 if name == "every degree" else 0.05
    assert sum(len(edges) for edges in graph.values()) == pytest.approx(3_000, rel=near)
    assert known_count(name, 3_000) == static_count(graph)
    assert all(len(np.unique(edges, axis=0)) == len(edges) for edges in graph.values())
    assert duckdb_answer(SQL, tables(graph)) == [(static_count(graph),)]
