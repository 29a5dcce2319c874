"""Products of matrices as queries: tables of cells (i, j, v), and the join-aggregate block that multiplies them.

    A[x₁, x_{k+1}] = Σ A₁[x₁, x₂] · A₂[x₂, x₃] · … · A_k[x_k, x_{k+1}]                 (section 8.4 of F-IVM)

A cell is the sum of the rows for it, a missing cell is 0, and a row with a NULL in it is no cell. The product has an entry
where some path of cells leads from x₁ to x_{k+1}, so that it is the answer of the SQL query ``chain_sql`` to the letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everview.relational.expressions import Call, Cast, Column, Expression, conjunction
from everview.relational.nodes import Aggregate, AggregateCall, Filter, Join, JoinKind, Project, Relation, Scan, Schema
from everview.relational.quoting import quote
from everview.relational.types import BOOLEAN, FLOAT64


@dataclass(frozen=True)
class MatrixTable:
    """A table as a matrix: which of its columns are the row, the column and the value of a cell."""

    table: str
    fields: Schema
    places: tuple[int, int, int] = (0, 1, 2)

    @property
    def scan(self) -> Scan:
        """The table in a plan."""
        return Scan(self.table, self.fields)

    @property
    def columns(self) -> Relation:
        """Its rows as (i, j, v), as they are."""
        picked = [Column(p, self.fields[p].type, self.fields[p].nullable) for p in self.places]
        return Project(self.scan, tuple(picked), ("i", "j", "v"))

    @property
    def cells(self) -> Relation:
        """Its rows without NULLs as (i, j, v), v a double."""
        columns = [Column(p, self.fields[p].type, self.fields[p].nullable) for p in self.places]
        tests: tuple[Expression, ...] = tuple(Call("isnotnull", (c,), BOOLEAN) for c in columns if c.nullable)
        rows = Filter(self.scan, conjunction(tests)) if tests else self.scan
        i, j, v = columns
        return Project(rows, (i, j, v if v.type == FLOAT64 else Cast(v, FLOAT64)), ("i", "j", "v"))


def chain_plan(matrices: Sequence[MatrixTable]) -> Relation:
    """The product as a plan: rows (i, j, v)."""
    joined = matrices[0].cells
    values: list[Expression] = [_cell(matrices, 0)[2]]
    for n, matrix in enumerate(matrices[1:], start=1):
        on = Call("=", (_cell(matrices, n - 1)[1], _cell(matrices, n)[0]), BOOLEAN)
        joined = Join(joined, matrix.cells, JoinKind.INNER, on)
        values.append(_cell(matrices, n)[2])
    product = values[0]
    for value in values[1:]:
        product = Call("*", (product, value), FLOAT64)
    keys = (_cell(matrices, 0)[0], _cell(matrices, len(matrices) - 1)[1])
    return Aggregate(joined, keys, (AggregateCall("sum", (product,), FLOAT64),), ("i", "j", "v"))


def _cell(matrices: Sequence[MatrixTable], n: int) -> tuple[Column, Column, Column]:
    """Row, column and value of matrix n, in the join of all."""
    fields, (i, j, v) = matrices[n].fields, matrices[n].places
    return (
        Column(3 * n, fields[i].type, fields[i].nullable),
        Column(3 * n + 1, fields[j].type, fields[j].nullable),
        Column(3 * n + 2, FLOAT64, fields[v].nullable),
    )


def chain_of(plan: Relation) -> tuple[MatrixTable, ...] | None:
    """The matrices whose product a plan is; None if it is another query than ``chain_plan`` makes."""
    if not isinstance(plan, Aggregate):
        return None
    leaves: list[Relation] = []
    node = plan.child
    while isinstance(node, Join):
        leaves.append(node.right)
        node = node.left
    found = []
    for leaf in [node, *leaves[::-1]]:
        below = leaf.child if isinstance(leaf, Project) else leaf
        scan = below.child if isinstance(below, Filter) else below
        if not isinstance(leaf, Project) or not isinstance(scan, Scan):
            return None
        columns = [e.child if isinstance(e, Cast) else e for e in leaf.expressions]
        places = [c.index for c in columns if isinstance(c, Column)]
        if len(places) != 3:
            return None
        found.append(MatrixTable(scan.table, scan.fields, (places[0], places[1], places[2])))
    return tuple(found) if chain_plan(found) == plan else None


def chain_sql(matrices: Sequence[MatrixTable]) -> str:
    """The same in Spark SQL."""
    parts = []
    for n, matrix in enumerate(matrices, start=1):
        i, j, v = (quote(matrix.fields[p].name) for p in matrix.places)
        cells = (
            f"(SELECT {i} AS i, {j} AS j, CAST({v} AS DOUBLE) AS v FROM {quote(matrix.table)} "
            f"WHERE {i} IS NOT NULL AND {j} IS NOT NULL AND {v} IS NOT NULL) m{n}"
        )
        parts.append(f"FROM {cells}" if n == 1 else f"JOIN {cells} ON m{n - 1}.j = m{n}.i")
    product = " * ".join(f"m{n}.v" for n in range(1, len(matrices) + 1))
    last = len(matrices)
    return "\n".join([f"SELECT m1.i AS i, m{last}.j AS j, SUM({product}) AS v", *parts, f"GROUP BY m1.i, m{last}.j"])
