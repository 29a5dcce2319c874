"""Where arrays and buffers lie, for kernels that are given addresses (``intrinsics``): callers keep the memory alive."""

from __future__ import annotations

from typing import Any

import numpy as np

from everview.backends.embedded.state.checks import structures
from everview.backends.embedded.state.kernel_cache import IS_CHECKED


def address_of(array: Any, what: str = "") -> int:
    """Where the array's first element lies; ``what`` it is, the checked mode says in its errors."""
    if IS_CHECKED:
        structures.add_array(array, what)
    address: int = array.ctypes.data
    return address


def addresses_of_rows(matrix: Any, what: str = "") -> list[int]:
    """Where each row of a matrix begins: in checked mode each is a structure of its own."""
    if IS_CHECKED:
        structures.add_rows(matrix, what)
    start: int = matrix.ctypes.data
    return [start + i * matrix.strides[0] for i in range(len(matrix))]


def resize(array: Any, shape: Any) -> None:
    """Has an array of another length, whose memory may move; its address is to be asked for again."""
    if IS_CHECKED:
        structures.forget(array)
    array.resize(shape, refcheck=False)


def address_of_buffer(buffer: Any) -> int:
    """Where a buffer of Arrow lies; 0 for none."""
    if buffer is None:
        return 0
    if IS_CHECKED:
        structures.add_buffer(buffer.address, buffer.size)
    address: int = buffer.address
    return address


NO_WORDS = np.zeros(1, dtype=np.int64)
"""Something to point at where nothing is read."""
