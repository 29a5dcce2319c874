"""An outer join along a foreign key that is never NULL is an inner join."""

from __future__ import annotations

from dataclasses import replace

from everview.relational.nodes import Join, JoinKind, Relation
from everview.relational.references import ReferencesOf, as_referring_join


def match_referenced_rows(relation: Relation, references_of: ReferencesOf) -> Relation | None:
    """C ⟕[f = k] P = C ⋈[f = k] P, f being a foreign key of C's rows to the key k of all of P's, and never NULL.

    Every row of C finds its partner, so that none is padded; likewise ⟖ with the sides exchanged. The law holds in the
    states that transactions leave, of which every foreign key is true.

    >>> from everview.relational.nodes import Field, Scan
    >>> from everview.relational.references import Reference
    >>> from everview.relational.rule_examples import INT64, Column, R, equal, show
    >>> sale = Scan("sale", (Field("item", INT64, False), Field("amount", INT64)))
    >>> plan = Join(sale, R, JoinKind.LEFT, equal(Column(0, INT64, False), Column(2, INT64)))
    >>> show(plan)
    left join on (item = c)
      scan sale [item, amount]
      scan r [c, d]
    >>> show(match_referenced_rows(plan, lambda scan: (Reference((0,), "r", ("c",)),)))
    inner join on (item = c)
      scan sale [item, amount]
      scan r [c, d]
    """
    if not isinstance(relation, Join) or relation.kind not in (JoinKind.LEFT, JoinKind.RIGHT):
        return None
    along = as_referring_join(relation, references_of)
    if along is None or not along.is_never_null or along.child_is_left != (relation.kind is JoinKind.LEFT):
        return None
    return replace(relation, kind=JoinKind.INNER)
