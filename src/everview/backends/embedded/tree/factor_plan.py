"""Which part of an atom's work each factor of a product can do alone: conditions, key variables and pieces of lifts.

    σ[p(a) ∧ q(b)] (A ⊗ B)  =  σ[p] A ⊗ σ[q] B             Σ x(a) · y(b)  =  (Σ x) · (Σ y)

Factors that a condition, a variable or a lift reads together, and that cannot be taken apart, are one factor. Expressions that
can fail keep the product together: a row that a condition over another factor drops must not make the transaction fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass

from everview.planner.block import BlockAtom, Lift, Number, RingLift
from everview.planner.block_terms import Factor as Term
from everview.planner.block_terms import Untyped, lifted
from everview.relational.bounds import exact_bound, scale_of
from everview.relational.expressions import Call, Case, Expression, Literal, columns_of, conjunction, conjuncts
from everview.relational.failing import can_fail
from everview.relational.types import FLOAT64

Partition = tuple[frozenset[int], ...]
"""The columns of each factor, as positions in the atom's input."""


Piece = Lift | RingLift
"""The part of a lift that one factor computes."""


@dataclass(frozen=True, slots=True)
class FactorPlan:
    """What one factor does: over the product of ``members`` of the given factors."""

    members: tuple[int, ...]
    columns: tuple[int, ...]
    condition: Expression
    variables: tuple[tuple[str, Expression], ...]
    pieces: tuple[tuple[int, Piece], ...]
    """(lift, piece)."""


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """The factors that do an atom's work; ``split`` are lifts of which several factors have floats, or elements of rings."""

    factors: tuple[FactorPlan, ...]
    split: frozenset[int]


def plan_factors(
    atom: BlockAtom,
    partition: Partition,
    together: Iterable[frozenset[int]] = (),
    whole: Set[int] = frozenset(),
    unread: Set[int] = frozenset(),
) -> ProductPlan:
    """The plan of an atom for a product over these columns.

    Args:
        atom: Whose work.
        partition: The columns of the factors, which are all that the atom reads.
        together: Factors (by number) that must be one, for reasons of the tree above.
        whole: Lifts that have to be one factor's: moments are lifted from values.
        unread: Lifts that nobody asks for: products that moments have in them.
    """
    groups = _Groups(partition)
    for numbers in together:
        groups.unite(numbers)
    lifts = {i: lift for i, lift in enumerate(atom.lifts) if i not in unread}
    for i in lifts.keys() & whole:
        _unite_each(groups, lifts[i])
    lifted_from = (e for lift in lifts.values() for e in lift.expressions)
    expressions = (atom.condition, *(e for _, e in atom.variables), *lifted_from)
    if any(can_fail(e) for e in expressions):
        groups.unite(range(len(partition)))
    for e in (*_parts(atom.condition), *(e for _, e in atom.variables)):
        groups.unite(groups.read_by(e))
    is_changing = True
    while is_changing:  # a union can only make more lifts one factor's own, but let it settle
        is_changing = False
        for lift in lifts.values():
            if split_lift(lift, groups.home) is None:
                _unite_each(groups, lift)
                is_changing = True
    return _plan(atom, lifts, partition, groups)


def _unite_each(groups: _Groups, lift: Piece) -> None:
    """Makes one factor of those that an expression of a lift reads together."""
    for e in lift.expressions:
        groups.unite(groups.read_by(e))


def _plan(atom: BlockAtom, lifts: Mapping[int, Piece], partition: Partition, groups: _Groups) -> ProductPlan:
    roots = groups.roots()
    conditions: dict[int, list[Expression]] = {r: [] for r in roots}
    variables: dict[int, list[tuple[str, Expression]]] = {r: [] for r in roots}
    pieces: dict[int, list[tuple[int, Piece]]] = {r: [] for r in roots}
    for condition in _parts(atom.condition):
        conditions[groups.home(condition)].append(condition)
    for name, e in atom.variables:
        variables[groups.home(e)].append((name, e))
    split = set()
    for i, lift in lifts.items():
        parts = split_lift(lift, groups.home)
        assert parts is not None, "lifts that cannot be taken apart have one factor"
        if sum(p.number in (Number.FLOAT, Number.RING) for p in parts.values()) > 1:
            split.add(i)
        for root, piece in parts.items():
            pieces[root].append((i, piece))
    factors = tuple(
        FactorPlan(
            members,
            tuple(sorted(c for m in members for c in partition[m])),
            conjunction(tuple(conditions[root])),
            tuple(variables[root]),
            tuple(pieces[root]),
        )
        for root, members in roots.items()
    )
    return ProductPlan(factors, frozenset(split))


