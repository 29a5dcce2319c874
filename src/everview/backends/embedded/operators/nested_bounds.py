"""Which values of a nested aggregate satisfy a comparison with a maintained value: an interval of integers.

    0.25 * total > nested          for total = 10:    nested ≤ 2

The nested value is an integer, or a decimal seen as one, or a float by its word in the order of floats. Each comparison cuts
the integers once (``ordered_condition``), and where is found by evaluating the comparison itself, with Spark's rules for scales
and rounding. Where one side is a straight line, which is nearly always, the cut is computed and then confirmed by two
evaluations; otherwise it is searched for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal as DecimalValue
from fractions import Fraction

import numpy as np

from everview.backends.embedded.state.float_order import float_from_order, float_order
from everview.backends.embedded.state.running_values import ANY, LEVEL, Bounds
from everview.relational.bounds import type_bound
from everview.relational.evaluate import Compiled, compile_expression
from everview.relational.expressions import Call, Column, Expression, columns_of
from everview.relational.functions.decimals import CONTEXT
from everview.relational.ordered_condition import Cut, Either, OrderedCondition, ordered_condition
from everview.relational.types import DataType, Decimal, Row, Value, is_floating

NESTED = 0
"""The column of a condition that is the nested value; those after it are the maintained ones."""


@dataclass(frozen=True, slots=True)
class Within:
    """The values that satisfy a condition: those within bounds or, with ``is_outside``, all others.

    Bounds of a sum may move with the number of rows that it sums, each by its slope.
    """

    bounds: Bounds
    is_outside: bool = False
    slopes: Bounds = LEVEL


NOTHING = Within((0, -1))


class NestedBounds:
    """A condition over the nested value and a row of maintained ones."""

    def __init__(self, condition: Expression, nested: DataType) -> None:
        found = ordered_condition(condition, NESTED)
        assert found is not None, "the condition cuts the order of the nested value"
        self._value = _values_of(nested)
        self._is_float = is_floating(nested)
        self.limit: Bounds = _limit_of(nested)
        """What the type of the nested value can hold."""
        self._condition = found
        self._cuts: dict[Cut, _Line] = {}

    def within(self, row: Row | None) -> Within:
        """What the nested value has to be, for these maintained values; no value passes where there is no such row."""
        if row is None:
            return NOTHING
        condition = self._condition
        if isinstance(condition, Either):
            up, start = (self._cut(c, row) for c in sorted(condition.parts, key=_is_from))
            return Within((up, start - 1), is_outside=True) if up <= start else Within(ANY)
        low, high = self.limit
        for cut in _cuts(condition):
            at = self._cut(cut, row)
            low, high = (max(low, at), high) if cut.is_from else (low, min(high, at - 1))
        return Within((low, high))

    def _cut(self, cut: OrderedCondition, row: Row) -> int:
        """The least value from which on the comparison is true, or is true no more."""
        assert isinstance(cut, Cut)
        if cut not in self._cuts:
            self._cuts[cut] = _Line(cut, self._value, is_float=self._is_float)
        line = self._cuts[cut]

        def is_behind(number: int) -> bool:
            return (line.holds((self._value(number), *row)) is True) == cut.is_from

        low, high = self.limit
        guess = line.guess(row)
        if guess is not None and low < guess < high:  # mostly the turn is there, or just behind
            at = guess if is_behind(guess) else guess + 1
            if is_behind(at) and not (at == guess and is_behind(at - 1)):
                return at
        if is_behind(low):
            return low
        if not is_behind(high):
            return high + 1
        if guess is not None:
            near, step = min(max(guess, low), high), 1
            while not is_behind(min(near + step, high)):
                step *= 4
            high = min(near + step, high)
            step = 1
            while is_behind(max(near - step, low)):
                step *= 4
            low = max(near - step, low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_behind(middle) else (middle, high)
        return high


class _Line:
    """A comparison, and the straight line that the side with the nested value is, if the other side does not have it."""

    def __init__(self, cut: Cut, value: Callable[[int], Value], *, is_float: bool) -> None:
        assert isinstance(cut.condition, Call)
        self.holds: Compiled = compile_expression(cut.condition)
        self._other: Compiled | None = None
        self._is_float = is_float
        sides = cut.condition.args
        for side, other in (sides, sides[::-1]):
            if is_float:
                if isinstance(side, Column) and NESTED not in columns_of(other):
                    self._other = compile_expression(other)
                continue
            if columns_of(side) == {NESTED} and NESTED not in columns_of(other):
                line = compile_expression(side)
                at_0, at_1 = (_fraction(line((value(n),))) for n in (0, 1))
                if at_0 is not None and at_1 is not None and at_0 != at_1:
                    self._start, self._slope = at_0, at_1 - at_0
                    self._other = compile_expression(other)

    def guess(self, row: Row) -> int | None:
        """About where the comparison turns."""
        if self._other is None:
            return None
        found = self._other((None, *row))
        if self._is_float:
            return _word_of(found) if isinstance(found, float) else None
        given = _fraction(found)
        return None if given is None else int((given - self._start) // self._slope)


def _values_of(nested: DataType) -> Callable[[int], Value]:
    """From an integer to the nested value that it stands for."""
    if isinstance(nested, Decimal):
        scale = nested.scale
        return lambda number: CONTEXT.scaleb(DecimalValue(number), -scale)
    if is_floating(nested):
        return lambda number: float(float_from_order(np.array([number]))[0])
    return lambda number: number


def _limit_of(nested: DataType) -> Bounds:
    if is_floating(nested):
        return _word_of(-math.inf), _word_of(math.nan)
    limit = 10**nested.precision - 1 if isinstance(nested, Decimal) else type_bound(nested)
    assert limit is not None, "nested values are numbers"
    return -limit, limit if isinstance(nested, Decimal) else limit - 1


def _word_of(value: float) -> int:
    """The place of a float in the order of floats."""
    return int(float_order(np.array([value]))[0])


def _fraction(value: Value) -> Fraction | None:
    is_number = isinstance(value, int | DecimalValue | float) and not isinstance(value, bool) and math.isfinite(value)
    return Fraction(value) if is_number else None


def _cuts(condition: OrderedCondition) -> list[Cut]:
    if isinstance(condition, Cut):
        return [condition]
    return [cut for part in condition.parts for cut in _cuts(part)]


def _is_from(condition: OrderedCondition) -> bool:
    return isinstance(condition, Cut) and condition.is_from
