"""The cyclic queries of the literature as plans: which variables each atom has, and which table it is over."""

from __future__ import annotations

from collections.abc import Sequence

from everview.relational.expressions import Call, Column, Expression, conjunction
from everview.relational.nodes import Field, Join, JoinKind, Relation, Scan
from everview.relational.types import BOOLEAN, FLOAT64, INT32, Decimal

SHAPES: dict[str, tuple[str, ...]] = {
    "triangle": ("AB", "BC", "CA"),
    "four_cycle": ("AB", "BC", "CD", "DA"),
    "bowtie": ("AB", "BC", "CA", "CD", "DE", "EC"),
    "loop_with_chord": ("AB", "BC", "CD", "DA", "AC"),
    "clique": ("AB", "BC", "CA", "AD", "BD", "CD"),
    "triangle_with_tail": ("ABD", "BC", "CA", "D"),
    "two_triangles_on_an_edge": ("ABE", "BC", "CA", "BD", "DA", "E"),
}
"""Loops, with a chord or a common node; of those with a tail, the view of the cycle does not have all variables of an atom."""
ORDERS = {
    "triangle": "A - B - C",
    "four_cycle": "A - B - C - D",
    "bowtie": "C - {A - B, D - E}",
    "loop_with_chord": "A - C - {B, D}",
    "clique": "A - B - C - D",
    "triangle_with_tail": "A - B - {C, D}",
    "two_triangles_on_an_edge": "A - B - {C, D, E}",
}
MONEY = Decimal(8, 2)


def table(name: str, keys: str, *, nullable: bool = False) -> Scan:
    """A table with these keys, a decimal and a double."""
    fields = (Field(k, INT32, nullable) for k in keys)
    return Scan(name, (*fields, Field("d", MONEY, True), Field("f", FLOAT64, True)))


def cyclic_join(
    shape: Sequence[str], tables: Sequence[str], *, nullable: bool = False, equal: str = "="
) -> tuple[Relation, list[tuple[Column, ...]]]:
    """The join of the atoms over these tables, whose keys are named as in their first atom, and the columns of each atom."""
    names = dict(reversed(list(zip(tables, shape, strict=True))))
    joined: Relation | None = None
    read: list[tuple[Column, ...]] = []
    where: dict[str, Column] = {}
    for variables, name in zip(shape, tables, strict=True):
        scan = table(name, names[name], nullable=nullable)
        start = sum(map(len, read))
        own = tuple(Column(start + i, f.type, f.nullable) for i, f in enumerate(scan.fields))
        met: list[Expression] = [
            Call(equal, (where[v], own[i]), BOOLEAN) for i, v in enumerate(variables) if v in where
        ]
        where |= {v: own[i] for i, v in enumerate(variables) if v not in where}
        read.append(own)
        joined = scan if joined is None else Join(joined, scan, JoinKind.INNER, conjunction(tuple(met)))
    assert joined is not None
    return joined, read
