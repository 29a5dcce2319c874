"""From a trigger of the program to instructions of the machine.

A delta is a frame of rows with registers: the words of its key variables, and the words of each payload part. Joins
make new frames of (row, slot) pairs and gather into them what is still needed; sums group a frame by the target's
keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from everview.algebra.registry import ring_named
from everview.algebra.ring import INT64, Addition
from everview.backends.embedded.tree.layout import (
    COUNTED,
    EXACT,
    FLOAT_VALUES,
    FLOATING,
    INT_VALUES,
    RING_FLOATS,
    RING_INTS,
    RING_PAIRS,
    WIDE_VALUES,
    Op,
    ring_kind,
    words_of,
)
from everview.backends.embedded.tree.leaf_groups import needs_groups
from everview.backends.embedded.tree.pauses import EntryPart, MaskPause, Pause, RingPause, RowPart
from everview.backends.embedded.tree.trigger_code import LeafRegisters, ResultRegisters, TriggerCode
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import KeyLayout, Kind, kind_of
from everview.planner.block import Block, Monomial, Number, Residual, RingLift
from everview.trigger.tree_program import (
    Access,
    AccessKind,
    Add,
    AddIndicator,
    Compute,
    Lift,
    TreeProgram,
    Trigger,
    ViewDefinition,
)

KIND_OF = {Number.COUNT: COUNTED, Number.EXACT: EXACT, Number.FLOAT: FLOATING}


def part_kind(block: Block, monomial: Monomial) -> int:
    """The kind of the part of a payload that holds a monomial."""
    name = block.ring_of(monomial)
    if name is None:
        return KIND_OF[block.number_of(monomial)]
    ring = ring_named(name).ring
    if ring.addition is Addition.PAIRS:
        return ring_kind(ring.width, RING_PAIRS)
    return ring_kind(ring.width, RING_INTS if ring.dtype == INT64 else RING_FLOATS)


def key_layout(block: Block, keys: Iterable[str]) -> KeyLayout:
    """How the variables lie in a key."""
    variables = [block.variable(k) for k in keys]
    return KeyLayout(tuple(v.type for v in variables), tuple(v.nullable for v in variables))


def words_per_key(block: Block, keys: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The words of each variable in a key over these variables."""
    layout = key_layout(block, keys)
    return {k: layout.words((i,)) for i, k in enumerate(keys)}


@dataclass(slots=True)
class Delta:
    """The rows of a delta: the registers of its key variables and of its parts."""

    frame: int
    keys: dict[str, tuple[int, ...]]
    parts: dict[Monomial, int]
    atoms: frozenset[int]
    repeats: bool = False
    """Whether several rows may have the same keys: a variable was dropped, or the rows of a change stand as they came."""


