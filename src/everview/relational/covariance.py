"""A covariance as queries: the sums from which linear models, mutual information and the like are computed.

Of rows with continuous features x_1 … x_k and categorical ones c_1 … c_l, in groups, these are (F-IVM, sections 8.1 and 8.2)

    COUNT(*), SUM(x_i), SUM(x_i · x_j) for i ≤ j        one row a group
    COUNT(*), SUM(x_i)                                  by c_p: a row for each category that occurs
    COUNT(*)                                            by c_p, c_q: a row for each pair of categories that occurs

which are the blocks of the generalized covariance matrix that are not 0, each once. They are aggregates like others: whatever
maintains these maintains a covariance. A row in which a continuous feature is NULL takes part in none of them, so that all sums
are over the same rows; NULL is a category like any other.

Continuous features are doubles. An engine that maintains exact sums only, and computes those of floats anew, asks for
features that are ``exact``: integers and decimals are summed and multiplied as decimals, and the sums become doubles.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.relational.expressions import Call, Cast, Column, Expression, conjunction
from everview.relational.functions.decimals import product_type
from everview.relational.nodes import Aggregate, AggregateCall, Filter, Project, Relation
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, FLOAT64, INT8, INT16, INT32, INT64, DataType, Decimal

COUNT = "count"
"""The name of the column with the number of rows."""


MOST_DIGITS = 15
MOST_PLACES = 3
"""Of an exact feature, in all and after the point: the product of two has twice as many, and 10⁷ of these fit 38 digits."""
_DIGITS = {BOOLEAN: 1, INT8: 3, INT16: 5, INT32: 10}


def exact_type(data_type: DataType) -> Decimal | None:
    """The decimals that hold a feature of a type, and its products with others of that kind exactly; None if there are none.

    >>> exact_type(INT32), exact_type(FLOAT64)
    (Decimal(precision=10, scale=0), None)
    """
    if isinstance(data_type, Decimal):
        return data_type if data_type.precision <= MOST_DIGITS and data_type.scale <= MOST_PLACES else None
    return Decimal(_DIGITS[data_type], 0) if data_type in _DIGITS else None


def features_of(
    source: Relation, continuous: Sequence[int], others: Sequence[int], *, is_exact: bool = False
) -> Relation:
    """The rows that count: the continuous features as doubles, none of them NULL, then the other columns.

    With ``is_exact``, the features are decimals; each has an ``exact_type``.

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
    as_number = _as_decimal if is_exact else _as_double
    numbers = tuple(as_number(Column(i, fields[i].type, nullable=False)) for i in continuous)
    names = tuple(fields[i].name for i in (*continuous, *others))
    return Project(kept, (*numbers, *(given[i] for i in others)), names)


def moments_plan(features: Relation, continuous: int, groups: Sequence[int]) -> Relation:
    """The number of rows, sums and sums of products of the first columns, which are the continuous ones, by group."""
    given, names = columns(features), [f.name for f in schema(features)]
    pairs = [(i, j) for i in range(continuous) for j in range(i, continuous)]
    sums = [given[i] for i in range(continuous)]
    products = [Call("*", (given[i], given[j]), _product_type(given[i].type, given[j].type)) for i, j in pairs]
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
    calls = (AggregateCall("count", (), INT64), *(AggregateCall("sum", (e,), _sum_type(e.type)) for e in summed))
    outputs = _unlike([*(names[k] for k in keys), COUNT, *titles])
    grouped = Aggregate(features, tuple(given[k] for k in keys), calls, outputs)
    if all(e.type == FLOAT64 for e in summed):
        return grouped
    first = len(keys) + 1
    made = columns(grouped)
    return Project(grouped, (*made[:first], *map(_as_double, made[first:])), outputs)


def _as_double(column: Column) -> Expression:
    return column if column.type == FLOAT64 else Cast(column, FLOAT64)


def _as_decimal(column: Column) -> Expression:
    exact = exact_type(column.type)
    assert exact is not None, "asked for features that are exact"
    whole = Cast(column, INT32) if column.type == BOOLEAN else column
    return whole if whole.type == exact else Cast(whole, exact)


def _product_type(left: DataType, right: DataType) -> DataType:
    return product_type(left, right) if isinstance(left, Decimal) and isinstance(right, Decimal) else FLOAT64


def _sum_type(data_type: DataType) -> DataType:
    """As Spark has it: ten more digits."""
    if not isinstance(data_type, Decimal):
        return FLOAT64
    return Decimal(min(38, data_type.precision + 10), data_type.scale)


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
