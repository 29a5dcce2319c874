"""What makes two stored views the same, in one tree or in two.

The content of a view is a function of the atoms below it (an input, the rows of it that count, its variables and lifts), which
of their variables are equal, the predicates that were checked, what is kept as key, and what is summed:

    V[keys] = Σ over rows of the join of the atoms, on which the predicates hold, of  Π lifts

and of nothing else: not of the names of variables, nor of how the tree below it is built. All of that is its *identity*.

Several atoms of one tree may look the same (a self-join), and a tree takes in their changes one after another. They are told
apart by a number, and the atom of another tree that is to move at the same moment gets the same number: ``occurrences`` chooses
numbers such that many views become identical. Views of equal identity are equal at every moment of a transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations
from typing import TypeAlias

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.block_layout import key_layout
from everview.planner.block import Block, Lift, RingLift
from everview.planner.moments_block import PayloadPart, packed
from everview.planner.moments_part import MomentsPart
from everview.relational.expressions import Expression, conjuncts
from everview.relational.failing import can_fail
from everview.relational.types import DataType
from everview.trigger.tree_program import TreeProgram, TreeViewDefinition

MOST_TRIED = 24
"""Ways in which the atoms of two views of a self-join are matched before they count as different."""


@dataclass(frozen=True, slots=True, eq=False)
class AtomIdentity:
    """What a tree takes in of an input; ``number`` tells atoms of one tree apart that are alike."""

    input: Operator
    conditions: frozenset[Expression]
    variables: frozenset[tuple[Expression, DataType, int]]
    """Value, type, and words of a key that it takes."""
    lifts: frozenset[Lift | RingLift]
    number: int = 0
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        found = hash((id(self.input), self.conditions, self.variables, self.lifts, self.number))
        object.__setattr__(self, "_hash", found)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AtomIdentity) and self.number == other.number and self.is_like(other)

    def is_like(self, other: AtomIdentity) -> bool:
        """Whether they are equal but for the number."""
        return (
            self.input is other.input
            and self.conditions == other.conditions
            and self.variables == other.variables
            and self.lifts == other.lifts
        )

    def numbered(self, number: int) -> AtomIdentity:
        """The atom with another number."""
        return AtomIdentity(self.input, self.conditions, self.variables, self.lifts, number)


ColumnIdentity: TypeAlias = frozenset[tuple[AtomIdentity, Expression]]
"""A variable, as far as a view knows it: its value in each atom below that has it."""


@dataclass(frozen=True, slots=True)
class MomentsIdentity:
    """Moments of features, in their order."""

    features: tuple[tuple[AtomIdentity, Lift | RingLift], ...]
    degree: int


PartIdentity: TypeAlias = frozenset[tuple[AtomIdentity, Lift | RingLift]] | MomentsIdentity
"""A monomial of a payload, or moments."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What determines the content of a view at every moment."""

    atoms: frozenset[AtomIdentity]
    equal: frozenset[ColumnIdentity]
    """All variables: which columns of the atoms are equal."""
    keys: frozenset[ColumnIdentity]
    payload: frozenset[PartIdentity]
    residuals: frozenset[tuple[Expression, tuple[ColumnIdentity, ...]]]


@dataclass(frozen=True, slots=True)
class Described:
    """A view's identity, and in which order it has its keys and the parts of its payload."""

    identity: Identity
    keys: tuple[ColumnIdentity, ...]
    payload: tuple[PartIdentity, ...]


def atoms_of(program: TreeProgram, inputs: Sequence[Operator]) -> tuple[AtomIdentity, ...]:
    """The atoms of a program over its inputs, all with the number 0."""
    block = program.block
    types = {v.name: v.type for v in block.variables}
    # Whether a variable may be NULL follows from the conditions, and matters only where NULL takes a word of its own.
    words = {v.name: key_layout(block, (v.name,)).width for v in block.variables}
    return tuple(
        AtomIdentity(
            operator,
            _conditions(atom.condition),
            frozenset((e, types[v], words[v]) for v, e in atom.variables),
            frozenset(atom.lifts),
        )
        for atom, operator in zip(block.atoms, inputs, strict=True)
    )


def _conditions(condition: Expression) -> frozenset[Expression]:
    """The conjuncts, in no order, unless that decides whether one of them fails."""
    return frozenset({condition} if can_fail(condition) else conjuncts(condition))


def may_be_shared(program: TreeProgram, view: TreeViewDefinition) -> bool:
    """Whether a stored view's content is what its identity says, and moves when the identity says.

    Indicators change what a view counts, and the trigger of an atom that has some reads views which it has already changed.
    """
    indicated = {v.indicates for v in program.views if v.indicates is not None}
    return view.name in program.stored and view.indicates is None and not view.indicated and not view.atoms & indicated


