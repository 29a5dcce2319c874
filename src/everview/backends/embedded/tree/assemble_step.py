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

import numpy as np

from everview.backends.embedded.tree.assemble import Assembler, Delta, end_of_path
from everview.backends.embedded.tree.trigger_code import LeafRegisters, ResultRegisters, TriggerCode
from everview.backends.embedded.tree.view_identity import Atom, Described, Identity, describe_view
from everview.backends.embedded.tree.view_map import ViewMap
from everview.trigger.tree_program import Add, Compute, Lift, TreeProgram, Trigger, ViewDefinition


@dataclass(frozen=True, slots=True)
class TreeTrigger:
    """What one tree does with a change of the atom: its trigger, over its program, maps and atoms."""

    program: TreeProgram
    maps: dict[str, ViewMap]
    atoms: Sequence[Atom]
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
    ends, pauses, results = [], [], []
    for one in triggers:
        assembler.program, assembler.maps = one.program, one.maps
        assembler.number_of = _numbers(one.maps, number_of)
        results.append(assembler.assemble_tree(one))
        ends.append(len(assembler._code))
        pauses.append(len(assembler._pauses))
    return StepCode(assembler.finished(), tuple(ends), tuple(pauses), tuple(results))


def _numbers(maps: Mapping[str, ViewMap], number_of: Callable[[ViewMap], int]) -> Callable[[str], int]:
    return lambda name: number_of(maps[name])


@dataclass(slots=True)
class _StepAssembler(Assembler):
    """Assembles the triggers of an atom, one tree after another."""

    _known: dict[Identity, tuple[ViewDefinition, Described, Delta]] = field(default_factory=dict)
    _leaf: LeafRegisters | None = None

    def assemble_tree(self, one: TreeTrigger) -> tuple[ResultRegisters, ...]:
        """Appends the instructions of one tree; returns where its result is."""
        deltas: dict[str, Delta] = {}
        last = end_of_path(one.trigger)
        for statement in one.trigger.statements:
            if isinstance(statement, Add):
                self._add(statement.target, deltas[statement.target])
                continue
            assert isinstance(statement, Lift | Compute), "the trigger has no indicators"
            view = self.program.view(statement.target)
            described = describe_view(self.program, view, one.atoms)
            known = self._known.get(described.identity)
            if known is not None:
                delta = _renamed(view, described, *known)
            elif isinstance(statement, Lift):
                assert self._leaf is None, "the trees have the same atom"
                self._leaf, delta = self._lift(one.trigger.atom, statement)
            else:
                delta = self._compute(statement, deltas[statement.source])
            deltas[view.name] = delta
            self._known.setdefault(described.identity, (view, described, delta))
        return (self._result(last, deltas[last]),)

    def finished(self) -> TriggerCode:
        """All that was appended."""
        assert self._leaf is not None, "a trigger begins with its leaf"
        frames = tuple(tuple(f) for f in self._frames)
        code = np.array(self._code, dtype=np.int64)
        wide = tuple(self._wide_sums)
        return TriggerCode(code, frames, self._registers, self._leaf, tuple(self._pauses), (), wide)


def _renamed(view: ViewDefinition, own: Described, known: ViewDefinition, theirs: Described, delta: Delta) -> Delta:
    """The delta of an identical view, by the names that this view has for keys and parts."""
    key_of = dict(zip(theirs.keys, known.keys, strict=True))
    part_of = dict(zip(theirs.payload, known.payload, strict=True))
    keys = {name: delta.keys[key_of[k]] for name, k in zip(view.keys, own.keys, strict=True)}
    parts = {monomial: delta.parts[part_of[p]] for monomial, p in zip(view.payload, own.payload, strict=True)}
    return Delta(delta.frame, keys, parts, view.atoms, delta.repeats)
