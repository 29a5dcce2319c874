"""How the engine's machine code is made: one decorator for kernels, and the prefetch hint they use.

A kernel is a function over flat arrays. It is compiled on its first call, once per combination of argument types (arrays are
C-contiguous and writable, so that is once), cached on disk next to its source, and runs without the interpreter lock. Numba
notices a change of a kernel's own file only: so kernels call kernels of the same module, and ``prefetch``, and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]  # llvmlite ships no type information
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

P = ParamSpec("P")
R = TypeVar("R")

Word: TypeAlias = Any
"""A number inside a kernel, where Python's numbers and NumPy's are the same machine words."""

OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}
"""Kernels allocate nothing, so they need no reference counts (``_nrt``): without them a probe is five times as fast."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function over arrays and numbers to machine code, cached on disk."""
    compiled: Callable[P, R] = numba.njit(**OPTIONS)(function)
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function whose code is copied into every kernel that calls it, where constant arguments are folded."""
    compiled: Callable[P, R] = numba.njit(**OPTIONS, forceinline=True)(function)
    return compiled


def _prefetch(_typing: Any, array: Any, _index: Any) -> Any:
    """Ask the processor for the cache line of ``array.flat[index]``, which a later step will read.

    A hash probe waits for memory; asking some rows ahead lets the waits overlap.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = arrayobj.make_array(signature.args[0])  # type: ignore[no-untyped-call]  # Numba's own
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
