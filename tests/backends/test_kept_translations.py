"""Translations that are kept between processes: the second run of a program asks Spark nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev
from everview.frontend.gateway import SparkGateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUERY = "SELECT s, count(*) AS n, sum(k) AS total FROM t WHERE k > 1 OR k IS NULL GROUP BY s"


def _run(spark: SparkSession, folder: Path) -> tuple[str, list[tuple[object, ...]]]:
    with ev.connect(spark=spark, translation_cache=folder) as db:
        db.create_table("t", "k int, s string").insert([(1, "a"), (2, "b"), (None, "b")])
        view = db.create_view("v", _QUERY)
        with pytest.raises(ev.UnknownName, match="'kk'"):
            db.create_view("w", "SELECT kk FROM t")
        return view.explain(), sorted(view.rows())


def test_the_second_run_translates_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views and refusals of the second run are those of the first, without a translation."""
    session = spark.newSession()  # without views that other tests have left
    first = _run(session, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(SparkGateway, "translate", None)
        assert _run(session, tmp_path) == first


@pytest.mark.parametrize(
    "make",
    [
        "CREATE OR REPLACE GLOBAL TEMPORARY VIEW mine AS SELECT {} AS x",
        "CREATE OR REPLACE VIEW mine AS SELECT {} AS x",
    ],
)
def test_what_a_user_names_in_spark_is_read_each_time(spark: SparkSession, tmp_path: Path, make: str) -> None:
    """A query over a view of the user's catalog, which anybody may redefine, is translated anew."""
    place = "global_temp.mine" if "GLOBAL" in make else "mine"
    try:
        for number in (1, 2):
            spark.sql(make.format(number))
            with ev.connect(spark=spark, translation_cache=tmp_path) as db:
                assert db.create_view("v", f"SELECT x FROM {place}").rows() == [(number,)]
    finally:
        spark.sql(f"DROP VIEW IF EXISTS {place}")


def test_a_function_of_the_users_in_our_session(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever has a DataFrame of ours can put functions into its session; then nothing is taken from the cache."""
    for number in (1, 2):
        with ev.connect(spark=spark, translation_cache=tmp_path) as db:
            db.create_table("t", "k int").insert([(5,)])
            ours = db.spark_table("t").sparkSession
            ours.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION added(x INT) RETURNS INT RETURN x + {number}")
            assert db.create_view("v", "SELECT added(k) AS x FROM t").rows() == [(5 + number,)]


_PROGRAM = """
import sys
import everview as ev
with ev.connect(translation_cache=sys.argv[1]) as db:
    db.create_table("t", "k int, s string").insert([(1, "a"), (2, "b"), (3, "b")])
    print(sorted(db.create_view("v", "SELECT s, sum(k) AS n FROM t GROUP BY s").rows()))
    print(db.sql("SELECT max(k) AS m FROM v JOIN t USING (s)").rows())
print("pyspark" in sys.modules)
"""


@pytest.mark.slow
def test_the_second_process_starts_no_spark(tmp_path: Path) -> None:
    """The same program a second time does not even import pyspark, and answers the same."""
    outputs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True
        )
        outputs.append(done.stdout.splitlines())
    (*first, imported), (*second, imported_again) = outputs
    assert first == second == ["[('a', 1), ('b', 5)]", "[(3,)]"]
    assert (imported, imported_again) == ("True", "False")
