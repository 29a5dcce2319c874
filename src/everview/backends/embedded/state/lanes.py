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
_I64 = ir.IntType(64)
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

    def number(self, address: Any) -> Any:
        """One float."""
        guard(self.context, self.builder, address, address, 8)
        return self.builder.load(self.builder.inttoptr(address, _F64.as_pointer()))

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

    def sum(self, a: Any, b: Any) -> tuple[Any, Any]:
        """The rounded sum, and what it lacks."""
        total = self.add(a, b)
        part = self.subtract(total, a)
        return total, self.add(self.subtract(a, self.subtract(total, part)), self.subtract(b, part))

    def add_to(self, at: Any, low: Any, value: Any, error: Any) -> None:
        """Adds double-doubles to those at two addresses."""
        new, lost = self.sum(self.load(at), value)
        rest = self.add(self.add(self.load(low), error), lost)
        result = self.add(new, rest)
        self.store(at, result)
        self.store(low, self.subtract(rest, self.subtract(result, new)))

    def first(self, address: Any, count: Any) -> Any:
        """The first numbers at an address, and zeros in the other lanes."""
        last = self.builder.add(address, self.builder.shl(self.builder.sub(count, _I64(1)), _I64(3)))
        guard(self.context, self.builder, address, last, 8)
        counts = ir.VectorType(_I64, LANES)
        one = self.builder.insert_element(ir.Constant(counts, ir.Undefined), count, _I32(0))
        wanted = self.builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES))
        mask = self.builder.icmp_signed("<", ir.Constant(counts, list(range(LANES))), wanted)
        pointer = self.builder.inttoptr(address, _FLOATS.as_pointer())
        kind = ir.FunctionType(_FLOATS, [_FLOATS.as_pointer(), _I32, mask.type, _FLOATS])
        name = f"llvm.masked.load.v{LANES}f64.p0"
        load = self.builder.module.globals.get(name) or ir.Function(self.builder.module, kind, name)
        return self.builder.call(load, [pointer, _I32(8), mask, ir.Constant(_FLOATS, [0.0] * LANES)])

    def product(self, value: Any, error: Any, factor: Any, more: Any) -> tuple[Any, Any]:
        """Double-doubles times one of them."""
        factors = self.all(factor)
        product = self.multiply(value, factors)
        rest = self.fused(value, self.all(more), self.error_of(value, factors, product))
        return product, self.fused(error, factors, rest)


def _add(lanes: _Lanes, at: Any, low: Any, given: Any, more: Any) -> None:
    lanes.add_to(at, low, lanes.load(given), lanes.load(more))


def _multiply(lanes: _Lanes, target: Any, low: Any, values: Any, errors: Any, count: Any, *factor: Any) -> None:
    product, rest = lanes.product(lanes.first(values, count), lanes.first(errors, count), *factor)
    lanes.store(target, product)
    lanes.store(low, rest)


def _collect(lanes: _Lanes, at: Any, low: Any, value: Any, error: Any, factor: Any, more: Any) -> None:
    product, rest = lanes.product(value, error, factor, more)
    new, lost = lanes.sum(lanes.load(at), product)
    lanes.store(at, new)
    lanes.store(low, lanes.add(lanes.load(low), lanes.add(lost, rest)))


def _add_products(lanes: _Lanes, at: Any, low: Any, values: Any, errors: Any, *factor: Any) -> None:
    _collect(lanes, at, low, lanes.load(values), lanes.load(errors), *factor)


def _add_last_products(lanes: _Lanes, at: Any, low: Any, values: Any, errors: Any, count: Any, *factor: Any) -> None:
    _collect(lanes, at, low, lanes.first(values, count), lanes.first(errors, count), *factor)


def _settle(lanes: _Lanes, target: Any, low: Any, at: Any, rest: Any) -> None:
    total, lost = lanes.sum(lanes.load(at), lanes.load(rest))
    lanes.store(target, total)
    lanes.store(low, lost)


