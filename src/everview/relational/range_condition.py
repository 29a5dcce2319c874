"""A join's inequalities as a search in an ordered index of one side, for rows of the other.

    s.b BETWEEN r.a - 2 AND r.a + 2        s in the order of b; two cuts of it for each row of r. And r in the order of a.
    r.a < s.b AND s.a < r.b                r in the order of a, up to s.b; of these, the ones whose b reaches beyond s.a

A conjunct that reads one column of the indexed side, and cuts its order (``ordered_condition``), bounds a stretch of the index.
A comparison of another column with a value of the probing row is answered by the greatest (or least) value of that column below
each node of the index, so that only what reaches the value is met.

Rows found are candidates: the whole condition is checked on the pairs afterwards, so an access path never changes an answer.
Spark does not come to a conjunct where one before it is false. So a conjunct that can fail hides those behind it, unless it is
a cut itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from everview.relational.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    children,
    columns_of,
    conjuncts,
    remap_columns,
)
from everview.relational.failing import can_fail
from everview.relational.ordered_condition import MIRRORED, Cut, OrderedCondition, is_stretch, ordered_condition
from everview.relational.types import (
    FLOAT32,
    FLOAT64,
    Array,
    Binary,
    Boolean,
    DataType,
    Decimal,
    String,
    Struct,
    is_integral,
)

_WIDEST = 18
"""The most digits of a decimal whose order is that of one 64-bit number."""


@dataclass(frozen=True, slots=True)
class RangeAccess:
    """Rows in the order of a ``column``, where nodes of the index may know the greatest (or least) value of another."""

    column: int
    reach: int | None = None
    reaches_up: bool = True
    """Whether nodes know the greatest value, and not the least."""
    keeps_nulls: bool = False
    """Whether rows without a value can be found, too: they have no partner, but a comparison with one may fail."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that entries are made of."""
        return (self.column,) if self.reach is None else (self.column, self.reach)

    def moved(self, places: Mapping[int, int] | Sequence[int]) -> RangeAccess:
        """The same where columns are at other places."""
        return replace(self, column=places[self.column], reach=None if self.reach is None else places[self.reach])


@dataclass(frozen=True, slots=True)
class ReachedValue:
    """What the other column is compared with: ``column θ value``, the value over the columns of the probing side."""

    comparison: str
    value: Expression


@dataclass(frozen=True, slots=True)
class RangeSearch:
    """How rows of one side find those of the other.

    Each of the ``cuts`` is over the columns of the probing side, and then the ordered column.
    """

    access: RangeAccess
    cuts: tuple[Cut, ...]
    reach: ReachedValue | None = None

    @property
    def has_two_bounds(self) -> bool:
        """Whether rows are found between two bounds, of one column or of two."""
        return len({cut.is_from for cut in self.cuts}) > 1 or self.reach is not None


def range_searches(
    condition: Expression | None, width: int, other: int
) -> tuple[RangeSearch | None, RangeSearch | None]:
    """How the left and the right side are searched, given a condition over left (``width`` columns) ++ right (``other``).

    >>> from everview.relational.types import BOOLEAN, INT64
    >>> a, b, c, d = (Column(i, INT64) for i in range(4))
    >>> overlap = Call("and", (Call("<", (a, d), BOOLEAN), Call("<", (c, b), BOOLEAN)), BOOLEAN)
    >>> left, right = range_searches(overlap, 2, 2)
    >>> left.access
    RangeAccess(column=0, reach=1, reaches_up=True, keeps_nulls=False)
    >>> right.access
    RangeAccess(column=1, reach=0, reaches_up=False, keeps_nulls=False)
    """
    parts = tuple(conjuncts(condition)) if condition is not None else ()
    left = range(width)
    right = range(width, width + other)
    return _search(parts, left, right), _search(parts, right, left)


def _search(parts: tuple[Expression, ...], indexed: range, probing: range) -> RangeSearch | None:
    """The search with the most bounds: two cuts of a column, then one with another column beside it."""
    cut_by = {part: _cut(part, indexed, probing) for part in parts}
    found = dict.fromkeys(column for column, _ in filter(None, cut_by.values()))
    searches = [s for s in (_by_column(c, cut_by, probing) for c in found) if s.cuts]
    return max(searches, key=_bounds, default=None)


