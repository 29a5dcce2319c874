"""Functions of one text column computed for many distinct codes at once, by kernels over the dictionary's bytes.

Covered are LIKE and its kin with constant patterns, substrings at constant places, UPPER and LOWER of ASCII, lengths,
comparisons of codes for equality, and NOT, AND and OR over these. What a kernel does is what the definition in
``relational.functions`` does, including characters outside of ASCII; whatever else an expression contains, the definition
computes value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import pyarrow.compute as pc

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.dictionary_memo import CodeFunction
from everview.backends.embedded.expressions.cells import either
from everview.backends.embedded.state.text_kernels import (
    ANY_CHARACTERS,
    ONE_CHARACTER,
    copy_cuts,
    cut_text,
    match_pattern,
)
from everview.backends.embedded.vectors import AnyArray, Bools, Ints
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.types import STRING

_LONGEST: Final = 2**31 - 1
_MATCHING: Final = ("like", "startswith", "endswith", "contains")
Computed: TypeAlias = tuple[AnyArray, Bools | None]


def bulk_form(expression: Expression, dictionary: Dictionary) -> CodeFunction | None:
    """The function of column 0, a string, that an expression is; None where some part of it has no kernel."""
    if isinstance(expression, Column):
        return _column if expression.type == STRING else None
    if isinstance(expression, Literal):
        return _literal(expression, dictionary)
    if not isinstance(expression, Call) or expression.function not in _FORMS:
        return None
    return _FORMS[expression.function](expression, dictionary)


def _column(codes: Ints) -> Computed:
    nulls = codes == 0
    return codes, nulls if nulls.any() else None


def _literal(literal: Literal, dictionary: Dictionary) -> CodeFunction | None:
    if literal.type != STRING or literal.value is None:
        return None
    code = dictionary.code_of(literal.value)
    return lambda codes: (np.full(len(codes), code, dtype=np.int64), None)


def like_pattern(text: str, escape: str = "\\") -> Ints | None:
    """A LIKE pattern as kernels take it; None where it is not a pattern."""
    parts: list[int] = []
    characters = iter(text)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None or following not in ("_", "%", escape):
                return None
            parts += following.encode()
        elif character == "_":
            parts.append(ONE_CHARACTER)
        elif character != "%":
            parts += character.encode("utf-8", "surrogatepass")
        elif parts[-1:] != [ANY_CHARACTERS]:
            parts.append(ANY_CHARACTERS)
    return np.array(parts, dtype=np.int64)


def _constants(call: Call, types: tuple[type, ...]) -> list[object] | None:
    """The arguments after the first, if all are constants of Python types, each of its own."""
    given = [a.value for a in call.args[1:] if isinstance(a, Literal)]
    fits = len(given) == len(call.args) - 1 <= len(types) and all(
        type(v) is t for v, t in zip(given, types, strict=False)
    )
    return given if fits else None


def pattern_of(call: Call) -> Ints | None:
    """The constant pattern of ``like``, ``startswith``, ``endswith`` or ``contains``; None where it is none of these."""
    constants = _constants(call, (str, str)) if call.function in _MATCHING else None
    if not constants:
        return None
    given = str(constants[0])
    if call.function == "like":
        return like_pattern(given, *(str(c) for c in constants[1:]))
    if len(constants) > 1:
        return None
    parts: list[int] = list(given.encode("utf-8", "surrogatepass"))
    before = [] if call.function == "startswith" else [ANY_CHARACTERS]
    after = [] if call.function == "endswith" else [ANY_CHARACTERS]
    return np.array(before + parts + after, dtype=np.int64)


def _matching(call: Call, dictionary: Dictionary) -> CodeFunction | None:
    text, pattern = bulk_form(call.args[0], dictionary), pattern_of(call)
    if pattern is None or text is None or call.args[0].type != STRING:
        return None

    def compute(codes: Ints) -> Computed:
        texts, nulls = text(codes)
        found = np.empty(len(texts), dtype=np.bool_)
        match_pattern(dictionary.heap, dictionary.spans, texts, pattern, found)
        return found, nulls

    return compute


def _substring(call: Call, dictionary: Dictionary) -> CodeFunction | None:
    constants = _constants(call, (int, int))
    text = bulk_form(call.args[0], dictionary)
    if not constants or text is None or call.args[0].type != STRING:
        return None
    position, count = (int(str(c)) for c in [*constants, _LONGEST][:2])

    def compute(codes: Ints) -> Computed:
        texts, nulls = text(codes)
        begins, offsets = np.empty(len(texts), dtype=np.int64), np.empty(len(texts) + 1, dtype=np.int64)
        heap = dictionary.heap
        cut_text(heap, dictionary.spans, texts, position, count, begins, offsets)
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        copy_cuts(heap, begins, offsets, data)
        cut = dictionary.encode_text(offsets, data)
        if nulls is not None:
            cut[nulls] = 0
        return cut, nulls

    return compute


def _folding(call: Call, dictionary: Dictionary) -> CodeFunction | None:
    """UPPER and LOWER: Arrow's where the text is ASCII, one by one where it is not."""
    text = bulk_form(call.args[0], dictionary)
    if text is None or call.args[0].type != STRING:
        return None
    fold, fold_ascii = (str.upper, pc.ascii_upper) if call.function == "upper" else (str.lower, pc.ascii_lower)

    def compute(codes: Ints) -> Computed:
        texts, nulls = text(codes)
        array = dictionary.decode_arrow(texts, None, STRING)
        is_plain = pc.string_is_ascii(array)
        plain = is_plain.to_numpy(zero_copy_only=False)
        folded = np.empty(len(texts), dtype=np.int64)
        folded[plain] = dictionary.encode_arrow(fold_ascii(array.filter(is_plain)))[0]
        folded[~plain] = dictionary.encode(fold(str(value)) for value in dictionary.decode(texts[~plain]))
        if nulls is not None:
            folded[nulls] = 0
        return folded, nulls

    return compute


