"""AND, OR, COALESCE, CASE and TRY: a part is evaluated for the rows that reach it, so that its errors elsewhere do not count.

A part that cannot fail may as well be evaluated for all rows, which saves picking them out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from everview.backends.embedded.expressions.cells import (
    Cells,
    any_of,
    either,
    merge_where,
    merged,
    spread,
)
from everview.backends.embedded.expressions.frame import RowFrame, rows_of
from everview.backends.embedded.expressions.step import Compiled, Run
from everview.backends.embedded.vectors import Bools, Ints
from everview.errors import EvaluationError
from everview.relational.types import BOOLEAN, DataType


def run_where(step: Compiled, frame: RowFrame, mask: Bools) -> Cells:
    """The step's cells, computed only under the mask; elsewhere they are 0."""
    rows = rows_of(mask)
    if len(rows) == frame.count:
        return step.run(frame)
    if len(rows) == 0:
        return merged([], step.type, frame.count)
    return merged([(rows, spread(step.run(frame.part(rows)), len(rows)))], step.type, frame.count)


def conjunction(left: Compiled, right: Compiled) -> Compiled:
    """``left AND right``."""

    def run(frame: RowFrame) -> Cells:
        a = left.run(frame)
        if right.can_fail:
            a = spread(a, frame.count)
            b = run_where(right, frame, a.values if a.nulls is None else a.values | a.nulls)
        else:
            b = right.run(frame)
        values = a.values & b.values
        if a.nulls is None and b.nulls is None:
            return Cells(values)
        if a.nulls is None:
            return Cells(values, a.values & b.nulls)
        if b.nulls is None:
            return Cells(values, a.nulls & b.values)
        return Cells(values, (a.nulls & (b.nulls | b.values)) | (b.nulls & a.values))

    return Compiled(run, BOOLEAN, left.can_fail or right.can_fail, 1)


def disjunction(left: Compiled, right: Compiled) -> Compiled:
    """``left OR right``."""

    def run(frame: RowFrame) -> Cells:
        a = left.run(frame)
        if right.can_fail:
            a = spread(a, frame.count)
            b = run_where(right, frame, ~a.values)
        else:
            b = right.run(frame)
        values = a.values | b.values
        nulls = either(a.nulls, b.nulls)
        return Cells(values, None if nulls is None else nulls & ~values)

    return Compiled(run, BOOLEAN, left.can_fail or right.can_fail, 1)


def coalesce(args: tuple[Compiled, ...], data_type: DataType) -> Compiled:
    """The first value that is not NULL."""

    def run(frame: RowFrame) -> Cells:
        result = spread(args[0].run(frame), frame.count)
        for arg in args[1:]:
            if result.nulls is None or not any_of(result.nulls):
                return result
            following = run_where(arg, frame, result.nulls) if arg.can_fail else arg.run(frame)
            result = merge_where(result.nulls, spread(following, frame.count), result)
        return result

    return Compiled(run, data_type, any(a.can_fail for a in args), max(a.bound for a in args))


def case(
    branches: tuple[tuple[Compiled, Compiled], ...],
    otherwise: Compiled,
    data_type: DataType,
) -> Compiled:
    """The value of the first branch whose condition is true."""
    steps = [s for branch in branches for s in branch] + [otherwise]
    later = steps[1:]
    run = (
        _lazy_case(branches, otherwise, data_type)
        if any(s.can_fail for s in later)
        else _eager_case(branches, otherwise)
    )
    return Compiled(
        run, data_type, any(s.can_fail for s in steps), max(s.bound for s in [*(v for _, v in branches), otherwise])
    )


def _eager_case(branches: tuple[tuple[Compiled, Compiled], ...], otherwise: Compiled) -> Run:
    def run(frame: RowFrame) -> Cells:
        result = spread(otherwise.run(frame), frame.count)
        for condition, value in reversed(branches):
            test = spread(condition.run(frame), frame.count)
            result = merge_where(test.values, spread(value.run(frame), frame.count), result)
        return result

    return run


def _lazy_case(
    branches: tuple[tuple[Compiled, Compiled], ...],
    otherwise: Compiled,
    data_type: DataType,
) -> Run:
    def run(frame: RowFrame) -> Cells:
        parts: list[tuple[Ints, Cells]] = []
        rest, left = np.arange(frame.count), frame
        for condition, value in branches:
            if left.count == 0:
                break
            test = spread(condition.run(left), left.count).values
            chosen, others = rows_of(test), rows_of(~test)
            if len(chosen) == left.count:
                parts.append((rest, spread(value.run(left), left.count)))
            elif len(chosen):
                parts.append((rest[chosen], spread(value.run(left.part(chosen)), len(chosen))))
            if len(chosen):
                rest, left = rest[others], left.part(others)
        if left.count:
            if left is frame:
                return spread(otherwise.run(frame), frame.count)
            parts.append((rest, spread(otherwise.run(left), left.count)))
        return merged(parts, data_type, frame.count)

    return run


def attempt(step: Compiled, definition: Callable[[RowFrame], Cells]) -> Compiled:
    """The step's value, or NULL where it fails: then the definition finds out which rows these are."""

    def run(frame: RowFrame) -> Cells:
        try:
            return step.run(frame)
        except EvaluationError:
            return definition(frame)

    return Compiled(run, step.type, False, step.bound)
