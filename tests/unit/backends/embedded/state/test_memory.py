"""Arrays that grow: their rows stay, and a system that gives little memory, or none, does no harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everview.backends.embedded.state.memory import LARGE, grown

WIDTH = 4
ROWS = LARGE // (8 * WIDTH)
"""So many rows are a large array."""


def numbered(length: int) -> Any:
    """An array of its own memory whose rows can be told apart."""
    return np.arange(length * WIDTH, dtype=np.int64).reshape(length, WIDTH).copy()


@pytest.mark.parametrize(("before", "after"), [(0, 10), (10, 20), (10, ROWS), (ROWS - 1, ROWS + 1), (ROWS, 2 * ROWS)])
def test_rows_stay(before: int, after: int) -> None:
    """From small to small, from small to large, from large to large."""
    array = grown(numbered(before), after)
    assert array.shape == (after, WIDTH)
    assert array.flags.c_contiguous
    assert (array[:before] == numbered(before)).all()


def test_a_large_array_grows_where_it_is() -> None:
    """A second growth moves nothing; the bytes are those of its rows, not of the memory ahead."""
    first = grown(numbered(10), ROWS)
    second = grown(first, ROWS + ROWS // 16)
    assert second.ctypes.data == first.ctypes.data
    assert second.nbytes == (ROWS + ROWS // 16) * WIDTH * 8


@pytest.mark.parametrize("most", [ROWS * WIDTH * 8 * 2, ROWS * WIDTH * 8])
def test_a_system_that_gives_little_memory(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Less is asked for, down to what is needed."""
    empty = np.empty

    def limited(size: int, dtype: Any) -> Any:
        if size > most:
            raise MemoryError
        return empty(size, dtype=dtype)

    monkeypatch.setattr(np, "empty", limited)
    array = grown(numbered(10), ROWS)
    assert array.base.nbytes == most
    assert (array[:10] == numbered(10)).all()


def test_no_memory_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The array stays as it was."""
    array = numbered(10)

    def none(size: int, dtype: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(np, "empty", none)
    with pytest.raises(MemoryError):
        grown(array, ROWS)
    assert (array == numbered(10)).all()
