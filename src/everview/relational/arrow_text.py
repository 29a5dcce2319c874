"""Whether text in Arrow's arrays is text: Arrow says that strings are UTF-8 without looking, and takes bytes of any kind."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from everview.relational.functions.failures import not_utf8

_FEW: Final = 200
"""Up to so many strings, Arrow looks at each sooner than Python at all their bytes."""


def is_unicode(column: pa.Array | pa.ChunkedArray) -> bool:
    r"""Whether all strings in an array, at any depth, are UTF-8.

    >>> is_unicode(pa.array(["a", "é", None])), is_unicode(pa.array([b"\xff"]).view(pa.string()))
    (True, False)
    """
    if isinstance(column, pa.ChunkedArray):
        return all(map(is_unicode, column.chunks))
    if len(column) > _FEW and pa.types.is_string(column.type) and _is_ascii(column):
        return True
    try:
        column.validate(full=True)
    except pa.ArrowException:
        return False
    return True


def rows_without_unicode(column: pa.ChunkedArray) -> list[int]:
    """The rows of a column of strings that are not UTF-8."""
    return [i for i, value in enumerate(_bytes_of(column)) if value is not None and not _is_text(value)]


def require_unicode(column: pa.Array | pa.ChunkedArray, what: str) -> None:
    """Raises ``EvaluationError`` if some string that Spark has computed, at any depth, is not UTF-8."""
    if not is_unicode(column):
        raise not_utf8(f"a text that {what} gives")


def as_java_reads(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of strings from Spark, whose strings may be any bytes, as ``collect()`` shows them: with U+FFFD in them."""
    if not pa.types.is_string(column.type) or is_unicode(column):
        return column
    return pa.chunked_array(
        [[None if v is None else v.decode(errors="replace") for v in _bytes_of(column)]], pa.string()
    )


def _bytes_of(column: pa.ChunkedArray) -> list[bytes | None]:
    values: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return values


def _is_ascii(strings: pa.Array) -> bool:
    """Whether all bytes of the strings are ASCII, those beneath NULL too; a fifth of the time of a look at each string."""
    _, offsets, data = strings.buffers()
    if offsets is None or data is None:
        return False
    ends = memoryview(offsets).cast("i")
    start, stop = ends[strings.offset], ends[strings.offset + len(strings)]
    return bool(data.slice(start, stop - start).to_pybytes().isascii())


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
