"""Outer joins and existence marks in terms of inner, semi and anti joins."""

from __future__ import annotations

from everview.relational.expressions import FALSE, TRUE, Column, Expression, Literal, remap_columns
from everview.relational.nodes import Join, JoinKind, Project, Relation, UnionAll
from everview.relational.schema import columns, schema


def split_outer_join(relation: Relation) -> Relation | None:
    """Outer joins by inner and anti joins, with ⊎ the bag union and NULLs padding what is missing.

    - L ⟕ R = (L ⋈ R) ⊎ pad(L ▷ R)
    - L ⟖ R = the columns of R ⟕ L in their order
    - L ⟗ R = (L ⟕ R) ⊎ pad(R ▷ L)
    - mark(L, R) = (L ⋉ R, true) ⊎ (L ▷ R, false)

    For engines that maintain inner, semi and anti joins; each side condition is that the join's condition is unchanged.

    >>> from everview.relational.rule_examples import L, R, a, c, equal, show
    >>> plan = Join(L, R, JoinKind.LEFT, equal(a, c))
    >>> show(plan)
    left join on (a = c)
      scan l [a, b]
      scan r [c, d]
    >>> show(split_outer_join(plan))
    union all
      inner join on (a = c)
        scan l [a, b]
        scan r [c, d]
      project [a, b, null:bigint as c, null:bigint as d]
        anti join on (a = c)
          scan l [a, b]
          scan r [c, d]
    """
    if not isinstance(relation, Join):
        return None
    match relation.kind:
        case JoinKind.LEFT:
            return UnionAll((_with_kind(relation, JoinKind.INNER), _pad_right(relation)))
        case JoinKind.RIGHT:
            swapped = _swapped(relation, JoinKind.LEFT)
            return _swap_columns(swapped, relation)
        case JoinKind.FULL:
            left = _with_kind(relation, JoinKind.LEFT)
            return UnionAll((left, _pad_left(relation)))
        case JoinKind.MARK:
            kept, lost = (_with_kind(relation, k) for k in (JoinKind.SEMI, JoinKind.ANTI))
            return UnionAll((_marked(kept, TRUE, relation.mark), _marked(lost, FALSE, relation.mark)))
        case _:
            return None


def _with_kind(join: Join, kind: JoinKind) -> Join:
    return Join(join.left, join.right, kind, join.condition)


def _pad_right(join: Join) -> Relation:
    """The left rows without a partner, with NULLs for the right columns."""
    lonely = _with_kind(join, JoinKind.ANTI)
    nulls = tuple(Literal(None, f.type) for f in schema(join.right))
    return Project(lonely, (*columns(lonely), *nulls), _names(join))


def _pad_left(join: Join) -> Relation:
    """The right rows without a partner, with NULLs for the left columns."""
    lonely = _swapped(join, JoinKind.ANTI)
    nulls = tuple(Literal(None, f.type) for f in schema(join.left))
    return Project(lonely, (*nulls, *columns(lonely)), _names(join))


def _names(join: Join) -> tuple[str, ...]:
    return tuple(f.name for f in (*schema(join.left), *schema(join.right)))


def _swapped(join: Join, kind: JoinKind) -> Join:
    left, right = len(schema(join.left)), len(schema(join.right))

    def new_index(index: int) -> int:
        return index + right if index < left else index - left

    return Join(join.right, join.left, kind, remap_columns(join.condition, new_index))


def _swap_columns(swapped: Relation, original: Join) -> Relation:
    right = len(schema(original.right))
    every: tuple[Column, ...] = columns(swapped)
    return Project(swapped, (*every[right:], *every[:right]), _names(original))


def _marked(relation: Relation, mark: Expression, name: str) -> Relation:
    return Project(relation, (*columns(relation), mark), (*(f.name for f in schema(relation)), name))
