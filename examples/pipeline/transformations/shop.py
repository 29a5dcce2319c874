"""Each run brings two more sales; ``totals`` moves by them, and ``best`` is the pipeline's own view over it."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from everview.pipelines import MaintainedDatabase

shop = MaintainedDatabase("/tmp/everview-pipeline/database")
shop.table("sales", "shop string, amount int")
commit = shop.database.apply({"sales": [("north", 1 + shop.database.version), ("south", 1)]})
print(f"everview: {commit}", flush=True)


@shop.materialized_view
def totals() -> str:
    """Maintained: the changes since the last run are added."""
    return "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"


@dp.materialized_view
def best() -> DataFrame:
    """Computed by Spark in every run."""
    return SparkSession.active().sql("SELECT max(total) AS best FROM totals")
