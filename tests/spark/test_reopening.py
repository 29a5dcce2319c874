"""A database that was closed and is opened again knows what it needs of every view, however the view was made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERIFY_ELSEWHERE = """
import json, sys
import everview as ev
with ev.connect(sys.argv[1], backend="spark") as db:
    print(json.dumps({v.name: v.rows for v in db.verify().views}))
"""


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> Path:
    """A database with views from SQL, from DataFrames and from union_max, an assertion among them; closed."""
    with ev.connect(tmp_path / "db", backend="spark", spark=spark) as db:
        db.create_table("T", "k string, x int, at timestamp, a array<int>")
        db.create_table("u", "k string, x int")
        db.create_view("From_Frame", db.spark_table("t").groupBy("k").sum("x").withColumnRenamed("sum(x)", "s"))
        db.create_view("rows_of_t", db.spark_table("T").selectExpr("*", "date(at) AS day"))
        db.create_view("larger", ev.union_max("SELECT k, x FROM t", db.spark_table("u")))
        db.create_view("above", db.spark_table("from_frame").join(db.spark_table("LARGER"), "k"))
        db.create_view("text", "SELECT k FROM above WHERE s > 1")
        db.create_assertion("positive", db.spark_table("t").where("x < 0"))
        rows = "('a', 1, TIMESTAMP '2024-01-01 00:30:00', array(1)), ('a', 1, NULL, NULL), (NULL, 5, NULL, array())"
        db.sql(f"INSERT INTO t VALUES {rows}")
        db.apply({"u": [("a", 1), ("b", 2), ("b", 2)]})
        db.table("u").delete([("b", 2)])
    return tmp_path / "db"


ROWS = {"From_Frame": 2, "rows_of_t": 3, "larger": 4, "above": 2, "text": 2, "positive": 0}


def test_views_made_from_anything_verify_after_reopening(spark: SparkSession, path: Path) -> None:
    """Those from DataFrames and union_max are recomputed by Spark from the plan that is stored, and the report says so."""
    with ev.connect(path, backend="spark", spark=spark) as db:
        report = db.verify()
        assert {v.name: v.rows for v in report.views} == ROWS
        assert {v.name for v in report.views if v.recomputed_from == "query"} == {"text"}
        assert repr(report).count(" s, recomputed from its stored plan\n") == 4  # the fifth ends the text
        assert db.verify("above").views[0].rows == 2


def test_a_difference_is_found_after_reopening(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stored plan is computed from the tables, not from what is maintained."""
    with ev.connect(path, backend="spark", spark=spark) as db:
        read = db._core.backend.read
        wrong = pa.table({"k": ["a"], "s": pa.array([3], pa.int64())})
        monkeypatch.setattr(db._core.backend, "read", lambda name: wrong if name == "From_Frame" else read(name))
        with pytest.raises(ev.VerificationFailed, match=r"\('a', 3\): 1 here, 0 in Spark"):
            db.verify("from_frame")


@pytest.mark.slow
def test_views_verify_in_another_process(path: Path) -> None:
    """Nothing of the process that made the views is needed."""
    done = subprocess.run(
        [sys.executable, "-c", _VERIFY_ELSEWHERE, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ROWS
