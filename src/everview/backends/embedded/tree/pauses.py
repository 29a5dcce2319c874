"""What a machine leaves to Python: masks of predicates that no kernel evaluates, products in registered rings, sums of ranges.

A pause stands between two instructions. It reads registers of frames that are complete by then, and fills registers of a frame
whose rows are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from everview.planner.block import Residual
from everview.trigger.tree_program import Access


@dataclass(frozen=True, slots=True)
class MaskPause:
    """A mask: the predicate's columns in registers of a frame."""

    residual: Residual
    frame: int
    columns: tuple[tuple[int, ...], ...]
    mask: int


@dataclass(frozen=True, slots=True)
class RowPart:
    """An operand in the rows of a frame: the registers of its words begin at ``register``, ``rows`` says which row to take."""

    frame: int
    rows: int
    register: int


@dataclass(frozen=True, slots=True)
class EntryPart:
    """An operand in the entries of a view, by its number: from word ``place`` on, in the slots that a register holds."""

    view: int
    slots: int
    place: int


@dataclass(frozen=True, slots=True)
class CountPart:
    """Numbers of rows in the rows of a frame: as many times the other operand is taken."""

    frame: int
    rows: int
    register: int


@dataclass(frozen=True, slots=True)
class RingPause:
    """A product in a ring, for each row of a frame: left * right, into the registers from ``target`` on."""

    ring: str
    frame: int
    left: RowPart
    right: EntryPart | RowPart | CountPart
    target: int


@dataclass(frozen=True, slots=True)
class RangePause:
    """The sums of ranges of a view, by its number: for each row of a frame, into the registers from ``target`` on.

    ``known`` has the words of the variables that rows know, in the order of ``variables``. The register ``rows`` gets the
    numbers of the rows, so that the sums can be multiplied with what the rows carry.
    """

    access: Access
    view: int
    frame: int
    variables: tuple[str, ...]
    known: tuple[tuple[int, ...], ...]
    target: int
    rows: int


Pause: TypeAlias = MaskPause | RingPause | RangePause
