"""How the keys and the payloads of a block's views lie in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everview.algebra.registry import ring_named
from everview.algebra.ring import INT64, Addition
from everview.backends.embedded.tree.layout import (
    COUNTED,
    EXACT,
    FLOATING,
    RING_FLOATS,
    RING_INTS,
    RING_PAIRS,
    moments_kind,
    ring_kind,
)
from everview.backends.embedded.vectors import KeyLayout
from everview.planner.block import Block, Number
from everview.planner.moments_block import PayloadPart
from everview.planner.moments_part import MomentsPart

KIND_OF = {Number.COUNT: COUNTED, Number.EXACT: EXACT, Number.FLOAT: FLOATING}


def part_kind(block: Block, part: PayloadPart) -> int:
    """The kind of the part of a payload that holds a monomial, or moments."""
    if isinstance(part, MomentsPart):
        return moments_kind(len(part.features), part.degree)
    name = block.ring_of(part)
    if name is None:
        return KIND_OF[block.number_of(part)]
    ring = ring_named(name).ring
    if ring.addition is Addition.PAIRS:
        return ring_kind(ring.width, RING_PAIRS)
    return ring_kind(ring.width, RING_INTS if ring.dtype == INT64 else RING_FLOATS)


def key_layout(block: Block, keys: Iterable[str]) -> KeyLayout:
    """How the variables lie in a key."""
    variables = [block.variable(k) for k in keys]
    return KeyLayout(tuple(v.type for v in variables), tuple(v.nullable for v in variables))


def words_per_key(block: Block, keys: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The words of each variable in a key over these variables."""
    layout = key_layout(block, keys)
    return {k: layout.words((i,)) for i, k in enumerate(keys)}
