"""Catalyst's ``plan.toJSON()`` read back into a tree.

The JSON is a list of nodes in pre-order, each with ``num-children``; expressions are such lists inside a node's fields. We
keep the class's simple name, the fields as they are, and the children in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CatalystNode:
    """One plan node or expression of Catalyst: ``name`` is the simple class name (``EqualTo``, ``Join``)."""

    name: str
    fields: dict[str, Any] = field(repr=False)
    children: tuple[CatalystNode, ...]

    def tree(self, key: str) -> CatalystNode | None:
        """The expression or plan in a field that holds one; None where the field is absent."""
        value = self.fields.get(key)
        return parse_tree(value) if value else None

    def trees(self, key: str) -> tuple[CatalystNode, ...]:
        """The expressions in a field that holds a sequence of them."""
        return tuple(parse_tree(v) for v in self.fields.get(key) or ())

    def object_name(self, key: str) -> str:
        """The simple name of a Scala object or case class in a field (``LeftOuter``, ``Ascending``)."""
        value = self.fields[key]
        return simple_name(value.get("object") or value.get("product-class") or value["class"])


def simple_name(java_class: str) -> str:
    """The class name without package and without the ``$`` of a Scala object.

    >>> simple_name("org.apache.spark.sql.catalyst.plans.LeftOuter$")
    'LeftOuter'
    """
    return java_class.rsplit(".", 1)[-1].rstrip("$").rsplit("$", 1)[-1]


def parse_tree(nodes: list[dict[str, Any]]) -> CatalystNode:
    """The tree of a pre-order node list."""
    tree, rest = _take(nodes, 0)
    assert rest == len(nodes), "a Catalyst tree with left-over nodes"
    return tree


def _take(nodes: list[dict[str, Any]], at: int) -> tuple[CatalystNode, int]:
    fields = nodes[at]
    children = []
    following = at + 1
    for _ in range(fields["num-children"]):
        child, following = _take(nodes, following)
        children.append(child)
    return CatalystNode(simple_name(fields["class"]), fields, tuple(children)), following


def snake_case(name: str) -> str:
    """A Scala class name in Python's manner.

    >>> snake_case("LocalRelation"), snake_case("WithCTE"), snake_case("LogicalRDD")
    ('local_relation', 'with_cte', 'logical_rdd')
    """
    out = []
    for i, c in enumerate(name):
        starts = c.isupper() and i > 0 and (name[i - 1].islower() or (i + 1 < len(name) and name[i + 1].islower()))
        out.append(("_" if starts else "") + c.lower())
    return "".join(out)
