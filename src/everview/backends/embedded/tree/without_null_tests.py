"""An expression over rows in which no column is NULL: tests for NULL are decided, and what depends on them alone goes.

Spark puts ``isnotnull`` into every condition over a nullable column. A leaf program is for rows without NULL only (batches
with one take the general evaluator), so there such a test is true, a condition that has nothing else is no condition, and a
count of values that are not NULL is a count of rows.
"""

from __future__ import annotations

from collections.abc import Callable

from everview.relational.bounds import exact_bound
from everview.relational.expressions import FALSE, TRUE, Call, Case, Cast, Column, Expression, Literal, transform
from everview.relational.failing import can_fail


def without_null_tests(e: Expression, on_tested: Callable[[Expression], None]) -> Expression:
    """An expression with the same values where no column is NULL; ``on_tested`` is told what was found not to be NULL.

    >>> from everview.relational.types import BOOLEAN, INT64
    >>> x = Column(0, INT64, True)
    >>> without_null_tests(Call("isnotnull", (x,), BOOLEAN), lambda _: None) == TRUE
    True
    """

    def visit(part: Expression) -> Expression | None:
        match part:
            case Call(function="isnotnull" | "isnull", args=(tested,)) if _is_decided(tested):
                on_tested(tested)
                return TRUE if part.function == "isnotnull" else FALSE
            case Call(function="and", args=(left, right)) if TRUE in (left, right):
                return right if left == TRUE else left
            case Call(function="or", args=(left, right)) if FALSE in (left, right):
                return right if left == FALSE else left
            case Call(function="not", args=(Literal(value=bool()) as known,)):
                return FALSE if known == TRUE else TRUE
            case Case():
                return _decided(part)
            case _:
                return None

    return transform(e, visit)


def _is_decided(tested: Expression) -> bool:
    """Whether a test for NULL needs no value: it is not NULL, and computing it raises no error that would be missed."""
    return not can_be_null_otherwise(tested) and not can_fail(tested)


def _decided(case: Case) -> Expression | None:
    """The case without the branches that are never taken, or never reached."""
    branches, otherwise = [], case.otherwise
    for condition, chosen in case.branches:
        if condition == TRUE:
            otherwise = chosen
            break
        if condition != FALSE:
            branches.append((condition, chosen))
    if len(branches) == len(case.branches) or otherwise.type != case.type:
        return None
    return Case(tuple(branches), otherwise) if branches else otherwise


def can_be_null_otherwise(e: Expression) -> bool:
    """Whether an expression can be NULL though none of its columns is."""
    match e:
        case Column():
            return False
        case Literal():
            return e.value is None
        case Cast():
            return e.is_try or exact_bound(e) is None or can_be_null_otherwise(e.child)
        case Call(function="+" | "-" | "*"):
            return any(can_be_null_otherwise(a) for a in e.args)
        case _:
            return True
