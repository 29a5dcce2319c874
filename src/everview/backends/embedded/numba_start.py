"""What Numba does once a process, before its first kernel is loaded from disk or compiled."""

from __future__ import annotations

from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target


def start_numba() -> None:
    """Registers all that Numba can compile: 0.3 seconds of Python, which the first view would wait for.

    Contract: it may run in a thread of its own, beside anything; a second call finds nothing to do.
    """
    with global_compiler_lock:
        cpu_target.target_context.refresh()
