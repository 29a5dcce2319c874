"""Rows are dropped by Arrow exactly where the definition says that a condition does not hold."""

from __future__ import annotations

from decimal import Decimal as PythonDecimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.spark.arrow_conditions import passing
from everview.backends.spark.terms import Term
from everview.relational.arrow import column_to_arrow
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.nodes import Field, Scan
from everview.relational.types import BOOLEAN, DATE, FLOAT64, INT32, STRING, DataType, Decimal, Value

_MONEY = Decimal(5, 2)
_VALUES: dict[DataType, list[Value]] = {
    INT32: [-1, 0, 7],
    DATE: [0, 8766],
    STRING: ["", "a", "ab", "é", "z"],
    _MONEY: [PythonDecimal("-1.50"), PythonDecimal("0.00"), PythonDecimal("2.25")],
}
_Row = tuple[Value, ...]


@st.composite
def _cases(draw: st.DrawFn) -> tuple[DataType, list[_Row], list[Expression]]:
    data_type = draw(st.sampled_from(list(_VALUES)))
    value = st.sampled_from([None, *_VALUES[data_type]])
    operand = st.one_of(
        st.builds(Column, st.integers(0, 1), st.just(data_type)), st.builds(Literal, value, st.just(data_type))
    )
    condition = st.one_of(
        st.builds(
            lambda f, a, b: Call(f, (a, b), BOOLEAN),
            st.sampled_from(["=", "<", "<=", ">", ">=", "<=>"]),
            operand,
            operand,
        ),
        st.builds(lambda a, b: Call("in", (Column(0, data_type), a, b), BOOLEAN), operand, operand),
        st.builds(lambda a: Call("isnotnull", (a,), BOOLEAN), operand),
    )
    return data_type, draw(st.lists(st.tuples(value, value), max_size=8)), draw(st.lists(condition, max_size=3))


def _table(rows: list[_Row], data_type: DataType) -> pa.Table:
    columns = [column_to_arrow([row[i] for row in rows], data_type) for i in range(2)]
    return pa.table([*columns, pa.array(range(len(rows)), pa.int64())], names=["c0", "c1", "_weight"])


@given(_cases())
def test_what_holds_stays(case: tuple[DataType, list[_Row], list[Expression]]) -> None:
    """Nothing on which all conditions hold is dropped, and nothing on which a comparison with a constant fails stays."""
    data_type, rows, conditions = case
    kept = set(passing(_table(rows, data_type), conditions).column(2).to_pylist())
    assert kept >= {i for i, row in enumerate(rows) if all(evaluate(c, row) is True for c in conditions)}
    plain = [
        c for c in conditions if isinstance(c, Call) and c.function in ("=", "<", "<=", ">", ">=") and _is_plain(c)
    ]
    assert all(evaluate(c, rows[i]) is True for c in plain for i in kept)


def _is_plain(call: Call) -> bool:
    column, constant = call.args
    return isinstance(column, Column) and isinstance(constant, Literal) and constant.value is not None


def test_errors_are_not_lost() -> None:
    """A row that a later condition would drop stays, if an earlier one may fail on it."""
    fails = Call(">", (Call("div", (Literal(1, INT32), Column(0, INT32)), INT32), Literal(0, INT32)), BOOLEAN)
    positive = Call(">", (Column(0, INT32), Literal(0, INT32)), BOOLEAN)
    scan = Scan("t", (Field("a", INT32, True), Field("b", INT32, True)))
    for conjuncts, sure in (((positive, fails), (positive,)), ((fails, positive), ())):
        term = Term(1, (scan,), conjuncts, (Column(0, INT32),))
        assert term.sure_conjuncts(0) == sure
    assert passing(_table([(0, 1), (5, 1)], INT32), [positive]).num_rows == 1


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_floats_are_left_to_the_plan(value: float) -> None:
    """Spark's NaN is equal to itself and larger than all else, which Arrow's is not."""
    rows = pa.table([pa.array([value]), pa.array([value]), pa.array([1])], names=["c0", "c1", "_weight"])
    assert passing(rows, [Call(">=", (Column(0, FLOAT64), Literal(1.0, FLOAT64)), BOOLEAN)]).num_rows == 1
