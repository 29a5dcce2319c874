"""From the calls of a window node to functions over views: who computes what.

Everything has a computation over whole columns but what Spark never asks for (moments of integers, an average of decimals
as a float) and RANGE bounds for which 38 digits do not suffice: these the definition computes, row by row. So it does for the
partitions, found while computing, with floats whose sums could overflow or whose products could underflow.
"""

from __future__ import annotations

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.vectors import Vector, empty_values
from everview.backends.embedded.windows.by_definition import ByDefinition
from everview.backends.embedded.windows.extremes import Extreme
from everview.backends.embedded.windows.frames import FrameBounds
from everview.backends.embedded.windows.function import WindowFunction
from everview.backends.embedded.windows.moments import WindowMoment
from everview.backends.embedded.windows.partitions import Partitions
from everview.backends.embedded.windows.positions import RANKINGS, FrameValue, Lead, Ntile, Ranking
from everview.backends.embedded.windows.sums import Count, ExactSum, FloatSum
from everview.relational.evaluate import evaluate
from everview.relational.nodes import Frame, Window, WindowCall
from everview.relational.types import Decimal, is_floating

_MOMENTS = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr"})


class WindowFunctions:
    """The functions of a window node, in order."""

    def __init__(self, node: Window, dictionary: Dictionary) -> None:
        self._node = node
        self._dictionary = dictionary
        self._frames: dict[Frame, FrameBounds] = {}
        self._functions = tuple(self._compile(call) for call in node.functions)

    def __call__(self, view: Partitions) -> tuple[Vector, ...]:
        """The values of every function for each row of the view."""
        if not view.count:
            return tuple(Vector(c.type, empty_values(c.type, 0)) for c in self._node.functions)
        return tuple(function(view) for function in self._functions)

    def definitions(self, names: tuple[str, ...]) -> list[str]:
        """What Python computes, as text over the names of the child's columns."""
        parts = [d for f in self._functions for d in f.definitions(names)]
        parts += [d for f in self._frames.values() for d in f.definitions(names)]
        return list(dict.fromkeys(parts))

    def _compile(self, call: WindowCall) -> WindowFunction:
        definition = ByDefinition(self._node, call, self._dictionary)
        match call.function:
            case name if name in RANKINGS:
                return Ranking(call)
            case "ntile":
                return Ntile(call)
            case "lead":
                is_typed = call.args[2].type == call.args[0].type
                return Lead(call, self._dictionary) if is_typed else definition
        frame = self._frame(call.frame)
        return self._over_frame(call, frame, definition) if frame.is_comparable else definition

    def _frame(self, frame: Frame) -> FrameBounds:
        if frame not in self._frames:
            self._frames[frame] = FrameBounds(frame, self._node.order, self._dictionary)
        return self._frames[frame]

    def _over_frame(self, call: WindowCall, frame: FrameBounds, definition: ByDefinition) -> WindowFunction:
        match call.function:
            case "first_value" | "last_value":
                return FrameValue(call, frame, self._dictionary)
            case "nth_value":
                return FrameValue(call, frame, self._dictionary) if evaluate(call.args[1]) > 0 else definition
            case "count":
                return Count(call, frame, self._dictionary)
            case "min" | "max" | "min_by" | "max_by":
                return Extreme(call, frame, self._dictionary)
            case name if name in _MOMENTS:
                if not all(is_floating(a.type) for a in call.args):
                    return definition
                return WindowMoment(call, frame, self._dictionary, definition)
            case "sum" | "avg" | "try_sum" | "try_avg":
                return self._sum(call, frame, definition)
            case _:
                return definition

    def _sum(self, call: WindowCall, frame: FrameBounds, definition: ByDefinition) -> WindowFunction:
        argument = call.args[0].type
        if isinstance(argument, Decimal) != isinstance(call.type, Decimal):
            return definition
        if is_floating(call.type):
            return FloatSum(call, frame, self._dictionary, definition)
        return ExactSum(call, frame, self._dictionary)
