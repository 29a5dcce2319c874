"""A condition on the time is a semi-join with the clock."""

from __future__ import annotations

from dataclasses import replace

from everview.relational.clock import CLOCK
from everview.relational.expressions import Call, Column, Expression, columns_of, conjuncts, shift_columns
from everview.relational.nodes import Aggregate, Filter, Join, JoinKind, Project, Relation
from everview.relational.schema import columns, schema
from everview.relational.traverse import tables_of
from everview.relational.types import BOOLEAN

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def filter_by_clock(relation: Relation) -> Relation | None:
    """π(L ⋈[f(L) θ g(C)] C) = π(L ⋉[f(L) θ b] π[g as b](C)), where C has one row, the clock's, and π reads nothing of it.

    One semi-join for each comparison, next to the relation that it compares. Engines with ordered state keep L in the order of
    f: when the clock moves, the rows between the old bound and the new one come or go, and no others are looked at.

    >>> from everview.relational.clock import CLOCK_FIELDS
    >>> from everview.relational.nodes import Field, Scan
    >>> from everview.relational.rule_examples import show
    >>> from everview.relational.types import BOOLEAN, INT64, TIMESTAMP
    >>> events = Scan("events", (Field("at", TIMESTAMP), Field("x", INT64)))
    >>> after = Call(">", (Column(0, TIMESTAMP), Column(2, TIMESTAMP, False)), BOOLEAN)
    >>> joined = Join(events, Scan(CLOCK, CLOCK_FIELDS), JoinKind.INNER, after)
    >>> plan = Project(joined, (Column(1, INT64),), ("x",))
    >>> show(plan)
    project [x]
      inner join on (at > now)
        scan events [at, x]
        scan __clock [now]
    >>> show(filter_by_clock(plan))
    project [x]
      semi join on (at > bound)
        scan events [at, x]
        project [now as bound]
          scan __clock [now]
    """
    if not (isinstance(relation, Project | Aggregate) and isinstance(relation.child, Join)):
        return None
    join = relation.child
    if join.kind is not JoinKind.INNER or set(tables_of(join.right)) != {CLOCK}:
        return None
    width = len(schema(join.left))
    if any(c >= width for e in _read(relation) for c in columns_of(e)):
        return None
    kept = join.left
    for condition in conjuncts(join.condition):
        compared = _compared(condition, width)
        if compared is None:
            return None
        kept = _kept(kept, *compared, join.right)
    return replace(relation, child=kept)


def _read(relation: Project | Aggregate) -> tuple[Expression, ...]:
    if isinstance(relation, Project):
        return relation.expressions
    filters = tuple(c.filter for c in relation.aggregates if c.filter is not None)
    return (*relation.keys, *(a for c in relation.aggregates for a in c.args), *filters)


def _compared(condition: Expression, width: int) -> tuple[Expression, str, Expression] | None:
    """f(L), θ and g(C), over the columns of each; None for a condition that is no such comparison."""
    if not (isinstance(condition, Call) and condition.function in _TURNED):
        return None
    left, right = condition.args
    theta = condition.function
    if any(c >= width for c in columns_of(left)):
        left, right, theta = right, left, _TURNED[theta]
    own, clocks = columns_of(left), columns_of(right)
    if not own or not clocks or max(own) >= width or min(clocks) < width or left.type != right.type:
        return None
    return left, theta, shift_columns(right, -width)


def _kept(rows: Relation, value: Expression, theta: str, bound: Expression, clock: Relation) -> Relation:
    """The rows on which the comparison holds, filtered as far down as one relation has all that is compared."""
    if isinstance(rows, Filter):
        return replace(rows, child=_kept(rows.child, value, theta, bound, clock))
    if isinstance(rows, Join) and rows.kind is JoinKind.INNER:
        width, used = len(schema(rows.left)), columns_of(value)
        if max(used) < width:
            return replace(rows, left=_kept(rows.left, value, theta, bound, clock))
        if min(used) >= width:
            return replace(rows, right=_kept(rows.right, shift_columns(value, -width), theta, bound, clock))
    bounds = Project(clock, (bound,), ("bound",))
    names, given = tuple(f.name for f in schema(rows)), columns(rows)
    wide: Relation = rows
    if not isinstance(value, Column):
        wide = Project(rows, (*given, value), (*names, "compared"))
        value = columns(wide)[-1]
    width = len(schema(wide))
    condition = Call(theta, (value, shift_columns(columns(bounds)[0], width)), BOOLEAN)
    semi = Join(wide, bounds, JoinKind.SEMI, condition)
    return semi if wide is rows else Project(semi, given, names)
