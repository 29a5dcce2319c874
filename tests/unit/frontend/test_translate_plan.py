from __future__ import annotations

import pytest

from everview.errors import InternalError, UnsupportedQuery
from everview.frontend.catalyst_json import parse_tree
from everview.frontend.translate_plan import translate_plan
from everview.relational.expressions import Call, Column, Literal
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Field,
    Filter,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    TopK,
    UnionAll,
    Values,
)
from everview.relational.types import BOOLEAN, INT32, INT64, STRING, Array
from tests.unit.frontend.catalyst_nodes import Nodes, alias, attribute, expression, literal, plan, scala_object, table

TABLES = {"r": (Field("a", INT32), Field("b", INT32)), "s": (Field("c", INT32), Field("d", INT32))}
R, S = Scan("r", TABLES["r"]), Scan("s", TABLES["s"])
A, B, C = (Column(i, INT32) for i in range(3))
SPARK_R = table("r", attribute("a", 1), attribute("b", 2))
SPARK_S = table("s", attribute("c", 3), attribute("d", 4))
BY_A = expression(
    "SortOrder",
    attribute("a", 1),
    direction=scala_object("expressions.Ascending"),
    nullOrdering=scala_object("expressions.NullsFirst"),
)
SORTED_R = plan("Sort", SPARK_R, order=[BY_A], **{"global": True})
SORTED_APART_R = plan("Sort", SPARK_R, order=[BY_A], **{"global": False})
POSITIVE = Call(">", (A, Literal(0, INT32)), BOOLEAN)


def _translate(nodes: Nodes) -> Relation:
    return translate_plan(parse_tree(nodes), TABLES.__getitem__, "UTC")


def _limit(child: Nodes, count: int) -> Nodes:
    return plan("GlobalLimit", plan("LocalLimit", child, limitExpr=literal(str(count))), limitExpr=literal(str(count)))


def _offset(child: Nodes, count: int) -> Nodes:
    return plan("Offset", child, offsetExpr=literal(str(count)))


def _positive() -> Nodes:
    return expression("GreaterThan", attribute("a", 1), literal("0"))


def test_filter_and_project() -> None:
    """Attributes become positions, by their identity and not by their name."""
    swapped = plan("Project", SPARK_R, projectList=[attribute("b", 2), alias("x", 9, attribute("a", 1))])
    assert _translate(swapped) == Project(R, (B, A), ("b", "x"))
    assert _translate(plan("Filter", SPARK_R, condition=_positive())) == Filter(R, POSITIVE)


@pytest.mark.parametrize("name", ["SubqueryAlias", "ResolvedHint", "Repartition", "RebalancePartitions"])
def test_transparent_nodes_disappear(name: str) -> None:
    """Aliases, hints and the distribution of rows say nothing about the bag."""
    assert _translate(plan(name, SPARK_R, identifier={"name": "r", "qualifier": []})) == R


@pytest.mark.parametrize(
    ("join_type", "kind"),
    [
        ("Inner", JoinKind.INNER),
        ("Cross", JoinKind.INNER),
        ("LeftOuter", JoinKind.LEFT),
        ("RightOuter", JoinKind.RIGHT),
        ("FullOuter", JoinKind.FULL),
        ("LeftSemi", JoinKind.SEMI),
        ("LeftAnti", JoinKind.ANTI),
        ("LeftSingle", JoinKind.SINGLE),
    ],
)
def test_joins(join_type: str, kind: JoinKind) -> None:
    """Every join type of Catalyst has its kind; a join without condition is one on TRUE."""
    equal = expression("EqualTo", attribute("a", 1), attribute("c", 3))
    joined = plan("Join", SPARK_R, SPARK_S, joinType=scala_object(f"plans.{join_type}"), condition=equal)
    assert _translate(joined) == Join(R, S, kind, Call("=", (A, C), BOOLEAN))
    crossed = plan("Join", SPARK_R, SPARK_S, joinType=scala_object(f"plans.{join_type}"))
    assert _translate(crossed) == Join(R, S, kind)


def test_set_operations() -> None:
    """ALL compares bags; without it both sides become sets first."""
    assert _translate(plan("Union", SPARK_R, SPARK_S, SPARK_R)) == UnionAll((R, S, R))
    assert _translate(plan("Except", SPARK_R, SPARK_S, isAll=True)) == ExceptAll(R, S)
    assert _translate(plan("Except", SPARK_R, SPARK_S, isAll=False)) == ExceptAll(Distinct(R), Distinct(S))
    assert _translate(plan("Intersect", SPARK_R, SPARK_S, isAll=True)) == IntersectAll(R, S)
    assert _translate(plan("Distinct", SPARK_R)) == Distinct(R)


@pytest.mark.parametrize(
    ("nodes", "limit", "offset"),
    [
        (_limit(SORTED_R, 5), 5, 0),
        (_limit(_offset(SORTED_R, 2), 5), 5, 2),
        (_offset(_limit(SORTED_R, 5), 2), 3, 2),
        (_offset(_limit(SORTED_R, 2), 5), 0, 5),
        (_offset(_offset(SORTED_R, 2), 1), None, 3),
        (_limit(_limit(SORTED_R, 5), 3), 3, 0),
    ],
)
def test_limits_and_offsets(nodes: Nodes, limit: int | None, offset: int) -> None:
    """However they nest, they are one window of the ordered rows."""
    assert _translate(nodes) == TopK(R, (SortKey(A),), limit, offset)


def test_order_alone_is_dropped() -> None:
    """A bag has no order."""
    assert _translate(SORTED_R) == R


def test_limit_above_a_projection() -> None:
    """ORDER BY a column that the projection between drops: first the rows, then their columns."""
    nodes = _limit(plan("Project", SORTED_R, projectList=[attribute("b", 2)]), 1)
    assert _translate(nodes) == Project(TopK(R, (SortKey(A),), 1), (B,), ("b",))


