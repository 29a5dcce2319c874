"""From a trigger to instructions for a change that is a product: the delta stays a list of factors over disjoint variables.

    δS[A, C, E]  =  u[A] ⊗ v[C] ⊗ w[E]
    δV[A]        =  (u[A] ⊗ R[A])  ⊗  (⊕_C v[C] ⊗ T[C])  ⊗  (⊕_E w[E])          section 6 of F-IVM, example 12

A sibling view is joined with the factors that share variables with it: by an index with the first (the smallest), whose rows
are then joined with those of the others. Variables are summed out factor by factor. Only a stored view has its factors
multiplied out, in chunks, which costs no more than what it stores. What would need the product before that is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from everview.backends.embedded.tree.block_layout import KIND_OF, part_kind
from everview.backends.embedded.tree.code_builder import CodeBuilder, Delta, Pairs, needed_keys
from everview.backends.embedded.tree.factor_plan import FactorPlan, Piece, ProductPlan
from everview.backends.embedded.tree.instruction import NONE, assembled, size_of
from everview.backends.embedded.tree.instructions import (
    Clear,
    Cross,
    JoinRows,
    LiftMoments,
    MultiplyMomentRows,
    MultiplyMoments,
    MultiplyRows,
    Repeat,
    SumGroups,
    Upsert,
)
from everview.backends.embedded.tree.layout import (
    COUNTED,
    FIRST_ROWS,
    FLOAT_VALUES,
    INT_VALUES,
    WIDE_VALUES,
    lift_room,
)
from everview.backends.embedded.tree.moments_shape import product_shape
from everview.backends.embedded.tree.pauses import CountPart, Pause, RingPause, RowPart
from everview.backends.embedded.tree.trigger_code import LeafRegisters
from everview.backends.embedded.vectors import Ints, Kind, kind_of
from everview.planner.block import Monomial, Number, Residual, RingLift
from everview.planner.moments_block import PayloadPart, packed
from everview.planner.moments_part import MomentsPart
from everview.trigger.tree_program import (
    Access,
    AccessKind,
    AddIndicator,
    Compute,
    LiftRows,
    TreeViewDefinition,
    Trigger,
)

Labels = frozenset[tuple[int, int, int]] | MomentsPart
"""What a part of a factor multiplies: (atom, lift, factor) for a piece of the changed atom's lifts, else (atom, lift, -1).

