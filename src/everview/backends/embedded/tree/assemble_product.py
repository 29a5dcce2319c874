"""From a trigger to instructions for a change that is a product: the delta stays a list of factors over disjoint variables.

    δS[A, C, E]  =  u[A] ⊗ v[C] ⊗ w[E]
    δV[A]        =  (u[A] ⊗ R[A])  ⊗  (⊕_C v[C] ⊗ T[C])  ⊗  (⊕_E w[E])          section 6 of F-IVM, example 12

A sibling view is joined with the factors that share variables with it: by an index with the first (the smallest), whose rows
are then joined with those of the others. Variables are summed out factor by factor. Only a stored view has its factors
multiplied out, in chunks, which costs no more than what it stores. What would need the product before that is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from everview.backends.embedded.tree.assemble import KIND_OF, Assembler, Delta, words_per_key
from everview.backends.embedded.tree.factor_plan import FactorPlan, ProductPlan
from everview.backends.embedded.tree.layout import COUNTED, FLOAT_VALUES, INT_VALUES, WIDE_VALUES, WORDS, Op
from everview.backends.embedded.tree.pauses import Pause
from everview.backends.embedded.tree.trigger_code import LeafRegisters
from everview.backends.embedded.vectors import Ints, Kind, kind_of
from everview.planner.block import Monomial, Number, Residual
from everview.relational.types import DataType
from everview.trigger.tree_program import Access, Add, Compute, Lift, Trigger, ViewDefinition

Labels = frozenset[tuple[int, int, int]]
"""What a part of a factor multiplies: (atom, lift, factor) for a piece of the changed atom's lifts, else (atom, lift, -1)."""


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

    @property
    def given(self) -> frozenset[int]:
        """The registers that a change is put into."""
        units = () if self.unit is None else (self.unit,)
        return frozenset(r for f in (*self.factors, *units) for r in f.leaf.registers)


@dataclass(slots=True)
class _Factor:
    """A frame of rows with key variables and parts; ``bases`` are the given factors in it, ``atoms`` those joined to it."""

    frame: int
    keys: dict[str, tuple[int, ...]]
    parts: dict[Labels, int]
    bases: frozenset[int]
    atoms: frozenset[int] = frozenset()
    repeats: bool = False
    """Whether keys may occur more than once, as a variable has been left out."""


