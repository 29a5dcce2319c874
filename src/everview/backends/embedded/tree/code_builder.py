"""The code of a trigger while it is made: frames and registers are claimed, instructions appended, statement after statement.

A delta is a frame of rows with registers: the words of its key variables, and the words of each payload part. Joins make new
frames of (row, slot) pairs and gather into them what is still needed; sums group a frame by the target's keys.

What a delta is differs: one frame for the rows of a change (``assemble``), several for a product (``assemble_product``). So the
builder leaves open how a delta is lifted, computed and added; what these have in common is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Generic, TypeVar

from everview.algebra.finite_algebra import terms_of
from everview.algebra.registry import ring_named
from everview.backends.embedded.tree.block_layout import words_per_key
from everview.backends.embedded.tree.instruction import NONE, Instruction
from everview.backends.embedded.tree.instructions import (
    Compact,
    FindEntries,
    Group,
    LeaveMachine,
    Multiply,
    MultiplyByTable,
    ReadEntry,
    ScanEntries,
    SliceEntries,
    SumGroups,
    Take,
    TakeMoments,
)
from everview.backends.embedded.tree.layout import is_moments, moments_of, room_for, words_of
from everview.backends.embedded.tree.pauses import EntryPart, MaskPause, Pause, RingPause, RowPart
from everview.backends.embedded.tree.view_map import ViewMap
from everview.planner.block import Residual
from everview.trigger.tree_program import (
    AccessKind,
    Add,
    AddIndicator,
    Compute,
    CountDegrees,
    LiftRows,
    SeeAs,
    Split,
    TreeProgram,
    TreeViewDefinition,
    Trigger,
    TurnKeys,
)

Keys = dict[str, tuple[int, ...]]
"""The registers of each key variable."""
D = TypeVar("D")
"""What the delta of a view is."""
P = TypeVar("P")
"""What the parts of rows are known by."""


@dataclass(slots=True)
class Delta(Generic[P]):
    """Rows: the registers of their key variables and of their parts."""

    frame: int
    keys: Keys
    parts: dict[P, int]
    atoms: frozenset[int] = frozenset()
    """The atoms that the parts have to do with."""
    repeats: bool = False
    """Whether several rows may have the same keys: a variable was dropped, or the rows of a change stand as they came."""
    product: MomentsProduct | None = None
    """Moments that are still to be multiplied: once, when all factors are known, where each alone would write what it makes."""

    def words(self, variables: Iterable[str]) -> tuple[int, ...]:
        """The registers of some key variables, one after another."""
        return tuple(r for v in variables for r in self.keys[v])


@dataclass(frozen=True, slots=True)
class MomentsFactor:
    """Moments of entries: the view by its number, the register of their slots, the word they begin at, their kind."""

    view: int
    slots: int
    place: int
    kind: int
    atoms: frozenset[int]


@dataclass(frozen=True, slots=True)
class MomentsProduct:
    """The moments of some rows of ``source``, whose register is ``rows``, times those of the entries they were paired with."""

    rows: int
    source: Delta[Any]
    factors: tuple[MomentsFactor, ...]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A frame of rows paired with entries of a view, by its number."""

    frame: int
    rows: int
    slots: int
    view: int


