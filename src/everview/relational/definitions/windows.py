"""Window functions over one partition at a time: sort, find peers and frames, evaluate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from everview.relational.definitions.aggregates import evaluate_aggregate
from everview.relational.definitions.ordering import order_values, ordered_rows
from everview.relational.evaluate import compile_expression, evaluate
from everview.relational.expressions import Column, Expression
from everview.relational.functions import sort_key
from everview.relational.nodes import AggregateCall, Frame, FrameUnit, SortKey, Window, WindowCall
from everview.relational.range_frame import range_bound
from everview.relational.schema import schema
from everview.relational.types import Row, Value


def evaluate_window(window: Window, rows: Sequence[Row]) -> list[Row]:
    """Every row with the values of the window functions appended."""
    fields = schema(window.child)
    partition = [compile_expression(e) for e in window.partition]
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple([e(row) for e in partition])].append(row)
    out: list[Row] = []
    for group in groups.values():
        ordered = ordered_rows(group, window.order, fields)
        appended = [_Partition(ordered, window.order).evaluate(call) for call in window.functions]
        out.extend([row + tuple(values) for row, values in zip(ordered, zip(*appended, strict=True), strict=True)])
    return out


class _Partition:
    """The ordered rows of one partition."""

    def __init__(self, rows: list[Row], order: tuple[SortKey, ...]) -> None:
        self._rows = rows
        self._order = order
        peers = order_values(order)
        values = [peers(row) for row in rows]
        self._peer_start = [0] * len(rows)
        for i in range(1, len(rows)):
            self._peer_start[i] = self._peer_start[i - 1] if values[i] == values[i - 1] else i
        self._peer_end = [len(rows)] * len(rows)
        for i in range(len(rows) - 2, -1, -1):
            self._peer_end[i] = self._peer_end[i + 1] if values[i] == values[i + 1] else i + 1

    def evaluate(self, call: WindowCall) -> list[Value]:
        """The function's value for each row, in order."""
        count = len(self._rows)
        match call.function:
            case "row_number":
                return [i + 1 for i in range(count)]
            case "rank":
                return [start + 1 for start in self._peer_start]
            case "dense_rank":
                starts = sorted(set(self._peer_start))
                number = {start: i + 1 for i, start in enumerate(starts)}
                return [number[start] for start in self._peer_start]
            case "percent_rank":
                return [start / (count - 1) if count > 1 else 0.0 for start in self._peer_start]
            case "cume_dist":
                return [end / count for end in self._peer_end]
            case "ntile":
                return _ntile(evaluate(call.args[0]), count)
            case "lead":
                return self._lead(call)
            case "first_value" | "last_value" | "nth_value":
                return [self._positional(call, self._frame(call.frame, i)) for i in range(count)]
            case _:
                return self._aggregates(call)

    def _lead(self, call: WindowCall) -> list[Value]:
        value, default = compile_expression(call.args[0]), compile_expression(call.args[2])
        offset = evaluate(call.args[1])
        values = [value(row) for row in self._rows]
        if not call.ignore_nulls or offset == 0:
            shifted = (i + offset for i in range(len(values)))
            return [
                values[j] if 0 <= j < len(values) else default(row) for j, row in zip(shifted, self._rows, strict=True)
            ]
        out = []
        for i, row in enumerate(self._rows):
            beyond = values[i + 1 :] if offset > 0 else values[:i][::-1]
            known = [v for v in beyond if v is not None]
            out.append(known[abs(offset) - 1] if len(known) >= abs(offset) else default(row))
        return out

    def _positional(self, call: WindowCall, frame: list[Row]) -> Value:
        value = compile_expression(call.args[0])
        values = [value(row) for row in frame]
        if call.ignore_nulls:
            values = [v for v in values if v is not None]
        position = {"first_value": 0, "last_value": -1}.get(call.function)
        if position is None:
            position = evaluate(call.args[1]) - 1
        return values[position] if position < len(values) and values else None

    def _aggregates(self, call: WindowCall) -> list[Value]:
        aggregate = AggregateCall(call.function, call.args, call.type)
        args = [compile_expression(a) for a in call.args]
        keep = None if call.filter is None else compile_expression(call.filter)
        out = []
        for i in range(len(self._rows)):
            frame = self._frame(call.frame, i)
            kept = frame if keep is None else [row for row in frame if keep(row) is True]
            out.append(evaluate_aggregate(aggregate, [tuple([a(row) for a in args]) for row in kept]))
        return out

    def _frame(self, frame: Frame, i: int) -> list[Row]:
        if frame.unit is FrameUnit.ROWS:
            start = 0 if frame.lower is None else max(0, i + evaluate(frame.lower))
            end = len(self._rows) if frame.upper is None else i + evaluate(frame.upper) + 1
            return self._rows[start : max(start, end)]
        start = 0 if frame.lower is None else self._range_start(frame.lower, i, frame.zone)
        end = len(self._rows) if frame.upper is None else self._range_end(frame.upper, i, frame.zone)
        return self._rows[start : max(start, end)]

    def _range_start(self, offset: Expression, i: int, zone: str | None) -> int:
        bound = self._bound(offset, i, zone)
        if bound is None:
            return self._peer_start[i]
        return next((j for j in range(len(self._rows)) if bound(j) >= 0), len(self._rows))

    def _range_end(self, offset: Expression, i: int, zone: str | None) -> int:
        bound = self._bound(offset, i, zone)
        if bound is None:
            return self._peer_end[i]
        return next((j for j in range(len(self._rows)) if bound(j) > 0), len(self._rows))

    def _bound(self, offset: Expression, i: int, zone: str | None) -> Callable[[int], int] | None:
        """Where row j stands relative to row i's order value plus the offset: before (-1), at (0) or after (1).

        None where the bound is the current row: zero offset, or a NULL, whose peers are the NULLs.
        """
        (key,) = self._order if self._order and not _is_zero(offset) else (None,)
        if key is None:
            return None
        value_of = compile_expression(key.expression)
        here = value_of(self._rows[i])
        if here is None:
            return None
        target = sort_key(key.expression.type)(_shifted(key, here, offset, zone))
        comparable = sort_key(key.expression.type)

        def position(j: int) -> int:
            value = value_of(self._rows[j])
            if value is None:
                return -1 if key.nulls_first else 1
            here_key = comparable(value)
            sign = int(here_key > target) - int(here_key < target)
            return -sign if key.descending else sign

        return position


def _is_zero(offset: Expression) -> bool:
    return bool(evaluate(offset) == 0)


def _shifted(key: SortKey, value: Value, offset: Expression, zone: str | None) -> Value:
    """The order value moved by the offset in the direction of the order."""
    column = Column(0, key.expression.type)
    return evaluate(range_bound(column, offset, descending=key.descending, zone=zone), (value,))


def _ntile(buckets: int, count: int) -> list[Value]:
    small, larger = divmod(count, buckets)
    out: list[Value] = []
    for bucket in range(buckets):
        out.extend([bucket + 1] * (small + (1 if bucket < larger else 0)))
    return out
