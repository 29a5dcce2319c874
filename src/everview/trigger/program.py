"""Trigger programs, in the spirit of DBToaster's M3: for each atom of a block, statements over views.

    on lineitem (orderkey)
      δlineitem[orderkey] := Σ price, #
      δQ[orderkey, day]   := δlineitem[orderkey] * OC[orderkey, day]        -- slice by orderkey
      lineitem[orderkey]  += δlineitem[orderkey]
      Q[orderkey, day]    += δQ[orderkey, day]

A view maps keys to payloads, one part a monomial of the block. Every join says its access path: a *look-up* binds all keys of the
view, a *slice* some of them, a *scan* none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from everview.planner.block import Block, Monomial, Residual


class AccessKind(Enum):
    """How a join finds its matches."""

    LOOKUP = "look-up"
    SLICE = "slice"
    SCAN = "scan"


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view of the tree: its key variables, its payload (monomials over the atoms below), and those atoms."""

    name: str
    keys: tuple[str, ...]
    payload: tuple[Monomial, ...]
    atoms: frozenset[int]


@dataclass(frozen=True, slots=True)
class Access:
    """A join with a view: ``bound`` are its keys that the delta knows, ``payload`` is what the joined rows carry on."""

    view: str
    kind: AccessKind
    bound: tuple[str, ...]
    payload: tuple[Monomial, ...]
    residuals: tuple[Residual, ...] = ()
    """Predicates to check right after the join, all of whose variables are known by then."""


@dataclass(frozen=True, slots=True)
class Lift:
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
    """target += δtarget."""

    target: str


Statement: TypeAlias = Lift | Compute | Add


@dataclass(frozen=True, slots=True)
class Trigger:
    """What to do with a change of an atom."""

    atom: int
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """The triggers of a block. ``stored`` are the views that are materialized, ``result`` is the one with the answer.

    Where the result stays factorized over several views, ``result`` is empty.
    """

    block: Block
    views: tuple[ViewDefinition, ...]
    stored: frozenset[str]
    result: str
    triggers: tuple[Trigger, ...]

    def view(self, name: str) -> ViewDefinition:
        """The view of this name."""
        return next(v for v in self.views if v.name == name)