@dataclass(slots=True)
class Assembler:
    """Assembles one trigger. ``number_of`` gives a stored view's place in the machine's list of maps."""

    program: TreeProgram
    maps: dict[str, ViewMap]
    number_of: Callable[[str], int]
    _code: list[int] = field(default_factory=list)
    _frames: list[list[int]] = field(default_factory=list)
    _registers: int = 0
    _pauses: list[Pause] = field(default_factory=list)
    _wide_sums: list[int] = field(default_factory=list)
    _fans: list[int] = field(default_factory=list)
    """Where the code of a statement pairs rows with any number of entries."""

    def assemble(self, trigger: Trigger) -> TriggerCode:
        """The instructions of a trigger."""
        deltas: dict[str, Delta] = {}
        slots: dict[str, int] = {}
        leaf: LeafRegisters | None = None
        last = end_of_path(trigger)
        results: list[ResultRegisters] = []
        for statement in trigger.statements:
            match statement:
                case Lift():
                    is_grouped = needs_groups(self.program, trigger)
                    leaf, deltas[statement.target] = self._lift(trigger.atom, statement, is_grouped=is_grouped)
                case Compute():
                    deltas[statement.target] = self._compute(statement, deltas[statement.source])
                case Add():
                    slots[statement.target] = self._add(statement.target, deltas[statement.target])
                case AddIndicator(target=target, source=source):
                    if target in self.program.stored:
                        deltas[target] = self._add_indicator(target, deltas[source])
                    else:
                        deltas[target] = self._turned(target, source, deltas[source], slots[source])
            if isinstance(statement, Lift | Compute) and statement.target == last:
                results.append(self._result(last, deltas[last]))
        assert leaf is not None, "a trigger begins with its leaf"
        frames = tuple(tuple(f) for f in self._frames)
        code = np.array(self._code, dtype=np.int64)
        return TriggerCode(
            code, frames, self._registers, leaf, tuple(self._pauses), tuple(results), tuple(self._wide_sums)
        )

    def _result(self, name: str, delta: Delta) -> ResultRegisters:
        view = self.program.view(name)
        keys = tuple(r for k in view.keys for r in delta.keys[k])
        return ResultRegisters(delta.frame, keys, tuple(delta.parts[m] for m in view.payload))

    def _frame(self) -> int:
        self._frames.append([])
        return len(self._frames) - 1

    def _register(self, frame: int, words: int = 1) -> int:
        first = self._registers
        self._registers += words
        self._frames[frame].extend(range(first, first + words))
        return first

    def _emit(self, op: Op, *operands: int) -> None:
        self._code.extend((int(op), 2 + len(operands), *operands))

    def _kind(self, monomial: Monomial) -> int:
        return part_kind(self.program.block, monomial)

    def _key_registers(self, frame: int, variables: Iterable[str]) -> dict[str, tuple[int, ...]]:
        block = self.program.block
        return {
            v: tuple(self._register(frame) for _ in words_per_key(block, (v,))[v]) for v in dict.fromkeys(variables)
        }

    def _lift(self, number: int, lift: Lift, *, is_grouped: bool = True) -> tuple[LeafRegisters, Delta]:
        atom, view = self.program.block.atoms[number], self.program.view(lift.target)
        frame = self._frame()
        keys = self._key_registers(frame, view.keys)
        weights = self._register(frame)
        used = sorted({i for monomial in view.payload for _, i in monomial})
        is_element = {i: isinstance(atom.lifts[i], RingLift) for i in used}
        values = {i: self._register(frame) for i in used if not is_element[i]}
        elements: dict[int, tuple[int, ...]] = {}
        for i in (i for i in used if is_element[i]):
            words = words_of(self._kind(frozenset({(number, i)})))
            elements[i] = tuple(range(first := self._register(frame, words), first + words))
        delta = self._grouped(frame, keys, view.keys, Op.GROUP if is_grouped else Op.EACH)
        delta.repeats = not is_grouped
        for monomial in view.payload:
            kind = self._kind(monomial)
            target = delta.parts[monomial] = self._register(delta.frame, words_of(kind))
            source, source_kind, weight = weights, COUNTED, -1
            if monomial:
                ((_, i),) = monomial
                source, weight, source_kind = (elements[i][0] if i in elements else values[i]), weights, kind
                if kind == EXACT:
                    wide = all(kind_of(e.type) is Kind.WIDE for e in atom.lifts[i].expressions)
                    source_kind = WIDE_VALUES if wide else INT_VALUES
                elif kind == FLOATING:
                    source_kind = FLOAT_VALUES
            if source_kind == WIDE_VALUES:
                self._wide_sums.append(len(self._code) + 5)
            self._emit(Op.SUM, frame, delta.frame, delta.keys[""][0], source_kind, source, weight, target)
        del delta.keys[""]
        delta.atoms = frozenset({number})
        key_registers = tuple(keys[k] for k in view.keys)
        registers = LeafRegisters(key_registers, tuple(values.items()), weights, tuple(elements.items()))
        return registers, delta

    def _grouped(
        self, frame: int, keys: dict[str, tuple[int, ...]], wanted: Sequence[str], op: Op = Op.GROUP, *known: int
    ) -> Delta:
        """A frame with one row for each distinct combination of the wanted keys; key "" is the rows' group number."""
        numbers = self._register(frame)
        out = self._frame()
        new = self._key_registers(out, wanted)
        old_words = [r for k in wanted for r in keys[k]]
        new_words = [r for k in wanted for r in new[k]]
        self._emit(op, frame, out, numbers, len(old_words), *old_words, *new_words, *known)
        return Delta(out, {**new, "": (numbers,)}, {}, frozenset())

    def _compute(self, compute: Compute, delta: Delta) -> Delta:
        target = self.program.view(compute.target)
        for residual in compute.residuals:
            delta = self._restricted(delta, residual)
        self._fans.clear()
        is_thinned = False
        for i, access in enumerate(compute.joins):
            later = compute.joins[i + 1 :]
            is_thinned |= bool(self._fans)
            needed = set(target.keys)
            needed |= {v for a in later for v in a.bound}
            needed |= {v for a in (access, *later) for r in a.residuals for v in r.variables}
            delta = self._join(access, delta, needed)
            is_thinned |= bool(self._fans) and (access.is_indicator or bool(access.residuals))
            for residual in access.residuals:
                delta = self._restricted(delta, residual)
        is_distinct = set(delta.keys) == set(target.keys) and not delta.repeats
        if is_distinct and not is_thinned:
            return delta
        if self._fans:
            return self._summed_in_turns(delta, target, Op.APPEND if is_distinct else Op.GATHER)
        return self._summed_by(delta, target, Op.GROUP, Op.SUM)

    def _summed_by(self, delta: Delta, target: ViewDefinition, group: Op, add: Op, *known: int) -> Delta:
        """The delta by the keys of the target."""
        grouped = self._grouped(delta.frame, delta.keys, target.keys, group, *known)
        (numbers,) = grouped.keys.pop("")
        for monomial in target.payload:
            kind = self._kind(monomial)
            sums = grouped.parts[monomial] = self._register(grouped.frame, words_of(kind))
            self._emit(add, delta.frame, grouped.frame, numbers, kind, delta.parts[monomial], -1, sums, *known)
        grouped.atoms = delta.atoms
        return grouped

    def _summed_in_turns(self, delta: Delta, target: ViewDefinition, group: Op) -> Delta:
        """The same where rows are paired with any number of entries: a bounded number of pairs is made and summed at a time.

        So memory follows the delta, not the pairs. The code from the first such instruction on runs again until it is
        through all pairs, and before it from the second, and so on.
        """
        known, _ = self._frame(), self._frame()  # a number of groups, and a stamp
        summed = self._summed_by(delta, target, group, Op.SUM_MORE, known)
        cursors = []
        for _ in self._fans:
            cursors.append(self._frame())
            self._frame()
        clear = [int(Op.CLEAR), 3 + len(cursors), summed.frame, *cursors]
        first = self._fans[0]
        self._code[first:first] = clear
        for fan, cursor in zip(reversed(self._fans), reversed(cursors), strict=True):
            start = fan + len(clear)
            self._code[start + self._code[start + 1] - 1] = cursor  # the last operand
            self._emit(Op.REPEAT, cursor, len(self._code) - start)
        return summed

    def _join(self, access: Access, delta: Delta, needed: set[str]) -> Delta:
        view, held = self.program.view(access.view), self.maps[access.view]
        number = self.number_of(access.view)
        words = words_per_key(self.program.block, view.keys)
        out = self._frame()
        rows, slots = self._register(out), self._register(out)
        bound = [r for v in access.bound for r in delta.keys[v]]
        match access.kind:
            case AccessKind.LOOKUP:
                bound = [r for v in view.keys for r in delta.keys[v]]
                self._emit(Op.LOOKUP, number, delta.frame, out, rows, slots, len(bound), *bound)
            case AccessKind.SLICE:
                index = held.index([w for v in access.bound for w in words[v]], is_kept=False)
                self._fans.append(len(self._code))
                self._emit(Op.SLICE, number, delta.frame, out, rows, slots, index, len(bound), *bound, -1)
            case AccessKind.SCAN:
                self._fans.append(len(self._code))
                self._emit(Op.SCAN, number, delta.frame, out, rows, slots, -1)
        if access.is_indicator:
            self._emit(Op.HELD, out, number, rows, slots)
        repeats = delta.repeats or not needed >= {*delta.keys, *view.keys}
        joined = Delta(out, {}, {}, delta.atoms if access.is_indicator else delta.atoms | view.atoms, repeats)
        for variable in [*delta.keys, *(k for k in view.keys if k not in delta.keys)]:
            if variable not in needed:
                continue
            (registers,) = self._key_registers(out, (variable,)).values()
            joined.keys[variable] = registers
            if variable in delta.keys:
                for source, register in zip(delta.keys[variable], registers, strict=True):
                    self._emit(Op.TAKE, out, rows, source, register)
            else:
                for word, register in zip(words[variable], registers, strict=True):
                    self._emit(Op.KEY, out, number, slots, word, register)
        if access.is_indicator:
            self._take_parts(delta, joined, rows, access.payload)
            return joined
        for monomial in access.payload:
            left = frozenset(p for p in monomial if p[0] in delta.atoms)
            right = frozenset(p for p in monomial if p[0] in view.atoms)
            register = joined.parts[monomial] = self._register(out, words_of(self._kind(monomial)))
            place = held.offsets[view.payload.index(right)]
            ring = self.program.block.ring_of(left)
            if ring is not None and self.program.block.ring_of(right) is not None:
                operands = RowPart(delta.frame, rows, delta.parts[left]), EntryPart(number, slots, place)
                self._pause(RingPause(ring, out, *operands, register))
                continue
            self._emit(
                Op.MULTIPLY,
                out,
                rows,
                number,
                slots,
                self._kind(left),
                delta.parts[left],
                self._kind(right),
                place,
                register,
            )
        return joined

    def _restricted(self, delta: Delta, residual: Residual) -> Delta:
        mask = self._register(delta.frame)
        columns = tuple(delta.keys[v] for v in residual.variables)
        self._pause(MaskPause(residual, delta.frame, columns, mask))
        out = self._frame()
        rows = self._register(out)
        self._emit(Op.COMPACT, delta.frame, mask, out, rows)
        kept = Delta(out, self._key_registers(out, delta.keys), {}, delta.atoms, delta.repeats)
        for variable, registers in delta.keys.items():
            for source, register in zip(registers, kept.keys[variable], strict=True):
                self._emit(Op.TAKE, out, rows, source, register)
        self._take_parts(delta, kept, rows, delta.parts)
        return kept

    def _pause(self, pause: Pause) -> None:
        self._pauses.append(pause)
        self._emit(Op.PAUSE, len(self._pauses) - 1)

    def _take_parts(self, delta: Delta, kept: Delta, rows: int, monomials: Iterable[Monomial]) -> None:
        for monomial in monomials:
            source, words = delta.parts[monomial], words_of(self._kind(monomial))
            register = kept.parts[monomial] = self._register(kept.frame, words)
            for word in range(words):
                self._emit(Op.TAKE, kept.frame, rows, source + word, register + word)

    def _add(self, name: str, delta: Delta) -> int:
        """Adds a delta to its view; returns the register of the entries' slots."""
        view = self.program.view(name)
        slots = self._register(delta.frame)
        keys = [r for k in view.keys for r in delta.keys[k]]
        parts = [delta.parts[m] for m in view.payload]
        self._emit(Op.UPSERT, self.number_of(name), delta.frame, slots, len(keys), *keys, *parts)
        return slots

    def _add_indicator(self, name: str, delta: Delta) -> Delta:
        """Counts the rows of an atom by the indicator's keys, and returns the indicator's delta."""
        view = self.program.view(name)
        (count,) = view.payload
        counted = Delta(delta.frame, {k: delta.keys[k] for k in view.keys}, {count: delta.parts[count]}, frozenset())
        if set(view.keys) != set(delta.keys):
            grouped = self._grouped(delta.frame, delta.keys, view.keys)
            (numbers,) = grouped.keys.pop("")
            sums = grouped.parts[count] = self._register(grouped.frame)
            self._emit(Op.SUM, delta.frame, grouped.frame, numbers, COUNTED, delta.parts[count], -1, sums)
            counted = grouped
        return self._turned(name, name, counted, self._add(name, counted))

    def _turned(self, name: str, held_by: str, counted: Delta, slots: int) -> Delta:
        """The delta of an indicator after counts were added to entries: the keys of which there were, or now are, none.

        Every key is there once, so that an entry's count before is known from the one after.
        """
        view = self.program.view(name)
        (count,) = view.payload
        turned = self._register(counted.frame)
        self._emit(Op.TURN, counted.frame, self.number_of(held_by), slots, counted.parts[count], turned)
        out = self._frame()
        rows = self._register(out)
        self._emit(Op.COMPACT, counted.frame, turned, out, rows)
        kept = Delta(out, self._key_registers(out, view.keys), {count: self._register(out)}, frozenset())
        for variable, registers in kept.keys.items():
            for source, register in zip(counted.keys[variable], registers, strict=True):
                self._emit(Op.TAKE, out, rows, source, register)
        self._emit(Op.TAKE, out, rows, turned, kept.parts[count])
        return kept


def end_of_path(trigger: Trigger) -> str:
    """The view that the path of the leaf ends with."""
    ends = [s.target for s in takewhile(lambda s: not isinstance(s, AddIndicator), trigger.statements)]
    return ends[-1]
