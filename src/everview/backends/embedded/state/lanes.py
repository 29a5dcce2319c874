"""Arithmetic on several neighbouring double-doubles at once: sums at one address, their rounding errors at another.

Each step is one straight line of vector instructions over ``LANES`` floats. Kernels that leave it to the compiler to find such
steps pay, for short rows, more for its tests of whether addresses overlap than for the arithmetic. In checked mode each access
is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from everview.backends.embedded.state.checks import guard

LANES: Final = 4
_I32 = ir.IntType(32)
_F64 = ir.DoubleType()
_FLOATS = ir.VectorType(_F64, LANES)


class _Lanes:
    """What a step is made of: loads, stores and arithmetic of ``LANES`` floats."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context, self.builder = context, builder
        kind = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
        self._fma = builder.module.globals.get(f"llvm.fma.v{LANES}f64") or ir.Function(
            builder.module, kind, f"llvm.fma.v{LANES}f64"
        )

    def load(self, address: Any) -> Any:
        guard(self.context, self.builder, address, address, 8 * LANES)
        return self.builder.load(self.builder.inttoptr(address, _FLOATS.as_pointer()), align=8)

    def store(self, address: Any, value: Any) -> None:
        guard(self.context, self.builder, address, address, 8 * LANES)
        self.builder.store(value, self.builder.inttoptr(address, _FLOATS.as_pointer()), align=8)

    def all(self, number: Any) -> Any:
        """The same number in all lanes."""
        first = self.builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), number, _I32(0))
        return self.builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES))

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b)

    def subtract(self, a: Any, b: Any) -> Any:
        return self.builder.fsub(a, b)

    def multiply(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b)

    def fused(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self._fma, [a, b, c])

    def error_of(self, a: Any, b: Any, product: Any) -> Any:
        """What the rounded product lacks."""
        return self.fused(a, b, self.builder.fneg(product))

    def add_to(self, at: Any, low: Any, value: Any, error: Any) -> None:
        """Adds double-doubles to those at two addresses."""
        total = self.load(at)
        new = self.add(total, value)
        part = self.subtract(new, total)
        lost = self.add(self.subtract(total, self.subtract(new, part)), self.subtract(value, part))
        rest = self.add(self.add(self.load(low), error), lost)
        result = self.add(new, rest)
        self.store(at, result)
        self.store(low, self.subtract(rest, self.subtract(result, new)))


def _add(lanes: _Lanes, at: Any, low: Any, given: Any, more: Any) -> None:
    lanes.add_to(at, low, lanes.load(given), lanes.load(more))


def _accumulate(lanes: _Lanes, at: Any, low: Any, values: Any, factor: Any, error: Any) -> None:
    value, factors = lanes.load(values), lanes.all(factor)
    product = lanes.multiply(factors, value)
    lanes.add_to(at, low, product, lanes.fused(lanes.all(error), value, lanes.error_of(factors, value, product)))


def _scale(lanes: _Lanes, target: Any, low: Any, values: Any, errors: Any, factor: Any) -> None:
    value, factors = lanes.load(values), lanes.all(factor)
    product = lanes.multiply(value, factors)
    lanes.store(target, product)
    lanes.store(low, lanes.fused(lanes.load(errors), factors, lanes.error_of(value, factors, product)))


def _multiply(lanes: _Lanes, target: Any, low: Any, values: Any, errors: Any, factor: Any, error: Any) -> None:
    value, factors = lanes.load(values), lanes.all(factor)
    product = lanes.multiply(value, factors)
    lanes.store(target, product)
    rest = lanes.fused(value, lanes.all(error), lanes.error_of(value, factors, product))
    lanes.store(low, lanes.fused(lanes.load(errors), factors, rest))


def _made(make: Callable[..., None], addresses: int, floats: int) -> Any:
    """The signature of a step over so many addresses and then so many floats, and what generates it."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        make(_Lanes(context, builder), *arguments)
        return context.get_dummy_value()

    return types.void(*[types.int64] * addresses, *[types.float64] * floats), generate


def _add_lanes(_typing: Any, _at: Any, _low: Any, _given: Any, _more: Any) -> Any:
    """Adds the double-doubles given to those at ``at`` and ``low``."""
    return _made(_add, 4, 0)


def _accumulate_lanes(_typing: Any, _at: Any, _low: Any, _values: Any, _factor: Any, _error: Any) -> Any:
    """Adds floats times a double-double."""
    return _made(_accumulate, 3, 2)


def _scale_lanes(_typing: Any, _target: Any, _low: Any, _values: Any, _errors: Any, _factor: Any) -> Any:
    """Double-doubles times a float."""
    return _made(_scale, 4, 1)


def _multiply_lanes(
    _typing: Any, _target: Any, _low: Any, _values: Any, _errors: Any, _factor: Any, _error: Any
) -> Any:
    """Double-doubles times a double-double."""
    return _made(_multiply, 4, 2)


add_lanes: Any = intrinsic(_add_lanes)
accumulate_lanes: Any = intrinsic(_accumulate_lanes)
scale_lanes: Any = intrinsic(_scale_lanes)
multiply_lanes: Any = intrinsic(_multiply_lanes)
