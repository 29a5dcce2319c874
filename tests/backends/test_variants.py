"""VARIANT as an opaque value: columns of tables, expressions that make and read it, and what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.types import VariantVal

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = ['{"a": 1, "b": [true, null]}', '{"a": "x"}', "[1, 2.5]", "17", "null", "not json", None]


@pytest.fixture
def table(db: ev.Database) -> ev.Table:
    """A table of texts, some of which are JSON."""
    return db.create_table("t", "k INT, js STRING")


def change(table: ev.Table, db: ev.Database) -> None:
    """Rows come twice and go, each time compared with Spark."""
    table.insert([(i % 2, text) for i, text in enumerate(TEXTS)])
    db.verify()
    table.insert([(1, text) for text in TEXTS])
    table.delete([(0, TEXTS[0]), (1, None)])
    db.verify()


READ = {
    "path": "variant_get(try_parse_json(js), '$.a', 'string')",
    "colon": "try_parse_json(js):a::string",
    "typed": "try_variant_get(try_parse_json(js), '$.a', 'int')",
    "json": "to_json(try_parse_json(js))",
    "cast": "try_cast(try_parse_json(js) AS INT)",
    "schema": "schema_of_variant(try_parse_json(js))",
    "is_null": "is_variant_null(try_parse_json(js))",
}


@pytest.mark.parametrize("what", READ)
def test_what_is_read_from_a_variant(db: ev.Database, table: ev.Table, what: str) -> None:
    """It groups, filters and sums as any value does."""
    db.create_view("v", f"SELECT {READ[what]} AS x, count(*) AS n FROM t GROUP BY 1")
    db.create_view("w", f"SELECT k, js FROM t WHERE CAST({READ[what]} AS STRING) IS NOT NULL")
    change(table, db)


def test_a_variant_in_a_view(db: ev.Database, table: ev.Table) -> None:
    """Alone, in structs and arrays, through joins, and read again by a view over the view."""
    if db._core.backend.name == "spark":
        with pytest.raises(ev.UnsupportedQuery, match=r"cannot store variant.*to_json"):
            db.create_view("v", "SELECT k, try_parse_json(js) AS x FROM t")
        return
    view = db.create_view("v", "SELECT k, try_parse_json(js) AS x FROM t")
    db.create_view("deep", "SELECT k, array(try_parse_json(js)) AS xs, struct(try_parse_json(js) AS x) AS s FROM t")
    db.create_view("over", "SELECT x:a::string AS a, sum(k) AS s FROM v GROUP BY 1")
    db.create_view("back", "SELECT to_json(xs[0]) AS j, to_json(s.x) AS i, k FROM deep")
    db.create_view("joined", "SELECT v.x, t.js FROM v JOIN t USING (k)")
    table.insert([(i % 2, text) for i, text in enumerate(TEXTS)])
    for name in ("over", "back"):
        db.verify(name)
    table.delete([(0, TEXTS[0])])
    for name in ("over", "back"):
        db.verify(name)
    shown = sorted(str(r.x) for r in view.to_spark().collect())  # Spark's own values
    assert shown == sorted(
        str(r.x)
        for r in view.to_spark()
        .sparkSession.createDataFrame([(t,) for t in TEXTS[1:]], "js STRING")
        .selectExpr("try_parse_json(js) AS x")
        .collect()
    )


def test_a_variant_in_a_table(db: ev.Database, spark: SparkSession) -> None:
    """Rows come as what PySpark has for it, as Arrow and as DataFrames, and are deleted by their bytes."""
    if db._core.backend.name == "spark":
        with pytest.raises(ev.UnsupportedQuery, match=r"cannot store variant"):
            db.create_table("t", "k INT, x VARIANT")
        return
    table = db.create_table("t", "k INT, x VARIANT")
    frame = spark.createDataFrame([(i, t) for i, t in enumerate(TEXTS)], "k INT, js STRING")
    parsed = frame.selectExpr("k", "try_parse_json(js) AS x")
    view = db.create_view("v", "SELECT x:a::string AS a, count(*) AS n FROM t GROUP BY 1")
    table.insert(parsed)
    values: list[Any] = [tuple(r) for r in parsed.collect()]
    assert isinstance(values[0][1], VariantVal)
    table.insert(values)
    table.insert(table.to_arrow())
    assert len(table) == 4 * len(TEXTS)
    assert sorted(view.rows(), key=str) == [("1", 4), ("x", 4), (None, 4 * (len(TEXTS) - 2))]
    table.delete(values[:1])
    table.delete([{"k": k, "x": x} for k, x in values[:1]])
    assert ("1", 2) in view.rows()
    assert pa.types.is_struct(table.to_arrow().schema.field("x").type)
    db.verify("v")


def test_variants_are_not_compared(db: ev.Database, table: ev.Table) -> None:
    """Spark groups by none, and says so."""
    with pytest.raises(ev.EverviewError, match=r"(?i)variant"):
        db.create_view("v", "SELECT try_parse_json(js) AS x, count(*) AS n FROM t GROUP BY 1")
    with pytest.raises(ev.EverviewError, match=r"(?i)variant"):
        db.create_view("v", "SELECT DISTINCT try_parse_json(js) AS x FROM t")
