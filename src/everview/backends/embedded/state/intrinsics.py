"""What kernels can do that Python numbers cannot say: words at addresses, hints to the processor, wide products.

A kernel call with numbers only costs a tenth of one that unpacks arrays, and one kernel can then serve structures of any shape.
So kernels are given addresses (``memory.address_of``), and callers keep what is behind them alive. ``load(address, index)`` and
its like read whole words of a structure that begins at the address; ``load8(address)`` and its like read so many bits anywhere,
as Arrow's buffers need it. In checked mode each access is tested (``checks``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from everview.backends.embedded.state.checks import guard, make_known

_I8 = ir.IntType(8)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_I128 = ir.IntType(128)
_F64 = ir.DoubleType()
_BYTES = _I8.as_pointer()


# Words of structures


def _place(context: Any, builder: Any, arguments: Any, kind: Any) -> Any:
    address, index = arguments[:2]
    size = 4 if kind is _I32 else 8
    guard(context, builder, address, builder.add(address, builder.mul(index, _I64(size))), size)
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [index])


def _number_type(kind: Any) -> Any:
    return types.float64 if kind is _F64 else types.int64


def _loader(kind: Any, *, is_signed: bool = True) -> Any:
    """An intrinsic that reads the number ``index`` of this kind behind an address."""

    def load(_typing: Any, _address: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            value = builder.load(_place(context, builder, arguments, kind))
            if kind is not _I32:
                return value
            return builder.sext(value, _I64) if is_signed else builder.zext(value, _I64)

        return _number_type(kind)(types.int64, types.int64), generate

    return intrinsic(load)


def _storer(kind: Any) -> Any:
    """An intrinsic that writes the number ``index`` of this kind behind an address."""

    def store(_typing: Any, _address: Any, _index: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            value = builder.trunc(arguments[2], _I32) if kind is _I32 else arguments[2]
            builder.store(value, _place(context, builder, arguments, kind))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, _number_type(kind)), generate

    return intrinsic(store)


load: Any = _loader(_I64)
store: Any = _storer(_I64)
load_float: Any = _loader(_F64)
store_float: Any = _storer(_F64)
load_short: Any = _loader(_I32)
load_half: Any = _loader(_I32, is_signed=False)
"""Half a word, as an unsigned number; ``load_short`` has it signed."""
store_short: Any = _storer(_I32)


# Bits anywhere


def _byte_loader(bits: int) -> Any:
    """An intrinsic that reads so many bits at an address of any alignment, as an unsigned number (of 64 bits, a signed one)."""

    def load(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            guard(context, builder, arguments[0], arguments[0], bits // 8)
            value = builder.load(builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer()), align=1)
            return value if bits == 64 else builder.zext(value, _I64)

        return types.int64(types.int64), generate

    return intrinsic(load)


def _byte_storer(bits: int) -> Any:
    """An intrinsic that writes the lower bits of a number at an address of any alignment."""

    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            guard(context, builder, arguments[0], arguments[0], bits // 8)
            value = arguments[1] if bits == 64 else builder.trunc(arguments[1], ir.IntType(bits))
            builder.store(value, builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return intrinsic(store)


load8: Any = _byte_loader(8)
load16: Any = _byte_loader(16)
load32: Any = _byte_loader(32)
load64: Any = _byte_loader(64)
store8: Any = _byte_storer(8)
store64: Any = _byte_storer(64)


# Addresses, and hints which of them come next


def _ask_for(builder: Any, place: Any) -> None:
    """Asks the processor for a cache line, to read, to keep in all caches; an address that is not ours does no harm."""
    hint = builder.module.declare_intrinsic(
        "llvm.prefetch", [_BYTES], ir.FunctionType(ir.VoidType(), [_BYTES, _I32, _I32, _I32])
    )
    builder.call(hint, [place, _I32(0), _I32(3), _I32(1)])


def _fetch(_typing: Any, _address: Any) -> Any:
    """Ask for the cache line at an address, which a later step will read.

    A hash probe waits for memory; asking some rows ahead lets the waits overlap.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        _ask_for(builder, builder.inttoptr(arguments[0], _BYTES))
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _fetch_element(_typing: Any, array: Any, _index: Any) -> Any:
    """Ask for the cache line of ``array.flat[index]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, arguments[0]).data
        _ask_for(builder, builder.bitcast(builder.gep(data, [arguments[1]]), _BYTES))
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _start_of(_typing: Any, array: Any) -> Any:
    """Where the data of an array begins, for a kernel that is given the array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = arrayobj.make_array(signature.args[0])(context, builder, arguments[0])
        start = builder.ptrtoint(given.data, _I64)
        make_known(builder, start, builder.mul(given.nitems, given.itemsize))
        return start

    return types.int64(array), generate


def _call_at(_typing: Any, _function: Any, _argument: Any) -> Any:
    """Call the C function at an address, which takes a pointer and returns nothing."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [_BYTES]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], function), [builder.inttoptr(arguments[1], _BYTES)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


fetch: Any = intrinsic(_fetch)
fetch_element: Any = intrinsic(_fetch_element)
start_of: Any = intrinsic(_start_of)
call_at: Any = intrinsic(_call_at)


# Arithmetic


def _operation(make: Callable[[Any, Any, Any], Any]) -> Any:
    """An intrinsic of two words, by the instructions that compute it."""

    def operation(_typing: Any, _a: Any, _b: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return make(builder, *arguments)

        return types.int64(types.int64, types.int64), generate

    return intrinsic(operation)


def _upper_word(builder: Any, a: Any, b: Any) -> Any:
    product = builder.mul(builder.zext(a, _I128), builder.zext(b, _I128))
    return builder.trunc(builder.lshr(product, _I128(64)), _I64)


def _fused(_typing: Any, _a: Any, _b: Any, _c: Any) -> Any:
    """A · b + c, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


multiply_high: Any = _operation(_upper_word)
"""The upper word of the product of two words, both unsigned."""
multiply_overflows: Any = _operation(
    lambda builder, a, b: builder.zext(builder.extract_value(builder.smul_with_overflow(a, b), 1), _I64)
)
"""1 if the product of two words, both signed, does not fit one, else 0."""
is_below: Any = _operation(lambda builder, a, b: builder.zext(builder.icmp_unsigned("<", a, b), _I64))
"""1 if the first word is below the second, both unsigned, else 0."""
shift_right: Any = _operation(lambda builder, a, by: builder.lshr(a, by))
"""The word shifted right, zeros coming in."""
fused: Any = intrinsic(_fused)
