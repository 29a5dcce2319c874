"""``MERGE INTO``: what each clause does, in what order, and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL_CLAUSES = """
    MERGE INTO t AS x USING (SELECT k, max(v) AS v FROM s GROUP BY k) AS y ON x.k = y.k
    WHEN MATCHED AND CASE WHEN y.v IS NULL THEN true ELSE false END THEN DELETE
    WHEN MATCHED AND y.v > 1 THEN UPDATE SET v = x.v + y.v, x.note = concat('was ', x.v)
    WHEN NOT MATCHED BY TARGET AND y.v > 0 THEN INSERT (k, v) VALUES (y.k, coalesce(y.v, 0))
    WHEN NOT MATCHED AND y.v IS NULL THEN INSERT (note, y.k) VALUES ('none', k)
    WHEN NOT MATCHED BY SOURCE AND x.v = 0 THEN DELETE
    WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = 'gone'
"""

Row = tuple[int | None, int | None, str | None]
KEY = st.one_of(st.none(), st.integers(0, 3))


def _merged(target: list[Row], source: dict[int | None, int | None]) -> Counter[Row]:
    """What ALL_CLAUSES makes of the rows, said once more."""
    result: Counter[Row] = Counter()
    for k, v, note in target:
        row: Row | None
        if k is not None and k in source:
            new = source[k]
            row = None if new is None else (k, v, note)
            if new is not None and new > 1:
                row = (k, None if v is None else v + new, None if v is None else f"was {v}")
        else:
            row = None if v == 0 else (k, v, "gone")
        if row is not None:
            result[row] += 1
    there = {k for k, _, _ in target if k is not None}
    for k, new in source.items():
        if k in there:
            continue
        if new is None:
            result[k, None, "none"] += 1
        elif new > 0:
            result[k, new, None] += 1
    return +result


@settings(max_examples=12)
@given(
    target=st.lists(st.tuples(KEY, KEY, st.none() | st.just("n")), max_size=8),
    source=st.lists(st.tuples(KEY, KEY), max_size=6),
)
@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_a_merge_is_its_clauses_row_by_row(
    spark: SparkSession, engine: str, target: list[Row], source: list[tuple[int | None, int | None]]
) -> None:
    """Over any rows, duplicates and NULLs too, in one transaction; views over the table follow."""
    with ev.connect(backend=engine, spark=spark) as db:
        table = db.create_table("t", "k int, v int, note string")
        table.insert(target)
        db.create_table("s", "k int, v int").insert(source)
        view = db.create_view("n", "SELECT k, count(*) AS n FROM t GROUP BY k")
        version = db.version
        db.sql(ALL_CLAUSES)
        largest: dict[int | None, int | None] = {}
        for k, v in source:
            known = largest.get(k)
            largest[k] = v if known is None else known if v is None else max(v, known)
        expected = _merged(target, largest)
        assert Counter(table.rows()) == expected
        counts: Counter[int | None] = Counter()
        for row, often in expected.items():
            counts[row[0]] += often
        assert Counter(view.rows()) == Counter(counts.items())
        assert db.version <= version + 1


@pytest.fixture
def tables(db: ev.Database) -> ev.Table:
    """A target with a key, and a source in which one key is twice."""
    table = db.create_table("t", "k int, v bigint, note string", primary_key="k")
    table.insert([(1, 10, "a"), (2, 20, "b")])
    db.create_table("s", "NOTE string, k int, v int").insert([("x", 2, 5), ("y", 3, 6), ("y", 3, 7)])
    return table


def test_stars_and_a_view_as_the_source(db: ev.Database, tables: ev.Table) -> None:
    """UPDATE SET * and INSERT * take the source's columns by name, cast to the table's."""
    db.create_view("w", "SELECT k, max(v) AS v, max(note) AS note FROM s GROUP BY k")
    commit = db.sql("MERGE INTO t USING w ON t.k = w.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert isinstance(commit, ev.Commit)
    assert sorted(tables.rows()) == [(1, 10, "a"), (2, 5, "x"), (3, 7, "y")]


def test_several_matches(db: ev.Database, tables: ev.Table) -> None:
    """They are an error, and nothing has changed; not for DELETE without a condition, as in Spark."""
    tables.insert([(3, 30, "c")])
    version = db.version
    for action in ("UPDATE SET v = s.v", "UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT *"):
        with pytest.raises(ev.InvalidChange, match="several rows of the source match one row"):
            db.sql(f"MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN {action}")
    assert (db.version, len(tables.rows())) == (version, 3)
    db.sql("MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN DELETE")
    assert tables.rows() == [(1, 10, "a")]


@pytest.mark.parametrize(
    ("statement", "error", "says"),
    [
        ("USING s ON t.k = s.k", ev.InvalidQuery, "the end where WHEN should be"),
        ("USING s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *", ev.InvalidChange, "primary key"),
        ("USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 1, V = 2", ev.InvalidQuery, "'v' twice"),
        ("USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.note", ev.InvalidQuery, "cannot be assigned"),
        ("USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET z = 1", ev.UnknownName, "'z'"),
        ("USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = k", ev.InvalidQuery, "ambiguous"),
        ("USING s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k) VALUES (t.k)", ev.UnknownName, "t"),
        ("USING s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k, v) VALUES (1)", ev.InvalidQuery, "2 columns"),
        ("USING s ON t.k = s.k WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE", ev.InvalidQuery, "only the last"),
        ("USING (SELECT 1 AS k) z ON t.k = z.k WHEN MATCHED THEN UPDATE SET *", ev.UnknownName, "v"),
        ("USING s ON t.k = s.k WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", ev.InvalidQuery, "a column name"),
    ],
)
def test_what_no_merge_is(
    db: ev.Database, tables: ev.Table, statement: str, error: type[ev.EverviewError], says: str
) -> None:
    """A clear error, and nothing has changed."""
    with pytest.raises(error, match=says):
        db.sql(f"MERGE INTO t {statement}")
    assert sorted(tables.rows()) == [(1, 10, "a"), (2, 20, "b")]


def test_a_frame_as_the_source(db: ev.Database, tables: ev.Table) -> None:
    """The rules call it by a name, which is free again afterwards."""
    rules = (
        "ON t.k = source.k WHEN MATCHED THEN UPDATE SET v = source.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (k, v)"
    )
    frame = pa.table({"v": [7, None, 9], "k": [2, 1, 5]})
    tables.merge(frame, rules)
    assert sorted(tables.rows()) == [(1, None, "a"), (2, 7, "b"), (5, 9, None)]
    tables.merge(frame.to_pandas(), "ON t.k = f.k WHEN NOT MATCHED BY SOURCE THEN DELETE", name="f")
    with pytest.raises(ev.InvalidChange, match="several rows"):
        tables.merge(pa.concat_tables([frame, frame]), rules)
    with pytest.raises(ev.AlreadyExists):
        tables.merge(frame, rules, name="s")
    with pytest.raises(ev.InvalidQuery, match="cannot be merged"):
        tables.merge([(1, 2)], rules)
    with pytest.raises(ev.UnknownName):
        db.sql("SELECT * FROM source")
    assert len(tables.rows()) == 3
