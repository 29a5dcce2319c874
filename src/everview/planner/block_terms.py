"""Aggregated expressions as polynomials: sums of products with one factor an atom, so that a tree can sum before it joins.

    Σ (a.x · b.y) over a ⋈ b   =   Σ_key (Σ a.x) · (Σ b.y)

A number with NULLs is a pair of polynomials, its value (0 where NULL) and its validity (1 where not NULL):

    x · y :  value = vx · vy                     valid = wx · wy
    x + y :  value = vx · wy + wx · vy           valid = wx · wy
    CASE WHEN c THEN x ELSE y :  value = [c] vx + (1 - [c]) vy, and so for valid

Only what is exact is taken apart: integers and decimals whose results cannot overflow or be rounded (`relational.bounds`),
and doubles, whose rounding the sums themselves already have. Doubles that would cancel are not: ∞ - ∞ and 0 · ∞ are NaN, and no
0. What cannot be taken apart is None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from everview.relational.bounds import exact_bound, scale_of, unscaled
from everview.relational.expressions import (
    FALSE,
    Call,
    Case,
    Cast,
    Expression,
    Literal,
    children,
    conjunction,
    conjuncts,
)
from everview.relational.functions.decimals import product_type
from everview.relational.schema import is_nullable
from everview.relational.types import BOOLEAN, FLOAT64, INT64, Decimal, Null, is_integral

Owners = Callable[[Expression], frozenset[int]]
"""Which atoms an expression reads."""
IsWatched = Callable[[Expression], bool]
"""Whether somebody takes care that an exact number stays in its range."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A product over one atom: of ``values`` (in order of first use), where all ``masks`` hold, else 0.

    With ``is_error`` it is what the rounded product of two floats lacks: product and error together are exact.
    """

    values: tuple[Expression, ...] = ()
    masks: frozenset[Expression] = frozenset()
    is_error: bool = False

    @property
    def is_product(self) -> bool:
        """Whether it is the rounded product of two floats."""
        return not self.is_error and len(self.products[0]) == 2

    @property
    def products(self) -> tuple[tuple[Expression, ...], ...]:
        """The values, and other ways to write them: x and y, y and x, their product."""
        match self.values:
            case (Call(function="*", args=(a, b), type=kind),) if kind == FLOAT64 and not self.is_error:
                return ((a, b), (b, a), self.values, (Call("*", (b, a), FLOAT64),))
            case (a, b) if a.type == FLOAT64 and b.type == FLOAT64:
                wholes = () if self.is_error else ((Call("*", (a, b), FLOAT64),), (Call("*", (b, a), FLOAT64),))
                return (self.values, (b, a), *wholes)
            case _:
                return (self.values,)

    @property
    def rounding_error(self) -> Factor:
        """What the rounded product of two floats lacks."""
        return replace(self, values=self.products[0], is_error=True)


Term = frozenset[tuple[int, Factor]]
Polynomial = tuple[tuple[int, Term], ...]
"""Coefficients and terms; in units of 10^-scale for exact numbers."""

ONE: Polynomial = ((1, frozenset()),)
NONE: Polynomial = ()


@dataclass(frozen=True, slots=True)
class Nullable:
    """A number that may be NULL."""

    value: Polynomial
    valid: Polynomial


def _nothing_is(_expression: Expression) -> bool:
    return False


def polynomial(expression: Expression, owners: Owners, is_watched: IsWatched = _nothing_is) -> Nullable | None:
    """The expression as polynomials over the atoms; exact numbers that are watched count as never overflowing."""
    if isinstance(expression, Literal):
        return _literal(expression, owners)
    atoms = owners(expression)
    if len(atoms) == 1:
        (atom,) = atoms
        value, masks = _where_present(expression)
        own = _presence(value)
        valid = masks | own
        number = frozenset({(atom, Factor((value,), masks - own))})
        return Nullable(((1, number),), ((1, frozenset({(atom, Factor((), valid))})),) if valid else ONE)
    match expression:
        case Call(function="*"):
            return _apply(_product, expression, owners, is_watched)
        case Call(function="+"):
            return _apply(_plus, expression, owners, is_watched)
        case Call(function="-"):
            return _apply(_minus, expression, owners, is_watched)
        case Cast(child=child) if exact_bound(expression) is not None or is_watched(expression):
            inner = polynomial(child, owners, is_watched)
            places = scale_of(expression.type) - scale_of(child.type)
            return inner and Nullable(_scaled(inner.value, int(10**places)), inner.valid)
        case Case(branches=((condition, chosen),), otherwise=otherwise):
            return _case(condition, chosen, otherwise, owners, is_watched)
        case _:
            return None


def indicator(condition: Expression, owners: Owners) -> Polynomial | None:
    """[condition is true], a conjunction of conditions over one atom each."""
    result = ONE
    for part in conjuncts(condition):
        atoms = owners(part)
        if len(atoms) != 1:
            return None
        result = _times(result, _mask(next(iter(atoms)), part))
    return result


def with_errors(a: Polynomial) -> Polynomial | None:
    """The polynomial of floats with every product of two values of an atom made exact; None where an atom multiplies more.

    x · x   =   x·x rounded  +  its rounding error
    """
    result: Polynomial = ()
    for coefficient, term in a:
        expanded: Polynomial = ((coefficient, frozenset()),)
        for atom, factor in term:
            if len(factor.values) > 2:
                return None
            parts = (factor, replace(factor, is_error=True)) if len(factor.values) == 2 else (factor,)
            expanded = tuple((c, t | {(atom, part)}) for c, t in expanded for part in parts)
        result += expanded
    return result


def multiply(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """The product; None if two factors of an atom have no common type."""
    try:
        return _times(a, b)
    except Untyped:
        return None


def multiplied(a: Factor, b: Factor) -> Factor:
    """The product of two floats of an atom, each as one value."""
    return _merge(*(replace(f, values=(value_of(f.values),)) for f in (a, b)))


def may_cancel(a: Polynomial) -> bool:
    """Whether the same floats stand in terms of both signs: one of them would have to take back the infinities of the other."""
    signs: dict[frozenset[tuple[int, tuple[Expression, ...]]], bool] = {}
    for coefficient, term in a:
        floats = frozenset((atom, factor.values) for atom, factor in term if factor.values)
        if _has_floats(((1, term),)) and signs.setdefault(floats, coefficient > 0) != (coefficient > 0):
            return True
    return False


class Untyped(Exception):
    """Values that have no product in a type that surely holds it."""


def _literal(literal: Literal, owners: Owners) -> Nullable | None:
    if literal.value is None:
        return Nullable(NONE, NONE)
    if isinstance(literal.type, Decimal) or is_integral(literal.type):
        number = unscaled(literal)
        return Nullable(((number, frozenset()),) if number else NONE, ONE)
    if literal.type == FLOAT64 and literal.value == int(literal.value) and abs(literal.value) < 2**53:
        return Nullable(((int(literal.value), frozenset()),) if literal.value else NONE, ONE)
    return None


def _mask(atom: int, condition: Expression) -> Polynomial:
    return ((1, frozenset({(atom, Factor((), frozenset({condition})))})),)


def _presence(value: Expression) -> frozenset[Expression]:
    """The tests that say together that a value is not NULL: of the factors and summands of floats, each by itself."""
    if not is_nullable(value):
        return frozenset()
    if isinstance(value, Call) and value.function in ("*", "+", "-") and value.type == FLOAT64:
        return frozenset(test for arg in value.args for test in _presence(arg))
    return frozenset({Call("isnotnull", (value,), BOOLEAN)})


def _where_present(expression: Expression) -> tuple[Expression, frozenset[Expression]]:
    """A value, and on which rows the expression has it, if it is NULL on others for a reason of its own.

    REGR_SXX(y, x) reads   CASE WHEN x IS NULL OR y IS NULL THEN NULL ELSE x END,   which is x where x and y are not NULL.
    """
    match expression:
        case Case(branches=((condition, value),), otherwise=Literal(value=None)):
            masks = frozenset(conjuncts(condition))
        case Case(branches=((condition, Literal(value=None)),), otherwise=value):
            tests = [c for c in _disjuncts(condition) if c != FALSE]
            if not all(isinstance(c, Call) and c.function == "isnull" for c in tests):
                return expression, frozenset()
            masks = frozenset(Call("isnotnull", children(c), BOOLEAN) for c in tests)
        case _:
            return expression, frozenset()
    inner, more = _where_present(value)
    return inner, frozenset(m for m in masks if not _is_certain(m)) | more


def _is_certain(test: Expression) -> bool:
    """Whether it asks that what is never NULL be not NULL."""
    return isinstance(test, Call) and test.function == "isnotnull" and not is_nullable(test.args[0])


def _disjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.function == "or":
        return [c for arg in condition.args for c in _disjuncts(arg)]
    return [condition]


def _apply(
    combine: Callable[[Nullable, Nullable, int, int], Nullable],
    call: Call,
    owners: Owners,
    is_watched: IsWatched,
) -> Nullable | None:
    left, right = call.args
    result = call.type
    if result != FLOAT64 and exact_bound(call) is None and not is_watched(call):
        return None
    a, b = polynomial(left, owners, is_watched), polynomial(right, owners, is_watched)
    if a is None or b is None:
        return None
    scale = scale_of(result)
    try:
        return combine(a, b, int(10 ** (scale - scale_of(left.type))), int(10 ** (scale - scale_of(right.type))))
    except Untyped:
        return None


def _product(a: Nullable, b: Nullable, _left: int, _right: int) -> Nullable:
    if (_is_zero(a) and _has_floats(b.value)) or (_is_zero(b) and _has_floats(a.value)):
        raise Untyped
    return Nullable(_times(a.value, b.value), _times(a.valid, b.valid))


def _is_zero(a: Nullable) -> bool:
    """Whether it is the constant 0, and not NULL."""
    return a.value == NONE and a.valid != NONE


def _has_floats(a: Polynomial) -> bool:
    return any(value.type == FLOAT64 for _, term in a for _, factor in term for value in factor.values)


def _plus(a: Nullable, b: Nullable, left: int, right: int) -> Nullable:
    value = _times(_scaled(a.value, left), b.valid) + _times(a.valid, _scaled(b.value, right))
    return Nullable(_collected(value), _times(a.valid, b.valid))


def _minus(a: Nullable, b: Nullable, left: int, right: int) -> Nullable:
    return _plus(a, b, left, -right)


def _case(
    condition: Expression, chosen: Expression, otherwise: Expression, owners: Owners, is_watched: IsWatched
) -> Nullable | None:
    holds = indicator(condition, owners)
    if holds is None:
        return None
    yes, no = (
        Nullable(NONE, NONE) if isinstance(e.type, Null) else polynomial(e, owners, is_watched)
        for e in (chosen, otherwise)
    )
    if yes is None or no is None:
        return None
    fails = _collected((*ONE, *_scaled(holds, -1)))
    if len(owners(condition)) == 1 and len(conjuncts(condition)) >= 1:
        (atom,) = owners(condition)
        fails = _mask(atom, Case(((condition, Literal(False, BOOLEAN)),), Literal(True, BOOLEAN)))
    try:
        value = _collected(_times(holds, yes.value) + _times(fails, no.value))
        return Nullable(value, _collected(_times(holds, yes.valid) + _times(fails, no.valid)))
    except Untyped:
        return None


def _scaled(a: Polynomial, by: int) -> Polynomial:
    return tuple((c * by, t) for c, t in a) if by else NONE


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    if a == ONE:
        return b
    if b == ONE:
        return a
    return _collected(tuple((c * d, _join(s, t)) for c, s in a for d, t in b))


def _join(s: Term, t: Term) -> Term:
    factors = dict(s)
    for atom, factor in t:
        mine = factors.get(atom)
        factors[atom] = factor if mine is None else _merge(mine, factor)
    return frozenset(factors.items())


def _merge(a: Factor, b: Factor) -> Factor:
    values = a.values + b.values
    if values:
        value_of(values)
    # A value is 0 where it is NULL, so a mask that says it is not NULL adds nothing.
    present = {test for v in values for test in _presence(v)}
    return Factor(values, (a.masks | b.masks) - present)


def _collected(a: Polynomial) -> Polynomial:
    totals: dict[Term, int] = {}
    for coefficient, term in a:
        totals[term] = totals.get(term, 0) + coefficient
        if not totals[term] and _has_floats(((1, term),)):
            raise Untyped
    return tuple((c, t) for t, c in totals.items() if c)


def value_of(values: tuple[Expression, ...]) -> Expression:
    """The product of exact or floating values over one atom, in a type that holds it.

    Raises:
        Untyped: there is no such type.
    """
    result = values[0]
    for value in values[1:]:
        left, right = result.type, value.type
        if left == FLOAT64 and right == FLOAT64:
            result = Call("*", (result, value), FLOAT64)
            continue
        product = None
        if isinstance(left, Decimal) and isinstance(right, Decimal):
            product = Call("*", (result, value), product_type(left, right))
        elif is_integral(left) and is_integral(right):
            wide = tuple(v if v.type == INT64 else Cast(v, INT64) for v in (result, value))
            product = Call("*", wide, INT64)
        if product is None or exact_bound(product) is None:
            raise Untyped
        result = product
    return result


def lifted(factor: Factor) -> Expression:
    """The number of a factor for a row of its atom; NULL or 0 where a mask does not hold."""
    if factor.is_error:
        number: Expression = Call("product_error", factor.values, FLOAT64)
    else:
        number = value_of(factor.values) if factor.values else Literal(1, INT64)
    if not factor.masks:
        return number
    masks = conjunction(tuple(sorted(factor.masks, key=repr)))
    zero = Literal(0.0, FLOAT64) if number.type == FLOAT64 else Literal(None, number.type)
    return Case(((masks, number),), zero if factor.values else Literal(0, INT64))
