"""Make what joins and windows match on a column."""

from __future__ import annotations

from dataclasses import replace

from everview.relational.expressions import Call, Column, Expression, conjunction, remap_columns
from everview.relational.join_condition import Equality, split_join_condition
from everview.relational.nodes import Join, JoinKind, Project, Relation, Window
from everview.relational.schema import columns, is_nullable, schema
from everview.relational.types import BOOLEAN


def expose_keys(relation: Relation) -> Relation | None:
    """L ⋈[f(a) = g(b)] R = π(π[*, f(a) as k](L) ⋈[k = l] π[*, g(b) as l](R)), and the same for PARTITION BY f(a).

    An index is by columns; this makes every equality and every partition key one. Nothing changes where all are.

    >>> from everview.relational.rule_examples import L, R, a, c, equal, plus, show
    >>> plan = Join(L, R, JoinKind.INNER, equal(plus(a, 1), c))
    >>> show(plan)
    inner join on ((a + 1) = c)
      scan l [a, b]
      scan r [c, d]
    >>> show(expose_keys(plan))
    project [a, b, c, d]
      inner join on (key0 = c)
        project [a, b, (a + 1) as key0]
          scan l [a, b]
        scan r [c, d]
    """
    match relation:
        case Join():
            condition = split_join_condition(relation)
            sides = [e for q in condition.equalities for e in (q.left, q.right)]
            if all(isinstance(e, Column) for e in sides):
                return None
            return _expose_join(relation, condition.equalities, condition.residual)
        case Window() if not all(isinstance(e, Column) for e in relation.partition):
            return _expose_window(relation)
        case _:
            return None


def _extended(relation: Relation, expressions: tuple[Expression, ...]) -> tuple[Relation, tuple[Column, ...]]:
    """The relation with the computed ones among the expressions appended, and the column of each expression."""
    computed = tuple(dict.fromkeys(e for e in expressions if not isinstance(e, Column)))
    if not computed:
        return relation, tuple(e for e in expressions if isinstance(e, Column))
    own = columns(relation)
    names = tuple(f.name for f in schema(relation)) + tuple(f"key{i}" for i in range(len(computed)))
    wide = Project(relation, (*own, *computed), names)
    at = {e: Column(len(own) + i, e.type, is_nullable(e)) for i, e in enumerate(computed)}
    return wide, tuple(e if isinstance(e, Column) else at[e] for e in expressions)


def _expose_join(join: Join, equalities: tuple[Equality, ...], residual: tuple[Expression, ...]) -> Relation:
    left, left_keys = _extended(join.left, tuple(q.left for q in equalities))
    right, right_keys = _extended(join.right, tuple(q.right for q in equalities))
    narrow, wide = len(schema(join.left)), len(schema(left))
    keys = tuple(
        Call("<=>" if q.null_safe else "=", (a, Column(wide + b.index, b.type, b.nullable)), BOOLEAN)
        for q, a, b in zip(equalities, left_keys, right_keys, strict=True)
    )
    moved = tuple(remap_columns(p, lambda i: i if i < narrow else i - narrow + wide) for p in residual)
    exposed = Join(left, right, join.kind, conjunction((*keys, *moved)), join.mark)
    every, names = columns(exposed), tuple(f.name for f in schema(exposed))
    kept = list(range(narrow))
    if join.kind is JoinKind.MARK:
        kept.append(wide)
    elif join.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        kept.extend(range(wide, wide + len(schema(join.right))))
    return Project(exposed, tuple(every[i] for i in kept), tuple(names[i] for i in kept))


def _expose_window(window: Window) -> Relation:
    child, keys = _extended(window.child, window.partition)
    narrow, wide = len(schema(window.child)), len(schema(child))
    exposed = replace(window, child=child, partition=keys)
    every, names = columns(exposed), tuple(f.name for f in schema(exposed))
    kept = [*range(narrow), *range(wide, len(every))]
    return Project(exposed, tuple(every[i] for i in kept), tuple(names[i] for i in kept))
