"""Window functions over whole columns against their definition, once for a bag and after every change of one."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal as Number

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.window import WindowOperator
from everview.backends.embedded.sources import ConstantOperator
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import EvaluationError
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.definitions.windows import evaluate_window
from everview.relational.expressions import Column, Literal
from everview.relational.nodes import Field, Frame, FrameUnit, Scan, SortKey, Values, Window, WindowCall
from everview.relational.schema import schema
from everview.relational.types import FLOAT64, INT32, INT64, Decimal, Row
from tests.oracle.bags import assert_same_bag
from tests.unit.backends.embedded.windows.generate_windows import FIELDS, bags, windows

TABLE = Scan("r", FIELDS)
WHOLE = Frame(FrameUnit.ROWS, None, None)
RUNNING = Frame(FrameUnit.ROWS, None, Literal(0, INT32))
ADJACENT = Frame(FrameUnit.ROWS, Literal(-1, INT32), Literal(0, INT32))


def _backend(plan: Window, fields: tuple[Field, ...] = FIELDS) -> EmbeddedBackend:
    backend = EmbeddedBackend()
    backend.create_table(TableDefinition("r", fields))
    backend.create_view(ViewDefinition("v", plan, None, "UTC"))
    return backend


def _change(bag: Counter[Row], fields: tuple[Field, ...] = FIELDS) -> list[Change]:
    weights = pa.array(list(bag.values()), pa.int64())
    return [Change("r", ChangeKind.WEIGHTED, rows_to_arrow(list(bag), fields), weights)]


def _expected(plan: Window, rows: list[Row]) -> list[Row] | str:
    """The rows, or the condition of the error."""
    try:
        return evaluate_window(plan, rows)
    except EvaluationError as error:
        return str(error.condition)


@given(plan=windows(TABLE), rows=bags())
def test_values_are_those_of_the_definition(plan: Window, rows: list[Row]) -> None:
    """Every function, frame and order gives what the definition gives, values and errors."""
    expected = _expected(plan, rows)
    backend = _backend(plan)
    if isinstance(expected, str):
        with pytest.raises(EvaluationError):
            backend.apply(_change(Counter(rows)))
        return
    backend.apply(_change(Counter(rows)))
    assert_same_bag(rows_from_arrow(backend.read("v"), schema(plan)), expected, "loaded by a change")
    late = EmbeddedBackend()
    late.create_table(TableDefinition("r", FIELDS))
    late.apply(_change(Counter(rows)))
    late.create_view(ViewDefinition("v", plan, None, "UTC"))
    assert_same_bag(rows_from_arrow(late.read("v"), schema(plan)), expected, "loaded as a whole")


@given(plan=windows(TABLE), stream=st.lists(bags(6), min_size=1, max_size=5), data=st.data())
def test_deltas_are_those_of_the_definition(plan: Window, stream: list[list[Row]], data: st.DataObject) -> None:
    """After each change the view is what the definition gives for the new rows; a failing change changes nothing."""
    backend = _backend(plan)
    content: Counter[Row] = Counter()
    for rows in stream:
        held = list(content.elements())
        gone = data.draw(st.lists(st.sampled_from(held), max_size=4)) if held else []
        change = Counter(rows)
        change.subtract(Counter(gone) & content)
        after = Counter(content)
        after.update(change)
        expected = _expected(plan, list(after.elements()))
        if isinstance(expected, str):
            with pytest.raises(EvaluationError):
                backend.apply(_change(change))
            continue
        backend.apply(_change(change))
        content = +after
        ours = rows_from_arrow(backend.read("v"), schema(plan))
        assert_same_bag(ours, expected, "after a change")


def _loaded(plan: Window) -> list[Row]:
    """The operator's answer over a constant bag."""
    assert isinstance(plan.child, Values)
    dictionary = Dictionary()
    child = ConstantOperator(plan.child, dictionary)
    partition = tuple(e.index for e in plan.partition if isinstance(e, Column))
    operator = WindowOperator(plan, child, partition, dictionary)
    batch = operator.load([child.content()])
    assert (batch.weights == 1).all()
    columns = [[None if v.nulls is not None and v.nulls[i] else v.values[i].item() for i in range(len(v))]
               for v in batch.columns]  # fmt: skip
    return list(zip(*columns, strict=True))


def _over(values: list[float | None], call: WindowCall) -> list[object]:
    rows = tuple((i, v) for i, v in enumerate(values))
    child = Values(rows, (Field("i", INT32), Field("x", FLOAT64)))
    plan = Window(child, (), (SortKey(Column(0, INT32)),), (call,), ("v",))
    return [row[-1] for row in sorted(_loaded(plan))]


