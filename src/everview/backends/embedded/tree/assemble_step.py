"""From the triggers of several trees for one atom to one piece of code: the delta of an identical view is computed once.

    on lineitem, for two trees                        δL is lifted once, and OL[custkey] is a view that both have
      δL[orderkey]       := Σ price
      δOL[custkey]       := δL[orderkey] * O[orderkey, custkey]
      OL[custkey]        += δOL[custkey]
      δQ1[nation]        := δOL[custkey] * C1[custkey, nation]
      Q1[nation]         += δQ1[nation]
      δQ2[segment]       := δOL[custkey] * C2[custkey, segment]
      Q2[segment]        += δQ2[segment]

A delta is a frame of rows and the registers of its keys and parts; for another tree, only their names are others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from everview.backends.embedded.tree.assemble import Assembler, RowDelta
from everview.backends.embedded.tree.code_builder import Delta
from everview.backends.embedded.tree.instruction import size_of
from everview.backends.embedded.tree.trigger_code import ResultRegisters, TriggerCode
from everview.backends.embedded.tree.view_identity import AtomIdentity, Described, Identity, describe_view
from everview.backends.embedded.tree.view_map import ViewMap
from everview.planner.moments_block import PayloadPart
from everview.trigger.tree_program import Compute, LiftRows, TreeProgram, TreeViewDefinition, Trigger


@dataclass(frozen=True, slots=True)
class TreeTrigger:
    """What one tree does with a change of the atom: its trigger, over its program, maps and atoms."""

    program: TreeProgram
    maps: dict[str, ViewMap]
    atoms: Sequence[AtomIdentity]
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class StepCode:
    """The code of all trees; for each of them, where its part of it ends, how many pauses it has had, and its result."""

    code: TriggerCode
    ends: tuple[int, ...]
    pauses: tuple[int, ...]
    results: tuple[tuple[ResultRegisters, ...], ...]


def assemble_step(triggers: Sequence[TreeTrigger], number_of: Callable[[ViewMap], int]) -> StepCode:
    """The code of several triggers that meet no indicators; ``number_of`` gives a map's place in the machine's list."""
    first = triggers[0]
    assembler = _StepAssembler(first.program, first.maps, _numbers(first.maps, number_of))
    ends, pauses, results = list[int](), list[int](), list[tuple[ResultRegisters, ...]]()
    for one in triggers:
        start = len(assembler.code)
        assembler.program, assembler.maps, assembler.atoms = one.program, one.maps, one.atoms
        assembler.number_of = _numbers(one.maps, number_of)
        results.append(assembler.append_with_results(one.trigger))
        ends.append((ends[-1] if ends else 0) + size_of(assembler.code[start:]))
        pauses.append(len(assembler.pauses))
    return StepCode(assembler.finished(), tuple(ends), tuple(pauses), tuple(results))


def _numbers(maps: Mapping[str, ViewMap], number_of: Callable[[ViewMap], int]) -> Callable[[str], int]:
    return lambda name: number_of(maps[name])


@dataclass(slots=True)
class _StepAssembler(Assembler):
    """Assembles the triggers of an atom, one tree after another."""

    atoms: Sequence[AtomIdentity] = ()
    _known: dict[Identity, tuple[Sequence[str], Sequence[PayloadPart], Described, RowDelta]] = field(
        default_factory=dict
    )

    def _lifted(self, trigger: Trigger, lift: LiftRows) -> RowDelta:
        return self._once(lift.target, lambda: self._leaf_delta(trigger.atom, lift, is_grouped=True))

    def _computed(self, compute: Compute, delta: RowDelta) -> RowDelta:
        return self._once(compute.target, lambda: Assembler._computed(self, compute, delta))

    def _once(self, name: str, make: Callable[[], RowDelta]) -> RowDelta:
        """The delta of a view, or that of an identical one of a tree before."""
        view = self.program.view(name)
        described = describe_view(self.program, view, self.atoms)
        known = self._known.get(described.identity)
        if known is not None:
            return self._renamed(view, described, *known)
        delta = make()
        self._known[described.identity] = view.keys, self._parts(view.payload), described, delta
        return delta

    def _renamed(
        self,
        view: TreeViewDefinition,
        own: Described,
        known_keys: Sequence[str],
        known_parts: Sequence[PayloadPart],
        theirs: Described,
        delta: RowDelta,
    ) -> RowDelta:
        """The delta of an identical view, by the names that this view has for keys and parts."""
        key_of = dict(zip(theirs.keys, known_keys, strict=True))
        part_of = dict(zip(theirs.payload, known_parts, strict=True))
        keys = {name: delta.keys[key_of[k]] for name, k in zip(view.keys, own.keys, strict=True)}
        named = zip(self._parts(view.payload), own.payload, strict=True)
        parts = {part: delta.parts[part_of[p]] for part, p in named}
        return Delta(delta.frame, keys, parts, view.atoms, delta.repeats)
