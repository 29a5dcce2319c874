from __future__ import annotations

import pytest

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_json import CatalystNode, parse_tree
from everview.frontend.translation import (
    Subquery,
    Translation,
    existence,
    field_of,
    first_columns,
    has_one_row,
    scalar_subqueries,
    select_columns,
    sort_key_of,
    with_type,
)
from everview.relational.expressions import FALSE, Call, Column, Literal
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    Values,
)
from everview.relational.types import BOOLEAN, INT32, INT64, NULL, STRING
from tests.unit.frontend.catalyst_nodes import attribute, expression, scala_object

R = Scan("r", (Field("a", INT32), Field("b", STRING, nullable=False)))
A, B = Column(0, INT32), Column(1, STRING, nullable=False)
COUNT = AggregateCall("count", (), INT64)
ONE = Aggregate(R, (), (COUNT,), ("n",))
MANY = Aggregate(R, (A,), (COUNT,), ("a", "n"))
TWO_ROWS = Values(((1,), (2,)), (Field("x", INT32),))


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (R, False),
        (ONE, True),
        (MANY, False),
        (Values(((1,),), (Field("x", INT32),)), True),
        (TWO_ROWS, False),
        (Project(ONE, (), ()), True),
        (Filter(ONE, FALSE), False),
        (Join(ONE, ONE, JoinKind.INNER), True),
        (Join(ONE, ONE, JoinKind.INNER, FALSE), False),
        (Join(ONE, R, JoinKind.INNER), False),
        (Join(ONE, ONE, JoinKind.LEFT, FALSE), True),
        (Join(ONE, ONE, JoinKind.SINGLE, FALSE), True),
        (Join(ONE, R, JoinKind.LEFT), False),
        (Join(ONE, ONE, JoinKind.FULL), False),
    ],
)
def test_relations_of_one_row(relation: Relation, expected: bool) -> None:
    """Whatever the tables hold: global aggregates, single constants, and what keeps their one row."""
    assert has_one_row(relation) is expected


def test_columns_are_selected_with_their_identities() -> None:
    """A narrower translation, or the same object where nothing is dropped."""
    whole = Translation(R, (7, 8))
    assert select_columns(whole, [1]) == Translation(Project(R, (B,), ("b",)), (8,))
    assert first_columns(whole, 1) == Translation(Project(R, (A,), ("a",)), (7,))
    assert first_columns(whole, 2) is whole


def test_scope_gives_columns_by_identity() -> None:
    """The first of two columns with one identity counts."""
    assert Translation(R, (7, 8)).scope.columns == {7: A, 8: B}
    assert Translation(R, (7, 7)).scope.columns == {7: A}


def test_fields_of_attributes() -> None:
    """Name, type and nullability as Spark declares them."""
    declared = parse_tree(attribute("k", 1, "long", nullable=False))
    assert field_of(declared) == Field("k", INT64, nullable=False)


def test_bare_nulls_get_the_column_s_type() -> None:
    """NULL in a grouping set has the type of its column; other expressions keep theirs."""
    assert with_type(Literal(None, NULL), Field("x", STRING)) == Literal(None, STRING)
    assert with_type(A, Field("x", INT32)) is A


@pytest.mark.parametrize(
    ("direction", "nulls", "expected"),
    [
        ("Ascending", "NullsFirst", SortKey(A)),
        ("Ascending", "NullsLast", SortKey(A, nulls_first=False)),
        ("Descending", "NullsFirst", SortKey(A, descending=True)),
        ("Descending", "NullsLast", SortKey(A, descending=True, nulls_first=False)),
    ],
)
def test_sort_keys(direction: str, nulls: str, expected: SortKey) -> None:
    """Direction and the place of NULLs are Catalyst's objects."""
    order = expression(
        "SortOrder",
        attribute("a", 7),
        direction=scala_object(f"expressions.{direction}"),
        nullOrdering=scala_object(f"expressions.{nulls}"),
    )
    assert sort_key_of(parse_tree(order), Translation(R, (7, 8)).scope) == expected


def test_existence_is_one_row() -> None:
    """EXISTS as a relation: whether the count is positive."""
    counted = Aggregate(R, (), (COUNT,), ("count",))
    positive = Call(">", (Column(0, INT64, nullable=False), Literal(0, INT64)), BOOLEAN)
    assert existence(R) == Project(counted, (positive,), ("exists",))
    assert has_one_row(existence(R))


def test_subqueries_of_an_expression() -> None:
    """Each occurrence, outermost first; two with one identity are the same subquery."""
    inner = CatalystNode("OneRowRelation", {}, ())
    nodes = expression(
        "And",
        expression("Exists", exprId={"id": 5}, plan_tree=inner, outerAttrs=[]),
        expression("Not", expression("ScalarSubquery", exprId={"id": 6}, plan_tree=inner, outerAttrs=[])),
    )
    found = list(scalar_subqueries(parse_tree(nodes)))
    assert [(s.identity, s.is_exists) for s in found] == [(5, True), (6, False)]
    assert Subquery(5, inner) == found[0]
    assert len({*found, Subquery(5, inner)}) == 2


def test_correlated_subqueries_are_refused() -> None:
    """What Spark could not turn into a join, we do not either."""
    nodes = expression("ScalarSubquery", exprId={"id": 6}, outerAttrs=[attribute("a", 7)])
    with pytest.raises(UnsupportedQuery, match="could not turn this correlated subquery into a join") as caught:
        list(scalar_subqueries(parse_tree(nodes)))
    assert caught.value.operator == "ScalarSubquery"