X = Column(1, FLOAT64)


def test_what_leaves_a_frame_leaves_no_trace() -> None:
    """A sliding sum is exact although values of any magnitude have passed through it."""
    values = [1e200, 1e100, 1.0, 2.0, -1e100, 0.1, 0.2]
    sums = _over(list(values), WindowCall("sum", (X,), FLOAT64, ADJACENT))
    assert sums == [1e200, 1e200, 1e100, 3.0, -1e100, -1e100, 0.1 + 0.2]


def test_variance_survives_a_large_mean() -> None:
    """The variance of values that differ in their last digits is right."""
    values = [1e9 + k * 2.0**-20 for k in range(5)]
    (*_, last) = _over(list(values), WindowCall("var_pop", (X,), FLOAT64, RUNNING))
    assert last == pytest.approx(2.0 * 2.0**-40, rel=1e-12)


def test_zero_column_rows_and_empty_bags() -> None:
    """Rows without columns are numbered like others; a window over nothing is nothing."""
    call = WindowCall("row_number", (), INT32, RUNNING)
    count = WindowCall("count", (), INT64, WHOLE)
    plan = Window(Values(((), (), ()), ()), (), (), (call, count), ("n", "c"))
    assert sorted(_loaded(plan)) == [(1, 3), (2, 3), (3, 3)]
    assert _loaded(Window(Values((), ()), (), (), (call, count), ("n", "c"))) == []


def test_decimals_beyond_128_bits_on_the_way() -> None:
    """A frame's sum may fit although the running sum of the partition does not fit 128 bits."""
    field = Field("d", Decimal(38, 0))
    plan = Window(
        Scan("r", (field,)), (), (), (WindowCall("try_sum", (Column(0, field.type),), field.type, ADJACENT),), ("s",)
    )
    backend = _backend(plan, (field,))
    big = 10**38 - 1
    rows = [(Number(v),) for v in (big, -big, big - 1, 5)]
    backend.apply(_change(Counter(rows), (field,)))
    ours = rows_from_arrow(backend.read("v"), schema(plan))
    assert_same_bag(ours, evaluate_window(plan, rows), "sums")


def test_only_changed_rows_are_put_out() -> None:
    """A row inserted at the end changes no running sum before it."""
    fields = (Field("i", INT32), Field("x", FLOAT64))
    plan = Window(
        Scan("r", fields), (), (SortKey(Column(0, INT32)),), (WindowCall("sum", (X,), FLOAT64, RUNNING),), ("s",)
    )
    backend = _backend(plan, fields)
    rows = [(i, float(v)) for i, v in enumerate(np.random.default_rng(1).random(50))]
    backend.apply(_change(Counter(rows), fields))
    moved = backend.apply(_change(Counter([(99, 1.0)]), fields))
    assert moved["v"].num_rows == 1


def test_values_depend_on_their_own_partition_alone() -> None:
    """What was put out is taken back to the last bit, also when another partition needs the definition meanwhile."""
    fields = (Field("g", INT32), Field("x", FLOAT64))
    names = ("var_samp", "stddev_pop", "sum", "avg")
    calls = tuple(WindowCall(name, (X,), FLOAT64, RUNNING) for name in names)
    plan = Window(Scan("r", fields), (Column(0, INT32),), (SortKey(X),), calls, names)
    backend = _backend(plan, fields)
    rows = [(0, float(v)) for v in np.random.default_rng(2).normal(size=200)]
    backend.apply(_change(Counter(rows), fields))
    rows += [(0, 0.5), (1, 1e-300), (1, 1e300), (1, 3.0)]
    backend.apply(_change(Counter(rows[-4:]), fields))
    assert_same_bag(rows_from_arrow(backend.read("v"), schema(plan)), evaluate_window(plan, rows), "two partitions")
    backend.apply(_change(Counter(dict.fromkeys(rows, -1)), fields))
    assert backend.read("v").num_rows == 0


def test_explain_tells_what_python_computes() -> None:
    """What the definition computes is listed; what whole columns compute is not."""
    fields = (Field("i", INT32), Field("x", FLOAT64))
    moment = WindowCall("var_pop", (Column(0, INT32),), FLOAT64, RUNNING)
    plan = Window(Scan("r", fields), (), (), (moment, WindowCall("sum", (X,), FLOAT64, RUNNING)), ("a", "b"))
    child = ConstantOperator(Values((), fields), Dictionary())
    assert WindowOperator(plan, child, (), Dictionary()).python_parts() == ["var_pop(i) over each frame"]
