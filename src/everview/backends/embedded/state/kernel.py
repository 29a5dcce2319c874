"""How the engine's machine code is made: one decorator for kernels, and one for what is copied into them.

A kernel is a function over flat arrays. It is compiled on its first call, once per combination of argument types (arrays are
C-contiguous and writable, so that is once), kept on disk as long as no source of a kernel changes (``kernel_cache``), and runs
without the interpreter lock. What it can do beside Python's arithmetic is in ``intrinsics``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numba

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
