"""The compiler from expressions to steps over whole columns.

For each sub-expression it takes the first of: a constant; a look-up by code, where one string column determines the value;
lazy evaluation of branches; a NumPy kernel; the Python definition, once per distinct combination of argument values. All of
them agree with ``relational.evaluate``, value by value and error by error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, assert_never

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import arithmetic, comparison, dates, floats, integers, lazy, timestamps
from everview.backends.embedded.expressions.apply import apply_definition, apply_memo, apply_native, nulls_after
from everview.backends.embedded.expressions.bulk import bulk_form
from everview.backends.embedded.expressions.casts import native_cast
from everview.backends.embedded.expressions.cells import Cells, null_cells, type_bound
from everview.backends.embedded.expressions.definition import Definition
from everview.backends.embedded.expressions.frame import RowFrame
from everview.backends.embedded.expressions.spark import apply_in_spark
from everview.backends.embedded.expressions.step import Builder, Compiled, Native
from everview.backends.embedded.expressions.words import cells_of_words, word_writer
from everview.backends.embedded.vectors import Kind, kind_of
from everview.errors import EvaluationError
from everview.relational.evaluate import compile_expression, evaluate
from everview.relational.expressions import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    SparkExpression,
    children,
    columns_of,
    remap_columns,
    walk,
)
from everview.relational.failing import can_fail
from everview.relational.functions import bind_cast, function_named
from everview.relational.functions.registry import Nulls
from everview.relational.types import BOOLEAN, DataType, Null, Value, is_floating

_NATIVE: Final[dict[str, Builder]] = {
    **arithmetic.NATIVE,
    **comparison.NATIVE,
    **dates.NATIVE,
    **floats.NATIVE,
    **integers.NATIVE,
    **timestamps.NATIVE,
}
_BY_CODE: Final = frozenset(("=", "<=>", "isnull", "isnotnull"))
"""Functions of a string column that need no look-up."""


class Compiler:
    """Compiles expressions over the same columns; what they have in common is computed once a batch."""

    def __init__(self, expressions: Sequence[Expression], dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._steps: dict[Expression, Compiled] = {}
        self._uses = _count_uses(expressions)
        self.by_definition: list[Expression] = []
        """The sub-expressions that Python computes once per distinct value."""
        self.by_spark: list[SparkExpression] = []
        """The sub-expressions that Spark's own code computes, a batch at a time."""
        self.has_floats = False
        """Whether a floating-point exception can occur, which NumPy would warn of."""

    def step(self, expression: Expression) -> Compiled:
        """The step of a sub-expression; the same for equal ones."""
        known = self._steps.get(expression)
        if known is None:
            known = self._compile(expression)
            is_leaf = isinstance(expression, Column) or known.literal is not None
            if self._uses[expression] > 1 and not is_leaf:
                known = _remembered(known, expression)
            self._steps[expression] = known
        return known

    def _compile(self, expression: Expression) -> Compiled:
        match expression:
            case Column():
                return _column(expression)
            case Literal():
                return literal_step(expression, self._dictionary)
            case _:
                self.has_floats |= is_floating(expression.type)
        used = columns_of(expression)
        if not used:
            return self._constant(expression)
        if isinstance(expression, SparkExpression):
            self.by_spark.append(expression)
            return apply_in_spark(expression, tuple(self.step(a) for a in expression.args), self._dictionary)
        if len(used) == 1 and self._is_by_code(expression) and not _asks_spark(expression):
            return self._look_up(expression)
        match expression:
            case Cast():
                return self._cast(expression)
            case Case():
                return self._case(expression)
            case Call():
                return self._call(expression)
            case _:
                assert_never(expression)

    def _constant(self, expression: Expression) -> Compiled:
        try:
            value = evaluate(expression)
        except EvaluationError:
            return _failure(expression)
        return literal_step(Literal(value, expression.type), self._dictionary)

    def _is_by_code(self, expression: Expression) -> bool:
        """Whether the one column that the expression reads is a column of codes, better looked up than compared."""
        is_simple = isinstance(expression, Call) and expression.function in _BY_CODE
        if is_simple and all(isinstance(c, Column | Literal) for c in children(expression)):
            return False
        return kind_of(_only_column(expression).type) is Kind.CODE

    def _look_up(self, expression: Expression) -> Compiled:
        column = _only_column(expression)
        function = remap_columns(expression, lambda _: 0)
        if bulk_form(function, self._dictionary) is None:
            self.by_definition.append(expression)
        return apply_memo(_column(column), function, self._dictionary, can_fail(expression))

    def _cast(self, cast: Cast) -> Compiled:
        bound = bind_cast(cast)
        child = self.step(cast.child)
        if child.is_null_literal:
            return literal_step(Literal(None, cast.type), self._dictionary)
        native = native_cast(cast, child)
        if isinstance(native, Compiled):
            return native
        if native is not None:
            definition = Definition(bound, (cast.child.type,), cast.type, self._dictionary)
            step = apply_native(native, (child,), definition, cast.type)
            return step if not cast.is_try else Compiled(step.run, step.type, child.can_fail, step.bound)
        if kind_of(child.type) is Kind.CODE:
            return self._look_up_of(cast, child)
        self.by_definition.append(cast)
        definition = Definition(bound, (cast.child.type,), cast.type, self._dictionary)
        return apply_definition(definition, (child,), cast.type, fails=can_fail(cast))

    def _look_up_of(self, expression: Call | Cast, argument: Compiled) -> Compiled:
        """A function of one computed code: by look-up too."""
        parts = [
            Column(0, argument.type) if not isinstance(c, Literal) and columns_of(c) else c
            for c in children(expression)
        ]
        function: Expression
        if isinstance(expression, Cast):
            function = Cast(parts[0], expression.type, expression.is_try, expression.zone)
        else:
            function = Call(expression.function, tuple(parts), expression.type, expression.zone)
        if bulk_form(function, self._dictionary) is None:
            self.by_definition.append(expression)
        return apply_memo(argument, function, self._dictionary, can_fail(function) or argument.can_fail)

    def _case(self, case: Case) -> Compiled:
        branches = tuple((self._typed(c, BOOLEAN), self._typed(v, case.type)) for c, v in case.branches)
        return lazy.case(branches, self._typed(case.otherwise, case.type), case.type)

    def _typed(self, expression: Expression, data_type: DataType) -> Compiled:
        """The step of an expression, where a bare NULL takes the type that is expected."""
        step = self.step(expression)
        if isinstance(step.type, Null) and not isinstance(data_type, Null):
            return nulls_after((step,), data_type)
        return step

    def _call(self, call: Call) -> Compiled:
        match call.function:
            case "and" | "or":
                left, right = (self._typed(a, BOOLEAN) for a in call.args)
                return lazy.conjunction(left, right) if call.function == "and" else lazy.disjunction(left, right)
            case "coalesce":
                return lazy.coalesce(tuple(self._typed(a, call.type) for a in call.args), call.type)
            case "try":
                return self._try(call)
        declared = function_named(call.function)
        bound = declared.bind(call)
        args = tuple(self.step(a) for a in call.args)
        is_strict = declared.nulls in (Nulls.STRICT, Nulls.STRICT_OR_NULL)
        if is_strict and any(a.is_null_literal for a in args):
            first = next(i for i, a in enumerate(args) if a.is_null_literal)
            return nulls_after(args[:first], call.type)
        native = _NATIVE[call.function](call, args, self._dictionary) if call.function in _NATIVE else None
        if isinstance(native, Compiled):
            return native
        definition = Definition(bound, tuple(a.type for a in args), call.type, self._dictionary)
        if isinstance(native, Native):
            return apply_native(native, args, definition, call.type)
        varying = {a for a in call.args if columns_of(a)}
        if len(varying) == 1 and kind_of(next(iter(varying)).type) is Kind.CODE:
            return self._look_up_of(call, self.step(next(iter(varying))))
        self.by_definition.append(call)
        return apply_definition(definition, args, call.type, is_strict=is_strict, fails=can_fail(call))

    def _try(self, call: Call) -> Compiled:
        (attempted,) = call.args
        used = sorted(columns_of(attempted))
        evaluated = compile_expression(remap_columns(call, used.index))
        columns = {e.index: e for e in _columns(attempted)}
        definition = Definition(
            lambda *values: evaluated(values), [columns[i].type for i in used], call.type, self._dictionary
        )
        loads = [_column(columns[i]).run for i in used]

        def by_definition(frame: RowFrame) -> Cells:
            return definition([load(frame) for load in loads], frame.count)

        return lazy.attempt(self.step(attempted), by_definition)


