"""WITH RECURSIVE as the algebra has it: what the step reads becomes inputs of the recursion, under names of their own."""

from __future__ import annotations

from typing import Final

from everview.relational.nodes import RECURSION, Recursive, Relation, Scan, input_name
from everview.relational.rules.pipeline import simplify
from everview.relational.traverse import rewrite_bottom_up, scans_of

DEEPEST: Final = 100
"""Spark's own limit of rounds, unless the query says MAX RECURSION LEVEL."""


def recursive(anchor: Relation, step: Relation, limit: int) -> Recursive:
    """The recursion of a step that scans ``RECURSION`` and tables.

    >>> from everview.relational.nodes import Field, UnionAll
    >>> from everview.relational.types import INT32
    >>> fields = (Field("a", INT32),)
    >>> made = recursive(Scan("t", fields), UnionAll((Scan(RECURSION, fields), Scan("s", fields))), 5)
    >>> [scan.table for scan in made.inputs], [scan.table for scan in scans_of(made.step)]
    (['s'], ['__recursion', '__input0'])
    """
    step = simplify(step)
    scans = {scan.table.lower(): scan for scan in scans_of(step) if scan.table != RECURSION}
    names = {table: input_name(i) for i, table in enumerate(scans)}

    def renamed(relation: Relation) -> Relation | None:
        if isinstance(relation, Scan) and relation.table.lower() in names:
            return Scan(names[relation.table.lower()], relation.fields)
        return None

    return Recursive(anchor, tuple(scans.values()), rewrite_bottom_up(step, renamed), limit)
