"""Equality and order on whole columns, IN, GREATEST, LEAST, and the tests for NULL and NaN.

Strings, arrays and structs are equal when their codes are; their order is that of the dictionary's labels. NaN equals
itself and is above every number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import wide_vectors as wide
from everview.backends.embedded.expressions.cells import Cells, either, merge_where, spread, sum_fits, widened
from everview.backends.embedded.expressions.decimals import all_suspects
from everview.backends.embedded.expressions.step import Builder, Compiled, Native
from everview.backends.embedded.state.text_kernels import compare_text
from everview.backends.embedded.vectors import AnyArray, Bools, Kind, kind_of
from everview.relational.expressions import Call
from everview.relational.types import BOOLEAN, Binary, DataType, Decimal, String, is_floating

Compare = Callable[[Cells, Cells], Bools]


def _aligned(left: DataType, right: DataType) -> Callable[[Cells, Cells], tuple[AnyArray, AnyArray]]:
    """The values of two decimals at one scale: one word each, or two."""
    scales = [t.scale for t in (left, right) if isinstance(t, Decimal)]
    shifts = [max(scales, default=0) - s for s in scales] or [0, 0]
    factors = [10**s for s in shifts]

    def align(a: Cells, b: Cells) -> tuple[AnyArray, AnyArray]:
        if a.values.ndim == 1 and b.values.ndim == 1:
            if shifts == [0, 0]:
                return a.values, b.values
            if sum_fits(a, factors[0], b, factors[1]):
                return a.values * factors[0], b.values * factors[1]
        x, y = widened(a), widened(b)
        return wide.multiply_power_of_ten(x, shifts[0])[0], wide.multiply_power_of_ten(y, shifts[1])[0]

    return align


def equality(left: DataType, right: DataType) -> Compare | None:
    """The test of two columns of these types for equal values."""
    if left != right and not _are_comparable_decimals(left, right):
        return None
    if is_floating(left):
        return _floats_equal
    if isinstance(left, Decimal) and (left != right or kind_of(left) is Kind.WIDE):
        align = _aligned(left, right)

        def decimals_equal(a: Cells, b: Cells) -> Bools:
            x, y = align(a, b)
            result: Bools = x == y if x.ndim == 1 else wide.equal(x, y)
            return result

        return decimals_equal
    return lambda a, b: a.values == b.values


def _are_comparable_decimals(left: DataType, right: DataType) -> bool:
    """Whether both are decimals, of which 128 bits hold both at one scale."""
    if not isinstance(left, Decimal) or not isinstance(right, Decimal):
        return False
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale <= 38


def _floats_equal(a: Cells, b: Cells) -> Bools:
    x, y = a.values, b.values
    result: Bools = (x == y) | ((x != x) & (y != y))  # noqa: PLR0124 -- only NaN differs from itself
    return result


def order(left: DataType, right: DataType, dictionary: Dictionary) -> Compare | None:
    """The test of two columns of these types for the left value being less."""
    if left != right and not _are_comparable_decimals(left, right):
        return None
    if is_floating(left):
        # Not at least as great, and not NaN: true where only the right side is NaN.
        return lambda a, b: ~(a.values >= b.values) & (a.values == a.values)
    if isinstance(left, String | Binary):
        return _order_of_texts(dictionary)
    if kind_of(left) is Kind.CODE:
        return _order_of_codes(dictionary)
    if not isinstance(left, Decimal):
        return lambda a, b: a.values < b.values
    align = _aligned(left, right)

    def decimals_less(a: Cells, b: Cells) -> Bools:
        x, y = align(a, b)
        result: Bools = x < y if x.ndim == 1 else wide.less(x, y)
        return result

    return decimals_less


def _order_of_texts(dictionary: Dictionary) -> Compare:
    def less(a: Cells, b: Cells) -> Bools:
        left, right = np.ascontiguousarray(a.values), np.ascontiguousarray(b.values)
        result: Bools = np.empty(max(len(left), len(right)) if len(left) and len(right) else 0, dtype=np.bool_)
        compare_text(dictionary.heap, dictionary.spans, left, right, result)
        return result

    return less


def _order_of_codes(dictionary: Dictionary) -> Compare:
    def less(a: Cells, b: Cells) -> Bools:
        keys = dictionary.order_keys(np.concatenate([a.values, b.values]))  # one call: labels of one epoch
        result: Bools = keys[: len(a.values)] < keys[len(a.values) :]
        return result

    return less


def _equal(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    compare = equality(args[0].type, args[1].type)
    return None if compare is None else Native(lambda a, b: Cells(compare(a, b)))


def _ordering(is_swapped: bool, is_negated: bool) -> Builder:
    """``<`` and, since the order is total, ``a <= b`` as not ``b < a``."""

    def build(call: Call, args: tuple[Compiled, ...], dictionary: Dictionary) -> Native | None:
        first, second = (args[1], args[0]) if is_swapped else args
        less = order(first.type, second.type, dictionary)
        if less is None:
            return None

        def kernel(a: Cells, b: Cells) -> Cells:
            result = less(b, a) if is_swapped else less(a, b)
            return Cells(~result if is_negated else result)

        return Native(kernel)

    return build


def _null_safe_equal(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    compare = equality(args[0].type, args[1].type)
    if compare is None:
        return None

    def kernel(count: int, a: Cells, b: Cells) -> Cells:
        result = compare(a, b)  # beneath NULL lies 0, so two NULLs compare equal already
        if a.nulls is None and b.nulls is None:
            return Cells(result)
        none = np.zeros(1, dtype=np.bool_)
        return Cells(result & ((none if a.nulls is None else a.nulls) == (none if b.nulls is None else b.nulls)))

    return Native(kernel, sees_nulls=True)


def _in(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    compares = [equality(args[0].type, item.type) for item in args[1:] if not item.is_null_literal]
    has_null = any(item.is_null_literal for item in args[1:])
    present = [i for i, item in enumerate(args[1:]) if not item.is_null_literal]
    if any(c is None for c in compares):
        return None
    if len(args) > 9 and all(item.literal is not None for item in args[1:]) and not is_floating(args[0].type):
        return _in_many(args, present, has_null)

    def kernel(count: int, value: Cells, *items: Cells) -> Cells:
        value = spread(value, count)
        found: Bools = np.zeros(count, dtype=np.bool_)
        unknown: Bools | None = np.ones(count, dtype=np.bool_) if has_null else None
        for i, compare in zip(present, compares, strict=True):
            assert compare is not None
            equal, absent = compare(value, items[i]), items[i].nulls
            if absent is not None:
                equal = equal & ~absent
                unknown = either(unknown, absent)
            found = found | equal
        return _membership(value, found, unknown)

    return Native(kernel, sees_nulls=True)


def _in_many(args: tuple[Compiled, ...], present: list[int], has_null: bool) -> Native | None:
    def kernel(count: int, value: Cells, *items: Cells) -> Cells:
        value = spread(value, count)
        words = [items[i].values for i in present]
        if value.values.ndim == 2 or any(w.ndim == 2 for w in words):
            return all_suspects(value, dtype=np.bool_)
        found: Bools = np.isin(value.values, np.concatenate(words))
        return _membership(value, found, np.ones(count, dtype=np.bool_) if has_null else None)

    return Native(kernel, sees_nulls=True) if all(item.type == args[0].type for item in args[1:]) else None


def _membership(value: Cells, found: Bools, unknown: Bools | None) -> Cells:
    if value.nulls is not None:
        found = found & ~value.nulls
    nulls = None if unknown is None else unknown & ~found
    return Cells(found, either(nulls, value.nulls))


def _extreme(is_greatest: bool) -> Builder:
    def build(call: Call, args: tuple[Compiled, ...], dictionary: Dictionary) -> Native | None:
        if kind_of(call.type) is Kind.CODE or any(a.type != call.type or a.is_null_literal for a in args):
            return None
        less = order(call.type, call.type, dictionary)
        assert less is not None

        def kernel(count: int, *cells: Cells) -> Cells:
            best = spread(cells[0], count)
            for other in cells[1:]:
                better = less(best, other) if is_greatest else less(other, best)
                if other.nulls is not None:
                    better = better & ~other.nulls
                if best.nulls is not None:
                    better = better | best.nulls
                best = merge_where(better, spread(other, count), best)
            return best

        return Native(kernel, sees_nulls=True, bound=max(a.bound for a in args))

    return build


def _is_null(is_negated: bool) -> Builder:
    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native:
        def kernel(count: int, a: Cells) -> Cells:
            if a.nulls is None:
                return Cells(np.full(count, is_negated))
            return Cells(~a.nulls if is_negated else a.nulls)

        return Native(kernel, sees_nulls=True)

    return build


def _is_nan(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native:
    def kernel(count: int, a: Cells) -> Cells:
        return Cells(a.values != a.values if is_floating(args[0].type) else np.zeros(count, dtype=np.bool_))

    return Native(kernel, sees_nulls=True)


def _nanvl(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if not all(is_floating(a.type) for a in args):
        return None

    def kernel(count: int, a: Cells, b: Cells) -> Cells:
        a, b = spread(a, count), spread(b, count)
        return merge_where(a.values != a.values, b, a)

    return Native(kernel, sees_nulls=True)


def _not(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    return Native(lambda a: Cells(~a.values)) if args[0].type == BOOLEAN else None


NATIVE: Final[dict[str, Builder]] = {
    "=": _equal,
    "<": _ordering(is_swapped=False, is_negated=False),
    "<=": _ordering(is_swapped=True, is_negated=True),
    ">": _ordering(is_swapped=True, is_negated=False),
    ">=": _ordering(is_swapped=False, is_negated=True),
    "<=>": _null_safe_equal,
    "in": _in,
    "greatest": _extreme(is_greatest=True),
    "least": _extreme(is_greatest=False),
    "isnull": _is_null(is_negated=False),
    "isnotnull": _is_null(is_negated=True),
    "isnan": _is_nan,
    "nanvl": _nanvl,
    "not": _not,
}
