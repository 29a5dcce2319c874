"""Covariance matrices over joins under updates: Housing, Retailer, Favorita; continuous, mixed and categorical features.

    everview bench covariance [--quick]
    python benchmarks/covariance.py --cases housing,continuous,sorted favorita,mixed,sorted [--share 0.1] [--learning]

The second measures single cases without baselines, over a share of the data, each as often as it is named.

Batches of 1,000 rows of one table, round robin over all tables (F-IVM, sections 9.2 and 9.3), sorted by the variable order and
shuffled, into tables that keep no rows. Beside ``create_covariance``:

- *numpy*: after every batch the tables so far are joined by Arrow, XᵀX is computed by NumPy, and categories are counted;
- *cells*: one SQL aggregate for each cell of the matrix, each a view of this engine, which is how DBToaster does it;
- *first_order*: ``create_covariance(strategy="first_order")``, no view between the tables and the result.

Over continuous features a regression is trained after every batch, over categorical ones mutual information and the Chow-Liu
tree are computed: ``benchmarks/training.py``.

Timed is ``db.apply`` alone; at full size 3 GB of memory are touched before, so that a virtual machine has them. A trial ends
when its budget is exhausted, which its parameters say; a ratio is over the batches that both have run. Of our own short
streams the best of three is told, by processor time. Continuous features are measured over all rows of F-IVM's experiments,
others over a tenth. Baselines have the first six features of each role only, and so has our own trial beside them
(``features`` says how many); all-categorical ones have twelve in every trial. Answers are compared with DuckDB's where the
join has at most 20 million rows. Metrics: ``tuples_per_second``, ``state_bytes``, ``ratio_to_numpy``, ``ratio_to_cells``,
``ratio_to_first_order``, ``ratio_to_fivm_cpp``; ``seconds`` is the time to read all sums. Rates and ratios to F-IVM's C++ are
told twice, by ``clock``: on the wall, and by the processor time of the thread, which is what to look at on a busy machine.
The other ratios are by the wall, with the other one as ``by_cpu`` in their parameters.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.covariance_data import KINDS, MAKERS, feature_set
from benchmarks.covariance_measure import FULL, QUICK, measure_case, our_figures, warm_up
from benchmarks.spark_session import spark_session
from benchmarks.training import learning_figures
from everview.cli.bench_results import Figure


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints a table at the end."""
    plan = QUICK if quick else FULL
    table = Table(title="covariance, thousands of tuples a second", title_justify="left")
    for heading in (
        "case",
        "order",
        "features",
        "rate",
        "by cpu",
        "MB",
        "read ms",
        "x F-IVM C++ (by cpu)",
        "answer",
        "baselines",
    ):
        table.add_column(heading, justify="right")
    with spark_session() as spark:
        warm_up(spark, feature_set(MAKERS["housing"](0.02), "mixed").first(2))
        for name, make in MAKERS.items():
            for kind in KINDS:
                features = feature_set(make(plan.shares[kind]), kind)
                many = plan.categories if kind == "categorical" or (quick and kind == "mixed") else None
                whole = features if many is None else features.first(many)
                for order in plan.orders if kind == "continuous" else ("sorted",):
                    yield from measure_case(spark, name, whole, features.first(plan.few), order, plan, table)
                if not quick or name == "housing":
                    yield from learning_figures(spark, name, whole, plan.baseline)
    Console(width=160).print(table)


def measure(cases: Sequence[str], share: float, *, is_learning: bool) -> Iterator[Figure]:
    """Single cases, each ``data,kind,order``, in the order given; and what is learned after every batch of each."""
    with spark_session() as spark:
        warm_up(spark, feature_set(MAKERS["housing"](0.02), "mixed").first(2))
        for name, kind, order in (case.split(",") for case in cases):
            features = feature_set(MAKERS[name](share), kind)
            yield from our_figures(spark, name, features, order, FULL.budget)
            if is_learning:
                whole = features.first(FULL.categories) if kind == "categorical" else features
                yield from learning_figures(spark, name, whole, FULL.baseline)


def main() -> None:
    """Prints figures as they are measured."""
    parser = argparse.ArgumentParser(description="Single cases of the suite covariance")
    parser.add_argument("--cases", nargs="+", required=True, metavar="DATA,KIND,ORDER")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows of F-IVM's experiments")
    parser.add_argument("--learning", action="store_true", help="also train, or find the tree, after every batch")
    given = parser.parse_args()
    for figure in measure(given.cases, given.share, is_learning=given.learning):
        print(f"{figure.case} {figure.metric} {figure.value:,.4g} {figure.unit} {dict(figure.params)}", flush=True)


if __name__ == "__main__":
    main()
