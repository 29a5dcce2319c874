"""Ridge regression from its normal equations, exactly and by gradient descent.

    minimize  wᵀCw - 2cᵀw + λ‖w‖²         where C = XᵀX and c = Xᵀy, centered where there is an intercept

C is singular where features are constant or collinear. Its null space N is found in the scale in which all columns have
length 1. cᵀw and wᵀCw do not change along N, so the solution of least norm is orthogonal to it, for every λ ≥ 0: the problem is
solved for w = Qz with a basis Q of the complement of N, and what is solved is then regular.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from everview.learn.moments import FloatArray

_EPSILON = float(np.finfo(np.float64).eps)
_NOISE = 64.0
"""How many roundings an entry of C may have seen."""


@dataclass(frozen=True, eq=False)
class Singular:
    """What is singular about C.

    Attributes:
        constant: Which columns do not vary: (k,).
        null: An orthonormal basis of the null space among the other columns: (k, d).
    """

    constant: np.ndarray
    null: FloatArray


@dataclass(frozen=True, eq=False)
class Descent:
    """Where gradient descent has ended: the parameters, how many steps it took, and the norm of the relative gradient."""

    weights: FloatArray
    steps: int
    gradient: float
    converged: bool


def find_singular(gram: FloatArray, squares: FloatArray) -> Singular:
    """Which columns are constant, and which combinations of the others are.

    Args:
        gram: C.
        squares: Σx² of each column before it was centered; where the mean is large, C has lost as many digits.
    """
    diagonal = np.diag(gram)
    constant = diagonal <= _NOISE * _EPSILON * squares
    at = np.flatnonzero(~constant)
    if not len(at):
        return Singular(constant, np.zeros((len(gram), 0)))
    scale = 1 / np.sqrt(diagonal[at])
    values, vectors = np.linalg.eigh(gram[np.ix_(at, at)] * np.outer(scale, scale))
    lost = max(float((squares[at] / diagonal[at]).max()), float(len(at)))
    zero = values <= _NOISE * _EPSILON * lost
    null = np.zeros((len(gram), int(zero.sum())))
    if zero.any():
        null[at] = np.linalg.qr(vectors[:, zero] * scale[:, None])[0]
    null[np.abs(null) < 1e-9] = 0.0
    return Singular(constant, null)


def still_singular(gram: FloatArray, squares: FloatArray, last: Singular) -> Singular | None:
    """What was singular about C before, if the same columns are constant and the same combinations are; else None.

    A test of d products of C with a vector, where ``find_singular`` takes its eigenvectors. New combinations are not found.
    """
    constant = np.diag(gram) <= _NOISE * _EPSILON * squares
    if not np.array_equal(constant, last.constant):
        return None
    noise = _NOISE * _EPSILON * len(gram) * np.sqrt(squares) * np.sqrt(squares.max(initial=0.0))
    return last if (np.abs(gram @ last.null) <= noise[:, None]).all() else None


def solve(gram: FloatArray, cross: FloatArray, l2: float, singular: Singular) -> FloatArray:
    """The solution of least norm: a Cholesky factorization and a step of refinement."""
    weights = np.zeros(len(cross))
    involved = np.flatnonzero(singular.null.any(axis=1))
    free = np.flatnonzero(~singular.constant & ~singular.null.any(axis=1))
    whole = np.linalg.qr(singular.null[involved], mode="complete")[0][:, singular.null.shape[1] :]
    basis = np.zeros((len(cross), len(free) + whole.shape[1]))
    basis[free, np.arange(len(free))] = 1.0
    basis[involved, len(free) :] = whole
    if not basis.shape[1]:
        return weights
    matrix = basis.T @ gram @ basis
    matrix[np.diag_indices_from(matrix)] += l2
    scale = 1 / np.sqrt(np.diag(matrix))
    factor = np.linalg.cholesky(matrix * np.outer(scale, scale))
    right = basis.T @ cross
    found = np.zeros(len(right))
    for _ in range(2):
        rest = (right - matrix @ found) * scale
        found += scale * np.linalg.solve(factor.T, np.linalg.solve(factor, rest))
    return np.asarray(basis @ found, dtype=np.float64)


def descend(
    gram: FloatArray,
    cross: FloatArray,
    l2: float,
    singular: Singular,
    start: FloatArray,
    *,
    tolerance: float,
    most_steps: int,
) -> Descent:
    """Batch gradient descent in the scale in which all columns have length 1.

    The size of a step is found by line search: along a gradient g of a quadratic it is gᵀg / gᵀHg. Each gradient is followed
    for the size found for the one before it (Barzilai and Borwein), which needs far fewer steps than each for its own.

    Args:
        gram: C.
        cross: c.
        l2: λ.
        singular: What is singular about C; along the null space nothing moves, and constant columns keep 0.
        start: The parameters to start from.
        tolerance: Ends where ‖g‖ is at most this part of the gradient at 0.
        most_steps: Ends there in any case.
    """
    at = np.flatnonzero(~singular.constant)
    weights = np.zeros(len(cross))
    if not len(at):
        return Descent(weights, 0, 0.0, True)
    matrix = gram[np.ix_(at, at)].copy()
    matrix[np.diag_indices_from(matrix)] += l2
    scale = 1 / np.sqrt(np.diag(matrix))
    matrix *= np.outer(scale, scale)
    right = cross[at] * scale
    along = singular.null[at]
    given = start[at] - along @ (along.T @ start[at])
    point = given / scale
    whole = float(np.linalg.norm(right)) or 1.0
    gradient = matrix @ point - right
    size: float | None = None
    steps = 0
    while np.linalg.norm(gradient) > tolerance * whole and steps < most_steps:
        turned = matrix @ gradient
        searched = float(gradient @ gradient) / max(float(gradient @ turned), np.finfo(np.float64).tiny)
        point = point - (searched if size is None else size) * gradient
        size = searched
        gradient = matrix @ point - right
        steps += 1
    left = float(np.linalg.norm(gradient)) / whole
    found = point * scale
    weights[at] = found - along @ (along.T @ found)
    return Descent(weights, steps, left, left <= tolerance)
