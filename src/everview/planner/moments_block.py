"""The covariance ring inside a block: sums of floats and of their products, kept together as one part of a payload.

The sums of features x_1 … x_k over the rows of a view, and the sums of their products, are the element (c, s, Q) of the
covariance ring of degree k (F-IVM, definition 32); c is the number of rows, which every payload has anyway. Over a join

    c = c1 · c2        s = c2 · s1  ∪  c1 · s2        Q = c2 · Q1  ∪  c1 · Q2  ∪  s1 s2ᵀ

since the features of two views below a join are different ones. So a view keeps the features below it only, and the half of Q
above the diagonal. An engine does that with few loops over neighbouring numbers; each monomial alone would be a step of its
own.

A block has *moments* if all its monomials of floats are such sums. With degree 1 only the s are wanted: SUM(x), SUM(y), …
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from everview.planner.block import Block, BlockAtom, Lift, Monomial, Number
from everview.planner.moments_part import Feature, MomentsPart, MomentsShape
from everview.relational.expressions import Call, Expression
from everview.relational.types import FLOAT64

FEWEST_CELLS = 4
"""Fewer sums than that are kept one by one, each with its own account of NaNs and infinities."""


PayloadPart: TypeAlias = Monomial | MomentsPart
"""What a payload is made of: monomials that are kept one by one, and moments."""


def moments_shape(atoms: Sequence[BlockAtom], monomials: Iterable[Monomial]) -> MomentsShape | None:
    """The moments that these monomials are, beside numbers of rows and exact sums; None if they are something else."""
    if any(lift.number is Number.RING for atom in atoms for lift in atom.lifts):
        return None
    floats = {m for m in monomials if any(atoms[a].lifts[i].number is Number.FLOAT for a, i in m)}
    singles = sorted(f for m in floats if len(m) == 1 for f in m)
    known = {(a, value): (a, i) for a, i in singles for value in atoms[a].lifts[i].expressions}
    features: list[Feature] = []
    products: dict[tuple[Feature, Feature], Feature] = {}
    for single in singles:
        factors = sorted(known[f] for f in _factors(atoms, single) if f in known)
        if len(factors) == 2:
            products[factors[0], factors[1]] = single
        else:
            features.append(single)
    shape = MomentsShape(tuple(features), 2 if len(floats) > len(features) else 1, tuple(products.items()))
    part = MomentsPart(shape.features, shape.degree)
    if part.size < FEWEST_CELLS or part.size != len(floats) or (shape.degree == 2 and not _has_all(shape)):
        return None
    return shape if set(shape.cells(part)) == floats else None


def _factors(atoms: Sequence[BlockAtom], feature: Feature) -> list[tuple[int, Expression]]:
    """The factors of a lift that is a product of two floats, with its atom."""
    atom, number = feature
    lift = atoms[atom].lifts[number]
    value = lift.value if isinstance(lift, Lift) else None
    if isinstance(value, Call) and value.function == "*" and value.type == FLOAT64:
        return [(atom, factor) for factor in value.args]
    return []


def _has_all(shape: MomentsShape) -> bool:
    """Whether the products of all features of an atom are summed."""
    known = {pair for pair, _ in shape.products}
    own = ((f, g) for i, f in enumerate(shape.features) for g in shape.features[i:] if f[0] == g[0])
    return all(pair in known for pair in own)


def unpacked(block: Block, parts: Iterable[PayloadPart]) -> tuple[Monomial, ...]:
    """The monomials of some parts of a payload."""
    found: list[Monomial] = []
    for part in parts:
        if isinstance(part, MomentsPart):
            assert block.moments is not None, "a block with moments"
            found.extend(block.moments.cells(part))
        else:
            found.append(part)
    return tuple(found)


def packed(block: Block, payload: Sequence[Monomial]) -> tuple[PayloadPart, ...]:
    """A payload with its moments as one part, the last; the number of rows stays the first."""
    if block.moments is None:
        return tuple(payload)
    part = block.moments.below({a for monomial in payload for a, _ in monomial})
    if part is None:
        return tuple(payload)
    cells = frozenset(block.moments.cells(part))
    return (*(m for m in payload if m not in cells), part)