def _bounds(search: RangeSearch) -> tuple[int, bool]:
    return len({cut.is_from for cut in search.cuts}), search.reach is not None


def _cut(part: Expression, indexed: range, probing: range) -> tuple[int, OrderedCondition] | None:
    """The one column of the indexed side that a conjunct reads, if it cuts its order, and how it does."""
    own = [c for c in columns_of(part) if c in indexed]
    if len(own) != 1 or not any(c in probing for c in columns_of(part)) or not is_ordered(_column(part, own[0]).type):
        return None
    moved = remap_columns(part, lambda c: c - probing.start if c in probing else len(probing))
    cut = ordered_condition(moved, len(probing))
    return None if cut is None or not is_stretch(cut) else (own[0] - indexed.start, cut)


def _by_column(
    column: int, cut_by: Mapping[Expression, tuple[int, OrderedCondition] | None], probing: range
) -> RangeSearch:
    cuts: list[Cut] = []
    beside: tuple[int, ReachedValue] | None = None
    may_fail = False
    for part, found in cut_by.items():
        if found is not None and found[0] == column:
            cuts.extend(_cuts(found[1]))
            may_fail |= can_fail(part)
        elif can_fail(part):
            break
        elif found is not None and beside is None:
            reach = _reach(tuple(_cuts(found[1])), len(probing))
            beside = None if reach is None else (found[0], reach)
    if beside is None or not cuts or may_fail or is_text(_column(cuts[0].condition, len(probing)).type):
        return RangeSearch(RangeAccess(column, keeps_nulls=may_fail), tuple(cuts))
    other, reach = beside
    return RangeSearch(RangeAccess(column, other, reach.comparison in (">", ">=")), tuple(cuts), reach)


def _cuts(condition: OrderedCondition) -> Iterator[Cut]:
    if isinstance(condition, Cut):
        yield condition
    else:
        for part in condition.parts:
            yield from _cuts(part)


def _column(expression: Expression, index: int) -> Column:
    if isinstance(expression, Column) and expression.index == index:
        return expression
    return next(_column(c, index) for c in children(expression) if index in columns_of(c))


def _reach(cuts: tuple[Cut, ...], column: int) -> ReachedValue | None:
    """The first of the comparisons that is one of the column itself."""
    for cut in cuts:
        direct = compared_directly(cut.condition, column)
        if direct is not None and is_one_word(direct[1].type) and not can_fail(direct[1]):
            return ReachedValue(*direct)
    return None


def compared_directly(comparison: Expression, column: int) -> tuple[str, Expression] | None:
    """The comparison as one of a column itself, on the left, with a value that does not depend on it."""
    assert isinstance(comparison, Call)
    a, b = comparison.args
    function = comparison.function
    if column in columns_of(b):
        a, b, function = b, a, MIRRORED[function]
    while isinstance(a, Cast) and _is_widened(a):
        a = a.child
    if isinstance(a, Column) and a.index == column and column not in columns_of(b):
        return function, b
    return None


def _is_widened(cast: Cast) -> bool:
    """Whether a value is cast to a wider type that stores it as the same number."""
    old, new = cast.child.type, cast.type
    return (old, new) == (FLOAT32, FLOAT64) or (is_integral(old) and is_integral(new) and not can_fail(cast))


def is_ordered(data_type: DataType) -> bool:
    """Whether an ordered index can have the values for entries: numbers, times, and texts by their bytes."""
    return not isinstance(data_type, Array | Struct | Boolean)


def is_text(data_type: DataType) -> bool:
    """Whether values are in the order of their bytes."""
    return isinstance(data_type, String | Binary)


def is_one_word(data_type: DataType) -> bool:
    """Whether the values are in the order of single numbers."""
    if isinstance(data_type, Decimal):
        return data_type.precision <= _WIDEST
    return not is_text(data_type) and not isinstance(data_type, Array | Struct)
