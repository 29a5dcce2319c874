"""Reading and writing machine words at addresses, for kernels that are given addresses instead of arrays.

A kernel call with numbers only costs a tenth of one that unpacks arrays, and one kernel can then serve structures of any shape.
Callers keep the arrays behind the addresses alive. Also here: what the processor can do and Python numbers cannot say.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from everview.backends.embedded.state.checks import guard, structures
from everview.backends.embedded.state.kernel_cache import IS_CHECKED

_I64 = ir.IntType(64)
_I32 = ir.IntType(32)
_F64 = ir.DoubleType()


def address_of(array: Any, what: str = "") -> int:
    """Where the array's first element lies; ``what`` it is, the checked mode says in its errors."""
    if IS_CHECKED:
        structures.add_array(array, what)
    address: int = array.ctypes.data
    return address


def addresses_of_rows(matrix: Any, what: str = "") -> list[int]:
    """Where each row of a matrix begins: in checked mode each is a structure of its own."""
    if IS_CHECKED:
        structures.add_rows(matrix, what)
    start: int = matrix.ctypes.data
    return [start + i * matrix.strides[0] for i in range(len(matrix))]


def resize(array: Any, shape: Any) -> None:
    """Has an array of another length, whose memory may move; its address is to be asked for again."""
    if IS_CHECKED:
        structures.forget(array)
    array.resize(shape, refcheck=False)


def address_of_buffer(buffer: Any) -> int:
    """Where a buffer of Arrow lies; 0 for none."""
    if buffer is None:
        return 0
    if IS_CHECKED:
        structures.add_buffer(buffer.address, buffer.size)
    address: int = buffer.address
    return address


def _pointer(context: Any, builder: Any, address: Any, index: Any, kind: Any) -> Any:
    size = 4 if kind is _I32 else 8
    guard(context, builder, address, builder.add(address, builder.mul(index, _I64(size))), size)
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [index])


def _load(_typing: Any, _address: Any, _index: Any) -> Any:
    """The int64 number ``index`` behind the address."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, arguments[0], arguments[1], _I64))

    return types.int64(types.int64, types.int64), generate


def _store(_typing: Any, _address: Any, _index: Any, _value: Any) -> Any:
    """Write an int64."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _pointer(context, builder, arguments[0], arguments[1], _I64))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _load_float(_typing: Any, _address: Any, _index: Any) -> Any:
    """The float64 number ``index`` behind the address."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, arguments[0], arguments[1], _F64))

    return types.float64(types.int64, types.int64), generate


def _store_float(_typing: Any, _address: Any, _index: Any, _value: Any) -> Any:
    """Write a float64."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _pointer(context, builder, arguments[0], arguments[1], _F64))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64), generate


def _load_short(_typing: Any, _address: Any, _index: Any) -> Any:
    """The int32 number ``index`` behind the address, as an int64."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.sext(builder.load(_pointer(context, builder, arguments[0], arguments[1], _I32)), _I64)

    return types.int64(types.int64, types.int64), generate


def _load_half(_typing: Any, _address: Any, _index: Any) -> Any:
    """The uint32 number ``index`` behind the address, as an int64."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.load(_pointer(context, builder, arguments[0], arguments[1], _I32)), _I64)

    return types.int64(types.int64, types.int64), generate


def _store_short(_typing: Any, _address: Any, _index: Any, _value: Any) -> Any:
    """Write the lower half of an int64."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word = builder.trunc(arguments[2], _I32)
        builder.store(word, _pointer(context, builder, arguments[0], arguments[1], _I32))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _fetch(_typing: Any, _address: Any, _index: Any) -> Any:
    """Ask the processor for the cache line of the word ``index`` behind the address, which a later step will read."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
        )
        place = builder.bitcast(builder.gep(builder.inttoptr(arguments[0], _I64.as_pointer()), [arguments[1]]), byte)
        builder.call(hint, [place, _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _multiply_high(_typing: Any, _a: Any, _b: Any) -> Any:
    """The upper word of the product of two words, both unsigned."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), _I64)

    return types.int64(types.int64, types.int64), generate


def _multiply_overflows(_typing: Any, _a: Any, _b: Any) -> Any:
    """1 if the product of two words, both signed, does not fit one, else 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.extract_value(builder.smul_with_overflow(*arguments), 1), _I64)

    return types.int64(types.int64, types.int64), generate


def _is_below(_typing: Any, _a: Any, _b: Any) -> Any:
    """1 if the first word is below the second, both unsigned, else 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.icmp_unsigned("<", arguments[0], arguments[1]), _I64)

    return types.int64(types.int64, types.int64), generate


def _shift_right(_typing: Any, _a: Any, _by: Any) -> Any:
    """The word shifted right, zeros coming in."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.lshr(arguments[0], arguments[1])

    return types.int64(types.int64, types.int64), generate


def _fused(_typing: Any, _a: Any, _b: Any, _c: Any) -> Any:
    """A · b + c, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
load_float: Any = intrinsic(_load_float)
store_float: Any = intrinsic(_store_float)
load_short: Any = intrinsic(_load_short)
load_half: Any = intrinsic(_load_half)
store_short: Any = intrinsic(_store_short)
fetch: Any = intrinsic(_fetch)
multiply_high: Any = intrinsic(_multiply_high)
multiply_overflows: Any = intrinsic(_multiply_overflows)
is_below: Any = intrinsic(_is_below)
shift_right: Any = intrinsic(_shift_right)
fused: Any = intrinsic(_fused)

NO_WORDS = np.zeros(1, dtype=np.int64)
"""Something to point at where nothing is read."""
