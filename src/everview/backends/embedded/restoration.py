"""Views made of their definitions: new ones, and those that a lack of memory has left half changed."""

from __future__ import annotations

from collections.abc import Sequence

from everview.backends.embedded.graph import Graph
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.text_tests import expose_text_tests
from everview.backends.embedded.view_choices import ViewChoices, choices_of
from everview.catalog import ViewDefinition
from everview.errors import OutOfMemory
from everview.relational.rules import SPLIT_JOINS, run_rules
from everview.relational.traverse import tables_of


def add_to_graph(graph: Graph, view: ViewDefinition, choices: ViewChoices) -> Operator:
    """Builds the operators that a view needs, and fills them from what is there."""
    plan = run_rules(view.plan, SPLIT_JOINS)
    if choices.strategy != "recompute":
        plan = expose_text_tests(plan, graph.tables)
    return graph.add_view(view.name, plan, choices)


def made_anew(graph: Graph, views: Sequence[ViewDefinition], lost: OutOfMemory) -> list[Operator]:
    """The operators of views, without anything of those they had.

    Raises:
        OutOfMemory: there is no memory for that either, or a table that they read keeps no rows (``lost``).
    """
    tables = [graph.tables.get(name.lower()) for view in views for name in tables_of(view.plan)]
    if any(t is not None and not t.table.definition.retain for t in tables):
        raise lost
    try:
        for view in views:
            graph.drop_view(view.name)
        return [add_to_graph(graph, view, choices_of(view)) for view in views]
    except MemoryError as error:
        raise lost from error
