"""The engine's dictionary: codes, Arrow, order and memos."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.dictionary_order import tuple_key
from everview.errors import EvaluationError
from everview.relational.arrow import data_type_from_arrow
from everview.relational.types import NAN


def test_codes_identify_values_and_types() -> None:
    """Equal values have one code; values that only look equal have different ones; 0 is NULL's."""
    dictionary = Dictionary()
    values = ["a", b"a", ("a",), (b"a",), (1,), (1.0,), (True,), (None,), (), ((),), (NAN,), ""]
    codes = dictionary.encode(values)
    assert len(set(codes.tolist())) == len(values) == len(dictionary)
    assert dictionary.encode(values).tolist() == codes.tolist()
    assert repr(dictionary.decode(codes)) == repr(values)
    assert dictionary.encode([None]).tolist() == [0]
    assert dictionary.decode(np.array([0])) == [None]


def test_zeros_inside_of_arrays_are_one_value() -> None:
    """Spark makes no difference between -0.0 and 0.0 in a key, at any depth; integers stay integers."""
    dictionary = Dictionary()
    first, second = dictionary.encode([(-0.0, ((-0.0,),)), (0.0, ((0.0,),))]).tolist()
    assert first == second
    assert repr(dictionary.decode(dictionary.encode([(0, False)]))) == "[(0, False)]"


@pytest.mark.parametrize("count", [0, 1, 5, 500])
@pytest.mark.parametrize("arrow", [pa.string(), pa.large_string(), pa.binary(), pa.list_(pa.string())])
def test_arrow_columns_round_trip(count: int, arrow: pa.DataType) -> None:
    """Any text-like column, chunked and sliced, with NULLs, comes back as it went in."""
    dictionary = Dictionary()
    words = [None if i % 7 == 3 else f"word {i % 50}" for i in range(count + 4)]
    if pa.types.is_binary(arrow):
        words = [None if w is None else w.encode() for w in words]
    if pa.types.is_list(arrow):
        words = [None if w is None else [w, None] for w in words]
    whole = pa.array(words, arrow)
    for column in (whole[2 : count + 2], pa.chunked_array([whole[:2], whole[2:2], whole[2:]], arrow)):
        codes, nulls = dictionary.encode_arrow(column)
        assert (codes == 0).tolist() == column.is_null().to_pylist()
        assert (nulls is None) == (column.null_count == 0)
        assert dictionary.decode_arrow(codes, nulls, data_type_from_arrow(arrow)).to_pylist() == column.to_pylist()


def test_dictionary_encoded_columns_use_their_dictionary() -> None:
    """A dictionary seen before costs nothing; NULL may be an index or a value of the dictionary; short slices are decoded."""
    dictionary = Dictionary()
    shared = pa.array(["x", None, "y", "never used"])
    for indices in ([0, 1, 2, None, 0], [2, 2, 2, 2, 0], [0], [None]):
        column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), shared)
        codes, nulls = dictionary.encode_arrow(column)
        assert dictionary.decode(codes) == column.to_pylist()
        assert (codes == 0).tolist() == (np.zeros(len(codes), bool) if nulls is None else nulls).tolist()
    assert len(dictionary) == 3


@settings(deadline=None)
@given(st.lists(st.lists(st.text(max_size=3), min_size=1, max_size=40), max_size=6))
def test_order_keys_follow_the_order_of_values(batches: list[list[str]]) -> None:
    """Labels given in one epoch compare as the values do, whenever each was given."""
    dictionary = Dictionary()
    kept: dict[str, int] = {}
    for batch in batches:
        epoch = dictionary.order_epoch
        keys = dictionary.order_keys(dictionary.encode(batch))
        if dictionary.order_epoch != epoch:
            words = list(kept)
            kept = dict(zip(words, dictionary.order_keys(dictionary.encode(words)).tolist(), strict=True))
        kept.update(zip(batch, keys.tolist(), strict=True))
        assert sorted(kept, key=kept.__getitem__) == sorted(kept)
        assert len(set(kept.values())) == len(kept)