def describe_view(program: TreeProgram, view: TreeViewDefinition, atoms: Sequence[AtomIdentity]) -> Described:
    """The identity of a view; ``atoms`` are those of the program, with their numbers."""
    block = program.block
    columns: dict[str, set[tuple[AtomIdentity, Expression]]] = {}
    for a in view.atoms:
        for variable, value in block.atoms[a].variables:
            columns.setdefault(variable, set()).add((atoms[a], value))
    column = {variable: frozenset(members) for variable, members in columns.items()}
    keys = tuple(column[k] for k in view.keys)
    payload = tuple(_describe_part(block, part, atoms) for part in packed(block, view.payload))
    residuals = frozenset((r.condition, tuple(column[v] for v in r.variables)) for r in view.residuals)
    own = frozenset(atoms[a] for a in view.atoms)
    identity = Identity(own, frozenset(column.values()), frozenset(keys), frozenset(payload), residuals)
    return Described(identity, keys, payload)


def _describe_part(block: Block, part: PayloadPart, atoms: Sequence[AtomIdentity]) -> PartIdentity:
    if isinstance(part, MomentsPart):
        return MomentsIdentity(tuple((atoms[a], block.atoms[a].lifts[i]) for a, i in part.features), part.degree)
    return frozenset((atoms[a], block.atoms[a].lifts[i]) for a, i in part)


def occurrences(
    program: TreeProgram, inputs: Sequence[Operator], known: Iterable[Identity]
) -> tuple[AtomIdentity, ...]:
    """The atoms of a new tree, numbered so that its stored views become identical to known ones, the largest first."""
    plain = atoms_of(program, inputs)
    by_shape: dict[_Shape, list[Identity]] = {}
    for identity in known:
        by_shape.setdefault(_shape(identity), []).append(identity)
    chosen: dict[int, AtomIdentity] = {}
    stored = [v for v in program.views if may_be_shared(program, v)]
    for view in sorted(stored, key=lambda v: -len(v.atoms)):
        shape = _shape(describe_view(program, view, plain).identity)
        for candidate in by_shape.get(shape, ()):
            found = _matched(program, view, plain, chosen, candidate)
            if found is not None:
                chosen |= found
                break
    taken = set(chosen.values())
    for a, atom in enumerate(plain):
        if a not in chosen:
            number = 0
            while atom.numbered(number) in taken:
                number += 1
            chosen[a] = atom.numbered(number)
            taken.add(chosen[a])
    return tuple(chosen[a] for a in range(len(plain)))


_Shape: TypeAlias = tuple[frozenset[tuple[AtomIdentity, int]], int, int, int, int]


def _shape(identity: Identity) -> _Shape:
    """What identities that differ only in numbers have in common, and few others."""
    alike = Counter(a.numbered(0) for a in identity.atoms)
    sizes = len(identity.equal), len(identity.keys), len(identity.payload), len(identity.residuals)
    return (frozenset(alike.items()), *sizes)


def _matched(
    program: TreeProgram,
    view: TreeViewDefinition,
    plain: Sequence[AtomIdentity],
    chosen: dict[int, AtomIdentity],
    candidate: Identity,
) -> dict[int, AtomIdentity] | None:
    """Numbers for the view's atoms that make it the candidate, and respect those chosen before; no two atoms get the same."""
    for found in islice(_assignments(sorted(view.atoms), plain, candidate), MOST_TRIED):
        others = {atom for a, atom in chosen.items() if a not in found}
        if any(chosen.get(a, atom) != atom for a, atom in found.items()) or others & set(found.values()):
            continue
        atoms = [found.get(a, atom) for a, atom in enumerate(plain)]
        if describe_view(program, view, atoms).identity == candidate:
            return found
    return None


def _assignments(
    own: list[int], plain: Sequence[AtomIdentity], candidate: Identity
) -> Iterator[dict[int, AtomIdentity]]:
    """All ways to give the candidate's atoms to those of a view that are like them, in order of their numbers first."""
    if not own:
        yield {}
        return
    alike = [a for a in own if plain[a].is_like(plain[own[0]])]
    rest = [a for a in own if a not in alike]
    offered = sorted((a for a in candidate.atoms if a.is_like(plain[own[0]])), key=lambda a: a.number)
    if len(offered) != len(alike):
        return  # atoms without numbers that are alike are one in a set, so a shape does not tell how many there are
    for order in permutations(offered):
        for others in _assignments(rest, plain, candidate):
            yield dict(zip(alike, order, strict=True)) | others