class _Groups:
    """Factors that have become one; what reads no column belongs to the first."""

    def __init__(self, partition: Partition) -> None:
        self._of_column = {c: i for i, columns in enumerate(partition) for c in columns}
        self._root = list(range(len(partition)))

    def unite(self, numbers: Iterable[int]) -> None:
        roots = {self._root[n] for n in numbers}
        self._root = [min(roots) if r in roots else r for r in self._root]

    def read_by(self, expression: Expression) -> frozenset[int]:
        return frozenset(self._root[self._of_column[c]] for c in columns_of(expression))

    def home(self, expression: Expression) -> int:
        """The factor that reads the expression's columns; -1 if several do."""
        found = self.read_by(expression)
        if len(found) > 1:
            return -1
        return next(iter(found), self._root[0])

    def roots(self) -> dict[int, tuple[int, ...]]:
        """The numbers of the factors by the first of each group."""
        return {r: tuple(i for i, own in enumerate(self._root) if own == r) for r in sorted(set(self._root))}


def split_lift(lift: Piece, home: Callable[[Expression], int]) -> Mapping[int, Piece] | None:
    """The lift as a product of pieces, by factor; None where it is no such product."""
    if isinstance(lift, RingLift):
        return _split_element(lift, home)
    whole = home(lift.value)
    if whole >= 0:
        return {whole: lift}
    values: dict[int, list[Expression]] = {}
    masks: dict[int, set[Expression]] = {}
    if not _collect(lift.value, home, values, masks, is_count=lift.number is Number.COUNT):
        return None
    pieces = {}
    for factor in sorted({*values, *masks}):
        own = tuple(values.get(factor, ()))
        try:
            value = lifted(Term(own, frozenset(masks.get(factor, ()))))
        except Untyped:
            return None
        pieces[factor] = Lift(value, lift.number if own else Number.COUNT)
    return pieces


def _split_element(lift: RingLift, home: Callable[[Expression], int]) -> Mapping[int, Piece] | None:
    """An element is the product of those of its arguments; a ring that takes several commutes."""
    own: dict[int, list[tuple[int, Expression]]] = {}
    for position, argument in zip(lift.positions, lift.arguments, strict=True):
        own.setdefault(home(argument), []).append((position, argument))
    if -1 in own:
        return None
    return {
        factor: RingLift(lift.ring, tuple(p for p, _ in told), tuple(e for _, e in told))
        for factor, told in own.items()
    }


def _collect(
    value: Expression,
    home: Callable[[Expression], int],
    values: dict[int, list[Expression]],
    masks: dict[int, set[Expression]],
    *,
    is_count: bool,
) -> bool:
    """Adds the factors of the expression to ``values`` and ``masks``; False where it is no product."""
    if home(value) >= 0:
        values.setdefault(home(value), []).append(value)
        return True
    match value:
        case Call(function="*", args=(left, right)) if _is_plain_product(value):
            return all(_collect(side, home, values, masks, is_count=is_count) for side in (left, right))
        case Case(branches=((condition, chosen),), otherwise=Literal(value=zero)) if not zero:
            for part in _parts(condition):
                if home(part) < 0:
                    return False
                masks.setdefault(home(part), set()).add(part)
            return is_count or _collect(chosen, home, values, masks, is_count=False)
        case _:
            return False


def _is_plain_product(product: Call) -> bool:
    """Whether multiplying the numbers (unscaled) of the two sides gives that of the product."""
    left, right = product.args
    if product.type == FLOAT64:
        return left.type == FLOAT64 and right.type == FLOAT64
    return exact_bound(product) is not None and scale_of(product.type) == scale_of(left.type) + scale_of(right.type)


def _parts(condition: Expression) -> tuple[Expression, ...]:
    """Conditions that hold all together exactly if the given one does; a sum or product is NULL where one of its sides is."""
    found: list[Expression] = []
    for part in conjuncts(condition):
        match part:
            case Call(function="isnotnull", args=(Call(function="*" | "+" | "-", args=sides) as inner,)) if (
                inner.type == FLOAT64 or exact_bound(inner) is not None
            ):
                for side in sides:
                    found += _parts(Call("isnotnull", (side,), part.type))
            case _:
                found.append(part)
    return tuple(found)
