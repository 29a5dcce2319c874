"""Materialized views of Spark Declarative Pipelines that everview maintains, registered as the CLI of Spark does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry, graph_element_registration_context
from pyspark.pipelines.output import Output

import everview as ev
from everview.pipelines import MaintainedDatabase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"


class Registry(GraphElementRegistry):
    """Keeps what is registered, and calls the functions of flows at once, as the registry of Spark Connect does."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []
        self.rows: dict[str, list[Any]] = {}

    def register_output(self, output: Output) -> None:
        self.outputs.append(output)

    def register_flow(self, flow: Flow) -> None:
        self.rows[flow.name] = sorted(tuple(row) for row in flow.func().collect())

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        raise NotImplementedError

    def register_auto_cdc_flow(self, flow: object) -> None:
        raise NotImplementedError


def _run(path: Path, rows: list[tuple[str, int]], **options: str) -> Registry:
    """A run of the pipeline, which brings some rows."""
    registry, shop = Registry(), MaintainedDatabase(path)
    shop.table("sales", "shop string, amount int")
    shop.database.apply({"sales": rows})
    with graph_element_registration_context(registry):

        def totals() -> str:
            return QUERY

        (shop.materialized_view(**options) if options else shop.materialized_view)(totals)
    shop.database.close()
    return registry


def test_runs_go_on_where_the_last_one_ended(spark: SparkSession, tmp_path: Path) -> None:
    """The view is a dataset of the pipeline with the function's name, or another, and it has moved by the changes."""
    with ev.connect(tmp_path / "db", spark=spark) as db:
        db.create_table("sales", "shop string, amount int")
        db.create_view("totals", QUERY)
        db.create_view("sums", QUERY)
    assert _run(tmp_path / "db", [("a", 1), ("b", 2)]).rows == {"totals": [("a", 1), ("b", 2)]}
    second = _run(tmp_path / "db", [("a", 5)], name="sums", comment="by shop")
    assert second.rows == {"sums": [("a", 6), ("b", 2)]}
    assert [(o.name, o.comment) for o in second.outputs] == [("sums", "by shop")]


def test_a_function_must_give_text(spark: SparkSession, tmp_path: Path) -> None:
    """A DataFrame of Spark Connect does not show its query."""
    shop = MaintainedDatabase(tmp_path / "db")
    with pytest.raises(ev.InvalidQuery, match="return the text of a query"):
        shop.materialized_view(lambda: spark.range(3))
    shop.database.close()


@pytest.mark.slow
def test_another_process_makes_new_views(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever session this process has; what cannot be maintained is told as there."""
    assert _run(tmp_path / "db", [("a", 1)]).rows == {"totals": [("a", 1)]}
    shop = MaintainedDatabase(tmp_path / "db")
    with pytest.raises(
        ev.UnsupportedOperation, match=r"view 'bad' cannot be maintained: .*column 'nothing' cannot be resolved"
    ):
        shop.materialized_view(name="bad")(lambda: "SELECT nothing FROM sales")
    shop.database.close()
