"""Where what only Spark's own code computes is computed: in a JVM that somebody above has a door to.

``provide`` says how to find that door, once a process; ``compute`` takes columns of arguments to the column of results, a batch
a call, ``answer`` the contents of relations to Spark's answer to a query over them. A call costs some milliseconds whatever the
batch, so whoever has rows one by one says beforehand which (``foresee``). What was computed is remembered per distinct
arguments, up to a limit. Contract: the result is a function of the arguments, the text, the time zone and the settings of the
expression; an argument tuple without a value raises ``EvaluationError``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from everview.algebra.moments import Floats
from everview.errors import EvaluationError, InternalError
from everview.relational.arrow import column_to_arrow, rows_from_arrow
from everview.relational.expressions import Column, SparkExpression
from everview.relational.nodes import Field, SparkQuery
from everview.relational.types import Row, Value


class Engine(Protocol):
    """What reaches Spark."""

    def compute(self, expression: SparkExpression, inputs: Sequence[pa.Array], count: int) -> pa.Array:
        """From an expression, the columns of its arguments and the number of rows to the column of its values."""

    def compute_groups(self, function: SparkExpression, inputs: Sequence[pa.Array], sizes: Sequence[int]) -> pa.Array:
        """From an aggregate function and columns in which groups stand one after another, so many rows each, to its values."""

    def distinct_corrections(self, bits: int) -> tuple[float, list[float], list[float]]:
        """What Spark has measured for ``approx_count_distinct`` with 2^bits registers: a threshold, estimates, their biases."""

    def introduce(self, session: Any, names: Iterable[str]) -> None:
        """Makes functions of the user's known to a session of Spark's, under names that ``named_function`` has made."""

    def answer(self, query: SparkQuery, tables: Sequence[pa.Table]) -> pa.Table:
        """From a query and the rows of its inputs to its rows."""

    def answer_frames(self, query: SparkQuery, frames: Sequence[Any], session: Any) -> Any:
        """The same from DataFrames of a session to one of it."""


JSON_TUPLE: Final = "json_tuple"
"""The one expression whose text is no scalar one of Spark SQL: a generator of exactly one row, computed as a struct."""
_REMEMBERED: Final = 1 << 16
_MISSING: Final = object()
_find_engine: list[Callable[[], Engine]] = []
_known: dict[tuple[SparkExpression, str], Value] = {}


def provide(find: Callable[[], Engine]) -> None:
    """Says how to find the engine; it is asked for only when an expression needs it."""
    _find_engine[:] = [find]


def compute(expression: SparkExpression, inputs: Sequence[pa.Array], count: int) -> pa.Array:
    """The values of the expression for rows whose arguments stand in these columns.

    Raises:
        EvaluationError: some row has no value.
    """
    return _engine().compute(expression, inputs, count)


def compute_groups(function: SparkExpression, inputs: Sequence[pa.Array], sizes: Sequence[int]) -> pa.Array:
    """The values of an aggregate function for groups of consecutive rows, of these sizes.

    Raises:
        EvaluationError: some group has none.
    """
    return _engine().compute_groups(function, inputs, sizes)


@cache
def distinct_corrections(bits: int) -> tuple[float, Floats, Floats]:
    """The same, of the engine, which is asked once."""
    threshold, estimates, biases = _engine().distinct_corrections(bits)
    return threshold, np.array(estimates), np.array(biases)


def answer(query: SparkQuery, tables: Sequence[pa.Table]) -> pa.Table:
    """Spark's answer to a query whose inputs hold these rows.

    Raises:
        EvaluationError: it has none.
    """
    return _engine().answer(query, tables)


def answer_frames(query: SparkQuery, frames: Sequence[Any], session: Any) -> Any:
    """Spark's answer as a DataFrame of a session, over DataFrames of it that hold the rows of its inputs."""
    return _engine().answer_frames(query, frames, session)


def _engine() -> Engine:
    if not _find_engine:
        raise InternalError("nobody has said how to reach Spark.")
    return _find_engine[0]()


_NAMED: Final = re.compile(r"`([^`]+)__([0-9a-f]{12})`")


def named_function(name: str, code: bytes) -> str:
    """The name under which texts call a function of the user's: two functions that differ have two names.

    >>> named_function("f", b"...")
    'f__ab5df625bc76'
    """
    return f"{name}__{hashlib.sha256(code).hexdigest()[:12]}"


def is_function(expression: SparkExpression) -> bool:
    """Whether the expression is a call of a function of the user's."""
    return isinstance(expression.text[0], str) and _NAMED.match(expression.text[0]) is not None


def plain_name(named: str) -> str:
    """The name that the user has given a function."""
    return named.rpartition("__")[0]


def with_plain_names(text: str) -> str:
    """A text for people, with the names that they have given their functions.

    >>> with_plain_names("1 + `f__ab5df625bc76`(x)")
    '1 + f(x)'
    """
    return _NAMED.sub(r"\1", text)


def introduce(session: Any, text: str) -> None:
    """Makes the functions of the user's that a text calls known to a session of Spark's.

    Raises:
        EvaluationError: nobody has registered one of them.
    """
    names = {f"{name}__{code}" for name, code in _NAMED.findall(text)}
    if names:
        _engine().introduce(session, names)


def value_of(expression: SparkExpression, arguments: Row) -> Value:
    """The value for one row of arguments."""
    known = _known.get(_key(expression, arguments), _MISSING)
    if known is not _MISSING:
        return known
    (value,) = _compute_rows(expression, [arguments])
    _remember(expression, [arguments], [value])
    return value


def foresee(expression: SparkExpression, rows: Iterable[Row]) -> None:
    """Computes and remembers what ``value_of`` will be asked; where one of the rows fails, each waits for its turn."""
    new = {_key(expression, row): row for row in rows}
    missing = [row for key, row in new.items() if key not in _known]
    if missing:
        try:
            _remember(expression, missing, _compute_rows(expression, missing))
        except EvaluationError:
            return


def _compute_rows(expression: SparkExpression, rows: Sequence[Row]) -> list[Value]:
    columns = zip(*rows, strict=True) if expression.args else ()
    inputs = [column_to_arrow(values, a.type) for values, a in zip(columns, expression.args, strict=True)]
    result = compute(expression, inputs, len(rows))
    computed = rows_from_arrow(pa.table([result], names=["value"]), (Field("value", expression.type, True),))
    return [value for (value,) in computed]


def _remember(expression: SparkExpression, rows: Sequence[Row], values: Sequence[Value]) -> None:
    if len(_known) + len(rows) > _REMEMBERED:
        _known.clear()
    for row, value in zip(rows, values, strict=True):
        _known[_key(expression, row)] = value


def _key(expression: SparkExpression, arguments: Row) -> tuple[SparkExpression, str]:
    """The function itself, whatever its arguments were computed from, and what it is applied to (repr tells 0.0 from -0.0)."""
    return function_of(expression), repr(arguments)


def function_of(expression: SparkExpression) -> SparkExpression:
    """The expression over columns that stand in the order of its arguments."""
    args = tuple(Column(i, a.type) for i, a in enumerate(expression.args))
    return expression if args == expression.args else replace(expression, args=args)
