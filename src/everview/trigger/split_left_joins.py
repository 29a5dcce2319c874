"""Left joins that were split into an inner and an anti join (``WITH_TREES``), read as what they were."""

from __future__ import annotations

from dataclasses import replace

from everview.planner.block_flatten import FlatJoin, flatten
from everview.relational.expressions import Expression, substitute
from everview.relational.nodes import Join, JoinKind, Project, Relation, UnionAll


def preserved(relation: Relation) -> FlatJoin:
    """A flat join whose rows a relation has, too: a left join, split in two, has all rows of its left side."""
    match relation:
        case Project(child=child):
            flat = preserved(child)
            return replace(flat, outputs=tuple(substitute(e, flat.outputs) for e in relation.expressions))
        case UnionAll(inputs=(first, second)):
            kept = _split_left(first, second)
            return flatten(relation) if kept is None else preserved(kept)
        case _:
            return flatten(relation)


def _split_left(first: Relation, second: Relation) -> Relation | None:
    """The projection of the left side that a left join, split into an inner and an anti join, still has all rows of."""
    parts = left_join_of(UnionAll((first, second)))
    if parts is None:
        return None
    join, matched, lonely = parts
    assert isinstance(first, Project)
    return Project(join.left, matched, first.names) if matched == lonely else None


def left_join_of(relation: Relation) -> tuple[Join, tuple[Expression, ...], tuple[Expression, ...]] | None:
    """The inner join, and what is read of it and of the anti join, if a relation is a left join that was split in two."""
    match relation:
        case UnionAll(
            inputs=(
                Project(child=Join(kind=JoinKind.INNER) as join, expressions=matched),
                Project(child=Join(kind=JoinKind.ANTI) as lonely, expressions=padded),
            )
        ) if (join.left, join.right, join.condition) == (lonely.left, lonely.right, lonely.condition):
            return join, matched, padded
        case _:
            return None
