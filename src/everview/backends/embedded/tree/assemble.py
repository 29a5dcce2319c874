"""From a trigger of the program to instructions of the machine, for a change that is given by its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from everview.backends.embedded.tree.block_layout import part_kind
from everview.backends.embedded.tree.code_builder import (
    CodeBuilder,
    Delta,
    MomentsFactor,
    MomentsProduct,
    Pairs,
    needed_keys,
)
from everview.backends.embedded.tree.instruction import NONE, assembled, size_of
from everview.backends.embedded.tree.instructions import (
    SUM,
    Append,
    Clear,
    Each,
    Gather,
    Group,
    KeepHeld,
    LiftMoments,
    MultiplyMoments,
    MultiplyRows,
    Repeat,
    ScanEntries,
    SliceEntries,
    SumGroups,
    SumMore,
    Take,
    TellParts,
    Turn,
    Upsert,
)
from everview.backends.embedded.tree.layout import (
    COUNTED,
    EXACT,
    FIRST_ROWS,
    FLOAT_VALUES,
    FLOATING,
    INT_VALUES,
    WIDE_VALUES,
    lift_room,
    words_of,
)
from everview.backends.embedded.tree.leaf_groups import needs_groups
from everview.backends.embedded.tree.moments_shape import product_shape
from everview.backends.embedded.tree.pauses import RangePause
from everview.backends.embedded.tree.trigger_code import LeafRegisters, ResultRegisters, TriggerCode
from everview.backends.embedded.vectors import Kind, kind_of
from everview.planner.block import Monomial, RingLift
from everview.planner.moments_block import PayloadPart, packed
from everview.planner.moments_part import MomentsPart
from everview.trigger.tree_program import (
    Access,
    AddIndicator,
    Compute,
    CountDegrees,
    LiftRows,
    SeeAs,
    Split,
    TreeViewDefinition,
    Trigger,
    TurnKeys,
)

RowDelta = Delta[PayloadPart]


@dataclass(slots=True)
class Assembler(CodeBuilder[RowDelta, PayloadPart]):
    """Assembles triggers for the rows of a change."""

    _leaf: LeafRegisters | None = None
    _slots: dict[str, int] = field(default_factory=dict)
    """By view, the register of the slots that a delta was added to."""
    _wide_sums: list[int] = field(default_factory=list)
    """The numbers of the instructions that sum wide integers of the leaf."""

    def assemble(self, trigger: Trigger) -> TriggerCode:
        """The code of a trigger."""
        if self.program.partitions:  # the sum over all parts is stored: nobody looks at the results of one path
            self.append(trigger)
            return self.finished()
        return self.finished(self.append_with_results(trigger))

    def append_with_results(self, trigger: Trigger) -> tuple[ResultRegisters, ...]:
        """Appends the instructions of a trigger; returns where its results are."""
        last, deltas = self.append(trigger)
        view = self.program.view(last)
        return tuple(
            ResultRegisters(d.frame, d.words(view.keys), tuple(d.parts[p] for p in self._parts(view.payload)))
            for d in deltas
        )

    def finished(self, results: tuple[ResultRegisters, ...] = ()) -> TriggerCode:
        """All that was appended."""
        assert self._leaf is not None, "a trigger begins with its leaf"
        starts = [0, *accumulate(len(one.words()) for one in self.code)]
        wide = tuple(starts[i] + SUM.kind for i in self._wide_sums)
        words = assembled(self.code)
        long_rows = tuple(self._long_rows.items())
        return TriggerCode(
            words, self.frames(), self._registers, self._leaf, tuple(self.pauses), results, wide, long_rows
        )

    def _kind(self, part: PayloadPart) -> int:
        return part_kind(self.program.block, part)

    def _parts(self, payload: Sequence[Monomial]) -> tuple[PayloadPart, ...]:
        """The parts that rows and entries have for a payload."""
        return packed(self.program.block, payload)

    def _lifted(self, trigger: Trigger, lift: LiftRows) -> RowDelta:
        return self._leaf_delta(trigger.atom, lift, is_grouped=needs_groups(self.program, trigger))

    def _leaf_delta(self, number: int, lift: LiftRows, *, is_grouped: bool) -> RowDelta:
        atom, view = self.program.block.atoms[number], self.program.view(lift.target)
        frame = self._frame()
        keys = self._key_registers(frame, view.keys)
        weights = self._register(frame)
        parts = self._parts(view.payload)
        used = sorted({i for p in parts for _, i in (p.features if isinstance(p, MomentsPart) else p)})
        is_element = {i: isinstance(atom.lifts[i], RingLift) for i in used}
        values = {i: self._register(frame) for i in used if not is_element[i]}
        elements: dict[int, tuple[int, ...]] = {}
        for i in (i for i in used if is_element[i]):
            elements[i] = self._element_registers(frame, self._kind(frozenset({(number, i)})))
        delta, numbers = self._grouped(frame, keys, view.keys, Group if is_grouped else Each)
        delta.repeats = not is_grouped
        for part in parts:
            kind = self._kind(part)
            target = self._part_registers(delta, part)
            if isinstance(part, MomentsPart):
                rows = self._long_register(frame, lift_room(len(part.features)))
                features = tuple(values[i] for _, i in part.features)
                self.code.append(LiftMoments(frame, delta.frame, numbers, weights, kind, rows, target, features))
                continue
            source, source_kind, weight = weights, COUNTED, NONE
            if part:
                ((_, i),) = part
                source, weight, source_kind = (elements[i][0] if i in elements else values[i]), weights, kind
                if kind == EXACT:
                    wide = all(kind_of(e.type) is Kind.WIDE for e in atom.lifts[i].expressions)
                    source_kind = WIDE_VALUES if wide else INT_VALUES
                elif kind == FLOATING:
                    source_kind = FLOAT_VALUES
            if source_kind == WIDE_VALUES:
                self._wide_sums.append(len(self.code))
            self.code.append(SumGroups(frame, delta.frame, numbers, source_kind, source, weight, target, NONE))
        delta.atoms = frozenset({number})
        key_registers = tuple(keys[k] for k in view.keys)
        assert self._leaf is None, "one atom has changed"
        self._leaf = LeafRegisters(key_registers, tuple(values.items()), weights, tuple(elements.items()))
        return delta

    def _computed(self, compute: Compute, delta: RowDelta) -> RowDelta:
        target = self.program.view(compute.target)
        for residual in compute.residuals:
            delta = self._restricted(delta, residual)
        self._fans.clear()
        is_thinned = False
        for i, access in enumerate(compute.joins):
            is_thinned |= bool(self._fans)
            delta = self._join(access, delta, needed_keys(compute, i, target))
            is_thinned |= bool(self._fans) and (access.is_indicator or bool(access.residuals))
            for residual in access.residuals if access.ordered is None else ():
                delta = self._restricted(self._multiplied(delta), residual)
        is_distinct = set(delta.keys) == set(target.keys) and not delta.repeats
        if is_distinct and not is_thinned:
            return self._multiplied(delta)
        if self._fans:
            return self._summed_in_turns(delta, target, Append if is_distinct else Gather)
        return self._summed_by(delta, target.keys, self._parts(target.payload))

    def _summed_in_turns(self, delta: RowDelta, target: TreeViewDefinition, group: type[Group]) -> RowDelta:
        """The same where rows are paired with any number of entries: a bounded number of pairs is made and summed at a time.

        So memory follows the delta, not the pairs. The code from the first such instruction on runs again until it is
        through all pairs, and before it from the second, and so on.
        """
        known, _ = self._frame(), self._frame()  # a number of groups, and a stamp
        summed = self._summed_by(delta, target.keys, self._parts(target.payload), group, SumMore, known)
        cursors = []
        for _ in self._fans:
            cursors.append(self._frame())
            self._frame()
        self.code.insert(self._fans[0], Clear((summed.frame, *cursors)))
        for fan, cursor in zip(reversed(self._fans), reversed(cursors), strict=True):
            start = fan + 1
            pairing = self.code[start]
            assert isinstance(pairing, SliceEntries | ScanEntries)
            self.code[start] = replace(pairing, cursor=cursor)
            self.code.append(Repeat(cursor, size_of(self.code[start:])))
        return summed

    def _join(self, access: Access, delta: RowDelta, needed: set[str]) -> RowDelta:
        view = self.program.view(access.view)
        if access.ordered is not None:
            return self._summed_range(access, delta, view)
        if access.is_indicator:
            delta = self._multiplied(delta)
        pairs = self._matched(view, access.kind, access.bound, delta, keeps_index=bool(self.program.partitions))
        repeats = delta.repeats or not needed >= {*delta.keys, *view.keys}
        atoms = delta.atoms if access.is_indicator else delta.atoms | view.atoms
        joined: RowDelta = Delta(pairs.frame, {}, {}, atoms, repeats)
        if access.is_indicator:
            self.code.append(KeepHeld(pairs.frame, pairs.view, pairs.rows, pairs.slots))
        self._take_keys(joined, delta, pairs.rows, needed)
        self._read_keys(joined, pairs, view, needed)
        if access.is_indicator:
            self._take_parts(joined, delta, pairs.rows, self._parts(access.payload))
            return joined
        block, offsets = self.program.block, self.maps[access.view].offsets
        held = self._parts(view.payload)
        for monomial in self._parts(access.payload):
            if isinstance(monomial, MomentsPart):
                joined.product = self._product_with(view, pairs, delta)
                continue
            left = frozenset(p for p in monomial if p[0] in delta.atoms)
            right = frozenset(p for p in monomial if p[0] in view.atoms)
            source, target = delta.parts[left], self._part_registers(joined, monomial)
            place = offsets[held.index(right)]
            ring = block.ring_of(left)
            if ring is not None and block.ring_of(right) is not None:
                self._ring_product(ring, self._kind(left), pairs, delta.frame, source, place, target)
            else:
                self.code.append(self._product(pairs, (self._kind(left), source), (self._kind(right), place), target))
        return joined

    def _summed_range(self, access: Access, delta: RowDelta, view: TreeViewDefinition) -> RowDelta:
        """The rows as they are, each multiplied with the sum of its range."""
        known = tuple(dict.fromkeys(v for r in access.residuals for v in r.variables if v != access.ordered))
        variables = tuple(dict.fromkeys((*access.bound, *known)))
        frame = delta.frame
        rows = self._register(frame)
        kinds = [self._kind(m) for m in view.payload]
        first = self._register(frame, sum(words_of(k) for k in kinds))
        registers = tuple(delta.keys[v] for v in variables)
        self._pause(RangePause(access, self.number_of(access.view), frame, variables, registers, first, rows))
        starts = dict(zip(view.payload, accumulate((words_of(k) for k in kinds), initial=first), strict=False))
        joined: RowDelta = Delta(frame, delta.keys, {}, delta.atoms | view.atoms, delta.repeats)
        for monomial in access.payload:
            left = frozenset(p for p in monomial if p[0] in delta.atoms)
            right = frozenset(p for p in monomial if p[0] in view.atoms)
            mine, theirs = (self._kind(left), delta.parts[left]), (self._kind(right), starts[right])
            self.code.append(MultiplyRows(frame, rows, rows, *mine, *theirs, self._part_registers(joined, monomial)))
        return joined

    def _product_with(self, view: TreeViewDefinition, pairs: Pairs, delta: RowDelta) -> MomentsProduct:
        """The moments of rows times those of entries, to be multiplied when all factors are known."""
        shape = self.program.block.moments
        assert shape is not None, "a block with moments"
        right, place, kind = shape.below(view.atoms), 0, COUNTED
        if right is not None:
            kind, place = self._kind(right), self.maps[view.name].offsets[self._parts(view.payload).index(right)]
        factor = MomentsFactor(pairs.view, pairs.slots, place, kind, view.atoms)
        if delta.product is None:
            return MomentsProduct(pairs.rows, delta, (factor,))
        taken = []
        for register in (delta.product.rows, *(f.slots for f in delta.product.factors)):
            taken.append(self._register(pairs.frame))
            self.code.append(Take(pairs.frame, pairs.rows, register, taken[-1]))
        before = (replace(f, slots=r) for f, r in zip(delta.product.factors, taken[1:], strict=True))
        return MomentsProduct(taken[0], delta.product.source, (*before, factor))

    def _multiplied(self, delta: RowDelta) -> RowDelta:
        """The same rows, with the product of their moments, if there is one to be made."""
        if delta.product is not None:
            self._multiply(delta, delta)
        return delta

    def _sum_part(
        self, part: PayloadPart, delta: RowDelta, out: RowDelta, numbers: int, add: type[SumGroups], known: int
    ) -> None:
        if isinstance(part, MomentsPart) and delta.product is not None:
            self._multiply(delta, out, numbers, known)
        else:
            CodeBuilder._sum_part(self, part, delta, out, numbers, add, known)

    def _multiply(self, delta: RowDelta, out: RowDelta, numbers: int = NONE, known: int = NONE) -> None:
        """Multiplies the moments of rows, and sums them up by group where there are groups."""
        product, shape = delta.product, self.program.block.moments
        assert product is not None, "a product of moments"
        assert shape is not None, "a block with moments"
        source, factors = product.source, product.factors
        left = shape.below(source.atoms)
        atoms = (source.atoms, *(f.atoms for f in factors))
        part = shape.below(frozenset().union(*atoms))
        assert part is not None, "features in some factor"
        owners = [next(k for k, own in enumerate(atoms) if a in own) for a, _ in part.features]
        made = product_shape(owners, len(atoms), part.degree)
        own = (COUNTED, NONE) if left is None else (self._kind(left), source.parts[left])
        target = self._part_registers(out, part)
        scratch = self._long_register(delta.frame, -(-made.scratch // FIRST_ROWS))
        self.code.append(
            MultiplyMoments(
                delta.frame,
                out.frame,
                product.rows,
                source.parts[frozenset()],
                *own,
                self._kind(part),
                target,
                scratch,
                numbers,
                known,
                tuple(f.view for f in factors),
                tuple(f.slots for f in factors),
                tuple(f.place for f in factors),
                tuple(f.kind for f in factors),
                made.words(),
            )
        )
        delta.product = None

    def _added(self, view: TreeViewDefinition, delta: RowDelta) -> None:
        slots = self._slots[view.name] = self._register(delta.frame)
        parts = tuple(delta.parts[p] for p in self._parts(view.payload))
        self.code.append(Upsert(self.number_of(view.name), delta.frame, slots, delta.words(view.keys), parts))

    def _indicated(self, statement: AddIndicator, delta: RowDelta) -> RowDelta:
        """The delta of an indicator: the keys of which there were, or now are, no rows.

        Every key is there once, so that an entry's count before is known from the one after.
        """
        view = self.program.view(statement.target)
        (count,) = view.payload
        assert not count, "an indicator has a number of rows"
        held_by = statement.source
        if view.name in self.program.stored:  # the rows are counted by the indicator's keys
            held_by = view.name
            if set(view.keys) != set(delta.keys):
                delta = self._summed_by(delta, view.keys, (count,))
            self._added(view, delta)
        return self._keys_that_turned(held_by, delta, view.keys)

    def _keys_that_turned(self, held_by: str, delta: RowDelta, keys: Iterable[str]) -> RowDelta:
        """The keys of a delta, just added to a view, that this has gained (1) or lost (-1)."""
        count: Monomial = frozenset()
        turned = self._register(delta.frame)
        number = self.number_of(held_by)
        self.code.append(Turn(delta.frame, number, self._slots[held_by], delta.parts[count], turned))
        kept, rows = self._compacted(delta, turned)
        self._take_keys(kept, delta, rows, keys)
        self.code.append(Take(kept.frame, rows, turned, self._part_registers(kept, count)))
        kept.atoms, kept.repeats = frozenset(), False
        return kept

    def _seen_as(self, statement: SeeAs, delta: RowDelta) -> RowDelta:
        source, target = self.program.view(statement.source), self.program.view(statement.target)
        keys = {new: delta.keys[old] for new, old in zip(target.keys, source.keys, strict=True)}
        renamed = zip(self._parts(target.payload), self._parts(source.payload), strict=True)
        parts = {new: delta.parts[old] for new, old in renamed}
        return Delta(delta.frame, keys, parts, target.atoms, delta.repeats)

    def _split(self, statement: Split, delta: RowDelta) -> tuple[RowDelta, RowDelta]:
        inside, outside = self._register(delta.frame), self._register(delta.frame)
        keys = delta.words(self.program.view(statement.keys).keys)
        self.code.append(TellParts(delta.frame, self.number_of(statement.keys), inside, outside, keys))
        parts = []
        for mask in (outside, inside):
            part, rows = self._compacted(delta, mask)
            self._take_keys(part, delta, rows, delta.keys)
            self._take_parts(part, delta, rows, delta.parts)
            parts.append(part)
        light, heavy = parts
        return light, heavy

    def _counted(self, statement: CountDegrees, delta: RowDelta) -> None:
        degrees = self.program.view(statement.target)
        came = self._keys_that_turned(statement.source, delta, degrees.keys)
        self._added(degrees, self._summed_by(came, degrees.keys, degrees.payload))

    def _turned(self, statement: TurnKeys) -> RowDelta:
        view, frame = self.program.view(statement.target), self._frame()
        keys = self._key_registers(frame, view.keys)
        weights = self._register(frame)
        self._leaf = LeafRegisters(tuple(keys[k] for k in view.keys), (), weights)
        return Delta(frame, keys, {frozenset(): weights})
