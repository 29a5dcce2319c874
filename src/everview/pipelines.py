"""Spark Declarative Pipelines whose materialized views everview maintains.

    shop = MaintainedDatabase("/data/shop")                       # in a file of the pipeline's project
    shop.table("sales", "shop string, amount int")
    shop.database.apply({"sales": rows_since_the_last_run})       # before the views are defined, which are read at once

    @shop.materialized_view
    def totals() -> str:
        return "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"

A pipeline computes a materialized view anew in every run. Here the function gives the text of a query over tables of a database
of everview. What the pipeline writes is the content of the maintained view, which has moved by the changes since the last run.

Pipelines run on Spark Connect, which does not show how it resolves queries. So a view that is new, or whose text has changed,
is made by another process of Python with a Spark of its own, once; a run in which no text has changed starts none.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from everview.errors import InvalidQuery, UnsupportedOperation
from everview.session.connecting import connect
from everview.session.database import Database

Query = Callable[[], str]

_MAKE = """
import sys
import everview as ev
path, name, query = sys.argv[1:]
with ev.connect(path) as db:
    db.replace_view(name, query)
"""
_OF_CONNECT = (
    "SPARK_REMOTE",
    "SPARK_LOCAL_REMOTE",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_API_MODE",
    "PYSPARK_GATEWAY_PORT",
)
"""Variables by which a process would become a client of Spark Connect, or of another process's JVM."""


class MaintainedDatabase:
    """A database on disk, of which a pipeline's materialized views are views.

    Args:
        path: Its folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).resolve()
        self._database: Database | None = None

    @property
    def database(self) -> Database:
        """The database, to feed its tables and to read."""
        if self._database is None:
            self._database = connect(self._path)
        return self._database

    def table(self, name: str, schema: str, **options: Any) -> None:
        """Makes a table unless it is there; ``options`` are those of ``create_table``."""
        if name not in self.database.tables:
            self.database.create_table(name, schema, **options)

    def materialized_view(self, query: Query | None = None, /, **options: Any) -> Any:
        """Defines a materialized view of the pipeline by a function that returns SQL text over tables of the database.

        Bare, or with the options of ``pyspark.pipelines.materialized_view``, such as ``name``.
        """
        if query is None:
            return lambda given: self.materialized_view(given, **options)
        name, text = options.pop("name", None) or query.__name__, query()
        if not isinstance(text, str):
            raise InvalidQuery(
                f"the function of materialized view '{name}' gives a {type(text).__name__}.",
                hint="return the text of a query: everview maintains it, and Spark Connect's DataFrames do not show theirs.",
            )
        self._define(name, text)
        pipelines: Any = importlib.import_module("pyspark.pipelines")
        session: Any = importlib.import_module("pyspark.sql").SparkSession.active()
        pipelines.materialized_view(name=name, **options)(
            lambda: session.createDataFrame(self.database.view(name).to_arrow())
        )
        return None

    def _define(self, name: str, text: str) -> None:
        """Makes the view, or makes it anew if its text has changed."""
        views = self.database.views
        if name in views and views[name].query == text:
            return
        self.database.close()  # one process at a time writes
        self._database = None
        environment = {k: v for k, v in os.environ.items() if k not in _OF_CONNECT}
        made = subprocess.run(
            [sys.executable, "-c", _MAKE, str(self._path), name, text],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            why = made.stderr.strip().splitlines()[-1:] or ["no reason was given"]
            raise UnsupportedOperation(f"materialized view '{name}' cannot be maintained: {why[0]}")
