"""Window functions as Spark SQL text.

The algebra breaks ties in the order by the whole row, so that an answer is a function of the bag. Functions that peers share
(RANK, aggregates over a RANGE) keep the order as it is; the others get every column as further sort keys. FIRST_VALUE and its
kin over a RANGE need both: they take the extreme row number, in the longer order, of a frame in the shorter one.
"""

from __future__ import annotations

from typing import Final

from everview.backends.spark.sql_aggregates import aggregate_sql
from everview.backends.spark.sql_expressions import Names, expression_sql
from everview.backends.spark.sql_literals import literal_sql
from everview.relational.expressions import Expression, Literal
from everview.relational.nodes import AggregateCall, Frame, FrameUnit, SortKey, Window, WindowCall
from everview.relational.types import Date, DayTimeInterval, Int8, Int16, Int32, Int64

ROW = "rn"
"""The column with the number of the row in its partition, in the order that has no ties."""

_PLACED: Final = {"row_number": "row_number()"}
_SHARED: Final = {
    "rank": "rank()",
    "dense_rank": "dense_rank()",
    "percent_rank": "percent_rank()",
    "cume_dist": "cume_dist()",
}
_MICROS_PER_DAY: Final = 86_400_000_000
_POSITIONAL: Final = ("first_value", "last_value", "nth_value")


def order_sql(order: tuple[SortKey, ...], names: Names) -> list[str]:
    """The terms of an ORDER BY; constants order nothing, and an integer would be read as a position."""
    terms = []
    for key in order:
        if not isinstance(key.expression, Literal):
            direction = "DESC" if key.descending else "ASC"
            nulls = "FIRST" if key.nulls_first else "LAST"
            terms.append(f"{expression_sql(key.expression, names)} {direction} NULLS {nulls}")
    return terms


def whole_row(names: Names) -> list[str]:
    """The terms that break ties."""
    return [f"{name} ASC NULLS FIRST" for name in names]


class WindowSql:
    """The texts of one ``Window`` over columns with these names."""

    def __init__(self, window: Window, names: Names) -> None:
        self._names = names
        partition = [expression_sql(e, names) for e in window.partition if not isinstance(e, Literal)]
        self._partition = f"PARTITION BY {', '.join(partition)} " if partition else ""
        self._terms = order_sql(window.order, names)
        self._is_by_date = bool(window.order) and isinstance(window.order[0].expression.type, Date)

    def row_number(self) -> str:
        """The number of the row in the order without ties."""
        return f"row_number() OVER ({self._partition}{self._placed_order()})"

    def call(self, call: WindowCall) -> str:
        """The text of one function; the row has the column ``ROW``."""
        args = [expression_sql(a, self._names) for a in call.args]
        if call.function in _PLACED:
            return f"{_PLACED[call.function]} OVER ({self._partition}{self._placed_order()})"
        if call.function in _SHARED:
            order = self._shared_order() or "ORDER BY 0"
            return f"{_SHARED[call.function]} OVER ({self._partition}{order})"
        if call.function == "ntile":
            return f"ntile({args[0]}) OVER ({self._partition}{self._placed_order()})"
        if call.function == "lead":
            nulls = " IGNORE NULLS" if call.ignore_nulls else ""
            return f"lead({', '.join(args)}){nulls} OVER ({self._partition}{self._placed_order()})"
        if call.function in _POSITIONAL:
            return self._positional(call, args)
        return self._aggregate(call)

    def _positional(self, call: WindowCall, args: list[str]) -> str:
        over = f"OVER ({self._over(call.frame)})"
        numbered = f"struct({ROW} AS n, {args[0]} AS v)"
        if call.ignore_nulls:
            numbered = f"CASE WHEN {args[0]} IS NOT NULL THEN {numbered} END"
        match call.function:
            case "first_value":
                return f"(min({numbered}) {over}).v"
            case "last_value":
                return f"(max({numbered}) {over}).v"
            case _:
                return f"(get(sort_array(collect_list({numbered}) {over}), {args[1]} - 1)).v"

    def _aggregate(self, call: WindowCall) -> str:
        plain = AggregateCall(call.function, call.args, call.type, filter=call.filter)
        return aggregate_sql(plain, self._names, over=f"OVER ({self._over(call.frame)})")

    def _over(self, frame: Frame) -> str:
        if frame.unit is FrameUnit.ROWS:
            return f"{self._partition}{self._placed_order()} {_frame_sql(frame, self._is_by_date)}"
        if frame.lower is None and frame.upper is None:
            return self._partition.rstrip()
        order = self._shared_order()
        if not order:  # without an order all rows are peers
            return self._partition.rstrip()
        return f"{self._partition}{order} {_frame_sql(frame, self._is_by_date)}"

    def _placed_order(self) -> str:
        terms = [*self._terms, *whole_row(self._names)]
        return f"ORDER BY {', '.join(terms)}" if terms else "ORDER BY 0"

    def _shared_order(self) -> str:
        return f"ORDER BY {', '.join(self._terms)}" if self._terms else ""


def _frame_sql(frame: Frame, is_by_date: bool) -> str:
    lower = _bound(frame.lower, "UNBOUNDED PRECEDING", is_by_date)
    upper = _bound(frame.upper, "UNBOUNDED FOLLOWING", is_by_date)
    return f"{frame.unit.name} BETWEEN {lower} AND {upper}"


def _bound(offset: Expression | None, unbounded: str, is_by_date: bool) -> str:
    if offset is None:
        return unbounded
    assert isinstance(offset, Literal), "a frame offset is a constant"
    if offset.value == 0:
        return "CURRENT ROW"
    side = "PRECEDING" if offset.value < 0 else "FOLLOWING"
    size = literal_sql(abs(offset.value), offset.type)
    if is_by_date and isinstance(offset.type, DayTimeInterval):  # days of a date are a number
        return f"{abs(offset.value) // _MICROS_PER_DAY} {side}"
    if isinstance(offset.type, Int8 | Int16 | Int32 | Int64):
        size = size.strip("()")
    return f"{size} {side}"