@dataclass(slots=True)
class CodeBuilder(ABC, Generic[D, P]):
    """Appends the instructions of triggers. ``number_of`` gives a stored view's place in the machine's list of maps."""

    program: TreeProgram
    maps: dict[str, ViewMap]
    number_of: Callable[[str], int]
    code: list[Instruction] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    _frames: list[list[int]] = field(default_factory=list)
    _registers: int = 0
    _fans: list[int] = field(default_factory=list)
    """The numbers of the instructions, of one statement, that pair rows with any number of entries."""
    _long_rows: dict[int, int] = field(default_factory=dict)
    """The words of registers that have more than one for a row."""

    def append(self, trigger: Trigger) -> tuple[str, list[D]]:
        """Appends the instructions of a trigger; returns the view that it ends with, and its deltas, one for each path."""
        last, results = end_of_path(trigger), []
        deltas: dict[str, D] = {}
        for statement in trigger.statements:
            match statement:
                case LiftRows(target=target):
                    deltas[target] = self._lifted(trigger, statement)
                case Compute(target=target, source=source):
                    deltas[target] = self._computed(statement, deltas[source])
                case Add(target=target, turns=turns):
                    view = self.program.view(target)
                    for payload in turns or (view.payload,):
                        self._added(replace(view, payload=payload), deltas[target])
                case SeeAs(target=target, source=source):
                    deltas[target] = self._seen_as(statement, deltas[source])
                case AddIndicator(target=target, source=source):
                    deltas[target] = self._indicated(statement, deltas[source])
                case Split(target=target, heavy=heavy, source=source):
                    deltas[target], deltas[heavy] = self._split(statement, deltas[source])
                case CountDegrees(source=source):
                    self._counted(statement, deltas[source])
                case TurnKeys(target=target):
                    deltas[target] = self._turned(statement)
            if isinstance(statement, LiftRows | Compute) and statement.target == last:
                results.append(deltas[last])
        return last, results

    @abstractmethod
    def _lifted(self, trigger: Trigger, lift: LiftRows) -> D:
        """Appends what makes the delta of a leaf."""

    @abstractmethod
    def _computed(self, compute: Compute, delta: D) -> D:
        """Appends what makes the delta of a view from that of its child."""

    @abstractmethod
    def _added(self, view: TreeViewDefinition, delta: D) -> None:
        """Appends what adds a delta to its view."""

    @abstractmethod
    def _indicated(self, statement: AddIndicator, delta: D) -> D:
        """Appends what makes the delta of an indicator, and adds it where the indicator is stored."""

    def _seen_as(self, statement: SeeAs, delta: D) -> D:
        """The same delta under the names of another occurrence of its table."""
        raise AssertionError("parts are for rows")

    def _split(self, statement: Split, delta: D) -> tuple[D, D]:
        """Appends what makes the light and the heavy part of a delta."""
        raise AssertionError("parts are for rows")

    def _counted(self, statement: CountDegrees, delta: D) -> None:
        """Appends what adds to degrees the keys that have come and gone."""
        raise AssertionError("parts are for rows")

    def _turned(self, statement: TurnKeys) -> D:
        """Appends what makes the delta of the heavy keys, which is given."""
        raise AssertionError("parts are for rows")

    @abstractmethod
    def _kind(self, part: P) -> int:
        """The kind of a part."""

    # Frames and registers

    def frames(self) -> tuple[tuple[int, ...], ...]:
        """The registers of each frame."""
        return tuple(tuple(f) for f in self._frames)

    def _frame(self) -> int:
        self._frames.append([])
        return len(self._frames) - 1

    def _register(self, frame: int, words: int = 1) -> int:
        first = self._registers
        self._registers += words
        self._frames[frame].extend(range(first, first + words))
        return first

    def _key_registers(self, frame: int, variables: Iterable[str]) -> Keys:
        block = self.program.block
        return {
            v: tuple(self._register(frame) for _ in words_per_key(block, (v,))[v]) for v in dict.fromkeys(variables)
        }

    def _part_registers(self, delta: Delta[P], part: P) -> int:
        """New registers for a part."""
        kind = self._kind(part)
        if is_moments(kind):
            first = self._long_register(delta.frame, 2 * room_for(moments_of(kind)))
        else:
            first = self._register(delta.frame, words_of(kind))
        delta.parts[part] = first
        return first

    def _element_registers(self, frame: int, kind: int) -> tuple[int, ...]:
        """Registers for the words of given elements of this kind."""
        words = words_of(kind)
        first = self._register(frame, words)
        return tuple(range(first, first + words))

    def _long_register(self, frame: int, words: int) -> int:
        """A register with so many words for each row."""
        register = self._register(frame)
        self._long_rows[register] = words
        return register

    def _pause(self, pause: Pause) -> None:
        self.pauses.append(pause)
        self.code.append(LeaveMachine(len(self.pauses) - 1))

    # What statements are made of

    def _grouped(
        self, frame: int, keys: Keys, wanted: Sequence[str], how: type[Group] = Group, known: int = NONE
    ) -> tuple[Delta[P], int]:
        """A frame with one row for each distinct combination of the wanted keys, and the register of the rows' groups."""
        numbers = self._register(frame)
        out = self._frame()
        new: Delta[P] = Delta(out, self._key_registers(out, wanted), {})
        old = tuple(r for k in wanted for r in keys[k])
        self.code.append(how(frame, out, numbers, known, old, new.words(wanted)))
        return new, numbers

    def _summed_by(
        self,
        delta: Delta[P],
        keys: Sequence[str],
        parts: Iterable[P],
        group: type[Group] = Group,
        add: type[SumGroups] = SumGroups,
        known: int = NONE,
    ) -> Delta[P]:
        """Rows by some of their keys, with the sums of some parts."""
        out, numbers = self._grouped(delta.frame, delta.keys, keys, group, known)
        for part in parts:
            self._sum_part(part, delta, out, numbers, add, known)
        out.atoms = delta.atoms
        return out

    def _sum_part(
        self, part: P, delta: Delta[P], out: Delta[P], numbers: int, add: type[SumGroups], known: int
    ) -> None:
        source, target = delta.parts[part], self._part_registers(out, part)
        self.code.append(add(delta.frame, out.frame, numbers, self._kind(part), source, NONE, target, known))

    def _matched(
        self, view: TreeViewDefinition, kind: AccessKind, bound: Sequence[str], delta: Delta[P], *, keeps_index: bool
    ) -> Pairs:
        """Pairs rows with the entries of a view that agree with them on the bound variables."""
        number, frame, out = self.number_of(view.name), delta.frame, self._frame()
        rows, slots = self._register(out), self._register(out)
        match kind:
            case AccessKind.LOOKUP:
                self.code.append(FindEntries(number, frame, out, rows, slots, delta.words(view.keys)))
            case AccessKind.SLICE:
                words = words_per_key(self.program.block, view.keys)
                index = self.maps[view.name].index([w for v in bound for w in words[v]], is_kept=keeps_index)
                self._fans.append(len(self.code))
                keys = delta.words(bound)
                self.code.append(SliceEntries(number, frame, out, rows, slots, NONE, index, keys))
            case AccessKind.SCAN:
                self._fans.append(len(self.code))
                self.code.append(ScanEntries(number, frame, out, rows, slots, NONE))
        return Pairs(out, rows, slots, number)

    def _ring_product(
        self, ring: str, kind: int, pairs: Pairs, frame: int, source: int, place: int, target: int
    ) -> None:
        """Multiplies elements of a registered ring: by its table if it has one, else Python does."""
        terms = terms_of(ring_named(ring).ring)
        if terms is None:
            row, entry = RowPart(frame, pairs.rows, source), EntryPart(pairs.view, pairs.slots, place)
            self._pause(RingPause(ring, pairs.frame, row, entry, target))
            return
        flat = tuple(number for term in terms for number in term)
        self.code.append(
            MultiplyByTable(pairs.frame, pairs.rows, pairs.view, pairs.slots, kind, source, place, target, flat)
        )

    def _take_keys(self, out: Delta[P], source: Delta[P], rows: int, needed: Iterable[str]) -> None:
        """Gathers the needed keys of rows."""
        wanted = [v for v in source.keys if v in needed and v not in out.keys]
        for variable, registers in self._key_registers(out.frame, wanted).items():
            out.keys[variable] = registers
            for old, new in zip(source.keys[variable], registers, strict=True):
                self.code.append(Take(out.frame, rows, old, new))

    def _read_keys(self, out: Delta[P], pairs: Pairs, view: TreeViewDefinition, needed: Iterable[str]) -> None:
        """Gathers the needed keys of entries."""
        words = words_per_key(self.program.block, view.keys)
        wanted = [v for v in view.keys if v in needed and v not in out.keys]
        for variable, registers in self._key_registers(out.frame, wanted).items():
            out.keys[variable] = registers
            for word, new in zip(words[variable], registers, strict=True):
                self.code.append(ReadEntry(out.frame, pairs.view, pairs.slots, word, new))

    @staticmethod
    def _product(pairs: Pairs, left: tuple[int, int], right: tuple[int, int], target: int) -> Multiply:
        """The products of a part of rows (kind, register) and one of entries (kind, word)."""
        return Multiply(pairs.frame, pairs.rows, pairs.view, pairs.slots, *left, *right, target)

    def _take_parts(self, out: Delta[P], source: Delta[P], rows: int, parts: Iterable[P]) -> None:
        """Gathers parts of rows."""
        for part in parts:
            old, new, kind = source.parts[part], self._part_registers(out, part), self._kind(part)
            if is_moments(kind):
                self.code.append(TakeMoments(out.frame, rows, kind, old, new))
                continue
            for word in range(words_of(kind)):
                self.code.append(Take(out.frame, rows, old + word, new + word))

    def _restricted(self, delta: Delta[P], residual: Residual) -> Delta[P]:
        """The rows for which a predicate holds."""
        mask = self._register(delta.frame)
        columns = tuple(delta.keys[v] for v in residual.variables)
        self._pause(MaskPause(residual, delta.frame, columns, mask))
        kept, rows = self._compacted(delta, mask)
        self._take_keys(kept, delta, rows, delta.keys)
        self._take_parts(kept, delta, rows, delta.parts)
        return kept

    def _compacted(self, delta: Delta[P], mask: int) -> tuple[Delta[P], int]:
        """A frame for the rows where a mask is not 0; and the register of these rows."""
        out = self._frame()
        rows = self._register(out)
        self.code.append(Compact(delta.frame, mask, out, rows))
        return Delta(out, {}, {}, delta.atoms, delta.repeats), rows


def end_of_path(trigger: Trigger) -> str:
    """The view that the path of the leaf ends with."""
    ends = [s.target for s in takewhile(lambda s: not isinstance(s, AddIndicator), trigger.statements)]
    return ends[-1]


def needed_keys(compute: Compute, step: int, target: TreeViewDefinition) -> set[str]:
    """The variables that are still needed after a join of a statement."""
    access, later = compute.joins[step], compute.joins[step + 1 :]
    needed = set(target.keys)
    needed |= {v for a in later for v in a.bound}
    return needed | {v for a in (access, *later) for r in a.residuals for v in r.variables}
