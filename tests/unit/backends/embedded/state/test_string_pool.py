"""Byte strings and their codes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.state.memory import address_of_buffer
from everview.backends.embedded.state.string_pool import StringPool
from everview.backends.embedded.vectors import Bools, Ints


def encode(pool: StringPool, kind: int, array: pa.Array) -> tuple[Ints, Bools]:
    """The codes of an array and the marks of its NULLs."""
    validity, offsets, data = array.buffers()
    width = 8 if pa.types.is_large_binary(array.type) else 4
    mask = address_of_buffer(validity) if array.null_count else 0
    return pool.encode(kind, address_of_buffer(offsets), width, address_of_buffer(data), mask, array.offset, len(array))


@settings(deadline=None)
@given(
    st.lists(st.lists(st.none() | st.binary(max_size=20) | st.sampled_from([b"", b"a", b"\0", b"\0\0"]), max_size=30)),
    st.sampled_from([pa.binary(), pa.large_binary()]),
    st.integers(0, 3),
)
def test_codes_are_those_of_a_dict(batches: list[list[bytes | None]], arrow: pa.DataType, skipped: int) -> None:
    """In order of first arrival, whatever the length, the offsets and the NULLs; and back."""
    pool, expected = StringPool(1), {}
    for batch in batches:
        array = pa.array([b"skipped"] * skipped + batch, arrow)[skipped:]
        codes, nulls = encode(pool, 1, array)
        for value in batch:
            if value is not None:
                expected.setdefault(value, len(expected) + 1)
        assert codes.tolist() == [0 if v is None else expected[v] for v in batch]
        assert len(nulls) == 0 or nulls.tolist() == [v is None for v in batch]
        offsets, data = pool.decode(codes)
        assert [data[a:b].tobytes() for a, b in pairwise(offsets)] == [v or b"" for v in batch]
    assert len(pool) == len(expected)
    assert {pool.bytes_of(code): code for code in expected.values()} == expected


@pytest.mark.parametrize("length", range(26))
def test_one_different_byte_is_another_string(length: int) -> None:
    """At every position of every length, shorter and longer than a word."""
    pool = StringPool(1)
    plain = bytes(range(65, 65 + length))
    changed = [plain[:i] + b"!" + plain[i + 1 :] for i in range(length)]
    codes, _ = encode(pool, 1, pa.array([plain, *changed], pa.binary()))
    assert codes.tolist() == list(range(1, length + 2))


def test_kinds_are_apart() -> None:
    """The same bytes of another kind have another code, and codes that the caller takes belong to no string."""
    pool = StringPool(2)
    words = pa.array([b"x", b"y"], pa.binary())
    assert encode(pool, 1, words)[0].tolist() == [1, 2]
    assert pool.reserve_code() == 3
    assert encode(pool, 2, words)[0].tolist() == [4, 5]
    assert encode(pool, 1, words)[0].tolist() == [1, 2]
    assert pool.kinds_of(np.arange(1, 6)).tolist() == [1, 1, 0, 2, 2]
    assert [pool.bytes_of(c) for c in (1, 2, 4, 5)] == [b"x", b"y", b"x", b"y"]


def test_many_strings() -> None:
    """Tables, codes and heap grow in the middle of a batch without losing anything; memory stays near the data."""
    pool = StringPool(1)
    words = [f"a string with the number {i}".encode() for i in range(100_000)]
    array = pa.array(words, pa.large_binary())
    codes, _ = encode(pool, 1, array)
    assert codes.tolist() == list(range(1, len(words) + 1))
    assert encode(pool, 1, array[::-1])[0].tolist() == codes[::-1].tolist()
    offsets, data = pool.decode(codes)
    assert data.tobytes() == b"".join(words)
    assert offsets[-1] == len(data)
    assert pool.nbytes < 2 * (len(data) + 8 * len(words)) + 32 * len(words)
