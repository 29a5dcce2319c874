"""A picture of a benchmark's results; the only module that needs matplotlib, loaded when ``--plot`` asks for it.

A panel shows one metric. Where a size of the data grows (``rows``, or ``k`` for the length of a query), it has lines over that
size with both axes logarithmic, so that a slope is an exponent: a colour a case, a style a strategy. It has lines over the
exponent ``epsilon`` of a threshold, too, which is no size. Otherwise it has bars.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from everview.cli.bench_results import Figure

GROWING = ("rows", "k", "rank", "n", "epsilon")
"""Parameters that are sizes: where one takes several values, the metric is drawn over it."""

NAMING = ("strategy", "representation", "mode", "order", "what", "clock")
"""Parameters that tell the lines of a case apart."""

_WIDTH = 12
_STYLES = ("-", "--", ":", "-.")
_MARKERS = "os^vD*Px"


def plot(suite: str, results: Sequence[Figure], path: Path) -> None:
    """Draws the panels below each other; the file's suffix is the format."""
    mpl.use("Agg")
    panels: dict[str, list[Figure]] = {}
    for result in results:
        panels.setdefault(_panel(result), []).append(result)
    heights = [_height(chosen) for chosen in panels.values()]
    figure, axes = plt.subplots(
        len(panels),
        1,
        squeeze=False,
        figsize=(_WIDTH, sum(heights)),
        height_ratios=heights,
        layout="constrained",
    )
    for axis, (title, chosen) in zip(axes[:, 0], panels.items(), strict=True):
        size = _growing(chosen)
        if size is None:
            _draw_bars(axis, chosen)
        else:
            _draw_lines(axis, chosen, size)
        axis.set_title(f"{title} ({chosen[0].unit})" if chosen[0].unit else title, loc="left", fontsize="medium")
    figure.suptitle(suite)
    figure.savefig(path)
    plt.close(figure)


def _panel(result: Figure) -> str:
    """The metric, and which kind of time it is of: updates and delays do not share an axis."""
    what = str(result.params.get("what", "")).partition(" ")[0].rstrip(",")
    return f"{result.metric}: {what}" if what else result.metric


def _height(results: Sequence[Figure]) -> float:
    """Inches: a legend or the labels of the bars must fit beside the panel."""
    count = len(results) if _growing(results) is None else len({_line(result) for result in results})
    return max(3.0, 1.0 + 0.2 * count)


def _growing(results: Sequence[Figure]) -> str | None:
    """The size that all these results have and that differs among them."""
    for name in GROWING:
        values = {result.params.get(name) for result in results}
        if None not in values and len(values) > 1:
            return name
    return None


def _draw_lines(axis: Axes, results: Sequence[Figure], size: str) -> None:
    cases = list(dict.fromkeys(result.case for result in results))
    strategies = list(dict.fromkeys(result.params.get("strategy") for result in results))
    lines: dict[str, list[Figure]] = {}
    for result in results:
        lines.setdefault(_line(result), []).append(result)
    for number, (label, own) in enumerate(lines.items()):
        points = sorted((result.params[size], result.value) for result in own)
        axis.plot(
            *zip(*points, strict=True),
            color=f"C{cases.index(own[0].case)}",
            linestyle=_STYLES[strategies.index(own[0].params.get("strategy")) % len(_STYLES)],
            marker=_MARKERS[number % len(_MARKERS)],
            label=label,
        )
    axis.set_xscale("linear" if size == "epsilon" else "log")
    axis.set_yscale("log")
    axis.set_xlabel(size)
    axis.grid(visible=True, alpha=0.3)
    axis.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_bars(axis: Axes, results: Sequence[Figure]) -> None:
    """Horizontal bars from the top, each with the parameters in which it differs from others."""
    names = dict.fromkeys(name for result in results for name in result.params)
    telling = [name for name in names if len({str(result.params.get(name)) for result in results}) > 1]
    places = range(len(results))
    axis.barh(places, [result.value for result in results])
    axis.set_yticks(places, [_label(result, telling) for result in results], fontsize="small")
    axis.invert_yaxis()


def _line(result: Figure) -> str:
    return " ".join([result.case, *(str(result.params[name]) for name in NAMING if name in result.params)])


def _label(result: Figure, telling: Sequence[str]) -> str:
    named = [f"{name}={result.params[name]}" for name in telling if name in result.params and name not in NAMING]
    return " ".join([_line(result), *named])
