"""Catalyst's nodes written by hand, as its JSON has them: what the tests of this folder are written with."""

from __future__ import annotations

from typing import Any

Nodes = list[dict[str, Any]]

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


def plan(simple_name: str, /, *children: Nodes, **fields: Any) -> Nodes:
    """A logical plan node over its children, in pre-order."""
    return _node(f"{_LOGICAL}.{simple_name}", children, fields)


def expression(simple_name: str, /, *children: Nodes, **fields: Any) -> Nodes:
    """An expression over its children, in pre-order."""
    return _node(f"{_EXPRESSIONS}.{simple_name}", children, fields)


def _node(java_class: str, children: tuple[Nodes, ...], fields: dict[str, Any]) -> Nodes:
    return [{"class": java_class, "num-children": len(children), **fields}, *(n for c in children for n in c)]


def attribute(name: str, identity: int, data_type: Any = "integer", nullable: bool = True) -> Nodes:
    """A reference to a column, or its declaration."""
    return expression("AttributeReference", name=name, exprId={"id": identity}, dataType=data_type, nullable=nullable)


def alias(name: str, identity: int, child: Nodes) -> Nodes:
    """``child AS name``."""
    return expression("Alias", child, name=name, exprId={"id": identity})


def literal(value: str | None, data_type: Any = "integer") -> Nodes:
    """A constant, by its text."""
    return expression("Literal", value=value, dataType=data_type)


def table(name: str, *columns: Nodes) -> Nodes:
    """A table of the database: Spark sees a view over an empty frame."""
    rdd = _node("org.apache.spark.sql.execution.LogicalRDD", (), {"output": list(columns)})
    return plan("View", rdd, desc={"identifier": {"table": name}})


def scala_object(name: str) -> dict[str, str]:
    """A Scala object in a field."""
    return {"object": f"org.apache.spark.sql.catalyst.{name}$"}