@dataclass(slots=True)
class ProductAssembler(Assembler):
    """Assembles one trigger for products of one shape."""

    _changed: int = -1
    _numbers: dict[tuple[int, int], Number] = field(default_factory=dict)
    """By (lift, factor), what a piece is a number of."""
    _unit: FactorRegisters | None = None

    def assemble_product(self, trigger: Trigger, plan: ProductPlan) -> ProductCode:
        """The instructions of a trigger.

        Raises:
            NeedsRows: factors are needed together before a view stores their product.
        """
        self._changed = trigger.atom
        self._numbers = {(i, f): p.number for f, one in enumerate(plan.factors) for i, p in one.pieces}
        deltas: dict[str, list[_Factor]] = {}
        given: list[FactorRegisters] = []
        for statement in trigger.statements:
            match statement:
                case Lift():
                    view = self.program.view(statement.target)
                    lifted = [self._lift_factor(f, one, view) for f, one in enumerate(plan.factors)]
                    given = [registers for registers, _ in lifted]
                    deltas[view.name] = [factor for _, factor in lifted]
                case Compute():
                    deltas[statement.target] = self._compute_factors(statement, deltas[statement.source])
                case Add():
                    self._add_product(self.program.view(statement.target), deltas[statement.target])
        frames = tuple(tuple(f) for f in self._frames)
        code = np.array(self._code, dtype=np.int64)
        return ProductCode(code, frames, self._registers, tuple(given), self._unit, tuple(self._pauses))

    # What a factor knows of a monomial

    def _share(self, monomial: Monomial, factor: _Factor) -> Labels:
        """The part of a monomial that the factor multiplies."""
        own = ((a, i, f) for a, i in monomial if a == self._changed for f in factor.bases if (i, f) in self._numbers)
        return frozenset((*own, *((a, i, -1) for a, i in monomial if a in factor.atoms)))

    def _shares(self, monomials: Iterable[Monomial], factor: _Factor) -> list[Labels]:
        return list(dict.fromkeys(self._share(m, factor) for m in monomials))

    def _kind(self, monomial: Iterable[tuple[int, ...]]) -> int:
        kinds = [COUNTED]
        for atom, lift, *factor in monomial:
            number = self.program.block.atoms[atom].lifts[lift].number
            if factor and factor[0] >= 0:
                number = self._numbers[lift, factor[0]]
            kinds.append(KIND_OF[number])
        return max(kinds)

    # Leaves

    def _lift_factor(self, number: int, plan: FactorPlan, view: ViewDefinition) -> tuple[FactorRegisters, _Factor]:
        frame = self._frame()
        own = [k for k in view.keys if k in dict(plan.variables)]
        keys = self._key_registers(frame, own)
        weights = self._register(frame)
        pieces = dict(plan.pieces)
        used = sorted({i for monomial in view.payload for a, i in monomial if a == self._changed and i in pieces})
        values = {i: self._register(frame) for i in used}
        grouped = self._grouped(frame, keys, own)
        (numbers,) = grouped.keys.pop("")
        factor = _Factor(grouped.frame, grouped.keys, {}, frozenset({number}))
        for labels in self._shares(view.payload, factor):
            source, source_kind, weight = weights, COUNTED, -1
            for _, i, _ in labels:
                source, weight, source_kind = (
                    values[i],
                    weights,
                    _kind_of_values(pieces[i].value.type, pieces[i].number),
                )
            target = factor.parts[labels] = self._register(factor.frame, WORDS[self._kind(labels)])
            self._emit(Op.SUM, frame, factor.frame, numbers, source_kind, source, weight, target)
        leaf = LeafRegisters(tuple(keys[k] for k in own), tuple(values.items()), weights)
        return FactorRegisters(frame, leaf), factor

    def _unit_factor(self) -> _Factor:
        """A factor of one row that says 1: where a sibling joins that nothing is known of."""
        if self._unit is None:
            frame = self._frame()
            self._unit = FactorRegisters(frame, LeafRegisters((), (), self._register(frame)))
        return _Factor(self._unit.frame, {}, {frozenset(): self._unit.leaf.weights}, frozenset())

    # Views

    def _compute_factors(self, compute: Compute, factors: list[_Factor]) -> list[_Factor]:
        target = self.program.view(compute.target)
        for residual in compute.residuals:
            factors = self._restrict(residual, factors)
        for i, access in enumerate(compute.joins):
            later = compute.joins[i + 1 :]
            needed = set(target.keys)
            needed |= {v for a in later for v in a.bound}
            needed |= {v for a in (access, *later) for r in a.residuals for v in r.variables}
            factors = self._join_access(access, factors, needed)
            for residual in access.residuals:
                factors = self._restrict(residual, factors)
            later_keys = {k for a in later for k in self.program.view(a.view).keys}
            factors = [
                self._summed(f, tuple(f.keys), access.payload) if f.repeats and f.keys.keys() & later_keys else f
                for f in factors
            ]
        return [self._summed(f, target.keys, target.payload) for f in factors]

    def _summed(self, factor: _Factor, keys: Sequence[str], payload: Iterable[Monomial]) -> _Factor:
        """The factor by these keys, of which it need not have all; each combination occurs once."""
        wanted = [k for k in keys if k in factor.keys]
        if len(wanted) == len(factor.keys) and not factor.repeats:
            return factor
        grouped = self._grouped(factor.frame, factor.keys, wanted)
        (numbers,) = grouped.keys.pop("")
        out = _Factor(grouped.frame, grouped.keys, {}, factor.bases, factor.atoms)
        for labels in self._shares(payload, factor):
            kind = self._kind(labels)
            sums = out.parts[labels] = self._register(out.frame, WORDS[kind])
            self._emit(Op.SUM, factor.frame, out.frame, numbers, kind, factor.parts[labels], -1, sums)
        return out

    def _restrict(self, residual: Residual, factors: list[_Factor]) -> list[_Factor]:
        """Checks a predicate in the factor that knows its variables."""
        concerned = [f for f in factors if f.keys.keys() & set(residual.variables)]
        bases = frozenset(b for f in concerned for b in f.bases)
        if sum(bool(f.bases) for f in concerned) > 1:
            raise NeedsRows(bases)
        if len(concerned) > 1:  # a sibling that was joined with nothing, and a factor
            raise NeedsRows(frozenset())
        (one,) = concerned
        delta = Delta(one.frame, one.keys, one.parts, frozenset())  # type: ignore[arg-type]  # labels for monomials
        kept = self._restricted(delta, residual)
        restricted = _Factor(kept.frame, kept.keys, {}, one.bases, one.atoms, one.repeats)
        restricted.parts.update(kept.parts)  # type: ignore[arg-type]  # labels again
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
            joined = self._join_rows(joined, other, access.payload, needed.union(*(f.keys for f in others[i + 1 :])))
        return [*(f for f in factors if not any(f is s for s in sharing)), joined]

    def _join_view(self, access: Access, view: ViewDefinition, factor: _Factor, needed: set[str]) -> _Factor:
        held, number = self.maps[access.view], self.number_of(access.view)
        words = words_per_key(self.program.block, view.keys)
        out = self._frame()
        rows, slots = self._register(out), self._register(out)
        bound = [k for k in view.keys if k in factor.keys]
        registers = [r for k in bound for r in factor.keys[k]]
        if len(bound) == len(view.keys):
            self._emit(Op.LOOKUP, number, factor.frame, out, rows, slots, len(registers), *registers)
        elif bound:
            index = held.index([w for k in bound for w in words[k]])
            self._emit(Op.SLICE, number, factor.frame, out, rows, slots, index, len(registers), *registers, -1)
        else:
            self._emit(Op.SCAN, number, factor.frame, out, rows, slots, -1)
        repeats = factor.repeats or not needed >= {*factor.keys, *view.keys}
        joined = _Factor(out, {}, {}, factor.bases, factor.atoms | view.atoms, repeats)
        self._take_keys(joined, factor, rows, needed)
        for variable in view.keys:
            if variable in needed and variable not in factor.keys:
                (new,) = self._key_registers(out, (variable,)).values()
                joined.keys[variable] = new
                for word, register in zip(words[variable], new, strict=True):
                    self._emit(Op.KEY, out, number, slots, word, register)
        for monomial in access.payload:
            labels = self._share(monomial, joined)
            if labels in joined.parts:
                continue
            mine = self._share(monomial, factor)
            theirs = frozenset(p for p in monomial if p[0] in view.atoms)
            register = joined.parts[labels] = self._register(out, WORDS[self._kind(labels)])
            place = held.offsets[view.payload.index(theirs)]
            left, right = (self._kind(mine), factor.parts[mine]), (self._kind(theirs), place)
            self._emit(Op.MULTIPLY, out, rows, number, slots, *left, *right, register)
        return joined

    def _take_keys(self, out: _Factor, source: _Factor, rows: int, needed: Iterable[str]) -> None:
        for variable, registers in source.keys.items():
            if variable not in needed or variable in out.keys:
                continue
            (new,) = self._key_registers(out.frame, (variable,)).values()
            out.keys[variable] = new
            for old, register in zip(registers, new, strict=True):
                self._emit(Op.TAKE, out.frame, rows, old, register)

    # Products of frames

    def _join_rows(self, a: _Factor, b: _Factor, payload: Iterable[Monomial], needed: set[str]) -> _Factor:
        """The rows of two factors that agree on the variables both have."""
        out = self._frame()
        rows_a, rows_b, links = self._register(out), self._register(out), self._register(b.frame)
        shared = [k for k in b.keys if k in a.keys]
        left, right = ([r for k in shared for r in f.keys[k]] for f in (a, b))
        self._emit(Op.JOIN, a.frame, b.frame, out, rows_a, rows_b, links, len(left), *left, *right)
        return self._paired(a, b, out, (rows_a, rows_b), payload, needed)

    def _paired(
        self,
        a: _Factor,
        b: _Factor,
        out: int,
        rows: tuple[int, int],
        payload: Iterable[Monomial],
        needed: Iterable[str],
    ) -> _Factor:
        repeats = a.repeats or b.repeats or not set(needed) >= {*a.keys, *b.keys}
        joined = _Factor(out, {}, {}, a.bases | b.bases, a.atoms | b.atoms, repeats)
        self._take_keys(joined, a, rows[0], needed)
        self._take_keys(joined, b, rows[1], needed)
        for monomial in payload:
            labels = self._share(monomial, joined)
            if labels in joined.parts:
                continue
            mine, theirs = self._share(monomial, a), self._share(monomial, b)
            register = joined.parts[labels] = self._register(out, WORDS[self._kind(labels)])
            left, right = (self._kind(mine), a.parts[mine]), (self._kind(theirs), b.parts[theirs])
            self._emit(Op.MULTIPLY_ROWS, out, *rows, *left, *right, register)
        return joined

    def _crossed(self, a: _Factor, b: _Factor, view: ViewDefinition, cursor: int) -> _Factor:
        out = self._frame()
        rows = self._register(out), self._register(out)
        self._emit(Op.CROSS, a.frame, b.frame, out, *rows, cursor)
        return self._paired(a, b, out, rows, view.payload, view.keys)

    def _add_product(self, view: ViewDefinition, factors: Sequence[_Factor]) -> None:
        """Adds the product of the factors, in chunks over the last two; those without keys have one row, and go first."""
        first, *rest = sorted(factors, key=lambda f: bool(f.keys))
        for other in rest[:-1]:
            first = self._crossed(first, other, view, -1)
        if not rest:
            self._upsert(view, first)
            return
        cursor = self._frame()
        self._emit(Op.CLEAR, cursor)
        start = len(self._code)
        self._upsert(view, self._crossed(first, rest[-1], view, cursor))
        self._emit(Op.REPEAT, cursor, len(self._code) - start)

    def _upsert(self, view: ViewDefinition, factor: _Factor) -> None:
        slots = self._register(factor.frame)
        keys = [r for k in view.keys for r in factor.keys[k]]
        parts = [factor.parts[self._share(m, factor)] for m in view.payload]
        self._emit(Op.UPSERT, self.number_of(view.name), factor.frame, slots, len(keys), *keys, *parts)


def _kind_of_values(value_type: DataType, number: Number) -> int:
    if number is Number.COUNT:
        return COUNTED
    if number is Number.FLOAT:
        return FLOAT_VALUES
    return WIDE_VALUES if kind_of(value_type) is Kind.WIDE else INT_VALUES
