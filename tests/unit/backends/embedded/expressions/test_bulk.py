"""Functions of text computed by kernels over the dictionary's bytes: they equal their definitions, character by character."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.expressions.bulk import bulk_form, like_pattern
from everview.backends.embedded.vectors import Vector
from everview.relational.evaluate import compile_expression
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.types import BOOLEAN, INT32, STRING, Value

ALPHABET = "aAb%_\\éßİ√😀\n"
TEXT = Column(0, STRING)
texts = st.text(ALPHABET, max_size=8)
numbers = st.integers(-9, 9) | st.sampled_from([-(2**31), 2**31 - 1])


def literal(value: Value) -> Literal:
    """A constant number or string."""
    return Literal(value, INT32 if isinstance(value, int) else STRING)


def patterns() -> st.SearchStrategy[str]:
    """Mostly valid ones."""
    parts = st.sampled_from(["%", "_", "\\%", "\\_", "\\\\", "a", "b", "é", "😀", "\n"])
    return st.lists(parts, max_size=6).map("".join) | texts


def predicates() -> st.SearchStrategy[Expression]:
    """Tests of one text column, and what can be made of them."""
    source = st.just(TEXT) | st.builds(
        lambda p, n: Call("substring", (TEXT, literal(p), literal(n)), STRING), numbers, numbers
    )
    source |= st.builds(lambda f, s: Call(f, (s,), STRING), st.sampled_from(["upper", "lower"]), source)
    like = st.builds(lambda s, p: Call("like", (s, literal(p)), BOOLEAN), source, patterns())
    escaped = st.builds(lambda s, p: Call("like", (s, literal(p), literal("b")), BOOLEAN), source, patterns())
    part = st.builds(
        lambda f, s, p: Call(f, (s, literal(p)), BOOLEAN),
        st.sampled_from(["startswith", "endswith", "contains", "="]),
        source,
        texts,
    )
    among = st.builds(
        lambda s, items: Call("in", (s, *map(literal, items)), BOOLEAN), source, st.lists(texts, min_size=1, max_size=3)
    )
    simple = like | escaped | part | among
    return st.recursive(
        simple,
        lambda inner: (
            st.builds(lambda x: Call("not", (x,), BOOLEAN), inner)
            | st.builds(lambda f, x, y: Call(f, (x, y), BOOLEAN), st.sampled_from(["and", "or"]), inner, inner)
        ),
        max_leaves=3,
    )


@settings(deadline=None, max_examples=300)
@given(predicates(), st.lists(st.none() | texts, max_size=20))
def test_predicates_are_those_of_the_definition(predicate: Expression, column: list[str | None]) -> None:
    """Wherever a form exists; and it does, unless a pattern is wrong."""
    dictionary = Dictionary()
    codes = np.unique(dictionary.encode(column))
    compute = bulk_form(predicate, dictionary)
    if compute is None:
        return
    values, nulls = compute(codes)
    evaluated = compile_expression(predicate)
    expected = [evaluated((value,)) for value in dictionary.decode(codes)]
    found = [None if nulls is not None and nulls[i] else bool(v) for i, v in enumerate(values)]
    assert found == expected


@settings(deadline=None)
@given(st.sampled_from(["upper", "lower", "length"]), st.lists(st.none() | texts, max_size=20))
def test_folding_and_lengths_are_those_of_the_definition(function: str, column: list[str | None]) -> None:
    """ASCII and other text in one column, and NULL."""
    call = Call(function, (TEXT,), INT32 if function == "length" else STRING)
    dictionary = Dictionary()
    codes = dictionary.encode(column)
    evaluated = compile_expression(call)
    (vector,) = compile_projection((call,), dictionary)((Vector(STRING, codes, codes == 0),), len(codes))
    found = vector.values.tolist() if function == "length" else dictionary.decode(vector.values)
    nulls = np.zeros(len(codes), dtype=np.bool_) if vector.nulls is None else vector.nulls
    expected = [evaluated((value,)) for value in column]
    assert [None if absent else value for value, absent in zip(found, nulls, strict=True)] == expected


@settings(deadline=None)
@given(numbers, st.none() | numbers, st.lists(st.none() | texts, max_size=20))
def test_substrings_are_those_of_the_definition(position: int, count: int | None, column: list[str | None]) -> None:
    """Also with positions from the end, before the beginning, and at characters of several bytes."""
    arguments = (TEXT, literal(position)) if count is None else (TEXT, literal(position), literal(count))
    call = Call("substring", arguments, STRING)
    dictionary = Dictionary()
    codes = dictionary.encode(column)
    evaluated = compile_expression(call)
    for _ in range(2):
        (vector,) = compile_projection((call,), dictionary)((Vector(STRING, codes, codes == 0),), len(codes))
        assert dictionary.decode(vector.values) == [evaluated((value,)) for value in column]


def test_wrong_patterns_have_no_form() -> None:
    """The definition raises for them, when a row is met."""
    assert like_pattern("a\\b") is None
    assert like_pattern("a\\") is None
    assert like_pattern("a%%") is not None
    assert bulk_form(Call("like", (TEXT, literal("\\x")), BOOLEAN), Dictionary()) is None
    assert bulk_form(Call("initcap", (TEXT,), STRING), Dictionary()) is None


def test_what_kernels_compute_is_not_said_to_be_python() -> None:
    """``explain`` lists what runs value by value."""
    dictionary = Dictionary()
    like = Call("not", (Call("like", (TEXT, literal("%a%b%")), BOOLEAN),), BOOLEAN)
    assert list(compile_projection((like,), dictionary).definitions(("t",))) == []
    assert list(compile_projection((Call("initcap", (TEXT,), STRING),), dictionary).definitions(("t",))) != []
