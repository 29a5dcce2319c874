"""WITH RECURSIVE: a view for each round, over the round before.

    R₀ = anchor        Rᵢ₊₁ = step(Rᵢ, S)        answer = Σ Rᵢ

The step is a query like others, so that its change is δRᵢ₊₁ = δstep(Rᵢ, S; δRᵢ, δS), computed by the operators of the round:
semi-naive evaluation, with a count for each row in each round. So deletes need nothing of their own: a row that two paths lead
to stays when one of them goes. One round more than there are rows is kept, empty; when it gets rows, the next is made.

All rounds look rows up in the same copy of S. A change of S goes to every round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everview.backends.embedded.operators.base import Arrangement, Operator, consolidated
from everview.backends.embedded.row_by_row import Build, BuiltApart, Relay
from everview.backends.embedded.vectors import Batch, concatenate
from everview.relational.functions.failures import recursion_too_deep
from everview.relational.nodes import RECURSION, Recursive, Schema, input_name
from everview.relational.rules.pipeline import SPLIT_JOINS, run_rules
from everview.relational.schema import schema


class RecursiveOperator(Operator):
    """All rounds of a recursion, which change together."""

    def __init__(self, node: Recursive, inputs: tuple[Operator, ...], build: Build) -> None:
        super().__init__(schema(node), inputs)
        self._step = run_rules(node.step, SPLIT_JOINS)
        self._limit = node.limit
        self._build = build
        self._held = tuple(i.arranged() for i in inputs)
        self._relays: tuple[Relay, ...] = ()
        self._rounds: list[BuiltApart] = []
        self._before = 0
        """How many rounds there were before the transaction at hand."""
        self._touched: list[Operator] = []

    def load(self, contents: Sequence[Batch]) -> Batch:
        self._relays = tuple(Relay(self._fields(i), rows) for i, rows in enumerate(contents))
        for relay in self._relays:
            relay.arranged()
            relay.rows = None
        self._grow([])
        self._before = len(self._rounds)
        return self.content()

    def _fields(self, side: int) -> Schema:
        return self.fields if side == 0 else self.inputs[side].fields

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        found: dict[int, Batch] = {}
        for relay, delta in zip(self._relays, deltas, strict=True):
            if delta is not None and len(delta):
                self._moved(relay, delta, found)
        for built in self._rounds:
            for operator in built.operators:
                given = [found.get(id(i)) for i in operator.inputs]
                if any(delta is not None for delta in given):
                    self._touched.append(operator)
                    made = operator.push(given)
                    if made is not None and len(made):
                        self._moved(operator, made, found)
        levels = (self._relays[0], *(built.root for built in self._rounds))
        changes = [found[id(level)] for level in levels if id(level) in found]
        self._grow(changes)
        if not changes:
            return None
        delta = consolidated(concatenate(changes), self.layout)
        return delta if len(delta) else None

    def _moved(self, operator: Operator, delta: Batch, found: dict[int, Batch]) -> None:
        found[id(operator)] = delta
        if operator.arrangement is not None:
            operator.arrangement.apply(delta)

    def _grow(self, changes: list[Batch]) -> None:
        """Makes rounds until one is empty; what they hold is added to the changes."""
        while not self._rounds or len(self._last.live_slots()):
            if len(self._rounds) >= self._limit:
                raise recursion_too_deep(self._limit)
            below = self._rounds[-1].root if self._rounds else self._relays[0]
            given = {input_name(i): relay for i, relay in enumerate(self._relays[1:])}
            built = self._build(self._step, {RECURSION: below, **given}, None)
            content = built.root.arranged().content()
            self._rounds.append(built)
            if len(content):
                changes.append(content)

    @property
    def _last(self) -> Arrangement:
        return self._rounds[-1].root.arranged()

    def content(self) -> Batch:
        parts = [self._relays[0].content(), *(built.root.content() for built in self._rounds)]
        return consolidated(concatenate(parts), self.layout)

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self.content()

    def commit(self) -> None:
        for operator in self._touched:
            operator.commit()
        for arrangement in self._arrangements():
            arrangement.commit()
        self._touched.clear()
        while len(self._rounds) > 1 and not len(self._last.live_slots()) and self._is_empty(-2):
            self._rounds.pop()
        self._before = len(self._rounds)

    def _is_empty(self, place: int) -> bool:
        return not len(self._rounds[place].root.arranged().live_slots())

    def rollback(self) -> None:
        del self._rounds[self._before :]
        for arrangement in self._arrangements():
            arrangement.rollback()
        for operator in reversed(self._touched):
            operator.rollback()
        self._touched.clear()

    def _arrangements(self) -> Iterable[Arrangement]:
        every = (*self._relays, *(o for built in self._rounds for o in built.operators))
        return (o.arrangement for o in every if o.arrangement is not None)

    def nbytes(self) -> dict[str, int]:
        sizes = {"inputs": sum(sum(r.arrangement.nbytes().values()) for r in self._relays if r.arrangement is not None)}
        for number, built in enumerate(self._rounds, start=1):
            parts = [
                o.nbytes() | (o.arrangement.nbytes() if o.arrangement is not None else {}) for o in built.operators
            ]
            sizes[f"round {number}"] = sum(sum(part.values()) for part in parts)
        return sizes

    def searches(self) -> tuple[Arrangement, ...]:
        return self._held

    def describe(self) -> str:
        rounds = len(self._rounds) - 1
        return (
            f"recursion, now {rounds} rounds, each a view over the one before: what a change leads to, round by round"
        )
