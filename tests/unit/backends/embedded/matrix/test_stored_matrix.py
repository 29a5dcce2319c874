"""A dense matrix under changes of low rank, against plain arrays."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.embedded.matrix.stored_matrix import LowRank, StoredMatrix


def random_change(random: np.random.Generator, shape: tuple[int, int]) -> LowRank:
    """A change of some rank on some rows and columns, with or without an identity."""
    rows = None if random.random() < 0.4 else np.flatnonzero(random.random(shape[0]) < 0.6)
    columns = None if random.random() < 0.4 else np.flatnonzero(random.random(shape[1]) < 0.6)
    n, m = shape[0] if rows is None else len(rows), shape[1] if columns is None else len(columns)
    if rows is not None and random.random() < 0.3:
        return LowRank(rows, None, random.normal(size=(n, m)), columns)
    if columns is not None and random.random() < 0.3:
        return LowRank(rows, random.normal(size=(n, m)), None, columns)
    rank = int(random.integers(1, 5))
    return LowRank(rows, random.normal(size=(n, rank)), random.normal(size=(rank, m)), columns)


def added(array: np.ndarray, change: LowRank) -> np.ndarray:
    """An array with a change added cell by cell."""
    made = array.copy()
    rows = np.arange(len(array)) if change.rows is None else change.rows
    columns = np.arange(array.shape[1]) if change.columns is None else change.columns
    made[np.ix_(rows, columns)] += change.product()
    return made


@given(st.integers(0, 2**16))
def test_changes_commits_rollbacks_and_growth(seed: int) -> None:
    """The content, its blocks and its products are those of an array; a rollback gives back the very bits."""
    random = np.random.default_rng(seed)
    matrix, array = StoredMatrix(), np.zeros((0, 0))
    for _ in range(12):
        before = matrix.content().copy()
        shape = tuple(int(s + random.integers(0, 3)) for s in array.shape)
        matrix.resize(shape[0], shape[1])
        array = np.pad(array, [(0, new - old) for new, old in zip(shape, array.shape, strict=True)])
        after = array
        if not array.size:
            continue
        for _ in range(int(random.integers(1, 4))):
            if random.random() < 0.15:
                after = random.normal(size=array.shape)
                matrix.replace(after.copy())
            else:
                change = random_change(random, array.shape)
                matrix.add(change)
                after = added(after, change)
        rows, columns = (np.flatnonzero(random.random(s) < 0.7) for s in array.shape)
        np.testing.assert_allclose(matrix.content(), after, atol=1e-9)
        np.testing.assert_allclose(matrix.block(rows, columns), after[np.ix_(rows, columns)], atol=1e-9)
        factor = random.normal(size=(len(columns), 2))
        np.testing.assert_allclose(matrix.times(columns, factor), after[:, columns] @ factor, atol=1e-9)
        np.testing.assert_allclose(matrix.times(columns, None), after[:, columns], atol=1e-9)
        np.testing.assert_allclose(matrix.times_left(factor=None, columns=rows), after[rows], atol=1e-9)
        whole = random.normal(size=(2, array.shape[0]))
        np.testing.assert_allclose(matrix.times_left(whole, None), whole @ after, atol=1e-9)
        if random.random() < 0.5:
            matrix.rollback()
            assert (matrix.content()[: before.shape[0], : before.shape[1]] == before).all()
        else:
            matrix.commit()
            array = after
        np.testing.assert_allclose(matrix.array() if random.random() < 0.3 else matrix.content(), array, atol=1e-9)
