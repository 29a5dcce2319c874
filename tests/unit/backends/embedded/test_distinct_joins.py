"""DISTINCT over joins, and what EXISTS asks of joins, as trees of counts."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.expressions import Call, Column, conjunction
from everview.relational.nodes import Distinct, Field, Join, JoinKind, Project, Relation, Scan
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, INT64, Row

FIELDS = (Field("a", INT64, True), Field("b", INT64, True))
R, S, T = (Scan(name, FIELDS) for name in "rst")


def _joined(left: Relation, right: Relation, *pairs: tuple[int, int], kind: JoinKind = JoinKind.INNER) -> Join:
    width = len(columns(left))
    every = columns(left)
    equal = (Call("=", (every[i], Column(width + j, INT64)), BOOLEAN) for i, j in pairs)
    return Join(left, right, kind, conjunction(tuple(equal)))


def _chosen(relation: Relation, *positions: int) -> Project:
    every = columns(relation)
    return Project(relation, tuple(every[i] for i in positions), tuple(f"c{i}" for i in range(len(positions))))


PATH = _joined(_joined(R, S, (1, 0)), T, (3, 0))
TRIANGLE = _joined(_joined(R, S, (1, 0)), T, (3, 0), (0, 1))
PLANS = {
    "ends of a path": Distinct(_chosen(PATH, 0, 5)),
    "one end": Distinct(_chosen(PATH, 5)),
    "triangles": Distinct(_chosen(TRIANGLE, 0, 1, 3)),
    "a column twice": Distinct(_chosen(PATH, 0, 0, 1)),
    "in a join": _joined(T, _chosen(_joined(R, S, (1, 0)), 3), (0, 0), kind=JoinKind.SEMI),
    "not in a join": _joined(T, _chosen(_joined(R, S, (1, 0)), 3), (0, 0), kind=JoinKind.ANTI),
}
CHOICES = [ViewOptions(), ViewOptions("first_order"), ViewOptions("factorized"), ViewOptions(lazy=True)]
VALUES = st.sampled_from([None, 1, 2])


def _backend() -> EmbeddedBackend:
    backend = EmbeddedBackend()
    for name in "rst":
        backend.create_table(TableDefinition(name, FIELDS))
    return backend


@pytest.mark.parametrize("plan", PLANS.values(), ids=list(PLANS))
def test_explain_shows_a_tree_of_counts(plan: Relation) -> None:
    """Nothing but a count is kept of a group, and no join lists its rows first."""
    backend = _backend()
    backend.create_view(ViewDefinition("v", plan, None, "UTC"))
    text = backend.explain("v", "text")
    assert "view tree of [" in text
    assert "distinct" not in text
    assert "join: left change → right slice" not in text
    assert ":= Σ #" in backend.explain("v", "triggers")


@given(
    st.sampled_from(sorted(PLANS)),
    st.lists(
        st.dictionaries(
            st.sampled_from("rst"), st.lists(st.tuples(VALUES, VALUES, st.booleans()), min_size=1, max_size=5)
        ),
        max_size=5,
    ),
)
def test_rows_are_there_once(name: str, stream: list[dict[str, list[tuple[int | None, int | None, bool]]]]) -> None:
    """After every transaction, whatever the strategy, and whether they are listed or enumerated from the tree."""
    plan = PLANS[name]
    choices = CHOICES if not isinstance(plan, Distinct) else [*CHOICES, ViewOptions(representation="factorized")]
    backend = _backend()
    for i, options in enumerate(choices):
        backend.create_view(ViewDefinition(f"v{i}", plan, None, "UTC", options))
    held: dict[str, Counter[Row]] = {name: Counter() for name in "rst"}
    for transaction in stream:
        changes = []
        for table, given_rows in transaction.items():
            weights = []
            for a, b, deletes in given_rows:
                weights.append(-1 if deletes and held[table][a, b] > 0 else 1)
                held[table][a, b] += weights[-1]
            rows = rows_to_arrow([row[:2] for row in given_rows], FIELDS)
            changes.append(Change(table, ChangeKind.WEIGHTED, rows, pa.array(weights, pa.int64())))
        backend.apply(changes)
        expected = Counter(evaluate_plan(plan, {n: list(rows.elements()) for n, rows in held.items()}))
        for i, options in enumerate(choices):
            if options.representation == "factorized":
                assert Counter(backend.iterate(f"v{i}")) == expected
            else:
                assert Counter(rows_from_arrow(backend.read(f"v{i}"), schema(plan))) == expected, options