def test_limit_needs_an_order() -> None:
    """Arbitrary rows are no well-defined content; one row is."""
    with pytest.raises(UnsupportedQuery, match="LIMIT or OFFSET without ORDER BY") as caught:
        _translate(_limit(SPARK_R, 5))
    assert "order_by='primary key'" in str(caught.value.hint)
    count = plan("LocalRelation", output=[attribute("x", 9)], rows=[[1]])
    assert _translate(_limit(count, 1)) == Values(((1,),), (Field("x", INT32),))


def _count_star() -> Nodes:
    call = expression("aggregate.AggregateExpression", expression("aggregate.Count", literal("1")), isDistinct=False)
    return alias("n", 9, call)


def test_aggregates() -> None:
    """COUNT(1) counts rows; the SELECT list decides names, and whether a projection stands above."""
    grouped = plan(
        "Aggregate",
        SPARK_R,
        groupingExpressions=[attribute("a", 1)],
        aggregateExpressions=[attribute("a", 1), _count_star()],
    )
    counted = Aggregate(R, (A,), (AggregateCall("count", (), INT64),), ("a", "n"))
    assert _translate(grouped) == counted
    grouped[0]["aggregateExpressions"] = [_count_star(), attribute("a", 1)]
    above = (Column(1, INT64, nullable=False), A)
    assert _translate(grouped) == Project(counted, above, ("n", "a"))


def test_common_table_is_one_relation() -> None:
    """Referred to twice, it is the same object, under two sets of identities."""
    definition = plan("CTERelationDef", plan("Filter", SPARK_R, condition=_positive()), id=1)
    first = plan("CTERelationRef", cteId=1, output=[attribute("a", 11), attribute("b", 12)])
    second = plan("CTERelationRef", cteId=1, output=[attribute("a", 21), attribute("b", 22)])
    translated = _translate(plan("WithCTE", plan("Union", first, second), definition))
    assert isinstance(translated, UnionAll)
    assert translated == UnionAll((Filter(R, POSITIVE), Filter(R, POSITIVE)))
    assert translated.inputs[0] is translated.inputs[1]


def test_grouping_sets_are_a_union_of_projections() -> None:
    """Each set has NULLs, with the column's type, for the keys that it leaves out."""
    nodes = plan(
        "Expand",
        SPARK_R,
        output=[attribute("a", 11), attribute("id", 12, "long", nullable=False)],
        projections=[[attribute("a", 1), literal("0", "long")], [literal(None, "void"), literal("1", "long")]],
    )
    names = ("a", "id")
    assert _translate(nodes) == UnionAll(
        (
            Project(R, (A, Literal(0, INT64)), names),
            Project(R, (Literal(None, INT32), Literal(1, INT64)), names),
        )
    )


def test_explode_drops_the_columns_that_spark_drops() -> None:
    """``unrequiredChildIndex`` names the input columns that nobody reads."""
    array = {"type": "array", "elementType": "string", "containsNull": True}
    fields = (Field("id", INT32), Field("tags", Array(STRING)))
    nodes = plan(
        "Generate",
        table("docs", attribute("id", 1), attribute("tags", 2, array)),
        generator=expression("Explode", attribute("tags", 2, array)),
        generatorOutput=[attribute("tag", 3, "string")],
        outer=True,
        unrequiredChildIndex=[1],
    )
    exploded = Generate(Scan("docs", fields), Column(1, Array(STRING)), True, False, ("tag",))
    translated = translate_plan(parse_tree(nodes), lambda _: fields, "UTC")
    assert translated == Project(exploded, (A, Column(2, STRING)), ("id", "tag"))


@pytest.mark.parametrize(
    ("nodes", "operator"),
    [
        (plan("Sample", SPARK_R), "TABLESAMPLE"),
        (plan("Range", start=0, end=1_000_000, step=1, output=[]), "range"),
        (plan("LogicalRDD", output=[]), "LogicalRDD"),
        (plan("Deduplicate", SPARK_R, keys=[attribute("a", 1)]), "Deduplicate"),
        (
            plan(
                "Generate",
                SPARK_R,
                generator=expression("JsonTuple", attribute("a", 1)),
                generatorOutput=[],
                outer=False,
            ),
            "json_tuple",
        ),
        (plan("GlobalLimit", SORTED_R, limitExpr=attribute("a", 1)), "GlobalLimit"),
        (plan("GlobalLimit", SORTED_APART_R, limitExpr=literal("1")), "GlobalLimit"),
        (plan("Project", SPARK_R, projectList=[alias("x", 9, expression("NoSuch", attribute("a", 1)))]), "NoSuch"),
    ],
)
def test_what_is_not_supported_is_named(nodes: Nodes, operator: str) -> None:
    """The error carries Catalyst's name of what stood in the way."""
    with pytest.raises(UnsupportedQuery) as caught:
        _translate(nodes)
    assert caught.value.operator == operator


def test_whole_rows_may_be_deduplicated() -> None:
    """``dropDuplicates`` on all columns is DISTINCT."""
    assert _translate(plan("Deduplicate", SPARK_R, keys=[attribute("b", 2), attribute("a", 1)])) == Distinct(R)


def test_unknown_attributes_are_our_bug() -> None:
    """A column that is not among the inputs, or has another type than Spark says, is never the user's mistake."""
    with pytest.raises(InternalError, match="attribute z#99 is not among"):
        _translate(plan("Project", SPARK_R, projectList=[attribute("z", 99)]))
    with pytest.raises(InternalError, match="column a has type int where Spark has bigint"):
        _translate(plan("Project", SPARK_R, projectList=[attribute("a", 1, "long")]))
