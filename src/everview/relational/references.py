"""References between tables, as FOREIGN KEY declares them, and the joins that go along one.

A reference says: where no column of the foreign key is NULL, some row of the parent has these values in its key, and as that is
a key, exactly one. It holds of what a transaction leaves, since one that breaks it is rejected. So a join of a row with what it
refers to finds one partner, whatever else has been done to that row: columns may be read from a scan, or from any filter,
projection, grouping or join above it that passes them on together.

Keys of floating-point numbers are left out: -0.0 refers to 0.0, and is not the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from everview.relational.expressions import Call, Column, Expression, conjuncts
from everview.relational.nodes import Aggregate, Distinct, Filter, Join, JoinKind, Project, Relation, Scan, TopK, Window
from everview.relational.schema import schema
from everview.relational.types import is_floating


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key: the positions of its columns, and the table and the columns of the key that they refer to, in order."""

    columns: tuple[int, ...]
    parent: str
    referenced: tuple[str, ...]


ReferencesOf: TypeAlias = Callable[[Scan], tuple[Reference, ...]]
"""The foreign keys of a table."""


@dataclass(frozen=True, slots=True)
class ReferringJoin:
    """A join whose whole condition is that one side refers to a row of the other, which is a table with all its rows.

    ``found`` are the columns of the foreign key in the output of the join, by those of the key that they are equal to;
    ``is_never_null`` says that every row of the child has values in them, and so a partner.
    """

    child_is_left: bool
    found: dict[int, int]
    is_never_null: bool


def as_referring_join(join: Join, references_of: ReferencesOf) -> ReferringJoin | None:
    """The join as one along a foreign key; None if it is something else."""
    width = len(schema(join.left))
    pairs = [pair for part in conjuncts(join.condition) for pair in _equal_columns(part, width)]
    for child_is_left in (True, False):
        child, parent = (join.left, join.right) if child_is_left else (join.right, join.left)
        own, other = (0, width) if child_is_left else (width, 0)
        found = {right: left for left, right in pairs} if child_is_left else dict(pairs)
        if len(found) < len(conjuncts(join.condition)):
            continue
        foreign = _origin(child, tuple(f - own for f in found.values()))
        if foreign is not None and _refers(foreign, parent, [k - other for k in found], references_of):
            is_null = foreign.is_padded or any(foreign.scan.fields[i].nullable for i in foreign.columns)
            return ReferringJoin(child_is_left, found, not is_null)
    return None


def _equal_columns(part: Expression, width: int) -> Iterator[tuple[int, int]]:
    """The column of the left and that of the right side that a condition makes equal, if it does just that."""
    match part:
        case Call(function="=", args=(Column() as a, Column() as b)) if not is_floating(a.type):
            left, right = sorted((a.index, b.index))
            if left < width <= right:
                yield left, right
        case _:
            pass


@dataclass(frozen=True, slots=True)
class _Origin:
    """Columns of a scan that are passed on together: in every row those of one of its rows, or all NULL if ``is_padded``."""

    scan: Scan
    columns: tuple[int, ...]
    is_padded: bool = False


def _refers(foreign: _Origin, parent: Relation, key: list[int], references_of: ReferencesOf) -> bool:
    """Whether these columns are a foreign key to the key columns of the parent, each to each, of which all rows are there."""
    if not isinstance(parent.child if isinstance(parent, Project) else parent, Scan):
        return False
    known = _origin(parent, tuple(key))
    if known is None:
        return False
    names = [known.scan.fields[i].name for i in known.columns]
    wanted = set(zip(foreign.columns, names, strict=True))
    return any(
        reference.parent.lower() == known.scan.table.lower()
        and set(zip(reference.columns, reference.referenced, strict=True)) == wanted
        for reference in references_of(foreign.scan)
    )


def _origin(relation: Relation, columns: tuple[int, ...]) -> _Origin | None:
    """Where the columns of a relation come from, if they are passed on from one scan as they are."""
    match relation:
        case Scan():
            return _Origin(relation, columns)
        case Filter(child=child) | Distinct(child=child) | TopK(child=child):
            return _origin(child, columns)
        case Window(child=child) if all(c < len(schema(child)) for c in columns):
            return _origin(child, columns)
        case Project(child=child, expressions=expressions) | Aggregate(child=child, keys=expressions):
            passed = tuple(_passed(expressions, columns))
            return _origin(child, passed) if len(passed) == len(columns) else None
        case Join(kind=kind, left=left, right=right) if kind is not JoinKind.MARK:
            width = len(schema(left))
            if all(c < width for c in columns):
                found, is_padded = _origin(left, columns), kind in (JoinKind.RIGHT, JoinKind.FULL)
            elif all(c >= width for c in columns):
                found = _origin(right, tuple(c - width for c in columns))
                is_padded = kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.SINGLE)
            else:
                return None
            return replace(found, is_padded=True) if found is not None and is_padded else found
        case _:
            return None


def _passed(expressions: tuple[Expression, ...], columns: tuple[int, ...]) -> Iterator[int]:
    """The columns of the input that these are, for those that are any."""
    for column in columns:
        if column < len(expressions) and isinstance(expression := expressions[column], Column):
            yield expression.index
