"""From kernels, memos and definitions to steps: evaluating arguments in order, minding NULLs, settling suspects.

A strict function does not evaluate an argument for rows where an earlier one is NULL. That can be seen only where the
argument fails, so arguments that cannot fail are evaluated for all rows.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.bulk import bulk_form
from everview.backends.embedded.expressions.cells import (
    Cells,
    any_of,
    cell_dtype,
    either,
    merged,
    narrowed,
    null_cells,
    spread,
    type_bound,
    with_zeros_beneath,
)
from everview.backends.embedded.expressions.definition import Definition
from everview.backends.embedded.expressions.frame import RowFrame, rows_of
from everview.backends.embedded.expressions.lazy import run_where
from everview.backends.embedded.expressions.step import Compiled, Native, Run
from everview.backends.embedded.expressions.words import word_writer
from everview.backends.embedded.vectors import Bools, Ints, Kind, kind_of
from everview.relational.evaluate import compile_expression
from everview.relational.expressions import Expression
from everview.relational.types import DataType, Value


def apply_native(native: Native, args: tuple[Compiled, ...], definition: Definition, data_type: DataType) -> Compiled:
    """The step that runs a kernel, and the definition for its suspects."""
    if native.sees_nulls:
        run = _seeing_nulls(native, args, definition)
    elif len(args) == 1:
        run = _unary(native, args[0], definition)
    elif len(args) == 2:
        run = _binary(native, args, definition)
    else:
        run = _strict(native, args, definition)
    return Compiled(run, data_type, native.can_fail or any(a.can_fail for a in args), native.bound)


def _unary(native: Native, arg: Compiled, definition: Definition) -> Run:
    kernel, argument = native.kernel, arg.run

    def run(frame: RowFrame) -> Cells:
        a = argument(frame)
        cells = kernel(a)
        if a.nulls is not None:
            if cells.values is a.values:  # 0 lies beneath the NULLs already
                cells.nulls = either(cells.nulls, a.nulls)
            else:
                cells = _with_nulls(cells, a.nulls)
        return cells if cells.suspects is None else settled(cells, (a,), frame.count, definition)

    return run


def _binary(native: Native, args: tuple[Compiled, ...], definition: Definition) -> Run:
    kernel = native.kernel
    left, right = args
    first, second, is_lazy = left.run, right.run, right.can_fail

    def run(frame: RowFrame) -> Cells:
        a = first(frame)
        nulls = a.nulls
        b = second(frame) if nulls is None or not is_lazy else run_where(right, frame, ~nulls)
        if b.nulls is not None:
            nulls = b.nulls if nulls is None else nulls | b.nulls
        cells = kernel(a, b)
        if nulls is not None:
            cells = _with_nulls(cells, nulls)
        return cells if cells.suspects is None else settled(cells, (a, b), frame.count, definition)

    return run


def _strict(native: Native, args: tuple[Compiled, ...], definition: Definition) -> Run:
    def run(frame: RowFrame) -> Cells:
        values, nulls = _evaluate(args, frame)
        cells = _with_nulls(native.kernel(*values), nulls)
        return cells if cells.suspects is None else settled(cells, values, frame.count, definition)

    return run


def _seeing_nulls(native: Native, args: tuple[Compiled, ...], definition: Definition) -> Run:
    def run(frame: RowFrame) -> Cells:
        values = tuple(a.run(frame) for a in args)
        cells = native.kernel(frame.count, *values)
        return cells if cells.suspects is None else settled(cells, values, frame.count, definition)

    return run


def _with_nulls(cells: Cells, nulls: Bools | None) -> Cells:
    suspects = cells.suspects
    cells = with_zeros_beneath(cells, nulls)
    if suspects is not None and nulls is not None:
        suspects = suspects & ~nulls
        cells.suspects = suspects if any_of(suspects) else None
    return cells


def _evaluate(args: tuple[Compiled, ...], frame: RowFrame) -> tuple[tuple[Cells, ...], Bools | None]:
    """The arguments of a strict function, and where one of them is NULL."""
    values: list[Cells] = []
    nulls: Bools | None = None
    for arg in args:
        cells = run_where(arg, frame, ~nulls) if nulls is not None and arg.can_fail else arg.run(frame)
        nulls = either(nulls, cells.nulls)
        values.append(cells)
    return tuple(values), nulls


def settled(cells: Cells, args: tuple[Cells, ...], count: int, definition: Definition) -> Cells:
    """The cells with the definition's values in place of the suspects.

    Raises:
        EvaluationError: a suspect has no value.
    """
    suspects, cells.suspects = cells.suspects, None
    assert suspects is not None
    if len(suspects) != count:  # a literal is wrong for every row
        suspects = np.repeat(suspects, count)
    rows = rows_of(suspects)
    if len(rows) == 0:
        return cells
    computed = definition([_taken(a, rows, count) for a in args], len(rows))
    if len(rows) == count:
        return computed
    others = rows_of(~suspects)
    data_type = definition.result
    return merged([(others, cells.take(others)), (rows, computed)], data_type, count)


def _taken(cells: Cells, rows: Ints, count: int) -> Cells:
    return cells.take(rows) if len(cells.values) == count else cells


def apply_definition(
    definition: Definition,
    args: tuple[Compiled, ...],
    data_type: DataType,
    *,
    is_strict: bool = True,
    fails: bool,
) -> Compiled:
    """The step that has only the definition."""

    def strict(frame: RowFrame) -> Cells:
        values, nulls = _evaluate(args, frame)
        if nulls is None or not any_of(nulls):
            return definition([spread(v, frame.count) for v in values], frame.count)
        rows = rows_of(~nulls)
        computed = definition([_taken(v, rows, frame.count) for v in values], len(rows))
        cells = merged([(rows, computed)], data_type, frame.count)
        cells.nulls = either(cells.nulls, nulls)
        return cells

    def seeing_nulls(frame: RowFrame) -> Cells:
        return definition([a.run(frame) for a in args], frame.count)

    run = strict if is_strict else seeing_nulls
    return Compiled(run, data_type, fails or any(a.can_fail for a in args), type_bound(data_type))


def apply_memo(argument: Compiled, function: Expression, dictionary: Dictionary, fails: bool) -> Compiled:
    """The step that looks a function of one code (column 0 of ``function``) up."""
    evaluated = compile_expression(function)
    write = word_writer(function.type, dictionary)

    def word(value: Value) -> object:
        return write(evaluated((value,)))

    is_wide = kind_of(function.type) is Kind.WIDE
    dtype, bulk = cell_dtype(function.type), bulk_form(function, dictionary)
    memo = dictionary.memo(word, dtype, wide=is_wide, key=(function, function.type), bulk=bulk)
    bound = type_bound(function.type)

    def run(frame: RowFrame) -> Cells:
        values, nulls = memo(argument.run(frame).values)
        cells = Cells(values, nulls, bound)
        return narrowed(cells) if is_wide else cells

    return Compiled(run, function.type, fails, bound)


def nulls_after(args: tuple[Compiled, ...], data_type: DataType) -> Compiled:
    """NULL for every row, once the arguments in front of a NULL have been evaluated for their errors."""

    def run(frame: RowFrame) -> Cells:
        _evaluate(args, frame)
        return null_cells(data_type, frame.count)

    return Compiled(run, data_type, any(a.can_fail for a in args), 0)