Of moments it is those of its features. A factor is to the others what views below a join are to each other: the moments of
their product are the product of their moments."""


class NeedsRows(Exception):
    """Some factors are needed together before a view stores them; ``factors`` are their numbers, fewer than two: all."""

    def __init__(self, factors: frozenset[int]) -> None:
        super().__init__("the product has to be expanded")
        self.factors = factors


@dataclass(frozen=True, slots=True)
class FactorRegisters:
    """The frame of a given factor, and which of its registers its rows are put into."""

    frame: int
    leaf: LeafRegisters


@dataclass(frozen=True, slots=True)
class ProductCode:
    """A trigger for products, assembled; ``unit``, if there is one, is to be given one row with the count 1."""

    code: Ints
    frames: tuple[tuple[int, ...], ...]
    registers: int
    factors: tuple[FactorRegisters, ...]
    unit: FactorRegisters | None
    pauses: tuple[Pause, ...]
    long_rows: tuple[tuple[int, int], ...]
    """The registers that have more than a word for each row of their frame, and how many."""

    @property
    def given(self) -> frozenset[int]:
        """The registers that a change is put into."""
        units = () if self.unit is None else (self.unit,)
        return frozenset(r for f in (*self.factors, *units) for r in f.leaf.registers)


@dataclass(slots=True)
class _Factor(Delta[Labels]):
    """Rows with key variables and parts; ``bases`` are the given factors in it, ``atoms`` those joined to it."""

    bases: frozenset[int] = frozenset()


@dataclass(slots=True)
class ProductAssembler(CodeBuilder[list[_Factor], Labels]):
    """Assembles one trigger for products of one shape."""

    _changed: int = -1
    _plan: ProductPlan = field(default_factory=lambda: ProductPlan((), frozenset()))
    _given: list[FactorRegisters] = field(default_factory=list)
    _numbers: dict[tuple[int, int], Number] = field(default_factory=dict)
    """By (lift, factor), what a piece is a number of."""
    _unit: FactorRegisters | None = None

    def assemble_product(self, trigger: Trigger, plan: ProductPlan) -> ProductCode:
        """The instructions of a trigger.

        Raises:
            NeedsRows: factors are needed together before a view stores their product.
        """
        self._changed, self._plan = trigger.atom, plan
        self._numbers = {(i, f): p.number for f, one in enumerate(plan.factors) for i, p in one.pieces}
        self.append(trigger)
        words, given = assembled(self.code), tuple(self._given)
        long_rows = tuple(self._long_rows.items())
        return ProductCode(words, self.frames(), self._registers, given, self._unit, tuple(self.pauses), long_rows)

    def _lifted(self, trigger: Trigger, lift: LiftRows) -> list[_Factor]:
        view = self.program.view(lift.target)
        return [self._lift_factor(f, one, view) for f, one in enumerate(self._plan.factors)]

    def _indicated(self, statement: AddIndicator, delta: list[_Factor]) -> list[_Factor]:
        raise AssertionError("trees with indicators take products by their rows")

    # What a factor knows of a part

    def _parts(self, payload: Sequence[Monomial]) -> tuple[PayloadPart, ...]:
        """The parts that entries have for a payload."""
        return packed(self.program.block, payload)

    def _share(self, part: PayloadPart, factor: _Factor) -> Labels:
        """What the factor multiplies of a part."""
        own = (
            (a, i, f) for a, i in _lifts_of(part) if a == self._changed for f in factor.bases if (i, f) in self._numbers
        )
        labels = (*own, *((a, i, -1) for a, i in _lifts_of(part) if a in factor.atoms))
        if isinstance(part, MomentsPart) and labels:
            known = {(a, i) for a, i, _ in labels}
            return MomentsPart(tuple(f for f in part.features if f in known), part.degree)
        return frozenset(labels)

    def _shares(self, parts: Iterable[PayloadPart], factor: _Factor) -> list[Labels]:
        return list(dict.fromkeys(self._share(p, factor) for p in parts))

    def _kind(self, part: Labels | Monomial) -> int:
        if isinstance(part, MomentsPart):
            return part_kind(self.program.block, part)
        if self._ring_of(part) is not None:
            return part_kind(self.program.block, frozenset((atom, lift) for atom, lift, *_ in part))
        kinds = [COUNTED]
        for atom, lift, *factor in part:
            number = self.program.block.atoms[atom].lifts[lift].number
            if factor and factor[0] >= 0:
                number = self._numbers[lift, factor[0]]
            kinds.append(KIND_OF[number])
        return max(kinds)

    # Leaves

    def _lift_factor(self, number: int, plan: FactorPlan, view: TreeViewDefinition) -> _Factor:
        frame = self._frame()
        own = [k for k in view.keys if k in dict(plan.variables)]
        keys = self._key_registers(frame, own)
        weights = self._register(frame)
        pieces = dict(plan.pieces)
        parts = self._parts(view.payload)
        used = sorted({i for part in parts for a, i in _lifts_of(part) if a == self._changed and i in pieces})
        values = {i: self._register(frame) for i in used if not isinstance(pieces[i], RingLift)}
        rings = {i: self._kind(frozenset({(self._changed, i)})) for i in used if i not in values}
        elements = {i: self._element_registers(frame, kind) for i, kind in rings.items()}
        grouped, numbers = self._grouped(frame, keys, own)
        factor = _Factor(grouped.frame, grouped.keys, {}, bases=frozenset({number}))
        for labels in self._shares(parts, factor):
            if isinstance(labels, MomentsPart):
                rows = self._long_register(frame, lift_room(len(labels.features)))
                target, features = self._part_registers(factor, labels), tuple(values[i] for _, i in labels.features)
                kind = self._kind(labels)
                self.code.append(LiftMoments(frame, factor.frame, numbers, weights, kind, rows, target, features))
                continue
            source, source_kind, weight = weights, COUNTED, NONE
            for _, i, _ in labels:
                source, weight = (elements[i][0] if i in elements else values[i]), weights
                source_kind = _kind_of_values(pieces[i]) if i in values else rings[i]
            target = self._part_registers(factor, labels)
            self.code.append(SumGroups(frame, factor.frame, numbers, source_kind, source, weight, target, NONE))
        leaf = LeafRegisters(tuple(keys[k] for k in own), tuple(values.items()), weights, tuple(elements.items()))
        self._given.append(FactorRegisters(frame, leaf))
        return factor

    def _unit_factor(self) -> _Factor:
        """A factor of one row that says 1: where a sibling joins that nothing is known of."""
        if self._unit is None:
            frame = self._frame()
            self._unit = FactorRegisters(frame, LeafRegisters((), (), self._register(frame)))
        return _Factor(self._unit.frame, {}, {frozenset(): self._unit.leaf.weights})

    # Views

    def _computed(self, compute: Compute, delta: list[_Factor]) -> list[_Factor]:
        target, factors = self.program.view(compute.target), delta
        for residual in compute.residuals:
            factors = self._restrict(residual, factors)
        for i, access in enumerate(compute.joins):
            later = compute.joins[i + 1 :]
            factors = self._join_access(access, factors, needed_keys(compute, i, target))
            for residual in access.residuals:
                factors = self._restrict(residual, factors)
            later_keys = {k for a in later for k in self.program.view(a.view).keys}
            factors = [
                self._summed(f, tuple(f.keys), self._parts(access.payload))
                if f.repeats and f.keys.keys() & later_keys
                else f
                for f in factors
            ]
        return [self._summed(f, target.keys, self._parts(target.payload)) for f in factors]

    def _summed(self, factor: _Factor, keys: Sequence[str], parts: Iterable[PayloadPart]) -> _Factor:
        """The factor by these keys, of which it need not have all; each combination occurs once."""
        wanted = [k for k in keys if k in factor.keys]
        if len(wanted) == len(factor.keys) and not factor.repeats:
            return factor
        return _with_bases(self._summed_by(factor, wanted, self._shares(parts, factor)), factor)

    def _restrict(self, residual: Residual, factors: list[_Factor]) -> list[_Factor]:
        """Checks a predicate in the factor that knows its variables."""
        concerned = [f for f in factors if f.keys.keys() & set(residual.variables)]
        bases = frozenset(b for f in concerned for b in f.bases)
        if sum(bool(f.bases) for f in concerned) > 1:
            raise NeedsRows(bases)
        if len(concerned) > 1:  # a sibling that was joined with nothing, and a factor
            raise NeedsRows(frozenset())
        (one,) = concerned
        restricted = _with_bases(self._restricted(one, residual), one)
        return [*(f for f in factors if f is not one), restricted]

    def _join_access(self, access: Access, factors: list[_Factor], needed: set[str]) -> list[_Factor]:
        view = self.program.view(access.view)
        sharing = [f for f in factors if f.keys.keys() & set(view.keys)]
        if not sharing:
            alone = next((f for f in factors if not f.keys), None)
            sharing = [self._unit_factor() if alone is None else alone]
        first, *others = sharing
        inner = needed.union(*(f.keys for f in others))
        joined = self._join_view(access, view, first, inner)
        for i, other in enumerate(others):
            joined = self._join_rows(
                joined, other, self._parts(access.payload), needed.union(*(f.keys for f in others[i + 1 :]))
            )
        return [*(f for f in factors if not any(f is s for s in sharing)), joined]

    def _join_view(self, access: Access, view: TreeViewDefinition, factor: _Factor, needed: set[str]) -> _Factor:
        bound = [k for k in view.keys if k in factor.keys]
        kind = AccessKind.SLICE if bound else AccessKind.SCAN
        if len(bound) == len(view.keys):
            kind = AccessKind.LOOKUP
        pairs = self._matched(view, kind, bound, factor, keeps_index=True)
        repeats = factor.repeats or not needed >= {*factor.keys, *view.keys}
        joined = _Factor(pairs.frame, {}, {}, factor.atoms | view.atoms, repeats, bases=factor.bases)
        self._take_keys(joined, factor, pairs.rows, needed)
        self._read_keys(joined, pairs, view, needed)
        held = self._parts(view.payload)
        for part in self._parts(access.payload):
            labels, mine = self._share(part, joined), self._share(part, factor)
            if labels in joined.parts:
                continue
            theirs = _below(part, view.atoms)
            place = self.maps[access.view].offsets[held.index(theirs)]
            if isinstance(labels, MomentsPart):
                self._multiply_entries(pairs, factor, mine, (self._kind(theirs), place), labels, joined)
                continue
            left, right = (self._kind(mine), factor.parts[mine]), (self._kind(theirs), place)
            ring, target = self._ring_of(mine), self._part_registers(joined, labels)
            if ring is None or self._ring_of(theirs) is None:
                self.code.append(self._product(pairs, left, right, target))
            else:
                self._ring_product(ring, left[0], pairs, factor.frame, left[1], place, target)
        return joined

    def _multiply_entries(
        self, pairs: Pairs, factor: _Factor, mine: Labels, entry: tuple[int, int], made: MomentsPart, joined: _Factor
    ) -> None:
        """Moments of rows times those of entries (kind, word)."""
        shape, scratch = self._moments_product(mine, made, joined)
        self.code.append(
            MultiplyMoments(
                pairs.frame,
                pairs.frame,
                pairs.rows,
                factor.parts[frozenset()],
                *self._moments_of(factor, mine),
                self._kind(made),
                self._part_registers(joined, made),
                scratch,
                NONE,
                NONE,
                (pairs.view,),
                (pairs.slots,),
                (entry[1],),
                (entry[0],),
                shape,
            )
        )

    def _moments_product(self, mine: Labels, made: MomentsPart, joined: _Factor) -> tuple[tuple[int, ...], int]:
        """The words of the shape of a product of two, of which the first has these moments, and a register to make it in."""
        own = mine.features if isinstance(mine, MomentsPart) else ()
        shape = product_shape([0 if f in own else 1 for f in made.features], 2, made.degree)
        return shape.words(), self._long_register(joined.frame, -(-shape.scratch // FIRST_ROWS))

    def _moments_of(self, factor: _Factor, share: Labels) -> tuple[int, int]:
        """The kind of a factor's moments and their register, if it has some."""
        return (self._kind(share), factor.parts[share]) if isinstance(share, MomentsPart) else (COUNTED, NONE)

    # Products of frames

    def _join_rows(self, a: _Factor, b: _Factor, parts: Iterable[PayloadPart], needed: set[str]) -> _Factor:
        """The rows of two factors that agree on the variables both have."""
        out = self._frame()
        rows_a, rows_b, links = self._register(out), self._register(out), self._register(b.frame)
        shared = [k for k in b.keys if k in a.keys]
        self.code.append(JoinRows(a.frame, b.frame, out, rows_a, rows_b, links, a.words(shared), b.words(shared)))
        return self._paired(a, b, out, (rows_a, rows_b), parts, needed)

    def _paired(
        self,
        a: _Factor,
        b: _Factor,
        out: int,
        rows: tuple[int, int],
        parts: Iterable[PayloadPart],
        needed: Iterable[str],
    ) -> _Factor:
        repeats = a.repeats or b.repeats or not set(needed) >= {*a.keys, *b.keys}
        joined = _Factor(out, {}, {}, a.atoms | b.atoms, repeats, bases=a.bases | b.bases)
        self._take_keys(joined, a, rows[0], needed)
        self._take_keys(joined, b, rows[1], needed)
        for part in parts:
            labels, mine, theirs = (self._share(part, f) for f in (joined, a, b))
            if labels in joined.parts:
                continue
            if isinstance(labels, MomentsPart):
                self._multiply_moments(a, b, rows, (mine, theirs), labels, joined)
                continue
            if self._ring_of(labels) is not None:
                self._multiply_elements(a, b, rows, (mine, theirs), labels, joined)
                continue
            left, right = (self._kind(mine), a.parts[mine]), (self._kind(theirs), b.parts[theirs])
            self.code.append(MultiplyRows(out, *rows, *left, *right, self._part_registers(joined, labels)))
        return joined

    def _multiply_elements(
        self,
        a: _Factor,
        b: _Factor,
        rows: tuple[int, int],
        shares: tuple[Labels, Labels],
        made: Labels,
        joined: _Factor,
    ) -> None:
        """Elements of a registered ring times elements of the same, or numbers of rows; Python does it."""
        sides = [(self._ring_of(s), f.frame, r, f.parts[s]) for f, r, s in zip((a, b), rows, shares, strict=True)]
        (ring, *left), (other, *right) = sorted(sides, key=lambda side: side[0] is None)  # elements first
        assert ring is not None, "only asked where one of the two has elements"
        times = RowPart(*right) if other is not None else CountPart(*right)
        self._pause(RingPause(ring, joined.frame, RowPart(*left), times, self._part_registers(joined, made)))

    def _ring_of(self, part: Labels | Monomial) -> str | None:
        """The registered ring of a part, if it is not of numbers."""
        if isinstance(part, MomentsPart):
            return None
        return self.program.block.ring_of(frozenset((atom, lift) for atom, lift, *_ in part))

    def _multiply_moments(
        self,
        a: _Factor,
        b: _Factor,
        rows: tuple[int, int],
        shares: tuple[Labels, Labels],
        made: MomentsPart,
        joined: _Factor,
    ) -> None:
        """Moments of rows times those of others."""
        shape, scratch = self._moments_product(shares[0], made, joined)
        left = rows[0], a.parts[frozenset()], *self._moments_of(a, shares[0])
        right = rows[1], b.parts[frozenset()], *self._moments_of(b, shares[1])
        target = self._part_registers(joined, made)
        self.code.append(MultiplyMomentRows(joined.frame, *left, *right, self._kind(made), target, scratch, shape))

    def _crossed(self, a: _Factor, b: _Factor, view: TreeViewDefinition, cursor: int) -> _Factor:
        out = self._frame()
        rows = self._register(out), self._register(out)
        self.code.append(Cross(a.frame, b.frame, out, *rows, cursor))
        return self._paired(a, b, out, rows, self._parts(view.payload), view.keys)

    def _added(self, view: TreeViewDefinition, delta: Sequence[_Factor]) -> None:
        """Adds the product of the factors, in chunks over the last two; those without keys have one row, and go first."""
        first, *rest = sorted(delta, key=lambda f: bool(f.keys))
        for other in rest[:-1]:
            first = self._crossed(first, other, view, NONE)
        if not rest:
            self._upsert(view, first)
            return
        cursor = self._frame()
        self.code.append(Clear((cursor,)))
        start = len(self.code)
        self._upsert(view, self._crossed(first, rest[-1], view, cursor))
        self.code.append(Repeat(cursor, size_of(self.code[start:])))

    def _upsert(self, view: TreeViewDefinition, factor: _Factor) -> None:
        slots = self._register(factor.frame)
        parts = tuple(factor.parts[self._share(p, factor)] for p in self._parts(view.payload))
        self.code.append(Upsert(self.number_of(view.name), factor.frame, slots, factor.words(view.keys), parts))


def _lifts_of(part: PayloadPart) -> Iterable[tuple[int, int]]:
    """(atom, lift) of what a part sums the products of."""
    return part.features if isinstance(part, MomentsPart) else part


def _below(part: PayloadPart, atoms: Set[int]) -> PayloadPart:
    """What a view over some atoms has of a part."""
    own = tuple(f for f in _lifts_of(part) if f[0] in atoms)
    return MomentsPart(own, part.degree) if isinstance(part, MomentsPart) and own else frozenset(own)


def _with_bases(rows: Delta[Labels], factor: _Factor) -> _Factor:
    """Rows that were made of a factor's."""
    return _Factor(rows.frame, rows.keys, rows.parts, rows.atoms, rows.repeats, bases=factor.bases)


def _kind_of_values(piece: Piece) -> int:
    if piece.number is Number.COUNT:
        return COUNTED
    if piece.number is Number.FLOAT:
        return FLOAT_VALUES
    (value,) = piece.expressions
    return WIDE_VALUES if kind_of(value.type) is Kind.WIDE else INT_VALUES
