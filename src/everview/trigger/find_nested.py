"""The pattern of a correlated scalar aggregate in a flat join, as Catalyst's decorrelation leaves it.

    O ⋈ γ[k; SUM(v)](δ(π_k O) ⋈ I on I.y < k) on k <=> O.x ⋈ V, where SUM(v) is compared with V, a global aggregate

δ(π_k O), the *domain*, has the distinct outer keys, so the middle part has the nested value of each of them. It is
recognized where the domain surely has all keys of O: its relations are among those of the join, under conditions that the join
has, too. Then O with the middle part, and V, is O filtered by its nested value, which needs no domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from everview.planner.block_flatten import FlatJoin, flatten
from everview.relational.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    remap_columns,
    shift_columns,
    substitute,
)
from everview.relational.failing import can_fail
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    UnionAll,
)
from everview.relational.ordered_condition import is_interval, ordered_condition
from everview.relational.range_condition import is_one_word
from everview.relational.schema import columns, schema
from everview.relational.types import Decimal, is_integral

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Nested:
    """A nested aggregate found in a flat join, by the numbers of its inputs: ``outer`` is filtered, ``middle`` goes away.

    ``condition`` is over the nested value, then the columns of the input ``value``, if it has one.
    """

    outer: int
    middle: int
    value: int | None
    inner: Relation
    groups: tuple[tuple[int, int], ...]
    ordered: tuple[int, int]
    comparison: str
    call: AggregateCall
    argument: int
    condition: Expression
    used: tuple[Expression, ...]
    """The conditions of the join that it answers."""


@dataclass(frozen=True, slots=True)
class _Middle:
    """The middle part: for each of its keys, the column of the inner relation, or None for the one that is compared."""

    domain: Aggregate
    inner: Relation
    keys: tuple[int | None, ...]
    ordered: int
    comparison: str
    call: AggregateCall
    argument: int


@dataclass(frozen=True, slots=True)
class Origin:
    """What an input of a join was at first, and the columns that are left of it."""

    relation: Relation
    columns: tuple[int, ...]


def origins_of(flat: FlatJoin) -> tuple[Origin, ...]:
    """The inputs as they are."""
    return tuple(Origin(r, tuple(range(len(schema(r))))) for r in flat.inputs)


def find_nested(flat: FlatJoin, origins: tuple[Origin, ...]) -> Nested | None:
    """The first nested aggregate that can be kept by running values."""
    for number, relation in enumerate(flat.inputs):
        middle = _middle(relation)
        if middle is None:
            continue
        found = _joined(flat, number, middle)
        if found is not None and _covers(flat, origins, found, middle):
            return found
    return None


def outer_columns(flat: FlatJoin, nested: Nested) -> tuple[int, ...]:
    """The columns of the outer relation that somebody reads when the nested aggregate is gone."""
    start, width = flat.start[nested.outer], len(schema(flat.inputs[nested.outer]))
    kept = (c for c in flat.conditions if c not in nested.used)
    read = frozenset[int]().union(*(columns_of(e) for e in (*kept, *flat.outputs)))
    own = {c - start for c in read if start <= c < start + width}
    return tuple(sorted(own | {nested.ordered[0]} | {o for o, _ in nested.groups}))


def without_nested(
    flat: FlatJoin, origins: tuple[Origin, ...], nested: Nested, filtered: Scan
) -> tuple[FlatJoin, tuple[Origin, ...]]:
    """The join over the filtered outer relation, which has its ``outer_columns`` left, and what its inputs were at first."""
    conditions = tuple(c for c in flat.conditions if c not in nested.used)
    gone = {nested.middle}
    if nested.value is not None:
        start, width = flat.start[nested.value], len(schema(flat.inputs[nested.value]))
        read = frozenset[int]().union(*(columns_of(e) for e in (*conditions, *flat.outputs)))
        if not read & set(range(start, start + width)):
            gone.add(nested.value)  # it has one row, always
    left = outer_columns(flat, nested)
    places: dict[int, int] = {}
    inputs, was = [], []
    for i, relation in enumerate(flat.inputs):
        if i in gone:
            continue
        kept = left if i == nested.outer else range(len(schema(relation)))
        for column in kept:
            places[flat.start[i] + column] = len(places)
        inputs.append(filtered if i == nested.outer else relation)
        was.append(Origin(origins[i].relation, tuple(origins[i].columns[c] for c in kept)))
    moved = [remap_columns(e, places.__getitem__) for e in (*conditions, *flat.outputs)]
    return FlatJoin(tuple(inputs), tuple(moved[: len(conditions)]), tuple(moved[len(conditions) :])), tuple(was)


def as_relation(flat: FlatJoin, names: tuple[str, ...]) -> Relation:
    """A flat join as nodes: each condition stands at the first join that knows its columns."""
    waiting = list(flat.conditions)

    def ready(width: int) -> tuple[Expression, ...]:
        found = tuple(c for c in waiting if not columns_of(c) or max(columns_of(c)) < width)
        waiting[:] = [c for c in waiting if c not in found]
        return found

    relation, *others = flat.inputs
    width = len(schema(relation))
    first = ready(width)
    if first:
        relation = Filter(relation, conjunction(first))
    for other in others:
        end = width + len(schema(other))
        own = tuple(c for c in waiting if columns_of(c) and width <= min(columns_of(c)) and max(columns_of(c)) < end)
        waiting[:] = [c for c in waiting if c not in own]
        below = Filter(other, shift_columns(conjunction(own), -width)) if own else other
        width += len(schema(other))
        relation = Join(relation, below, JoinKind.INNER, conjunction(ready(width)))
    return Project(relation, flat.outputs, names)


def _middle(relation: Relation) -> _Middle | None:
    """The middle part, if a relation is one: an aggregate over a domain and one inner relation."""
    if not isinstance(relation, Aggregate) or len(relation.aggregates) != 1:
        return None
    (call,) = relation.aggregates
    if call.function not in ("sum", "max", "min") or call.distinct or call.filter is not None or call.is_ring:
        return None
    flat = flatten(relation.child)
    if len(flat.inputs) != 2:
        return None
    domain, inner = flat.inputs
    if not (isinstance(domain, Aggregate) and not domain.aggregates and isinstance(inner, Scan)):
        return None
    width = len(schema(domain))
    argument = _value_column(substitute(call.args[0], flat.outputs), width)
    own = tuple(c for c in flat.conditions if columns_of(c) and min(columns_of(c)) >= width)
    rest = [c for c in flat.conditions if c not in own]
    compared = _compared(rest[0], width) if len(rest) == 1 else None
    if argument is None or compared is None:
        return None
    domain_key, ordered, comparison = compared
    keys = [substitute(k, flat.outputs) for k in relation.keys]
    if not all(isinstance(k, Column) for k in keys):
        return None
    places = [k.index for k in keys if isinstance(k, Column)]
    if places.count(domain_key) != 1 or any(p < width and p != domain_key for p in places) or width != 1:
        return None
    held = inner if not own else Filter(inner, shift_columns(conjunction(own), -width))
    given = columns(held)
    read = [p - width for p in places if p != domain_key]
    fields = schema(held)
    kept = (*(given[c] for c in read), given[ordered - width], argument)
    names = (*(fields[c].name for c in read), fields[ordered - width].name, "argument")
    found = tuple(None if p == domain_key else read.index(p - width) for p in places)
    return _Middle(domain, Project(held, kept, names), found, len(read), comparison, call, len(read) + 1)


def _value_column(argument: Expression, width: int) -> Expression | None:
    """What is aggregated, over the inner relation alone: an integer or a decimal, and surely no error."""
    if any(c < width for c in columns_of(argument)) or can_fail(argument):
        return None
    if not (is_integral(argument.type) or isinstance(argument.type, Decimal)):
        return None
    return shift_columns(argument, -width)


def _compared(condition: Expression, width: int) -> tuple[int, int, str] | None:
    """Domain key, inner column and ``inner θ key`` of a comparison of the two."""
    if not (isinstance(condition, Call) and condition.function in _MIRRORED):
        return None
    a, b = condition.args
    function = condition.function
    if not (isinstance(a, Column) and isinstance(b, Column) and is_one_word(a.type)):
        return None
    if a.index < width <= b.index:
        a, b, function = b, a, _MIRRORED[function]
    return (b.index, a.index, function) if b.index < width <= a.index else None


def _joined(flat: FlatJoin, number: int, middle: _Middle) -> Nested | None:
    """How the middle part is joined: its keys with columns of one outer relation, its value with what is maintained."""
    start = flat.start[number]
    value = start + len(middle.keys)
    own = set(range(start, value + 1))
    if any(columns_of(e) & own for e in flat.outputs):
        return None
    using = tuple(c for c in flat.conditions if columns_of(c) & own)
    partners: dict[int, int] = {}
    compared = []
    for condition in using:
        pair = _equal(condition, start, value)
        if pair is not None and pair[0] not in partners:
            partners[pair[0]] = pair[1]
        elif columns_of(condition) & own == {value}:
            compared.append(condition)
        else:
            return None
    if len(partners) != len(middle.keys) or not compared or len({flat.owner[c] for c in partners.values()}) != 1:
        return None
    outer = flat.owner[next(iter(partners.values()))]
    others = {flat.owner[c] for e in compared for c in columns_of(e) - {value}}
    if len(others) > 1 or not all(_is_single(flat.inputs[i]) for i in others):
        return None
    given = next(iter(others), None)
    base = None if given is None else flat.start[given]
    condition = remap_columns(conjunction(tuple(compared)), lambda c: 0 if c == value else c - (base or 0) + 1)
    found = ordered_condition(condition, 0)
    if found is None or not is_interval(found) or can_fail(condition):
        return None
    if not (is_integral(middle.call.type) or isinstance(middle.call.type, Decimal)):
        return None
    if middle.call.function != "sum" and not is_one_word(middle.call.type):
        return None
    at = flat.start[outer]
    groups = tuple((partners[i] - at, k) for i, k in enumerate(middle.keys) if k is not None)
    (place,) = (partners[i] - at for i, k in enumerate(middle.keys) if k is None)
    ordered = place, middle.ordered
    return Nested(
        outer,
        number,
        given,
        middle.inner,
        groups,
        ordered,
        middle.comparison,
        middle.call,
        middle.argument,
        condition,
        using,
    )


def _equal(condition: Expression, start: int, end: int) -> tuple[int, int] | None:
    """The number of a key of the middle part and the column that it is to equal."""
    if not (isinstance(condition, Call) and condition.function in ("=", "<=>")):
        return None
    a, b = condition.args
    if not (isinstance(a, Column) and isinstance(b, Column)):
        return None
    if not start <= a.index < end:
        a, b = b, a
    return (a.index - start, b.index) if start <= a.index < end and not start <= b.index <= end else None


def _is_single(relation: Relation) -> bool:
    return isinstance(relation, Aggregate) and not relation.keys


def _covers(flat: FlatJoin, origins: tuple[Origin, ...], nested: Nested, middle: _Middle) -> bool:
    """Whether the domain surely has the keys of all outer rows that the join has."""
    domain = _preserved(middle.domain.child)
    key = substitute(middle.domain.keys[0], domain.outputs)
    if not isinstance(key, Column) or key.index >= len(domain.owner):
        return False
    needed, outer = domain.owner[key.index], origins[nested.outer]
    if outer.relation != domain.inputs[needed]:
        return False
    if key.index - domain.start[needed] != outer.columns[nested.ordered[0]]:
        return False
    taken = {needed: nested.outer}
    for i, relation in enumerate(domain.inputs):
        if i not in taken:
            free = [j for j, o in enumerate(origins) if o.relation == relation and j not in taken.values()]
            if not free:
                return False
            taken[i] = free[0]
    return all(_moved(c, flat, origins, domain, taken) in flat.conditions for c in domain.conditions)


def _moved(
    condition: Expression, flat: FlatJoin, origins: tuple[Origin, ...], domain: FlatJoin, taken: dict[int, int]
) -> Expression | None:
    """A condition of the domain over the columns of the join; None where a column is gone."""
    places: dict[int, int] = {}
    for column in columns_of(condition):
        owner = domain.owner[column]
        left = origins[taken[owner]].columns
        if column - domain.start[owner] not in left:
            return None
        places[column] = flat.start[taken[owner]] + left.index(column - domain.start[owner])
    return remap_columns(condition, places.__getitem__)


def _preserved(relation: Relation) -> FlatJoin:
    """A flat join whose rows a relation has, too: a left join, split in two, has all rows of its left side."""
    match relation:
        case Project(child=child):
            flat = _preserved(child)
            return replace(flat, outputs=tuple(substitute(e, flat.outputs) for e in relation.expressions))
        case UnionAll(inputs=(first, second)):
            kept = _split_left(first, second)
            return flatten(relation) if kept is None else _preserved(kept)
        case _:
            return flatten(relation)


def _split_left(first: Relation, second: Relation) -> Relation | None:
    """The projection of the left side that a left join, split into an inner and an anti join, still has all rows of."""
    inner, lonely = (list(_down(r)) for r in (first, second))
    a, b = inner[-1], lonely[-1]
    if not (isinstance(a, Join) and isinstance(b, Join) and a.kind is JoinKind.INNER and b.kind is JoinKind.ANTI):
        return None
    if (a.left, a.right, a.condition) != (b.left, b.right, b.condition):
        return None
    taken = [r for r in inner[:-1] if isinstance(r, Project)]
    others = [r for r in lonely[:-1] if isinstance(r, Project)]
    if len(taken) != 1 or len(others) != 1 or len(inner) != 2 or len(lonely) != 2:
        return None
    if taken[0].expressions != others[0].expressions:
        return None
    return Project(a.left, taken[0].expressions, taken[0].names)


def _down(relation: Relation) -> Iterator[Relation]:
    while isinstance(relation, Project):
        yield relation
        relation = relation.child
    yield relation
