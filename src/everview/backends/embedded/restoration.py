"""Views made of their definitions: new ones, and those that a lack of memory has left half changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from everview.backends import rejections
from everview.backends.embedded.graph import Graph
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.text_tests import TestedPlan, TextTest, expose_text_tests
from everview.backends.embedded.view_choices import ViewChoices, choices_of
from everview.backends.embedded.views import MaintainedView
from everview.catalog import ViewDefinition
from everview.errors import OutOfMemory
from everview.planner.block_join_builder import FactsOf, remembered
from everview.planner.skew_search import NoSkewPlan
from everview.relational.nodes import Relation
from everview.relational.rules import WITH_TREES, run_rules, use_references
from everview.relational.traverse import tables_of
from everview.relational.unique_keys import unique_keys
from everview.trigger.lower_plan import lower_factorized_view, lower_matrix_chain, lower_plan
from everview.trigger.plan_block import Refused
from everview.trigger.program import Program
from everview.trigger.restrict_groups import restrict_groups


def add_to_graph(graph: Graph, view: ViewDefinition, choices: ViewChoices) -> Operator:
    """Builds the operators that a view needs, and fills them from what is there.

    Raises:
        UnsupportedQuery: the view is to be factorized, or to have heavy and light parts, and cannot.
    """
    try:
        return _added(graph, view, choices)
    except Refused as refused:
        raise rejections.not_factorizable(view, str(refused)) from refused
    except NoSkewPlan as refused:
        raise rejections.not_by_parts(view, str(refused)) from refused


@dataclass(frozen=True, slots=True)
class PlannedProgram:
    """A program, the plan that it computes, and the tests of text that tables make for it."""

    program: Program
    plan: Relation
    tests: Mapping[str, tuple[TextTest, ...]]


def plan_view(graph: Graph, view: ViewDefinition, choices: ViewChoices, facts_of: FactsOf) -> PlannedProgram:
    """How a view is to be maintained, given what is known of the tables; nothing is made.

    Raises:
        Refused: the view is to be factorized, and cannot.
        NoSkewPlan: it is to have heavy and light parts, and cannot.
    """
    if choices.representation == "matrix":
        return PlannedProgram(lower_matrix_chain(view.plan, facts_of), view.plan, {})
    facts_of = remembered(facts_of)
    # An assertion may be what finds the rows that break a foreign key, to sort them out.
    plan = view.plan if view.is_assertion else use_references(view.plan, lambda scan: facts_of(scan).references)
    plan = run_rules(plan, WITH_TREES)
    if choices.strategy == "auto" and choices.representation != "factorized":
        plan = restrict_groups(plan, facts_of)
    tested = TestedPlan(plan, {})
    if choices.strategy != "recompute":
        tested = expose_text_tests(tested.plan, {name: source.tests for name, source in graph.tables.items()})
    if choices.representation == "factorized":
        skew = choices.skew if choices.strategy == "skew" else None
        return PlannedProgram(lower_factorized_view(tested.plan, facts_of, skew), tested.plan, tested.tests)
    program = lower_plan(
        tested.plan,
        facts_of,
        choices.strategy,
        keeps_rows=graph.keeps_rows,
        skew=choices.skew,
        depth=choices.depth,
        has_order=True,
        has_recursive=True,
    )
    return PlannedProgram(program, tested.plan, tested.tests)


def _added(graph: Graph, view: ViewDefinition, choices: ViewChoices) -> Operator:
    planned = plan_view(graph, view, choices, graph.facts_of)
    for name, tests in planned.tests.items():
        graph.tables[name].tests = tests
    keys = unique_keys(planned.plan, lambda scan: graph.facts_of(scan).keys)
    shares = choices.shares and choices.representation != "matrix"
    return graph.add_view(view.name, planned.program, keys, shares=shares)


def restore_views(graph: Graph, views: Sequence[MaintainedView], version: int, lost: OutOfMemory) -> None:
    """Makes views anew, without anything of what they had.

    Raises:
        OutOfMemory: there is no memory for that either, or a table that they read keeps no rows (``lost``).
    """
    for view, root in zip(views, _made_anew(graph, [v.definition for v in views], lost), strict=True):
        view.root = root
        if view.is_lazy:  # it has caught up, and nobody knows what has changed in it
            view.created_at = version


def _made_anew(graph: Graph, views: Sequence[ViewDefinition], lost: OutOfMemory) -> list[Operator]:
    """The operators of views."""
    tables = [graph.tables.get(name.lower()) for view in views for name in tables_of(view.plan)]
    if any(t is not None and not t.table.definition.retain for t in tables):
        raise lost
    try:
        for view in views:
            graph.drop_view(view.name)
        return [add_to_graph(graph, view, choices_of(view)) for view in views]
    except MemoryError as error:
        raise lost from error
