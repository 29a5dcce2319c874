"""Expressions below a join that fail: no error for rows without partners, and Spark's error for others."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import EvaluationError
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Field, Join, JoinKind, Relation, Scan
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64, STRING, Row

R = Scan("r", (Field("k", INT64, True), Field("x", FLOAT64, True), Field("y", FLOAT64, True), Field("s", STRING, True)))
S = Scan("s", (Field("k", INT64, True), Field("z", FLOAT64, True)))
JOIN = Join(R, S, JoinKind.INNER, Call("=", (Column(0, INT64), Column(4, INT64)), BOOLEAN))
X, Y, Z, TEXT = Column(1, FLOAT64), Column(2, FLOAT64), Column(5, FLOAT64), Column(3, STRING)
RATIO = Call("/", (X, Y), FLOAT64)
NUMBER = Cast(TEXT, INT32)
IS_POSITIVE = Call(">", (Y, Literal(0.0, FLOAT64)), BOOLEAN)


def _sum(argument: Expression, where: Expression | None = None) -> AggregateCall:
    result = FLOAT64 if argument.type == FLOAT64 else INT64
    return AggregateCall("sum", (argument,), result, filter=where)


CALLS = {
    "a ratio": (_sum(RATIO),),
    "a cast": (_sum(NUMBER), AggregateCall("count", (NUMBER,), INT64)),
    "of a product": (_sum(Call("*", (RATIO, Z), FLOAT64)),),
    "in a branch": (_sum(Case(((IS_POSITIVE, RATIO),), Literal(0.0, FLOAT64))),),
    "under a filter": (_sum(RATIO, IS_POSITIVE), _sum(Z, Call(">", (RATIO, Literal(1.0, FLOAT64)), BOOLEAN))),
    "in a branch over both": (_sum(Case(((Call(">", (Z, Literal(0.0, FLOAT64)), BOOLEAN), RATIO),), Z)),),
}


def _plan(calls: tuple[AggregateCall, ...], keys: tuple[Expression, ...]) -> Aggregate:
    return Aggregate(JOIN, keys, calls, tuple(f"c{i}" for i in range(len(keys) + len(calls))))


def _backend(plan: Relation, *, retain: bool = True) -> EmbeddedBackend:
    backend = EmbeddedBackend()
    for scan in (R, S):
        backend.create_table(TableDefinition(scan.table, scan.fields, retain=retain))
    backend.create_view(ViewDefinition("v", plan, None, "UTC"))
    return backend


def _changes(given_rows: dict[str, list[tuple[Row, int]]]) -> list[Change]:
    fields = {"r": R.fields, "s": S.fields}
    return [
        Change(
            t,
            ChangeKind.WEIGHTED,
            rows_to_arrow([r for r, _ in rows], fields[t]),
            pa.array([w for _, w in rows], pa.int64()),
        )
        for t, rows in given_rows.items()
    ]


def test_explain_says_what_is_counted() -> None:
    """The tree, and the expressions whose failures it counts; a table without rows gets none, as nothing could raise."""
    backend = _backend(_plan(CALLS["a ratio"], ()))
    assert (
        "failures counted, and computed row by row where one survives the join:\n       (r.x / r.y)\n"
        in backend.explain("v", "text")
    )
    assert "view tree of" not in _backend(_plan(CALLS["a ratio"], ()), retain=False).explain("v", "text")


def test_a_failure_without_a_partner_stays_in_the_tree() -> None:
    """It is no error, and does not make the view slow; with a partner it is one, of either side, and nothing has changed."""
    backend = _backend(_plan(CALLS["a ratio"], ()))
    backend.apply(_changes({"r": [((1, 6.0, 2.0, None), 1), ((9, 1.0, 0.0, None), 1)], "s": [((1, 1.0), 1)]}))
    assert backend.explain("v", "json").count("row_by_row") == 0
    assert backend.read("v").to_pylist() == [{"c0": 3.0}]
    for change in ({"s": [((9, 1.0), 1)]}, {"r": [((1, 0.0, 0.0, None), 1)]}):
        with pytest.raises(EvaluationError, match="view 'v' cannot be computed: division by zero"):
            backend.apply(_changes(change))
        assert backend.read("v").to_pylist() == [{"c0": 3.0}]
    backend.apply(_changes({"r": [((9, 1.0, 0.0, None), -1), ((9, 1.0, 1.0, None), 1)], "s": [((9, 1.0), 1)]}))
    assert backend.read("v").to_pylist() == [{"c0": 4.0}]


KEYS = st.sampled_from([1, 2, None])
NUMBERS = st.sampled_from([0.0, 1.0, 2.0, -4.0, None])
ROWS = {
    "r": st.tuples(KEYS, NUMBERS, NUMBERS, st.sampled_from(["1", "7", "x", None])),
    "s": st.tuples(KEYS, NUMBERS),
}
CHANGES = st.fixed_dictionaries(
    {}, optional={t: st.lists(st.tuples(rows, st.booleans()), min_size=1, max_size=4) for t, rows in ROWS.items()}
)


@given(st.sampled_from(sorted(CALLS)), st.booleans(), st.lists(CHANGES, max_size=7))
def test_any_stream(name: str, is_grouped: bool, stream: list[dict[str, list[tuple[Row, bool]]]]) -> None:
    """After every transaction the recomputed answer, or the recomputed error and the answer from before."""
    plan = _plan(CALLS[name], (Column(0, INT64),) if is_grouped else ())
    backend = _backend(plan)
    held: dict[str, Counter[Row]] = {"r": Counter(), "s": Counter()}
    for transaction in stream:
        then = {t: Counter(rows) for t, rows in held.items()}
        given_rows: dict[str, list[tuple[Row, int]]] = {}
        for table, rows in transaction.items():
            for row, deletes in rows:
                weight = -1 if deletes and then[table][row] > 0 else 1
                then[table][row] += weight
                given_rows.setdefault(table, []).append((row, weight))
        condition = _condition(plan, then)
        if condition is None:
            backend.apply(_changes(given_rows))
            held = then
        else:
            with pytest.raises(EvaluationError, match="cannot be computed") as raised:
                backend.apply(_changes(given_rows))
            assert raised.value.condition == condition
        expected = Counter(evaluate_plan(plan, {t: list(rows.elements()) for t, rows in held.items()}))
        assert Counter(rows_from_arrow(backend.read("v"), schema(plan))) == expected


def _condition(plan: Relation, tables: dict[str, Counter[Row]]) -> str | None:
    """What recomputing fails with, None if it does not."""
    try:
        evaluate_plan(plan, {t: list(rows.elements()) for t, rows in tables.items()})
    except EvaluationError as error:
        return error.condition
    return None
