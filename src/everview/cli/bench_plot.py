"""A picture of a benchmark's results; the only module that needs matplotlib, loaded when ``--plot`` asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from everview.cli.bench_results import Result


def plot(suite: str, results: Sequence[Result], path: Path) -> None:
    """Draws a panel a metric and a bar a case with its parameters; the file's suffix is the format."""
    mpl.use("Agg")
    metrics = list(dict.fromkeys(result.metric for result in results))
    figure, axes = plt.subplots(len(metrics), 1, squeeze=False, figsize=(10, 3.5 * len(metrics)), layout="constrained")
    for axis, metric in zip(axes[:, 0], metrics, strict=True):
        chosen = [result for result in results if result.metric == metric]
        axis.bar([_label(result) for result in chosen], [result.value for result in chosen])
        axis.set_ylabel(f"{metric} ({chosen[0].unit})")
        axis.tick_params(axis="x", rotation=45)
    figure.suptitle(suite)
    figure.savefig(path)
    plt.close(figure)


def _label(result: Result) -> str:
    return " ".join([result.case, *(f"{name}={value}" for name, value in result.params.items())])