def _sum_rows(
    lanes: _Lanes,
    at: Any,
    low: Any,
    values: Any,
    step: Any,
    factors: Any,
    factor_step: Any,
    errors: Any,
    error_step: Any,
    rows: Any,
    is_new: Any,
) -> None:
    builder = lanes.builder
    zero, new = ir.Constant(_FLOATS, [0.0] * LANES), builder.icmp_signed("!=", is_new, _I64(0))
    sums = [builder.select(new, zero, lanes.load(a)) for a in (at, low)]
    before, loop = builder.block, builder.append_basic_block("rows")
    builder.branch(loop)
    builder.position_at_end(loop)
    carried = [builder.phi(_FLOATS), builder.phi(_FLOATS), *(builder.phi(_I64) for _ in range(4))]
    for phi, first in zip(carried, (*sums, values, factors, errors, rows), strict=True):
        phi.add_incoming(first, before)
    total, rest, place, factor_at, error_at, left = carried
    value, factor = lanes.load(place), lanes.all(lanes.number(factor_at))
    product = lanes.multiply(factor, value)
    lacking = lanes.fused(lanes.all(lanes.number(error_at)), value, lanes.error_of(factor, value, product))
    after, lost = lanes.sum(total, product)
    less = builder.sub(left, _I64(1))
    steps = ((place, step), (factor_at, factor_step), (error_at, error_step))
    then = (after, lanes.add(rest, lanes.add(lost, lacking)), *(builder.add(a, by) for a, by in steps), less)
    for phi, following in zip(carried, then, strict=True):
        phi.add_incoming(following, builder.block)
    done = builder.append_basic_block("summed")
    builder.cbranch(builder.icmp_signed(">", less, _I64(0)), loop, done)
    builder.position_at_end(done)
    result, remains = lanes.sum(then[0], then[1])
    lanes.store(at, result)
    lanes.store(low, remains)


def _made(make: Callable[..., None], words: int, floats: int) -> Any:
    """The signature of a step over so many words (addresses first) and then so many floats, and what generates it."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        make(_Lanes(context, builder), *arguments)
        return context.get_dummy_value()

    return types.void(*[types.int64] * words, *[types.float64] * floats), generate


def _add_lanes(_typing: Any, _at: Any, _low: Any, _given: Any, _more: Any) -> Any:
    """Adds the double-doubles given to those at ``at`` and ``low``."""
    return _made(_add, 4, 0)


def _multiply_lanes(
    _typing: Any, _target: Any, _low: Any, _values: Any, _errors: Any, _count: Any, _factor: Any, _error: Any
) -> Any:
    """Stores the first so many double-doubles times one; the other lanes become 0."""
    return _made(_multiply, 5, 2)


def _add_product_lanes(_typing: Any, _at: Any, _low: Any, _values: Any, _errors: Any, _factor: Any, _error: Any) -> Any:
    """Adds double-doubles times one to sums, whose errors are gathered apart until they are settled."""
    return _made(_add_products, 4, 2)


def _add_last_product_lanes(
    _typing: Any, _at: Any, _low: Any, _values: Any, _errors: Any, _count: Any, _factor: Any, _error: Any
) -> Any:
    """The same of the first so many."""
    return _made(_add_last_products, 5, 2)


def _settle_lanes(_typing: Any, _target: Any, _low: Any, _at: Any, _rest: Any) -> Any:
    """Stores sums with gathered errors as double-doubles."""
    return _made(_settle, 4, 0)


def _sum_row_lanes(
    _typing: Any,
    _at: Any,
    _low: Any,
    _values: Any,
    _step: Any,
    _factors: Any,
    _factor_step: Any,
    _errors: Any,
    _error_step: Any,
    _rows: Any,
    _is_new: Any,
) -> Any:
    """Adds Σ over rows of values times a factor and its error; the sums stay in registers. Steps are bytes from row to row."""
    return _made(_sum_rows, 10, 0)


add_lanes: Any = intrinsic(_add_lanes)
multiply_lanes: Any = intrinsic(_multiply_lanes)
add_product_lanes: Any = intrinsic(_add_product_lanes)
add_last_product_lanes: Any = intrinsic(_add_last_product_lanes)
settle_lanes: Any = intrinsic(_settle_lanes)
sum_row_lanes: Any = intrinsic(_sum_row_lanes)
