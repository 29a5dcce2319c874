"""A covariance as queries: the sums from which linear models, mutual information and the like are computed.

Of rows with continuous features x_1 … x_k and categorical ones c_1 … c_l, in groups, these are (F-IVM, sections 8.1 and 8.2)

    COUNT(*), SUM(x_i), SUM(x_i · x_j) for i ≤ j        one row a group
    COUNT(*), SUM(x_i)                                  by c_p: a row for each category that occurs
    COUNT(*)                                            by c_p, c_q: a row for each pair of categories that occurs

which are the blocks of the generalized covariance matrix that are not 0, each once. They are aggregates like others: whatever
maintains these maintains a covariance. A row in which a continuous feature is NULL takes part in none of them, so that all sums
are over the same rows; NULL is a category like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.relational.expressions import Call, Cast, Column, Expression, conjunction
from everview.relational.nodes import Aggregate, AggregateCall, Filter, Project, Relation
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, FLOAT64, INT64

COUNT = "count"
"""The name of the column with the number of rows."""


def features_of(source: Relation, continuous: Sequence[int], others: Sequence[int]) -> Relation:
    """The rows that count: the continuous features as doubles, none of them NULL, then the other columns.

    >>> from everview.relational.format import format_plan
    >>> from everview.relational.nodes import Field, Scan
    >>> print(format_plan(features_of(Scan("t", (Field("a", INT64, True), Field("c", INT64, True))), (0,), (1,))))
    project [cast(a as double) as a, c]
      filter isnotnull(a)
        scan t [a, c]
    """
    given, fields = columns(source), schema(source)
    present = [Call("isnotnull", (given[i],), BOOLEAN) for i in continuous if fields[i].nullable]
    kept = Filter(source, conjunction(tuple(present))) if present else source
    numbers = tuple(_as_double(Column(i, fields[i].type, nullable=False)) for i in continuous)
    names = tuple(fields[i].name for i in (*continuous, *others))
    return Project(kept, (*numbers, *(given[i] for i in others)), names)


def moments_plan(features: Relation, continuous: int, groups: Sequence[int]) -> Relation:
    """The number of rows, sums and sums of products of the first columns, which are the continuous ones, by group."""
    given, names = columns(features), [f.name for f in schema(features)]
    pairs = [(i, j) for i in range(continuous) for j in range(i, continuous)]
    sums = [given[i] for i in range(continuous)]
    products = [Call("*", (given[i], given[j]), FLOAT64) for i, j in pairs]
    titles = [*(f"sum_{names[i]}" for i in range(continuous)), *(f"sum_{names[i]}_{names[j]}" for i, j in pairs)]
    return _grouped(features, groups, [*sums, *products], titles)


def category_plan(features: Relation, continuous: int, groups: Sequence[int], category: int) -> Relation:
    """The number of rows and the sums of the continuous features, by group and category."""
    given, names = columns(features), [f.name for f in schema(features)]
    summed = [given[i] for i in range(continuous)]
    return _grouped(features, (*groups, category), summed, [f"sum_{names[i]}" for i in range(continuous)])


def pair_plan(features: Relation, groups: Sequence[int], first: int, second: int) -> Relation:
    """The number of rows, by group and two categories."""
    return _grouped(features, (*groups, first, second), [], [])


def _grouped(features: Relation, keys: Sequence[int], summed: Sequence[Expression], titles: Sequence[str]) -> Relation:
    given, names = columns(features), [f.name for f in schema(features)]
    calls = (AggregateCall("count", (), INT64), *(AggregateCall("sum", (e,), FLOAT64) for e in summed))
    outputs = _unlike([*(names[k] for k in keys), COUNT, *titles])
    return Aggregate(features, tuple(given[k] for k in keys), calls, outputs)


def _as_double(column: Column) -> Expression:
    return column if column.type == FLOAT64 else Cast(column, FLOAT64)


def _unlike(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with a number after those that stand before.

    >>> _unlike(["a", "sum_a", "Sum_a"])
    ('a', 'sum_a', 'Sum_a_2')
    """
    taken: set[str] = set()
    unlike = []
    for name in names:
        number, chosen = 2, name
        while chosen.lower() in taken:
            chosen, number = f"{name}_{number}", number + 1
        taken.add(chosen.lower())
        unlike.append(chosen)
    return tuple(unlike)