def test_relabelling_is_rare() -> None:
    """Ten thousand insertions, at random, ascending, or descending inside of a gap, change the labels a few times only."""
    rng = random.Random(1)
    scattered = [str(rng.random()) for _ in range(10_000)]
    inside = ["a", "z", *(f"m{i:05}" for i in range(10_000))]
    for words in (scattered, inside, ["a", "z", *inside[:1:-1]], sorted(scattered)):
        dictionary = Dictionary()
        codes = dictionary.encode(words)
        for start in range(0, len(words), 10):
            dictionary.order_keys(codes[start : start + 10])
        keys = dictionary.order_keys(codes).tolist()
        assert sorted(words) == [w for _, w in sorted(zip(keys, words, strict=True))]
        assert dictionary.order_epoch <= 4


def test_tuples_are_ordered_as_spark_orders_arrays() -> None:
    """NULL elements first, NaN last, shorter before longer."""
    dictionary = Dictionary()
    values = [(), (None,), (None, 1.0), (-1.0,), (1.0,), (1.0, None), (float("inf"),), (NAN,), (NAN, 0.0)]
    shuffled = values[3:] + values[:3]
    assert sorted(shuffled, key=tuple_key) == values
    keys = dictionary.order_keys(dictionary.encode(values[::-1]))
    assert keys.tolist() == sorted(keys.tolist(), reverse=True)


def test_a_memo_computes_each_code_once() -> None:
    """The function runs once per distinct value, NULL included; errors are raised when met, and only then."""
    dictionary = Dictionary()
    seen: list[object] = []

    def length(value: str | None) -> int | None:
        seen.append(value)
        if value == "bad":
            raise EvaluationError("bad.", condition="BAD")
        return None if value is None or value == "none" else len(value)

    memo = dictionary.memo(length)
    codes = dictionary.encode(["a", "bbb", "a", None, "none"] * 20)
    for _ in range(2):
        values, nulls = memo(codes)
        assert values.tolist() == [1, 3, 1, 0, 0] * 20
        assert nulls is not None
        assert nulls.tolist() == [False, False, False, True, True] * 20
    assert len(seen) == 4
    assert memo(codes[:1])[0].tolist() == [1]
    assert memo(codes[:0])[0].tolist() == []
    with pytest.raises(EvaluationError, match="bad"):
        memo(dictionary.encode(["a", "bad"]))
    assert memo.nbytes > 0


def test_memos_with_equal_keys_are_shared() -> None:
    """Two views with the same predicate share one table, for as long as one of them lives."""
    dictionary = Dictionary()
    first = dictionary.memo(len, key="length")
    assert dictionary.memo(len, key="length") is first
    assert dictionary.memo(len) is not first


def test_wide_words_are_kept_in_two_halves() -> None:
    """A memo of 128-bit integers gives rows of a low and a high word."""
    dictionary = Dictionary()
    memo = dictionary.memo(int, wide=True)
    values, _ = memo(dictionary.encode(["-1", str(2**64 + 5)]))
    assert values.tolist() == [[-1, -1], [5, 1]]


def test_size_is_measured() -> None:
    """The size grows with the values."""
    dictionary = Dictionary()
    before = dictionary.nbytes
    words = [f"word {i}" for i in range(1000)]
    dictionary.encode(words)
    dictionary.encode([(word,) for word in words])
    assert before + 2 * sum(map(len, words)) < dictionary.nbytes < before + 1_000 * 400


def test_lone_surrogates_survive() -> None:
    """What Python can hold and UTF-8 cannot has a code too."""
    dictionary = Dictionary()
    words = ["\ud800", *(f"{i}" for i in range(50)), "\ud800"]
    assert dictionary.decode(dictionary.encode(words)) == words
