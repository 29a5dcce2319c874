"""Where benchmark suites live and how one is found.

A suite is a module ``benchmarks/<name>.py`` of the repository (baselines, generators and data stay out of the installed
package) with a function ``run(*, quick: bool) -> Iterator[Figure]`` that yields each result when it has it. The file's
presence is its registration.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import click

import everview as ev
from everview.cli.bench_results import Figure

BENCHMARKS = Path(ev.__file__).parents[2] / "benchmarks"

SUITES: dict[str, str] = {
    "tpch": "the 22 TPC-H queries under updates",
    "growth": "millions of rows into one table, time per batch",
    "classes": "one update by query class: O(1), O(√N), O(N)",
    "housing": "joins and sums over a star of six tables",
    "retailer": "joins and covariance over five tables",
    "favorita": "joins and covariance over six tables",
    "paths": "path queries of growing length",
    "finance": "order-book queries, row by row",
    "multilevel": "recursive deltas by depth",
    "triangle": "triangle counts, uniform and skewed",
    "covariance": "covariance matrices and regression",
    "matrix": "matrix chains under rank-1 updates",
    "stream": "micro-batches of Structured Streaming into views",
    "doors": "rows handed in by every form, beside pyarrow's own conversion",
    "spark": "the spark backend beside full recomputation",
    "spark_model": "a model over a join on the spark backend",
    "durability": "commits to disk and opening, beside SQLite and DuckDB",
    "rivals": "other systems on the same streams",
    "sql": "functions by who computes them, the clock, transitive closure",
    "start": "the first view of a process",
}
"""The suites there are to be, with what each measures."""

Suite = Callable[..., Iterator[Figure]]


def built_suites() -> list[str]:
    """The suites whose module is there."""
    return [name for name in SUITES if (BENCHMARKS / f"{name}.py").is_file()]


def load_suite(name: str) -> Suite:
    """The ``run`` function of a suite.

    Raises:
        BadParameter: there is no suite of this name.
        ClickException: it is not built yet, or this is an installed package without the repository.
    """
    if name not in SUITES:
        raise click.BadParameter(f"'{name}' is not a suite; the suites are {', '.join(SUITES)}.", param_hint="SUITE")
    if not BENCHMARKS.is_dir():
        raise click.ClickException("the benchmarks are not in the installed package: run this in a clone of everview.")
    if name not in built_suites():
        there = ", ".join(built_suites()) or "none so far"
        raise click.ClickException(f"the suite '{name}' ({SUITES[name]}) is not built yet; built are: {there}.")
    spec = importlib.util.spec_from_file_location(f"benchmarks.{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run: Suite = module.run
    return run
