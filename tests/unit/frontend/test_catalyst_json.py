from __future__ import annotations

import pytest

from everview.frontend.catalyst_json import CatalystNode, parse_tree, simple_name, snake_case
from tests.unit.frontend.catalyst_nodes import attribute, expression, literal, plan, scala_object


def _shape(node: CatalystNode) -> object:
    return (node.name, *(_shape(child) for child in node.children))


def test_preorder_lists_become_trees() -> None:
    """``num-children`` says how much of the list belongs to a node."""
    nodes = expression("And", expression("Not", attribute("p", 1)), expression("Or", literal("1"), attribute("q", 2)))
    expected = ("And", ("Not", ("AttributeReference",)), ("Or", ("Literal",), ("AttributeReference",)))
    assert _shape(parse_tree(nodes)) == expected


def test_left_over_nodes_are_our_mistake() -> None:
    """A list with more nodes than its tree is not a tree."""
    with pytest.raises(AssertionError, match="left-over"):
        parse_tree([*literal("1"), *literal("2")])


def test_fields_with_trees() -> None:
    """A field holds one expression, several, or none; an absent one is None or empty."""
    node = parse_tree(plan("Project", projectList=[attribute("a", 1), literal("1")], condition=literal("2"), empty=[]))
    listed = node.trees("projectList")
    assert [n.name for n in listed] == ["AttributeReference", "Literal"]
    condition = node.tree("condition")
    assert condition is not None
    assert condition.fields["value"] == "2"
    assert node.tree("absent") is None
    assert node.tree("empty") is None
    assert node.trees("absent") == ()


@pytest.mark.parametrize(
    "value",
    [
        scala_object("plans.LeftOuter"),
        {"product-class": "org.apache.spark.sql.catalyst.plans.LeftOuter"},
        {"class": "org.apache.spark.sql.catalyst.plans.LeftOuter"},
    ],
)
def test_names_of_scala_objects(value: dict[str, str]) -> None:
    """Objects, case classes and plain classes are named by their simple name."""
    assert parse_tree(plan("Join", joinType=value)).object_name("joinType") == "LeftOuter"


@pytest.mark.parametrize(
    ("java_class", "name"),
    [
        ("org.apache.spark.sql.catalyst.plans.Inner$", "Inner"),
        ("org.apache.spark.Outer$Nested", "Nested"),
        ("Bare", "Bare"),
    ],
)
def test_simple_names(java_class: str, name: str) -> None:
    """Without package, enclosing object and Scala's dollar."""
    assert simple_name(java_class) == name


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("Project", "project"),
        ("OneRowRelation", "one_row_relation"),
        ("CTERelationRef", "cte_relation_ref"),
        ("WithCTE", "with_cte"),
        ("LogicalRDD", "logical_rdd"),
    ],
)
def test_snake_case(name: str, snake: str) -> None:
    """Acronyms are one word."""
    assert snake_case(name) == snake
