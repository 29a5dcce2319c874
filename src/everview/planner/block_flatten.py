"""A tree of filters, projections and inner joins as one flat join: inputs, conditions, and output expressions.

Columns are numbered across all inputs, left to right. Flattening composes projections (substitution) and collects
conjuncts; the bag is the same, since inner joins, filters and projections commute up to renaming of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from everview.relational.expressions import Expression, columns_of, conjunction, conjuncts, shift_columns, substitute
from everview.relational.nodes import Filter, Join, JoinKind, Project, Relation
from everview.relational.schema import columns, schema


@dataclass(frozen=True, slots=True)
class FlatJoin:
    """The rows of ``inputs`` side by side on which all ``conditions`` hold, mapped to ``outputs``."""

    inputs: tuple[Relation, ...]
    conditions: tuple[Expression, ...]
    outputs: tuple[Expression, ...]

    @property
    def owner(self) -> tuple[int, ...]:
        """For each column, the number of the input it comes from."""
        return tuple(i for i, r in enumerate(self.inputs) for _ in schema(r))

    @property
    def start(self) -> tuple[int, ...]:
        """The number of the first column of each input."""
        starts, at = [], 0
        for relation in self.inputs:
            starts.append(at)
            at += len(schema(relation))
        return tuple(starts)


@lru_cache(maxsize=64)
def flatten(relation: Relation) -> FlatJoin:
    """The flat form of what stands below an aggregate."""
    match relation:
        case Project(child=child):
            flat = flatten(child)
            return FlatJoin(
                flat.inputs, flat.conditions, tuple(substitute(e, flat.outputs) for e in relation.expressions)
            )
        case Filter(child=child):
            flat = flatten(child)
            added = tuple(substitute(c, flat.outputs) for c in conjuncts(relation.condition))
            return FlatJoin(flat.inputs, flat.conditions + added, flat.outputs)
        case Join(kind=JoinKind.INNER):
            left, right = flatten(relation.left), flatten(relation.right)
            width = len(left.owner)
            outputs = left.outputs + tuple(shift_columns(e, width) for e in right.outputs)
            moved = tuple(shift_columns(c, width) for c in right.conditions)
            own = tuple(substitute(c, outputs) for c in conjuncts(relation.condition))
            return FlatJoin(left.inputs + right.inputs, left.conditions + moved + own, outputs)
        case _:
            return FlatJoin((relation,), (), columns(relation))


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
