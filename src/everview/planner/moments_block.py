"""The covariance ring inside a block: sums of floats and of their products, kept together as one part of a payload.

The sums of features x_1 … x_k over the rows of a view, and the sums of their products, are the element (c, s, Q) of the
covariance ring of degree k (F-IVM, definition 32); c is the number of rows, which every payload has anyway. Over a join

    c = c1 · c2        s = c2 · s1  ∪  c1 · s2        Q = c2 · Q1  ∪  c1 · Q2  ∪  s1 s2ᵀ

since the features of two views below a join are different ones. So a view keeps the features below it only, and the half of Q
above the diagonal. An engine does that with few loops over neighbouring numbers; each monomial alone would be a step of its
own.

A block has *moments* if all its monomials of floats are such sums. With degree 1 only the s are wanted: SUM(x), SUM(y), … VAR,
COVAR, CORR and REGR ask for rounding errors of products, too, which moments have in them. Where an argument may be NULL, the
features are what counts: x on the rows on which y is not NULL, and 0 on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations_with_replacement
from typing import TypeAlias

from everview.planner.block import Block, Monomial
from everview.planner.block_terms import Factor, multiplied
from everview.planner.moments_part import Feature, MomentsPart, MomentsShape

FEWEST_CELLS = 4
"""Fewer sums than that are kept one by one, each with its own account of NaNs and infinities."""
MONOMIAL_WORDS = 3
"""What a sum of floats takes that is kept for itself; one of moments takes two, and each feature one more."""


PayloadPart: TypeAlias = Monomial | MomentsPart
"""What a payload is made of: monomials that are kept one by one, and moments."""

FactorOf: TypeAlias = Callable[[Feature], Factor]
Find: TypeAlias = Callable[[int, Factor], int | None]


def find_moments(floats: Sequence[Monomial], factor_of: FactorOf, find: Find) -> tuple[Feature, ...] | None:
    """The features whose moments the sums of floats of a block are, each of them; None if some are something else.

    Args:
        floats: The monomials that are sums of floats.
        factor_of: What a lift is.
        find: The lift of an atom that is a factor, if there is one.
    """
    singles = sorted({f for m in floats if len(m) == 1 for f in m})
    errors = {f for f in singles if factor_of(f).is_error}
    sums = [f for f in singles if f not in errors]
    plain = [f for f in sums if not factor_of(f).is_product]
    products = _products(plain, factor_of, find)
    others = [f for f in sums if f not in products]  # with products of which the factors are not summed: features, too
    products |= _products(others, factor_of, find)
    features = [f for f in others if f not in products]
    of_atom = {pair: _product(pair, factor_of, find) for pair in _pairs(features)}
    cells = {frozenset({f}) for f in (*features, *(p for p in of_atom.values() if p is not None))}
    across = {frozenset(p) for p in combinations_with_replacement(features, 2) if p[0][0] != p[1][0]}
    exact = {(f[0], find(f[0], factor_of(f).rounding_error)) for f in products}
    if not cells | across >= {m for m in floats if not m <= errors} or not errors <= exact:
        return None
    return tuple(features)


def moments_shape(
    floats: Sequence[Monomial], factor_of: FactorOf, find: Find, lift: Callable[[int, Factor], int], *, may_add: bool
) -> MomentsShape | None:
    """The moments that a block's sums of floats are, beside numbers of rows and exact sums; None if they are something else.

    ``may_add``: products that nobody asked for are summed, too (made by ``lift``), as long as that takes less room than the
    sums one by one, or if they are no more than the features.
    """
    features = find_moments(floats, factor_of, find)
    if not features:
        return None
    errors = tuple(sorted(f for m in floats for f in m if len(m) == 1 and factor_of(f).is_error))
    wanted = len(floats) - len(errors)
    part = MomentsPart(features, 2 if wanted > len(features) else 1)
    missing = part.size - wanted
    is_small = 2 * part.size + len(features) <= MONOMIAL_WORDS * len(floats) or missing <= len(features)
    if part.size < FEWEST_CELLS or (missing and not (may_add and is_small)):
        return None
    if part.degree == 1:
        return MomentsShape(features, 1, ())
    made = tuple(((f, g), (f[0], lift(f[0], multiplied(factor_of(f), factor_of(g))))) for f, g in _pairs(features))
    return MomentsShape(features, 2, made, errors)


def _pairs(features: Sequence[Feature]) -> Iterable[tuple[Feature, Feature]]:
    """Each feature with itself and with those after it, of the same atom."""
    return ((f, g) for i, f in enumerate(features) for g in features[i:] if f[0] == g[0])


def _products(factors: Sequence[Feature], factor_of: FactorOf, find: Find) -> set[Feature]:
    """The lifts that are products of two of these."""
    return {p for pair in _pairs(factors) if (p := _product(pair, factor_of, find)) is not None}


def _product(pair: tuple[Feature, Feature], factor_of: FactorOf, find: Find) -> Feature | None:
    """The lift that is the product of two features."""
    found = find(pair[0][0], multiplied(*map(factor_of, pair)))
    return None if found is None else (pair[0][0], found)


def unpacked(block: Block, parts: Iterable[PayloadPart]) -> tuple[Monomial, ...]:
    """The monomials of some parts of a payload."""
    found: list[Monomial] = []
    for part in parts:
        if isinstance(part, MomentsPart):
            assert block.moments is not None, "a block with moments"
            found.extend(block.moments.held(part))
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
    held = frozenset(block.moments.held(part))
    return (*(m for m in payload if m not in held), part)
