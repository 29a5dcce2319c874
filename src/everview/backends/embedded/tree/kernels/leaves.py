"""The instructions of a leaf: conditions, keys and lifts of a change, over registers of 64-bit words without NULLs.

Integers and unscaled decimals are computed in 64 bits with every overflow noticed; the caller then computes that batch by the
general evaluator, which has more bits. So a leaf is a dozen passes over a few thousand words that stay in the cache.
"""

from __future__ import annotations

from enum import IntEnum

from everview.backends.embedded.state.intrinsics import load, load_float, multiply_high, store, store_float
from everview.backends.embedded.state.kernel import Word, inlined, kernel


class LeafOp(IntEnum):
    """op, target, a, b, c: registers, except where a constant is said. Three more words make the frame and the constant."""

    LESS = 0
    LESS_EQUAL = 1
    EQUAL = 2
    LESS_CONSTANT = 3
    """a < c"""
    GREATER_CONSTANT = 4
    EQUAL_CONSTANT = 5
    AND = 6
    OR = 7
    NOT = 8
    ADD = 9
    SUBTRACT = 10
    MULTIPLY = 11
    ADD_CONSTANT = 12
    NEGATE = 13
    MULTIPLY_CONSTANT = 14
    SELECT = 15
    """where a then b else c"""
    FILL = 16
    """constant"""
    YEAR = 17
    FLOAT_ADD = 18
    FLOAT_SUBTRACT = 19
    FLOAT_MULTIPLY = 20
    TO_FLOAT = 21
    FILTER = 22
    """target: the positions where mask a holds; their number becomes the rows of frame b"""
    TAKE = 23
    """target[i] = a[b[i]]"""


LESS = int(LeafOp.LESS)
LESS_EQUAL = int(LeafOp.LESS_EQUAL)
EQUAL = int(LeafOp.EQUAL)
LESS_CONSTANT = int(LeafOp.LESS_CONSTANT)
GREATER_CONSTANT = int(LeafOp.GREATER_CONSTANT)
EQUAL_CONSTANT = int(LeafOp.EQUAL_CONSTANT)
AND = int(LeafOp.AND)
OR = int(LeafOp.OR)
NOT = int(LeafOp.NOT)
ADD = int(LeafOp.ADD)
SUBTRACT = int(LeafOp.SUBTRACT)
MULTIPLY = int(LeafOp.MULTIPLY)
ADD_CONSTANT = int(LeafOp.ADD_CONSTANT)
NEGATE = int(LeafOp.NEGATE)
MULTIPLY_CONSTANT = int(LeafOp.MULTIPLY_CONSTANT)
SELECT = int(LeafOp.SELECT)
FILL = int(LeafOp.FILL)
YEAR = int(LeafOp.YEAR)
FLOAT_ADD = int(LeafOp.FLOAT_ADD)
FLOAT_SUBTRACT = int(LeafOp.FLOAT_SUBTRACT)
FLOAT_MULTIPLY = int(LeafOp.FLOAT_MULTIPLY)
TO_FLOAT = int(LeafOp.TO_FLOAT)
FILTER = int(LeafOp.FILTER)
TAKE = int(LeafOp.TAKE)

LEAF_WORDS = 7
"""op, target, a, b, c, constant, frame."""


@inlined
def _year(days: Word) -> Word:
    """The year of a day since 1970-01-01 (proleptic Gregorian), by eras of 400 years that begin in March."""
    shifted = days + 719468
    era = shifted // 146097
    of_era = shifted - era * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    return year + era * 400 + (1 if month >= 10 else 0)