def _count_uses(expressions: Sequence[Expression]) -> Counter[Expression]:
    uses: Counter[Expression] = Counter(expressions)
    seen: set[Expression] = set()

    def visit(expression: Expression) -> None:
        if expression in seen:
            return
        seen.add(expression)
        for child in children(expression):
            uses[child] += 1
            visit(child)

    for expression in expressions:
        visit(expression)
    return uses


def _asks_spark(expression: Expression) -> bool:
    return any(isinstance(part, SparkExpression) for part in walk(expression))


def _columns(expression: Expression) -> list[Column]:
    if isinstance(expression, Column):
        return [expression]
    return [column for child in children(expression) for column in _columns(child)]


def _only_column(expression: Expression) -> Column:
    return _columns(expression)[0]


def _column(column: Column) -> Compiled:
    index, bound = column.index, type_bound(column.type)
    return Compiled(lambda frame: frame.column(index, bound), column.type, False, bound)


def literal_step(literal: Literal, dictionary: Dictionary) -> Compiled:
    """A constant: one cell for any number of rows."""
    word: Value = word_writer(literal.type, dictionary)(literal.value)
    cells = cells_of_words([word], literal.type)
    if cells.values.ndim == 1 and cells.values.dtype == "int64":
        cells.tighten()
    else:
        cells.is_tight = True
    return Compiled(lambda frame: cells, literal.type, False, cells.bound, literal)


def _failure(expression: Expression) -> Compiled:
    """A constant expression without a value: an error if any row gets there."""

    def run(frame: RowFrame) -> Cells:
        if frame.count:
            evaluate(expression)
        return null_cells(expression.type, frame.count)

    return Compiled(run, expression.type, True)


def _remembered(step: Compiled, key: Expression) -> Compiled:
    def run(frame: RowFrame) -> Cells:
        cells = frame.recall(key)
        if cells is None:
            cells = frame.known[key] = step.run(frame)
        return cells

    return Compiled(run, step.type, step.can_fail, step.bound)
