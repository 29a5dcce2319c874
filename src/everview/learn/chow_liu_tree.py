"""The Chow-Liu tree: of all trees over the features, the one whose edges have the most mutual information.

It is the best approximation of the joint distribution in which each feature depends on one other. Prim's algorithm, from the
first feature: in each round the feature that says most about one in the tree is connected to it. Weights that differ by no more
than roundings are ties, which the order of the features decides, so that equal data give equal trees.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from everview.learn.estimator import Estimator
from everview.learn.moments import FloatArray
from everview.learn.mutual_information import MutualInformation
from everview.learn.plots import plot_tree

_TIE = 1e-12
"""Weights that are nearer than this are equal."""


class ChowLiuTree(Estimator):
    """The tree of a ``MutualInformation``, computed at once; ``refresh`` refreshes both.

    Args:
        mi: What the tree is made of.

    Attributes:
        edges: Pairs of feature names, in the order in which they were connected: the first of a pair was there before.
        weights: The mutual information of each edge.
    """

    def __init__(self, mi: MutualInformation) -> None:
        self.mi = mi
        self._span()

    def refresh(self) -> Self:
        """Computes the mutual information and the tree from the current counts."""
        self.mi.refresh()
        return self._span()

    def _span(self) -> Self:
        names, matrix = self.mi.features, self.mi.matrix
        found = spanning_tree(matrix)
        self.edges: list[tuple[str, str]] = [(names[a], names[b]) for a, b in found]
        self.weights: list[float] = [float(matrix[a, b]) for a, b in found]
        return self

    @property
    def total(self) -> float:
        """The mutual information of all edges together."""
        return sum(self.weights)

    def plot(self, ax: Any = None) -> Any:
        """Draws the tree, the first feature on top; needs ``everview[plot]``."""
        return plot_tree(self.mi.features, self.edges, self.weights, ax)

    def __str__(self) -> str:
        children: dict[str, list[tuple[str, float]]] = {}
        for (a, b), weight in zip(self.edges, self.weights, strict=True):
            children.setdefault(a, []).append((b, weight))
        lines = [self.mi.features[0]]

        def draw(name: str, indent: str) -> None:
            own = children.get(name, [])
            for i, (child, weight) in enumerate(own):
                is_last = i == len(own) - 1
                lines.append(f"{indent}{'└─' if is_last else '├─'} {child}  {weight:.4f}")
                draw(child, indent + ("   " if is_last else "│  "))

        draw(self.mi.features[0], "")
        return "\n".join(lines)


def spanning_tree(matrix: FloatArray) -> list[tuple[int, int]]:
    """The edges of a maximum spanning tree, in the order in which Prim's algorithm finds them from node 0.

    >>> spanning_tree(np.array([[0, 1, 3.0], [1, 0, 2], [3, 2, 0]]))
    [(0, 2), (2, 1)]
    """
    count = len(matrix)
    best = matrix[0].copy() if count else np.zeros(0)
    parent = np.zeros(count, dtype=np.int64)
    waiting = np.arange(1, count)
    edges = []
    while len(waiting):
        top = best[waiting].max()
        node = int(waiting[np.flatnonzero(best[waiting] >= top - _TIE)[0]])
        edges.append((int(parent[node]), node))
        waiting = waiting[waiting != node]
        nearer = waiting[matrix[node, waiting] > best[waiting] + _TIE]
        best[nearer], parent[nearer] = matrix[node, nearer], node
    return edges
