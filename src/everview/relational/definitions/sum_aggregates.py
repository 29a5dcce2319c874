"""Aggregates that are functions of sums: one table of which products of their arguments are summed, and how the sums are read.

    var_samp(x)       Σ1, Σx, Σx²                  (Σx² - (Σx)²/n) / (n - 1)
    covar_pop(x, y)   Σ1, Σx, Σy, Σxy              (Σxy - Σx·Σy/n) / n
    bool_and(x)       Σ1, Σ[x]                     Σ[x] = Σ1

Such sums are elements of a ring: inserts and deletes move them alike, and over a join they are products of the sums of the
joined relations, so that a view tree maintains them. Planner and engines ask this table and no other; a new aggregate of this
kind is one more entry. Only rows count on which no argument is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import numpy as np

from everview.algebra.moments import CentralMoments, FeatureProduct, Floats
from everview.algebra.ring import Bools
from everview.relational.nodes import AggregateCall
from everview.relational.types import BOOLEAN

Finish: TypeAlias = Callable[[CentralMoments], tuple[Floats, Bools | None]]
"""The values, and where the aggregate has none (NULL) although there are rows enough."""


class Summed(Enum):
    """What kind of number is summed."""

    ROWS = "rows"
    """Nothing but the rows that count."""
    NUMBERS = "numbers"
    """Integers, decimals or floats; how a sum or an average is read depends on the type."""
    FLOATS = "floats"
    """Floats and their products, read by ``finish``."""
    TRUTHS = "truths"
    """Rows on which the argument is true."""


@dataclass(frozen=True, slots=True)
class SumAggregate:
    """Which products of the arguments are summed, besides the number of rows, and how the answer is read.

    ``least``: over fewer rows the answer is NULL. ``finish`` reads an answer of floats off their moments.
    """

    summed: Summed
    products: tuple[FeatureProduct, ...] = ()
    least: int = 1
    finish: Finish | None = None


def sum_aggregate(call: AggregateCall) -> SumAggregate | None:
    """What an aggregate call sums; None where it is no function of sums, as MIN or any DISTINCT."""
    if call.distinct or call.is_ring:
        return None
    name = call.function.removeprefix("try_")
    if name in ("min", "max"):
        return _TRUTH if call.args[0].type == BOOLEAN else None
    return SUM_AGGREGATES.get(name)


def _moment(a: int, b: int, divided_by: Callable[[CentralMoments], Floats | float]) -> Finish:
    return lambda m: (m.central(a, b) / divided_by(m), None)


def _root(finish: Finish) -> Finish:
    return lambda m: (np.sqrt(finish(m)[0]), None)


def _correlation(m: CentralMoments) -> tuple[Floats, Bools]:
    """A constant correlates with nothing, not even NaN. Spark multiplies first: NaN or infinite where doubles end."""
    spread = m.central(0, 0) * m.central(1, 1)
    is_constant = (m.central(0, 0) == 0) | (m.central(1, 1) == 0) | (spread == 0)
    return m.central(0, 1) / np.where(is_constant, 1.0, np.sqrt(spread)), is_constant


def _slope(m: CentralMoments) -> tuple[Floats, Bools]:
    """Of y (the first argument) over x (the second); no line goes through one x."""
    is_upright = m.central(1, 1) == 0
    return m.central(0, 1) / np.where(is_upright, 1.0, m.central(1, 1)), is_upright


def _intercept(m: CentralMoments) -> tuple[Floats, Bools]:
    slope, is_upright = _slope(m)
    return m.mean(0) - slope * m.mean(1), is_upright


def _determination(m: CentralMoments) -> tuple[Floats, Bools]:
    """R²: 1 for a constant y, which its line meets everywhere."""
    correlation, _ = _correlation(m)
    return np.where(m.central(0, 0) == 0, 1.0, correlation * correlation), m.central(1, 1) == 0


def _rows(m: CentralMoments) -> Floats:
    return m.counts


def _degrees(m: CentralMoments) -> Floats:
    return np.maximum(m.counts - 1, 1.0)


def _one(_m: CentralMoments) -> float:
    return 1.0


_X: Final = ((0,), (0, 0))
_XY: Final = ((0,), (1,), (0, 1))
_BOTH: Final = ((0,), (1,), (0, 0), (0, 1), (1, 1))
_TRUTH: Final = SumAggregate(Summed.TRUTHS, ((0,),))

SUM_AGGREGATES: Final[dict[str, SumAggregate]] = {
    "count": SumAggregate(Summed.ROWS, least=0),
    "sum": SumAggregate(Summed.NUMBERS, ((0,),)),
    "avg": SumAggregate(Summed.NUMBERS, ((0,),)),
    "var_pop": SumAggregate(Summed.FLOATS, _X, 1, _moment(0, 0, _rows)),
    "var_samp": SumAggregate(Summed.FLOATS, _X, 2, _moment(0, 0, _degrees)),
    "stddev_pop": SumAggregate(Summed.FLOATS, _X, 1, _root(_moment(0, 0, _rows))),
    "stddev_samp": SumAggregate(Summed.FLOATS, _X, 2, _root(_moment(0, 0, _degrees))),
    "covar_pop": SumAggregate(Summed.FLOATS, _XY, 1, _moment(0, 1, _rows)),
    "covar_samp": SumAggregate(Summed.FLOATS, _XY, 2, _moment(0, 1, _degrees)),
    "corr": SumAggregate(Summed.FLOATS, _BOTH, 2, _correlation),
    "regr_s": SumAggregate(Summed.FLOATS, _X, 1, _moment(0, 0, _one)),
    "regr_sxy": SumAggregate(Summed.FLOATS, _XY, 1, _moment(0, 1, _one)),
    "regr_slope": SumAggregate(Summed.FLOATS, _BOTH, 1, _slope),
    "regr_intercept": SumAggregate(Summed.FLOATS, _BOTH, 1, _intercept),
    "regr_r2": SumAggregate(Summed.FLOATS, _BOTH, 1, _determination),
}
"""By name. REGR_SXX and REGR_SYY are both ``regr_s`` of one argument, as Catalyst has them."""
