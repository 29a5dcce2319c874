"""The pattern of a correlated scalar aggregate in a flat join, as Catalyst's decorrelation leaves it.

    O ⋈ γ[k; SUM(v)](δ(π_k O) ⋈ I on I.y < k) on k <=> O.x ⋈ V, where SUM(v) is compared with V, a global aggregate

δ(π_k O), the *domain*, has the distinct outer keys, so the middle part has the nested value of each of them. It is
recognized where the domain surely has all keys of O: its relations are among those of the join, under conditions that the join
has, too. Then O with the middle part, and V, is O filtered by its nested value, which needs no domain.

A COUNT of nothing is 0, so Catalyst joins its middle part from the left, and asks `case when m is null then 0 else count end`.
Such a join, split into an inner and an anti join by then, is read as an inner join with a count that is never NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.planner.block_flatten import FlatJoin, flatten
from everview.relational.expressions import (
    Call,
    Case,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    remap_columns,
    shift_columns,
    substitute,
    transform,
)
from everview.relational.failing import can_fail
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Project,
    Relation,
    Scan,
)
from everview.relational.ordered_condition import is_interval, ordered_condition
from everview.relational.range_condition import is_one_word, is_text
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, is_numeric
from everview.trigger.nested_middle import Compared, MiddlePart, has_margins, middle_part
from everview.trigger.program import Correlation
from everview.trigger.split_left_joins import left_join_of, preserved

NO_COLUMN = -1


@dataclass(frozen=True, slots=True)
class Nested:
    """A nested aggregate found in a flat join, by the numbers of its inputs: ``outer`` is filtered, ``middle`` goes away.

    ``condition`` is over the nested value, then the columns of the input ``value``, if it has one, or those of ``bounds``.
    """

    outer: int
    middle: int
    value: int | None
    inner: Relation
    groups: tuple[tuple[int, int], ...]
    compared: tuple[Compared, ...]
    call: AggregateCall
    argument: int
    condition: Expression
    used: tuple[Expression, ...]
    """The conditions of the join that it answers."""
    bounds: tuple[int, ...] = ()
    """The columns of the outer relation that the condition reads after the nested value."""

    @property
    def columns_compared(self) -> frozenset[int]:
        """The columns of the outer relation that are compared with inner ones."""
        return frozenset[int]().union(*(columns_of(c.outer) for c in self.compared))


@dataclass(frozen=True, slots=True)
class Origin:
    """What an input of a join was at first, and the columns that are left of it."""

    relation: Relation
    columns: tuple[int, ...]


def origins_of(flat: FlatJoin) -> tuple[Origin, ...]:
    """The inputs as they are."""
    return tuple(Origin(r, tuple(range(len(schema(r))))) for r in flat.inputs)


def find_nested(flat: FlatJoin, origins: tuple[Origin, ...]) -> tuple[FlatJoin, tuple[Origin, ...], Nested] | None:
    """The first nested aggregate that can be kept by running values, and the join in which it was found."""
    for number in range(len(flat.inputs)):
        found = _found_at(flat, origins, number)
        if found is not None:
            return flat, origins, found
        counted = _with_count(flat, origins, number)
        if counted is not None:
            whole, was, at = counted
            found = _found_at(whole, was, at)
            if found is not None:
                return whole, was, found
    return None


def _found_at(flat: FlatJoin, origins: tuple[Origin, ...], number: int) -> Nested | None:
    middle = middle_part(flat.inputs[number])
    found = None if middle is None else _joined(flat, number, middle)
    return found if found is not None and middle is not None and _covers(flat, origins, found, middle) else None


def _with_count(
    flat: FlatJoin, origins: tuple[Origin, ...], number: int
) -> tuple[FlatJoin, tuple[Origin, ...], int] | None:
    """The join with the two sides of a split left join in place of it, whose right side counts, and the number of that side.

    It is only to be read as a nested count, which is 0 where the right side has no row.
    """
    parts = left_join_of(flat.inputs[number])
    if parts is None:
        return None
    join, matched, lonely = parts
    right = join.right
    if not (isinstance(right, Project) and isinstance(right.child, Aggregate) and right.child.aggregates):
        return None
    left, middle, width = flatten(join.left), right.child, len(schema(join.left))
    counts = len(middle.keys)
    before, held, wide = flat.start[number], len(matched), len(left.owner)
    values: list[Expression] = [shift_columns(e, before) for e in left.outputs]
    values += [shift_columns(e, before + wide) for e in right.expressions]
    every = tuple(c for r in flat.inputs for c in columns(r))
    placed = [*every[:before], *(substitute(e, tuple(values)) for e in matched)]
    more = wide + len(schema(middle)) - held
    placed += [Column(before + held + more + i, c.type, c.nullable) for i, c in enumerate(every[before + held :])]
    nulls = {before + i for i, (a, b) in enumerate(zip(matched, lonely, strict=True)) if a != b}
    if any(max(columns_of(a), default=0) >= width for a, b in zip(matched, lonely, strict=True) if a == b):
        return None
    count = Column(before + wide + counts, schema(middle)[counts].type, nullable=False)

    def counted(expression: Expression) -> Expression | None:
        """``case when mark is null then 0 else count end`` is the count."""
        match expression:
            case Case(
                branches=((Call(function="isnull", args=(Column(index=mark),)), Literal(value=0)),),
                otherwise=Column(index=at),
            ) if placed[mark] == Literal(True, BOOLEAN):
                found = placed[at]
                if mark in nulls and isinstance(found, Column) and found.index == count.index:
                    return Column(len(placed), count.type, nullable=False)
        return None

    conditions, outputs = ([transform(e, counted) for e in listed] for listed in (flat.conditions, flat.outputs))
    if any(columns_of(e) & nulls for e in (*conditions, *outputs)):
        return None
    own = [substitute(c, tuple(values)) for c in conjuncts(join.condition)]
    below = [shift_columns(c, before) for c in left.conditions]
    moved = [substitute(e, (*placed, count)) for e in (*conditions, *outputs)]
    inputs = (*flat.inputs[:number], *left.inputs, middle, *flat.inputs[number + 1 :])
    added = origins_of(FlatJoin((*left.inputs, middle), (), ()))
    was = (*origins[:number], *added, *origins[number + 1 :])
    whole = FlatJoin(inputs, (*below, *own, *moved[: len(conditions)]), tuple(moved[len(conditions) :]))
    return whole, was, number + len(left.inputs)


def outer_columns(flat: FlatJoin, nested: Nested) -> tuple[int, ...]:
    """The columns of the outer relation that somebody reads when the nested aggregate is gone."""
    start, width = flat.start[nested.outer], len(schema(flat.inputs[nested.outer]))
    kept = (c for c in flat.conditions if c not in nested.used)
    read = frozenset[int]().union(*(columns_of(e) for e in (*kept, *flat.outputs)))
    own = {c - start for c in read if start <= c < start + width}
    return tuple(sorted(own | nested.columns_compared | {o for o, _ in nested.groups} | set(nested.bounds)))


def outer_rows(flat: FlatJoin, nested: Nested) -> tuple[Project, tuple[Correlation, ...]]:
    """The outer rows in their ``outer_columns`` and in what is compared, and how that is with columns of inner rows."""
    whole = flat.inputs[nested.outer]
    given, names = columns(whole), tuple(f.name for f in schema(whole))
    kept = outer_columns(flat, nested)
    read: list[Expression] = [given[c] for c in kept]
    called = [names[c] for c in kept]

    def place(expression: Expression, name: str) -> int:
        own = substitute(expression, given)
        if own not in read:
            read.append(own)
            called.append(name)
        return read.index(own)

    correlations = []
    for c in nested.compared:
        outer, failing = place(c.outer, "compared"), None
        if c.outer_fails is not None and c.inner_fails is not None:
            failing = (place(c.outer_fails, "fails"), c.inner_fails)
        correlations.append(Correlation(outer, c.inner, c.comparison, failing))
    return Project(whole, tuple(read), tuple(called)), tuple(correlations)


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
    inputs, was, at = [], [], 0
    for i, relation in enumerate(flat.inputs):
        if i in gone:
            continue
        kept = left if i == nested.outer else range(len(schema(relation)))
        places.update({flat.start[i] + column: at + k for k, column in enumerate(kept)})
        left_of = tuple(origins[i].columns[c] for c in kept)
        if i == nested.outer:  # what is compared has been computed
            left_of += (NO_COLUMN,) * (len(filtered.fields) - len(kept))
        at += len(left_of)
        inputs.append(filtered if i == nested.outer else relation)
        was.append(Origin(origins[i].relation, left_of))
    moved = [remap_columns(e, places.__getitem__) for e in (*conditions, *flat.outputs)]
    return FlatJoin(tuple(inputs), tuple(moved[: len(conditions)]), tuple(moved[len(conditions) :])), tuple(was)


def _joined(flat: FlatJoin, number: int, middle: MiddlePart) -> Nested | None:
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
        if pair is not None and middle.keys[pair[0]] is not None and _lets_null_meet_null(condition):
            return None
        if pair is not None and pair[0] not in partners:
            partners[pair[0]] = pair[1]
        elif columns_of(condition) & own == {value}:
            compared.append(condition)
        else:
            return None
    if len(partners) != len(middle.keys) or not compared or len({flat.owner[c] for c in partners.values()}) != 1:
        return None
    outer = flat.owner[next(iter(partners.values()))]
    read = sorted({c for e in compared for c in columns_of(e) - {value}})
    others = {flat.owner[c] for c in read}
    is_own = others == {outer}
    if is_own:
        if middle.call.function not in ("sum", "count") or not has_margins(middle.call):
            return None
        if any(is_text(p.outer.type) and p.comparison != "<>" for p in middle.compared):
            return None
    elif len(others) > 1 or not all(_is_single(flat.inputs[i]) for i in others):
        return None
    given = None if is_own else next(iter(others), None)
    base = 0 if given is None else flat.start[given]
    places = {c: i + 1 if is_own else c - base + 1 for i, c in enumerate(read)} | {value: 0}
    condition = remap_columns(conjunction(tuple(compared)), places.__getitem__)
    found = ordered_condition(condition, 0)
    if found is None or not is_interval(found) or can_fail(condition):
        return None
    if not is_numeric(middle.call.type) or (
        middle.call.function in ("max", "min") and not is_one_word(middle.call.type)
    ):
        return None
    at = flat.start[outer]
    groups = tuple((partners[i] - at, k) for i, k in enumerate(middle.keys) if k is not None)
    (place,) = (partners[i] - at for i, k in enumerate(middle.keys) if k is None)
    return Nested(
        outer,
        number,
        given,
        middle.inner,
        groups,
        tuple(c.over(place) for c in middle.compared),
        middle.call,
        middle.argument,
        condition,
        using,
        tuple(c - at for c in read) if is_own else (),
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


def _lets_null_meet_null(condition: Expression) -> bool:
    """Whether it holds of two NULLs; for what is compared beside, that changes nothing."""
    match condition:
        case Call(function="<=>", args=(Column(nullable=True), Column(nullable=True))):
            return True
        case _:
            return False


def _is_single(relation: Relation) -> bool:
    return isinstance(relation, Aggregate) and not relation.keys


def _covers(flat: FlatJoin, origins: tuple[Origin, ...], nested: Nested, middle: MiddlePart) -> bool:
    """Whether the domain surely has the keys of all outer rows that the join has."""
    domain = preserved(middle.domain.child)
    key = substitute(middle.domain.keys[0], domain.outputs)
    if not isinstance(key, Column) or key.index >= len(domain.owner):
        return False
    needed, outer = domain.owner[key.index], origins[nested.outer]
    if outer.relation != domain.inputs[needed]:
        return False
    if [key.index - domain.start[needed]] != [outer.columns[c] for c in nested.columns_compared]:
        return False
    if any(c.outer_fails is not None for c in nested.compared) and (
        domain.conditions or len(domain.inputs) > 1 or flat.inputs[nested.outer] != outer.relation
    ):
        return False  # what fails is counted in the outer rows, which are to be those of the domain
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
