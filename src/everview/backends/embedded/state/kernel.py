"""How the engine's machine code is made: one decorator for kernels, the prefetch hint they use, and access to bytes by address.

A kernel is a function over flat arrays. It is compiled on its first call, once per combination of argument types (arrays are
C-contiguous and writable, so that is once), kept on disk as long as no source of a kernel changes (``kernel_cache``), and runs
without the interpreter lock.

Arrow's buffers are read where they lie, by address: whoever calls a kernel with an address holds the buffer meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from everview.backends.embedded.state.checks import guard, make_known
from everview.backends.embedded.state.kernel_cache import IS_CHECKED, KernelCache

P = ParamSpec("P")
R = TypeVar("R")

Word: TypeAlias = Any
"""A number inside a kernel, where Python's numbers and NumPy's are the same machine words."""

OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, **({"boundscheck": True} if IS_CHECKED else {})}
"""Kernels allocate nothing, so they need no reference counts (``_nrt``): without them a probe is five times as fast."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function over arrays and numbers to machine code, cached on disk."""
    return _compiled(function)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function whose code is copied into every kernel that calls it, where constant arguments are folded."""
    return _compiled(function, forceinline=True)


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    dispatcher: Any = numba.njit(**OPTIONS, **options)(function)
    dispatcher._cache = KernelCache(function)
    compiled: Callable[P, R] = dispatcher
    return compiled


def _prefetch(_typing: Any, array: Any, _index: Any) -> Any:
    """Ask the processor for the cache line of ``array.flat[index]``, which a later step will read.

    A hash probe waits for memory; asking some rows ahead lets the waits overlap.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = arrayobj.make_array(signature.args[0])
        data = array_type(context, builder, arguments[0]).data
        address_type = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [address_type],
            ir.FunctionType(ir.VoidType(), [address_type, number, number, number]),
        )
        address = builder.bitcast(builder.gep(data, [arguments[1]]), address_type)
        builder.call(hint, [address, number(0), number(3), number(1)])  # to read, keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch: Any = intrinsic(_prefetch)


def _address_of(_typing: Any, array: Any) -> Any:
    """Where the data of an array begins."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = arrayobj.make_array(signature.args[0])
        given, word = array_type(context, builder, arguments[0]), ir.IntType(64)
        start = builder.ptrtoint(given.data, word)
        make_known(builder, start, builder.mul(given.nitems, given.itemsize))
        return start

    return types.int64(array), generate


def _prefetch_at(_typing: Any, _address: Any) -> Any:
    """Ask the processor for the cache line at an address; an address that is not ours does no harm."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address_type, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [address_type],
            ir.FunctionType(ir.VoidType(), [address_type, number, number, number]),
        )
        builder.call(hint, [builder.inttoptr(arguments[0], address_type), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _loader(bits: int) -> Any:
    """An intrinsic that reads so many bits at an address of any alignment, as an unsigned number (of 64 bits, a signed one)."""

    def load(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            guard(context, builder, arguments[0], arguments[0], bits // 8)
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer, align=1)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return types.int64(types.int64), generate

    return intrinsic(load)


def _storer(bits: int) -> Any:
    """An intrinsic that writes the lower bits of a number at an address of any alignment."""

    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            guard(context, builder, arguments[0], arguments[0], bits // 8)
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = arguments[1] if bits == 64 else builder.trunc(arguments[1], ir.IntType(bits))
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return intrinsic(store)


def _call_at(_typing: Any, _function: Any, _argument: Any) -> Any:
    """Call the C function at an address, which takes a pointer and returns nothing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        function = ir.FunctionType(ir.VoidType(), [pointer]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], function), [builder.inttoptr(arguments[1], pointer)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


address_of: Any = intrinsic(_address_of)
call_at: Any = intrinsic(_call_at)
prefetch_at: Any = intrinsic(_prefetch_at)
load8: Any = _loader(8)
load16: Any = _loader(16)
load32: Any = _loader(32)
load64: Any = _loader(64)
store8: Any = _storer(8)
store64: Any = _storer(64)
