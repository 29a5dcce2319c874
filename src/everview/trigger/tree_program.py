"""The trigger program of a view tree, in the spirit of DBToaster's M3: for each atom of a block, statements over views.

    on lineitem (orderkey)
      δlineitem[orderkey] := Σ price, #
      δQ[orderkey, day]   := δlineitem[orderkey] * OC[orderkey, day]        -- slice by orderkey
      lineitem[orderkey]  += δlineitem[orderkey]
      Q[orderkey, day]    += δQ[orderkey, day]

A view maps keys to payloads, one part a monomial of the block. Every join says its access path: a *look-up* binds all
keys of the view, a *slice* some of them, a *scan* none. A *range* binds all keys but one, and sums what lies on stretches of
the order of that one.

An *indicator* of an atom counts its rows for some of its variables, and means 1 where the number is not 0. So a join with it
keeps what finds a partner and multiplies by nothing; its own delta is +1 for keys that come and -1 for keys that go. For all
variables of the atom the leaf has these numbers: if that is stored, the indicator is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from everview.planner.block import Block, Monomial, Residual


class AccessKind(Enum):
    """How a change finds what it meets. View trees have the first four."""

    LOOKUP = "look-up"
    SLICE = "slice"
    SCAN = "scan"
    RANGE = "range"
    """A part of an ordered index."""
    GROUP = "group"
    """All rows of a touched group, which is then computed anew."""


@dataclass(frozen=True, slots=True)
class TreeViewDefinition:
    """A view of the tree: its key variables, its payload (monomials over the atoms below), and those atoms."""

    name: str
    keys: tuple[str, ...]
    payload: tuple[Monomial, ...]
    atoms: frozenset[int]
    indicates: int | None = None
    """The atom that this is an indicator of: ``atoms`` is then empty, and the payload counts the atom's rows."""
    residuals: tuple[Residual, ...] = ()
    """The predicates that are checked here or further down."""
    indicated: frozenset[int] = frozenset()
    """The atoms that have an indicator here or further down: rows without a partner in them are not counted."""


@dataclass(frozen=True, slots=True)
class Access:
    """A join with a view: ``bound`` are its keys that the delta knows, ``payload`` is what the joined rows carry on."""

    view: str
    kind: AccessKind
    bound: tuple[str, ...]
    payload: tuple[Monomial, ...]
    residuals: tuple[Residual, ...] = ()
    """Predicates to check right after the join, all of whose variables are known by then."""
    is_indicator: bool = False
    """Whether only the keys of the view matter, as far as their count is not 0, and no payload is multiplied."""
    ordered: str | None = None
    """For a range: the key that the delta does not know, in whose order the predicates hold on a few stretches. They are not
    checked on pairs: what lies on these stretches is summed, and the key is not known afterwards either."""


@dataclass(frozen=True, slots=True)
class LiftRows:
    """δtarget[keys] := Σ of the lifted rows of the atom's change."""

    target: str


@dataclass(frozen=True, slots=True)
class Compute:
    """δtarget[keys] := Σ δsource * joins."""

    target: str
    source: str
    joins: tuple[Access, ...]
    residuals: tuple[Residual, ...] = ()
    """Predicates to check before any join."""


@dataclass(frozen=True, slots=True)
class Add:
    """target += δtarget; where there are ``turns``, once for each of them, with the parts of δtarget in that order."""

    target: str
    turns: tuple[tuple[Monomial, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class SeeAs:
    """δtarget := δsource: the same rows, seen as those of another occurrence of the table."""

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class AddIndicator:
    """target += Σ #source, and δtarget := +1 for its keys whose number has left 0, -1 for those where it has come to 0.

    If ``target`` is not stored, it is for the leaf ``source`` to count, and this follows ``Add(source)``.
    """

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class Split:
    """δheavy := the rows of δsource whose keys are in the view ``keys``, δtarget := the others, which are light."""

    target: str
    heavy: str
    source: str
    keys: str


@dataclass(frozen=True, slots=True)
class CountDegrees:
    """target += for each of its keys, how many keys of ``source`` are new, less those that are gone; after ``Add(source)``."""

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class TurnKeys:
    """δtarget := the keys that turn heavy (1) or light (-1): the beginning of an internal trigger."""

    target: str


TreeStatement: TypeAlias = LiftRows | Compute | Add | AddIndicator | SeeAs | Split | CountDegrees | TurnKeys


@dataclass(frozen=True, slots=True)
class Trigger:
    """What to do with a change of an atom: the path from its leaf to the root, then those from its indicators' places.

    One after another: an indicator's path finds the new contents of the views on the paths before it, and of the indicator.
    """

    atom: int
    statements: tuple[TreeStatement, ...]


@dataclass(frozen=True, slots=True)
class KeyMoves:
    """The internal trigger for keys that turn: their rows are added to other parts, then taken away from those they were in."""

    gain: Trigger
    loss: Trigger


@dataclass(frozen=True, slots=True)
class Partition:
    """An atom split on some of its variables, by how many of its keys have a value of them.

    ``degrees`` is the view with that number, ``heavy`` the one with the values whose rows are in heavy parts.
    """

    atom: int
    variables: tuple[str, ...]
    epsilon: float
    degrees: str
    heavy: str
    to_heavy: KeyMoves
    to_light: KeyMoves


@dataclass(frozen=True, slots=True)
class TreeProgram:
    """The triggers of a block. ``stored`` are the views that are materialized, ``result`` is the one with the answer.

    Where the result stays factorized over several views, ``result`` is empty.
    """

    block: Block
    views: tuple[TreeViewDefinition, ...]
    stored: frozenset[str]
    result: str
    triggers: tuple[Trigger, ...]
    partitions: tuple[Partition, ...] = ()
    """Which atoms have heavy and light parts; their rows move between them when degrees cross a threshold."""
    sizes: tuple[str, ...] = ()
    """Where there are partitions, for each atom a view of degrees, whose sum is the number of the atom's keys."""
    twins: tuple[tuple[str, str], ...] = ()
    """Views that are stored views seen as those of another occurrence of a table: the same entries, other names of the keys."""
    passing: frozenset[str] = frozenset()
    """Stored views that are emptied when a trigger is through: they hold the change itself, for it to be joined with."""
    followers: frozenset[int] = frozenset()
    """Occurrences of a table whose changes the trigger of another one takes in, too."""

    def is_joinable(self, name: str) -> bool:
        """Whether a view has entries that a change can be joined with."""
        return name in self.stored or any(twin == name for twin, _ in self.twins)

    def view(self, name: str) -> TreeViewDefinition:
        """The view of this name."""
        return next(v for v in self.views if v.name == name)

    def has_indicators(self, trigger: Trigger) -> bool:
        """Whether a trigger meets an indicator, or has to keep one."""
        met = (j.is_indicator for s in trigger.statements if isinstance(s, Compute) for j in s.joins)
        return any(met) or any(isinstance(s, AddIndicator) for s in trigger.statements)
