"""``everview bench SUITE``: runs a suite, prints its results as they come, and keeps them as JSON or as a picture."""

from __future__ import annotations

import importlib
import inspect
import json
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from everview.cli.bench_results import Figure, report
from everview.cli.bench_suites import SUITES, load_suite


@click.command(epilog="Suites: " + ", ".join(SUITES) + ".")
@click.argument("suite")
@click.option("--quick", is_flag=True, help="Small sizes: ends within a minute.")
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path), help="Write the results as JSON.")
@click.option(
    "--plot", "plot_file", metavar="FILE", type=click.Path(path_type=Path), help="Draw the results (svg, png)."
)
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), help="The data's scale factor (suite spark).")
@click.option(
    "--lookup-bytes",
    type=click.IntRange(min=0),
    help="Disk for the driver's copies of tables, 0 for none (suite spark).",
)
def bench(
    suite: str,
    quick: bool,
    json_file: Path | None,
    plot_file: Path | None,
    scale: float | None,
    lookup_bytes: int | None,
) -> None:
    """Run a benchmark with its baselines."""
    for file in (json_file, plot_file):  # said now, not after the measurements
        if file is not None and not file.parent.is_dir():
            raise click.ClickException(f"'{file}' cannot be written: there is no directory '{file.parent}'.")
    measure = load_suite(suite)
    for name, value in {"scale": scale, "lookup_bytes": lookup_bytes}.items():
        if value is not None:
            if name not in inspect.signature(measure).parameters:
                option = f"--{name.replace('_', '-')}"
                raise click.BadParameter(f"the suite '{suite}' has none.", param_hint=option)
            measure = partial(measure, **{name: value})
    console = Console()
    results: list[Figure] = []
    with console.status(f"Measuring {suite}…") as status:
        for result in measure(quick=quick):
            results.append(result)
            status.update(f"Measuring {suite}… {result.case}")
    console.print(_table(suite, results))
    if json_file is not None:
        json_file.write_text(json.dumps(report(suite, results), indent=2) + "\n", encoding="utf-8")
    if plot_file is not None:
        _draw(suite, results, plot_file)
    wrong = sorted({result.case for result in results if result.params.get("answer") == "WRONG"})
    if wrong:
        raise click.ClickException(f"wrong answers: {', '.join(wrong)}.")


def _draw(suite: str, results: list[Figure], path: Path) -> None:
    """Loads the module that needs matplotlib by name: it is for developers only, and slow to import."""
    try:
        drawing = importlib.import_module("everview.cli.bench_plot")
    except ModuleNotFoundError as error:
        raise click.ClickException(f"--plot needs {error.name}: pip install 'everview[dev]'.") from error
    drawing.plot(suite, results, path)


def _table(suite: str, results: list[Figure]) -> Table:
    table = Table(title=suite, title_justify="left")
    for heading in ("case", "parameters", "metric"):
        table.add_column(heading)
    table.add_column("value", justify="right")
    table.add_column("unit")
    for result in results:
        params = " ".join(f"{name}={value}" for name, value in result.params.items())
        table.add_row(result.case, params, result.metric, f"{result.value:,.4g}", result.unit)
    return table
