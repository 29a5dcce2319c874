"""A transaction of very many rows, piece by piece: what it takes for a moment is that of a piece, not of the whole.

Rows with weights are a sum, and so are the changes of all state: a transaction ρ1 + ρ2 + … is the same as one after the other.
So the pieces are transactions of their own, inside one: nobody reads between them, assertions are checked over their sum, and
the version and the log know the whole only. What has been done is undone by − ρn … − ρ1; of an upsert or a delete by key, whose
keys are distinct in the whole of it, ρ is what it came to. If a piece alone is not allowed (it deletes what a later one
inserts) or cannot be computed, all is undone, and the transaction runs whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.dependencies import needed_for
from everview.backends.embedded.graph import Graph
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.recompute import RecomputeOperator
from everview.backends.embedded.operators.recursive import RecursiveOperator
from everview.backends.embedded.propagation import NO_BUDGET, OperatorFailed, Propagation, Running, Waiting
from everview.backends.embedded.vectors import DeferredBatch, computed
from everview.backends.interruptions import UNINTERRUPTED
from everview.errors import InvalidChange

PIECE_ROWS: Final = 1_000_000
"""Rows of a piece; a transaction with no more runs whole."""
FEW_PIECES: Final = 8
"""Of so many the deltas of views may wait until somebody reads them."""


class Advancing(Protocol):
    """Shows how far a transaction is."""

    def advance(self, amount: int) -> None:
        """So many more rows are done."""


Progress = Callable[[int], AbstractContextManager[Advancing]]
"""Begins to show a transaction of so many rows."""


def rows_in(changes: Sequence[Change]) -> int:
    """How many rows a transaction has, without those of products, which are not made for it."""
    return sum([change.given.num_rows for change in changes if type(change) is Change])


def pieces_of(changes: Sequence[Change], graph: Graph, most: int) -> list[Change] | None:
    """The changes in pieces; None if they have to run whole.

    So do products, changes of static tables that are loaded, and what a view reads that is computed anew, or a recursive
    one: between two pieces its rows could lead in a circle. And so does what names a key twice, which is not allowed.
    """
    for change in changes:
        table = graph.tables[change.table.lower()].table
        is_fixed = table.definition.static and table.has_received_rows
        if type(change) is not Change or is_fixed or not table.may_be_cut(change):
            return None
    scans = {id(scan) for change in changes for scan in graph.tables[change.table.lower()].scans.values()}
    whole = (o for o in graph.operators if isinstance(o, RecomputeOperator | RecursiveOperator))
    if any(id(operator) in scans for operator in needed_for(whole)):
        return None
    return [
        Change(c.table, c.kind, c.given.slice(at, most), None if c.weights is None else c.weights.slice(at, most))
        for c in changes
        for at in range(0, c.given.num_rows, most)
    ]


class _Unseen:
    def advance(self, amount: int) -> None:
        """Shows nothing."""


def unseen(_rows: int) -> AbstractContextManager[Advancing]:
    """Shows nothing."""
    return nullcontext(_Unseen())


class UndoFailed(Exception):
    """What had been done of a transaction could not be taken back."""


class InPieces:
    """A transaction under way.

    Args:
        graph: The tables.
        propagation: What runs operators.
        prepare: Applies changes to their tables.
        restore: Mends what a lack of memory has left half changed.
        roots: The operators of all views: only their deltas are kept, summed up from time to time.
    """

    def __init__(
        self,
        graph: Graph,
        propagation: Propagation,
        prepare: Callable[[Sequence[Change], Running], None],
        restore: Callable[[], None],
        roots: Iterable[Operator],
    ) -> None:
        self._graph = graph
        self._propagation = propagation
        self._prepare = prepare
        self._restore = restore
        self._deltas = {id(root): Waiting(root.layout) for root in roots}
        self._done: list[Change] = []
        self._received: dict[int, bool] = {}
        self.whole = Running()
        """The tables, and what the pieces have done to views."""

    def run(self, pieces: Sequence[Change], progress: Progress) -> bool:
        """Runs all of them; whether that was possible. Otherwise, and if it raises, nothing has changed."""
        try:
            with progress(rows_in(pieces)) as shown:
                for piece in pieces:
                    running, done = self._piece(piece)
                    self._add(running)
                    self._done.append(done)
                    shown.advance(piece.given.num_rows)
                    UNINTERRUPTED.give_way()
        except (OperatorFailed, InvalidChange):
            self.undo()
            return False
        except BaseException:
            self._restore()
            self.undo()
            raise
        self.whole.deltas |= {
            root: DeferredBatch(parts.merged, parts.words) for root, parts in self._deltas.items() if parts.deltas
        }
        return True

    def _piece(self, piece: Change) -> tuple[Running, Change]:
        """Runs one; returns what it did, and the rows that came and went, with their weights."""
        running = Running()
        try:
            with self._loading(piece.table):
                self._prepare([piece], running)
            for source in running.tables:
                self._received.setdefault(id(source), source.table.received_before)
            self._propagation.push(running)
            done = piece if piece.kind is ChangeKind.WEIGHTED else running.tables[0].net_change()
        except BaseException:
            running.rollback()
            raise
        self._propagation.commit(running)
        return running, done

    @contextmanager
    def _loading(self, name: str) -> Iterator[None]:
        """Lets a static table take in more than once what is one transaction."""
        table = self._graph.tables[name.lower()].table
        table.is_loaded_in_pieces = True
        try:
            yield
        finally:
            table.is_loaded_in_pieces = False

    def _add(self, running: Running) -> None:
        whole = self.whole
        whole.tables += [t for t in running.tables if not any(t is other for other in whole.tables)]
        whole.key = tuple([id(t) for t in whole.tables])
        for operator, delta in running.deltas.items():
            if operator in self._deltas:
                parts = self._deltas[operator]
                parts.add(delta if len(parts.deltas) < FEW_PIECES else computed(delta))  # which sums them up
            whole.deltas[operator] = delta

    @contextmanager
    def undone_by_errors(self) -> Iterator[None]:
        """What raises undoes all."""
        try:
            yield
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Takes back what has been done, last first, whatever memory that takes.

        Raises:
            UndoFailed: that is not possible.
        """
        budget, self._propagation.budget = self._propagation.budget, NO_BUDGET
        try:
            for piece in reversed(self._done):
                taken = pa.repeat(pa.scalar(-1, pa.int64()), piece.given.num_rows)
                weights = taken if piece.weights is None else pc.negate(piece.weights)
                self._piece(Change(piece.table, piece.kind, piece.given, weights))
            for source in self.whole.tables:
                source.table.has_received_rows = self._received[id(source)]
        except Exception as error:
            raise UndoFailed("a transaction is half done") from error
        finally:
            self._propagation.budget = budget