def _length(call: Call, dictionary: Dictionary) -> CodeFunction | None:
    text = bulk_form(call.args[0], dictionary)
    if text is None or call.args[0].type != STRING:
        return None

    def compute(codes: Ints) -> Computed:
        texts, nulls = text(codes)
        lengths = pc.utf8_length(dictionary.decode_arrow(texts, None, STRING))
        return lengths.to_numpy(zero_copy_only=False).astype(np.int64), nulls

    return compute


def _equality(call: Call, dictionary: Dictionary) -> CodeFunction | None:
    left, right = (bulk_form(a, dictionary) for a in call.args)
    if left is None or right is None or any(a.type != STRING for a in call.args):
        return None

    def compute(codes: Ints) -> Computed:
        (a, no_a), (b, no_b) = left(codes), right(codes)
        return a == b, either(no_a, no_b)

    return compute


def _membership(call: Call, dictionary: Dictionary) -> CodeFunction | None:
    value = bulk_form(call.args[0], dictionary)
    items = [a.value for a in call.args[1:] if isinstance(a, Literal) and a.type == STRING and a.value is not None]
    if value is None or call.args[0].type != STRING or len(items) != len(call.args) - 1:
        return None
    wanted = dictionary.encode(items)

    def compute(codes: Ints) -> Computed:
        given, nulls = value(codes)
        return np.isin(given, wanted), nulls

    return compute


def _negation(call: Call, dictionary: Dictionary) -> CodeFunction | None:
    inner = bulk_form(call.args[0], dictionary)
    if inner is None:
        return None

    def compute(codes: Ints) -> Computed:
        values, nulls = inner(codes)
        return ~values, nulls

    return compute


def _connective(call: Call, dictionary: Dictionary) -> CodeFunction | None:
    left, right = (bulk_form(a, dictionary) for a in call.args)
    if left is None or right is None:
        return None
    is_and = call.function == "and"

    def compute(codes: Ints) -> Computed:
        (a, no_a), (b, no_b) = left(codes), right(codes)
        nulls = either(no_a, no_b)
        if nulls is None:
            return (a & b, None) if is_and else (a | b, None)
        known_a, known_b = ~_mask(no_a, len(codes)), ~_mask(no_b, len(codes))
        # A side that is known to decide makes up for a NULL on the other.
        decided = (known_a & (a != is_and)) | (known_b & (b != is_and))
        values = ~decided & ~nulls if is_and else decided
        return values, nulls & ~decided

    return compute


def _mask(nulls: Bools | None, count: int) -> Bools:
    return np.zeros(count, dtype=np.bool_) if nulls is None else nulls


_FORMS: Final[dict[str, Callable[[Call, Dictionary], CodeFunction | None]]] = {
    **dict.fromkeys(_MATCHING, _matching),
    "substring": _substring,
    "upper": _folding,
    "lower": _folding,
    "length": _length,
    "=": _equality,
    "in": _membership,
    "not": _negation,
    "and": _connective,
    "or": _connective,
}
