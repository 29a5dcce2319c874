"""From a skew-aware plan to a trigger program: figures 3 and 4 of the paper, for any query that has such a plan.

    on r (a, b)
      δr[a, b] := Σ #
      δresult[] := Σ δr[a, b] * t_h[c, a] * s_h[b, c]        -- for each combination of parts of the others
      δresult[] := Σ δr[a, b] * V1[a, b]                     -- or by a look-up in an auxiliary view
      δr_l, δr_h := δr[a, b] by the heavy keys r_heavy_a[a]
      V3[a, c] += δr_h[a, b] * s_l[b, c]
      r_h[a, b] += δr_h[a, b]
      r_degree_a[a] += the keys that r_h has gained

No atom occurs twice in a product, so the statements of one trigger do not see what the others of it have changed. Where a plan
stores the occurrences of a table once (``planner.skew_self_join``), the change itself is stored until the trigger is through,
to be joined with, and parts are seen under the names of each occurrence:

      δresult[] := Σ δe[a, b] * e#2_new[c, a] * e#1_h[b, c]  -- three times, for pairs of changed rows
      δe#1_h[b, c] := δe_h[a, b]

An internal trigger moves rows between parts when a key turns heavy or light. The result stays as it is then: it is the sum over
all parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

from everview.planner.block import Block, Monomial
from everview.planner.skew_plan import Element, HeavyKeys, PartitionKey, PartJoin, RelationPart, Rotation, SkewPlan
from everview.trigger.lower_factorized import Branch, EnumerationStep, FactorizedProgram
from everview.trigger.lower_tree import RESULT, restrict
from everview.trigger.tree_program import (
    Access,
    AccessKind,
    Add,
    Compute,
    CountDegrees,
    KeyMoves,
    LiftRows,
    Partition,
    SeeAs,
    Split,
    TreeProgram,
    TreeStatement,
    TreeViewDefinition,
    Trigger,
    TurnKeys,
)


def lower_skew(block: Block, plan: SkewPlan) -> TreeProgram:
    """The program of a block over heavy and light parts, whose sums are kept one by one."""
    block = replace(block, moments=None)
    lowering = _SkewLowering(block, plan)
    triggers = tuple(Trigger(i, tuple(lowering.statements(i))) for i in range(len(block.atoms)))
    partitions = tuple(p for i in range(len(block.atoms)) for p in lowering.partitions(i))
    sizes = tuple(lowering.size_view(i) for i in range(len(block.atoms))) if plan.is_partitioned else ()
    is_shared = plan.rotation is not None
    return TreeProgram(
        block,
        tuple(lowering.views.values()),
        frozenset(lowering.stored),
        "" if plan.branches else RESULT,
        triggers,
        partitions,
        sizes,
        tuple(lowering.twins.items()),
        frozenset({lowering.change(0)} if is_shared else ()),
        frozenset(range(1, len(block.atoms)) if is_shared else ()),
    )


def lower_skew_listing(block: Block, plan: SkewPlan) -> FactorizedProgram:
    """The program of a listing over heavy and light parts that stays factorized, and the steps of its enumeration."""
    branches = []
    for branch in plan.branches:
        known: set[str] = set()
        steps = []
        for step in branch.steps:
            keys = plan.variables_of(step.source)
            bound, new = (tuple(k for k in keys if (k in known) == is_known) for is_known in (True, False))
            steps.append(EnumerationStep(plan.name_of(step.source), bound, new, step.is_factor))
            known |= set(keys)
        branches.append(Branch(tuple(steps), (steps[0].view,)))
    first, *more = branches
    return FactorizedProgram(lower_skew(block, plan), None, first.steps, first.roots, tuple(more))


@dataclass(slots=True)
class _SkewLowering:
    block: Block
    plan: SkewPlan
    views: dict[str, TreeViewDefinition] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    twins: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        everything = frozenset(range(len(self.block.atoms)))
        if not self.plan.branches:
            self._define(RESULT, tuple(dict.fromkeys(self.block.keys)), everything)
        for i, atom in enumerate(self.block.query.atoms):
            own = frozenset({i})
            if self.plan.rotation is not None:
                self._define_as(self.change(i), i, self.plan.rotation)
                if i:
                    self._define_occurrence(i, self.plan.rotation)
                    continue
                self.stored.add(self.change(i))
            self._define(atom.name, atom.variables, own, is_stored=len(self.plan.parts_of(i)) == 1)
            for name in self._split_names(i):
                self._define(name, atom.variables, own, is_stored=False)
            for part in self.plan.parts_of(i):
                self._define(self.plan.name_of(part), atom.variables, own)
            for place, key in self._open_keys(i):
                self._define(self._heavy(i, place), key.variables, frozenset())
            if self.plan.is_partitioned:
                for name, keys in self._degrees(i):
                    self._define(name, keys, frozenset())
        for view in self.plan.views:
            self._define(view.name, view.keys, view.atoms)

    def _define(self, name: str, keys: Sequence[str], atoms: frozenset[int], *, is_stored: bool = True) -> None:
        payload = restrict(self.block.monomials, atoms)
        self.views[name] = TreeViewDefinition(name, tuple(keys), payload, atoms)
        if is_stored:
            self.stored.add(name)

    def _define_occurrence(self, atom: int, rotation: Rotation) -> None:
        """A table again that is stored already: what there is of it are the first occurrence's views, under other names."""
        self._define_as(self._name(atom), atom, rotation)
        self.twins[self.change(atom)] = self.change(0)
        for part in self.plan.parts_of(0):
            name = self.plan.name_of(rotation.occurrence(part, atom))
            self._define_as(name, atom, rotation)
            self.twins[name] = self.plan.name_of(part)

    def _define_as(self, name: str, atom: int, rotation: Rotation) -> None:
        """A view of one occurrence, whose keys and sums lie as those of the first one do."""
        lifts = rotation.lifts[atom]
        own = restrict(self.block.monomials, frozenset({0}))
        payload = tuple(frozenset((atom, lifts[i]) for _, i in monomial) for monomial in own)
        self.views[name] = TreeViewDefinition(name, rotation.variables[atom], payload, frozenset({atom}))

    # Names

    def change(self, atom: int) -> str:
        """The view that holds a change while it is joined with itself."""
        return f"{self._name(atom)}_new"

    def _name(self, atom: int) -> str:
        return self.block.query.atoms[atom].name

    def _open_keys(self, atom: int) -> list[tuple[int, PartitionKey]]:
        """The keys that have both light and heavy values."""
        return [(i, k) for i, k in enumerate(self.plan.partitions[atom]) if len(k.flags) > 1]

    def _heavy(self, atom: int, place: int) -> str:
        return self.plan.name_of(HeavyKeys(atom, place))

    def _degrees(self, atom: int) -> list[tuple[str, tuple[str, ...]]]:
        """The views that count keys of an atom: one for each key that it is partitioned on, or one of its size."""
        name = self._name(atom)
        found = [(f"{name}_degree_{'_'.join(k.variables)}", k.variables) for _, k in self._open_keys(atom)]
        return found or [(f"{name}_size", ())]

    def size_view(self, atom: int) -> str:
        """The view whose sum is the number of an atom's keys."""
        return self._degrees(atom if self.plan.rotation is None else 0)[0][0]

    def _split_names(self, atom: int) -> list[str]:
        """What is split further: the prefixes of the parts' flags."""
        keys = self.plan.partitions[atom]
        prefixes = {p.heavy[:n] for p in self.plan.parts_of(atom) for n in range(1, len(keys))}
        return sorted(self._prefix_name(atom, p) for p in prefixes if len(self.plan.parts_of(atom)) > 1)

    def _prefix_name(self, atom: int, heavy: tuple[bool, ...]) -> str:
        if len(heavy) == len(self.plan.partitions[atom]):
            return self.plan.name_of(RelationPart(atom, heavy))
        return f"{self._name(atom)}_{RelationPart(atom, heavy).suffix}_" if heavy else self._name(atom)

    # Statements

    def statements(self, atom: int) -> Iterator[TreeStatement]:
        """What a change of an atom does."""
        leaf = self._name(atom)
        yield LiftRows(leaf)
        if atom and self.plan.rotation is not None:
            return
        for case in self.plan.cases[atom]:
            yield self._compute(RESULT, leaf, case.join)
            yield Add(RESULT, self._turns())
        if self.plan.rotation is not None:
            yield from self._join_changes(leaf)
        yield from self._split(atom, (), leaf)
        for part in self.plan.parts_of(atom):
            yield from self._take_in(part, counts=self.plan.is_partitioned)

    def _turns(self) -> tuple[tuple[Monomial, ...], ...]:
        """The sums of the result as they are when the change is that of each occurrence of the table."""
        if self.plan.rotation is None:
            return ()
        payload, turned = self.views[RESULT].payload, self.plan.rotation.turned
        return tuple(tuple(turned(monomial, by) for monomial in payload) for by in range(3))

    def _join_changes(self, leaf: str) -> Iterator[TreeStatement]:
        """Pairs of changed rows that meet a third row, in each of three places, and triangles of changed rows."""
        own, second, third = (self.change(i) for i in range(3))
        yield SeeAs(own, leaf)
        yield Add(own)
        for part in self.plan.parts_of(1):
            yield self._joined(RESULT, leaf, (third, self.plan.name_of(part)))
            yield Add(RESULT, self._turns())
        yield self._joined(RESULT, leaf, (third, second))
        yield Add(RESULT)

    def _split(self, atom: int, heavy: tuple[bool, ...], source: str) -> Iterator[TreeStatement]:
        """Splits a change into its parts, key after key."""
        keys = self.plan.partitions[atom]
        if len(heavy) == len(keys) or len(self.plan.parts_of(atom)) == 1:
            return
        key = keys[len(heavy)]
        targets = [(*heavy, flag) for flag in key.flags]
        light, strong = (self._prefix_name(atom, t) for t in targets)
        yield Split(light, strong, source, self._heavy(atom, len(heavy)))
        for target in targets:
            yield from self._split(atom, target, self._prefix_name(atom, target))

    def _take_in(self, part: RelationPart, *, counts: bool) -> Iterator[TreeStatement]:
        """What a change of a part does to the auxiliary views that it is in, and to the part.

        A view over two occurrences of a part meets it as it was, by the first, and as it then is, by the second.
        """
        name = self.plan.name_of(part)
        yield from self._keep_views(part)
        if self.plan.rotation is None:
            yield Add(name)
        else:
            yield from self._keep_as_others(part, self.plan.rotation)
        if counts:
            for degrees, _ in self._degrees(part.atom):
                yield CountDegrees(degrees, name)

    def _keep_as_others(self, part: RelationPart, rotation: Rotation) -> Iterator[TreeStatement]:
        """The same for a part that is stored once, and is one of each occurrence."""
        name = self.plan.name_of(part)
        for i in (1, 2):
            own = rotation.occurrence(part, i)
            if statements := list(self._keep_views(own)):
                yield SeeAs(self.plan.name_of(own), name)
                yield from statements
            if i == 1:
                yield Add(name)

    def _keep_views(self, element: Element) -> Iterator[TreeStatement]:
        """What a change of a part, or of heavy keys, does to the auxiliary views over it."""
        for view in self.plan.views:
            for own, join in zip(view.parts, view.upkeep, strict=True):
                if own == element:
                    yield self._compute(view.name, self.plan.name_of(element), join)
                    yield Add(view.name)

    def _compute(self, target: str, source: str, join: PartJoin) -> Compute:
        return self._joined(target, source, [self.plan.name_of(step) for step in join.steps])

    def _joined(self, target: str, source: str, names: Sequence[str]) -> Compute:
        known, atoms, joins = set(self.views[source].keys), self.views[source].atoms, []
        for name in names:
            view = self.views[name]
            bound = tuple(k for k in view.keys if k in known)
            kind = AccessKind.LOOKUP if len(bound) == len(view.keys) else AccessKind.SLICE
            if not bound and view.keys:
                kind = AccessKind.SCAN
            known |= set(view.keys)
            atoms |= view.atoms
            joins.append(Access(name, kind, bound, restrict(self.block.monomials, atoms)))
        return Compute(target, source, tuple(joins))

    # Internal triggers

    def partitions(self, atom: int) -> Iterator[Partition]:
        """The partitions of an atom, with what moves its rows."""
        if atom and self.plan.rotation is not None:
            return
        flags = [key.flags for key in self.plan.partitions[atom]]
        for n, key in enumerate(self.plan.partitions[atom]):
            if len(key.flags) == 1:
                continue
            others = list(product(*(f for i, f in enumerate(flags) if i != n)))
            pairs = [tuple(RelationPart(atom, (*o[:n], flag, *o[n:])) for flag in (False, True)) for o in others]
            heavy = HeavyKeys(atom, n)
            yield Partition(
                atom,
                key.variables,
                float(key.epsilon),
                next(name for name, keys in self._degrees(atom) if keys == key.variables),
                self.plan.name_of(heavy),
                self._moves(heavy, [(light, strong) for light, strong in pairs], turns_heavy=True),
                self._moves(heavy, [(strong, light) for light, strong in pairs], turns_heavy=False),
            )

    def _moves(
        self, heavy: HeavyKeys, pairs: list[tuple[RelationPart, RelationPart]], *, turns_heavy: bool
    ) -> KeyMoves:
        """Rows of (source, target) pairs of parts; the heavy keys change with the first or the second half."""
        keys = self.plan.name_of(heavy)
        gain: list[TreeStatement] = [TurnKeys(keys)]
        loss: list[TreeStatement] = [TurnKeys(keys)]
        for source, target in pairs:
            held = PartJoin((source,), Fraction(0))
            gain += [self._compute(self.plan.name_of(target), keys, held), *self._take_in(target, counts=False)]
            loss += [self._compute(self.plan.name_of(source), keys, held), *self._take_in(source, counts=False)]
        (gain if turns_heavy else loss).extend((*self._keep_views(heavy), Add(keys)))
        return KeyMoves(Trigger(heavy.atom, tuple(gain)), Trigger(heavy.atom, tuple(loss)))
