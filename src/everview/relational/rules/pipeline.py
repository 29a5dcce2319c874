"""The order of the rewrites, and their driver."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from everview.relational.nodes import Relation
from everview.relational.references import ReferencesOf
from everview.relational.rules.drop_identity_project import drop_identity_project
from everview.relational.rules.drop_referenced_join import drop_referenced_join
from everview.relational.rules.drop_true_filter import drop_true_filter
from everview.relational.rules.expose_keys import expose_keys
from everview.relational.rules.filter_by_clock import filter_by_clock
from everview.relational.rules.fold_constants import fold_constants
from everview.relational.rules.group_by_struct_fields import group_by_struct_fields
from everview.relational.rules.group_distinct_join import group_distinct_join
from everview.relational.rules.match_referenced_rows import match_referenced_rows
from everview.relational.rules.merge_filters import merge_filters
from everview.relational.rules.merge_projects import merge_projects
from everview.relational.rules.prune_columns import prune_columns
from everview.relational.rules.push_filter_below_project import push_filter_below_project
from everview.relational.rules.push_filter_into_join import push_filter_into_join
from everview.relational.rules.push_join_condition import push_join_condition
from everview.relational.rules.push_safe_condition import push_safe_condition
from everview.relational.rules.split_null_aware_anti import split_null_aware_anti
from everview.relational.rules.split_outer_join import split_outer_join
from everview.relational.rules.strengthen_outer_join import strengthen_outer_join
from everview.relational.rules.take_from_constructor import take_from_constructor
from everview.relational.traverse import rewrite_bottom_up, scans_of
from everview.relational.verify import verify

Rule = Callable[[Relation], Relation | None]

PIPELINE: tuple[Rule, ...] = (
    fold_constants,
    merge_projects,
    push_filter_below_project,
    merge_filters,
    # The structs of time windows, and the arrays of PIVOT, are taken apart where they are made.
    group_by_struct_fields,
    merge_projects,
    take_from_constructor,
    # Before filters move into inner joins, and after: a join that has become inner takes more of them.
    strengthen_outer_join,
    # Filters are one node by now, so that each conjunct is placed once.
    push_filter_into_join,
    strengthen_outer_join,
    push_filter_into_join,
    merge_filters,
    drop_true_filter,
    # Conditions on the time are in joins with the clock by now.
    filter_by_clock,
    # Filters stand where they stay, so what is read is known.
    prune_columns,
    merge_projects,
    # Last: the rules above leave projections that have become the identity.
    drop_identity_project,
)

SPLIT_JOINS: tuple[Rule, ...] = (
    push_join_condition,
    split_outer_join,
    # Once more: an anti join has come out of each outer one, and takes conditions that the outer one could not.
    push_safe_condition,
    split_null_aware_anti,
    push_safe_condition,
    push_filter_below_project,
    merge_filters,
    push_safe_condition,
    merge_filters,
    expose_keys,
    merge_projects,
    drop_identity_project,
    # Last, so that a projection to what is read stands right above every scan.
    prune_columns,
)
"""For engines that maintain inner, semi and anti joins by indexes on columns."""

WITH_TREES: tuple[Rule, ...] = (*SPLIT_JOINS, group_distinct_join)
"""For engines that have view trees besides."""


@dataclass(frozen=True, slots=True)
class RuleRun:
    """What one rule did: for ``explain`` and for people who look for a slow or wrong rule."""

    rule: str
    plan: Relation
    seconds: float


def simplify(plan: Relation, on_step: Callable[[RuleRun], None] | None = None) -> Relation:
    """The plan after the rules of ``PIPELINE``."""
    return run_rules(plan, PIPELINE, on_step)


def use_references(plan: Relation, references_of: ReferencesOf) -> Relation:
    """The plan without the joins that foreign keys make needless: for engines that check them at the end of each transaction.

    A join that goes may have been all that read the columns of another one, so this goes on as long as one does.
    """
    if not any(references_of(scan) for scan in scans_of(plan)):
        return plan
    plan = run_rules(plan, (partial(match_referenced_rows, references_of=references_of),))
    while (shorter := run_rules(plan, (partial(drop_referenced_join, references_of=references_of),))) is not plan:
        plan = run_rules(shorter, (merge_projects, prune_columns, merge_projects, drop_identity_project))
    return plan


def run_rules(plan: Relation, rules: tuple[Rule, ...], on_step: Callable[[RuleRun], None] | None = None) -> Relation:
    """The plan after all rules, each bottom-up, the plan verified after each; ``on_step`` sees the plan after each."""
    for rule in rules:
        start = time.perf_counter()
        plan = prune_columns(plan) if rule is prune_columns else rewrite_bottom_up(plan, rule)
        seconds = time.perf_counter() - start
        verify(plan)
        if on_step is not None:
            on_step(RuleRun(rule.__name__, plan, seconds))
    return plan
