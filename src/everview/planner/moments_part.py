"""Moments as a part of a payload: of which features, up to which degree, and which monomials of the block they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Feature: TypeAlias = tuple[int, int]
"""An atom and its lift."""


@dataclass(frozen=True, slots=True)
class MomentsShape:
    """The features of a block, atom by atom, and whether their products are summed, too (degree 2).

    ``products`` has, for two features of one atom, the lift that is their product. ``errors`` are lifts that are what such a
    product lacks after it was rounded: moments have products exactly, so that nothing is to be added to them.
    """

    features: tuple[Feature, ...]
    degree: int
    products: tuple[tuple[tuple[Feature, Feature], Feature], ...]
    errors: tuple[Feature, ...] = ()

    def below(self, atoms: Iterable[int]) -> MomentsPart | None:
        """What a view over these atoms keeps; None if no feature is below it."""
        own = set(atoms)
        features = tuple(f for f in self.features if f[0] in own)
        return MomentsPart(features, self.degree) if features else None

    def cells(self, part: MomentsPart) -> tuple[frozenset[Feature], ...]:
        """The monomials that a part holds, in its order: the sums, then row by row the products from the diagonal on."""
        lift_of = dict(self.products)
        sums = [frozenset({f}) for f in part.features]
        if part.degree == 1:
            return tuple(sums)
        pairs = ((f, g) for i, f in enumerate(part.features) for g in part.features[i:])
        return (*sums, *(frozenset({lift_of[f, g]} if f[0] == g[0] else {f, g}) for f, g in pairs))

    def read_of(self, atom: int) -> frozenset[int]:
        """The lifts of an atom that are features."""
        return frozenset(i for a, i in self.features if a == atom)

    def made_of(self, atom: int) -> frozenset[int]:
        """The lifts of an atom that moments make of features: their products, and what these lack."""
        made = (*(product for _, product in self.products), *self.errors)
        return frozenset(i for a, i in made if a == atom) - self.read_of(atom)

    def held(self, part: MomentsPart) -> tuple[frozenset[Feature], ...]:
        """The monomials that need no place beside a part: its cells, and the errors that are in them."""
        own = {atom for atom, _ in part.features}
        return (*self.cells(part), *(frozenset({e}) for e in self.errors if e[0] in own))


@dataclass(frozen=True, slots=True)
class MomentsPart:
    """A part of a payload: the moments of some features, which stand in the order of the shape's."""

    features: tuple[Feature, ...]
    degree: int

    @property
    def size(self) -> int:
        """How many sums it has."""
        count = len(self.features)
        return count if self.degree == 1 else count + count * (count + 1) // 2
