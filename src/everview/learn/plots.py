"""Pictures of what was learned; matplotlib is imported when one is drawn."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from everview.errors import UnsupportedOperation
from everview.learn.moments import FloatArray


def axes_of(ax: Any) -> Any:
    """The axes to draw in, new ones if none are given.

    Raises:
        UnsupportedOperation: matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise UnsupportedOperation(
            "pictures need matplotlib.", hint="pip install 'everview[plot]'; print() shows the same as text."
        ) from error
    return pyplot.subplots(layout="constrained")[1]


def plot_matrix(names: Sequence[str], matrix: FloatArray, title: str, ax: Any = None) -> Any:
    """A square of coloured cells; the diagonal is left blank."""
    ax = axes_of(ax)
    shown = matrix.copy()
    shown[range(len(names)), range(len(names))] = float("nan")
    image = ax.imshow(shown, cmap="viridis")
    ax.figure.colorbar(image, ax=ax)
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
    ax.set_title(title)
    return ax


def plot_tree(names: Sequence[str], edges: Sequence[tuple[str, str]], weights: Sequence[float], ax: Any = None) -> Any:
    """Nodes by depth from the first name, which is on top, and lines as thick as their weight."""
    ax = axes_of(ax)
    depth = {names[0]: 0}
    for above, below in edges:
        depth[below] = depth[above] + 1
    rows: dict[int, list[str]] = {}
    for name in _in_order(names[0], edges):
        rows.setdefault(depth[name], []).append(name)
    place = {n: ((i + 1) / (len(row) + 1), -d) for d, row in rows.items() for i, n in enumerate(row)}
    heaviest = max(weights, default=0.0) or 1.0
    for (above, below), weight in zip(edges, weights, strict=True):
        (x0, y0), (x1, y1) = place[above], place[below]
        ax.plot([x0, x1], [y0, y1], color="tab:grey", linewidth=1 + 4 * weight / heaviest, zorder=1)
    for name, (x, y) in place.items():
        ax.text(x, y, name, ha="center", va="center", bbox={"boxstyle": "round", "facecolor": "white"}, zorder=2)
    ax.set_axis_off()
    ax.set_title("Chow-Liu tree")
    return ax


def _in_order(root: str, edges: Sequence[tuple[str, str]]) -> list[str]:
    """Depth first, so that what hangs together stands together."""
    found = [root]
    for above, below in edges:
        if above == root:
            found += _in_order(below, edges)
    return found