@kernel
def _compare(op: Word, target: Word, a: Word, b: Word, constant: Word, count: Word) -> None:
    if op == LESS:
        for i in range(count):
            store(target, i, load(a, i) < load(b, i))
    elif op == LESS_EQUAL:
        for i in range(count):
            store(target, i, load(a, i) <= load(b, i))
    elif op == EQUAL:
        for i in range(count):
            store(target, i, load(a, i) == load(b, i))
    elif op == LESS_CONSTANT:
        for i in range(count):
            store(target, i, load(a, i) < constant)
    elif op == GREATER_CONSTANT:
        for i in range(count):
            store(target, i, load(a, i) > constant)
    else:
        for i in range(count):
            store(target, i, load(a, i) == constant)


@kernel
def _arithmetic(op: Word, target: Word, a: Word, b: Word, constant: Word, count: Word) -> int:
    """Returns a word other than 0 if some result is not what 64 bits hold."""
    bad = 0
    if op == ADD or op == ADD_CONSTANT:
        for i in range(count):
            x, y = load(a, i), (load(b, i) if op == ADD else constant)
            total = x + y
            bad |= (x ^ total) & (y ^ total)
            store(target, i, total)
        return 1 if bad < 0 else 0
    if op == SUBTRACT:
        for i in range(count):
            x, y = load(a, i), load(b, i)
            total = x - y
            bad |= (x ^ y) & (x ^ total)
            store(target, i, total)
        return 1 if bad < 0 else 0
    if op == NEGATE:
        for i in range(count):
            x = load(a, i)
            bad |= x & -x
            store(target, i, -x)
        return 1 if bad < 0 else 0
    for i in range(count):
        x, y = load(a, i), (load(b, i) if op == MULTIPLY else constant)
        product = x * y
        high = multiply_high(x, y)
        if x < 0:
            high -= y
        if y < 0:
            high -= x
        bad |= high ^ (product >> 63)
        store(target, i, product)
    return bad


@kernel
def _floats(op: Word, target: Word, a: Word, b: Word, count: Word) -> None:
    if op == FLOAT_ADD:
        for i in range(count):
            store_float(target, i, load_float(a, i) + load_float(b, i))
    elif op == FLOAT_SUBTRACT:
        for i in range(count):
            store_float(target, i, load_float(a, i) - load_float(b, i))
    elif op == FLOAT_MULTIPLY:
        for i in range(count):
            store_float(target, i, load_float(a, i) * load_float(b, i))
    else:
        for i in range(count):
            store_float(target, i, float(load(a, i)))


@kernel
def run_leaf(code: Word, end: Word, registers: Word, rows: Word) -> int:
    """Runs the instructions of a leaf; returns 1 if a number did not fit 64 bits, else 0."""
    while code < end:
        op, c, constant = load(code, 0), load(code, 4), load(code, 5)
        count = load(rows, load(code, 6))
        target, a, b = load(registers, load(code, 1)), load(registers, load(code, 2)), load(registers, load(code, 3))
        if op <= EQUAL_CONSTANT:
            _compare(op, target, a, b, constant, count)
        elif op == AND:
            for i in range(count):
                store(target, i, load(a, i) & load(b, i))
        elif op == OR:
            for i in range(count):
                store(target, i, load(a, i) | load(b, i))
        elif op == NOT:
            for i in range(count):
                store(target, i, load(a, i) ^ 1)
        elif op <= MULTIPLY_CONSTANT:
            if _arithmetic(op, target, a, b, constant, count) != 0:
                return 1
        elif op == SELECT:
            other = load(registers, c)
            for i in range(count):
                store(target, i, load(b, i) if load(a, i) != 0 else load(other, i))
        elif op == FILL:
            for i in range(count):
                store(target, i, constant)
        elif op == YEAR:
            for i in range(count):
                store(target, i, _year(load(a, i)))
        elif op <= TO_FLOAT:
            _floats(op, target, a, b, count)
        elif op == FILTER:
            kept = 0
            for i in range(count):
                store(target, kept, i)
                kept += load(a, i)
            store(rows, load(code, 3), kept)
        else:
            for i in range(count):
                store(target, i, load(a, load(b, i)))
        code += LEAF_WORDS * 8
    return 0
