"""The memory of an engine: what counts, and how much it may take.

Counted are the rows of tables and their indexes, the state of views by the same figures as ``stats``, the dictionary of
strings, and what the transaction at hand has reserved: its own rows, the room that structures grow by, and deltas between
operators. Not counted are the deltas that are kept for readers, what Arrow and NumPy take while an expression is computed, and
the program itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.backends import rejections
from everview.backends.base import Change
from everview.backends.embedded.graph import Graph
from everview.backends.embedded.state.memory import Budget, LimitReached, reserve
from everview.errors import OutOfMemory


def budget_of(graph: Graph, limit: int) -> Budget:
    """What lets the state of an engine grow up to a limit."""
    return Budget(limit, lambda: state_bytes(graph))


def state_bytes(graph: Graph) -> int:
    """Bytes of all state."""
    total = graph.dictionary.nbytes
    for source in graph.tables.values():
        stored = source.table.nbytes
        total += stored.data + stored.index
    for operator in graph.operators:
        total += sum(operator.nbytes().values())
        if operator.arrangement is not None:
            total += sum(operator.arrangement.nbytes().values())
    return total


def reserve_rows(changes: Sequence[Change]) -> None:
    """Says that the rows of changes are about to be taken in; those of products are not made for it.

    Raises:
        LimitReached: there are too many.
    """
    reserve(sum([change.given.nbytes for change in changes if type(change) is Change]))


def out_of_memory(what: str, error: MemoryError) -> OutOfMemory:
    """The error for a user where a table or view cannot have what it needs."""
    if isinstance(error, LimitReached):
        return rejections.past_memory_limit(what, error.limit, error.held, error.more)
    return rejections.out_of_memory(what)
