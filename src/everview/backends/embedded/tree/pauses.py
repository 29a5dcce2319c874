"""What a machine leaves to Python: masks of predicates that no kernel evaluates, and products in registered rings.

A pause stands between two instructions. It reads registers of frames that are complete by then, and fills registers of a frame
whose rows are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from everview.planner.block import Residual


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
class RingPause:
    """A product in a ring, for each row of a frame: left * right, into the registers from ``target`` on."""

    ring: str
    frame: int
    left: RowPart
    right: EntryPart
    target: int


Pause: TypeAlias = MaskPause | RingPause
