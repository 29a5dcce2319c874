"""Views made of their definitions: new ones, and those that a lack of memory has left half changed."""

from __future__ import annotations

from collections.abc import Sequence

from everview.backends.embedded.graph import Graph
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.text_tests import TestedPlan, expose_text_tests
from everview.backends.embedded.view_choices import ViewChoices, choices_of
from everview.catalog import ViewDefinition
from everview.errors import OutOfMemory
from everview.relational.rules import WITH_TREES, run_rules
from everview.relational.traverse import tables_of
from everview.relational.unique_keys import unique_keys
from everview.trigger.lower_plan import lower_factorized_view, lower_matrix_chain, lower_plan


def add_to_graph(graph: Graph, view: ViewDefinition, choices: ViewChoices) -> Operator:
    """Builds the operators that a view needs, and fills them from what is there.

    Raises:
        Refused: the view is to be factorized and cannot be.
        NoSkewPlan: the view is to have heavy and light parts and cannot.
    """
    if choices.representation == "matrix":
        keys = unique_keys(view.plan, lambda scan: graph.facts_of(scan).keys)
        return graph.add_view(view.name, lower_matrix_chain(view.plan, graph.facts_of), keys, shares=False)
    tested = TestedPlan(run_rules(view.plan, WITH_TREES), {})
    if choices.strategy != "recompute":
        tested = expose_text_tests(tested.plan, {name: source.tests for name, source in graph.tables.items()})
    plan = tested.plan
    if choices.representation == "factorized":
        skew = choices.skew if choices.strategy == "skew" else None
        program = lower_factorized_view(plan, graph.facts_of, skew)
    else:
        program = lower_plan(
            plan,
            graph.facts_of,
            choices.strategy,
            keeps_rows=graph.keeps_rows,
            skew=choices.skew,
            depth=choices.depth,
            has_order=True,
            has_recursive=True,
        )
    for name, tests in tested.tests.items():
        graph.tables[name].tests = tests
    keys = unique_keys(plan, lambda scan: graph.facts_of(scan).keys)
    return graph.add_view(view.name, program, keys, shares=choices.shares)


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
