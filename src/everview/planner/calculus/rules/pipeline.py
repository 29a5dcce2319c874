"""The order of the rewrites of terms, and their driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from everview.planner.calculus.rules.collect_addends import collect_addends
from everview.planner.calculus.rules.compare_constants import compare_constants
from everview.planner.calculus.rules.decompose_join_graph import decompose_join_graph
from everview.planner.calculus.rules.distribute_product import distribute_product
from everview.planner.calculus.rules.drop_identity_sum import drop_identity_sum
from everview.planner.calculus.rules.drop_zeros import drop_zeros
from everview.planner.calculus.rules.factor_addends import factor_addends
from everview.planner.calculus.rules.flatten_additions import flatten_additions
from everview.planner.calculus.rules.flatten_products import flatten_products
from everview.planner.calculus.rules.merge_sums import merge_sums
from everview.planner.calculus.rules.multiply_constants import multiply_constants
from everview.planner.calculus.rules.pull_out_input_variables import pull_out_input_variables
from everview.planner.calculus.rules.split_sum import split_sum
from everview.planner.calculus.rules.unify_variables import unify_variables
from everview.planner.calculus.terms import CalculusTerm, parts_of, with_parts
from everview.planner.calculus.verify_term import verify_term

TermRule: TypeAlias = Callable[[CalculusTerm], CalculusTerm | None]

POLYNOMIAL: tuple[TermRule, ...] = (
    flatten_products,
    flatten_additions,
    compare_constants,
    distribute_product,
    # Sums of sums and products of products are new where products were distributed.
    flatten_additions,
    flatten_products,
    split_sum,
    flatten_additions,
    merge_sums,
    flatten_products,
    unify_variables,
    flatten_products,
    multiply_constants,
    drop_zeros,
    collect_addends,
    # Addends that cancel have left 0 * q.
    multiply_constants,
    drop_zeros,
    drop_identity_sum,
)
"""Addends, each a Sum of a flat product."""

DECOMPOSE: tuple[TermRule, ...] = (pull_out_input_variables, decompose_join_graph)
"""From polynomials to what is materialized."""

FACTOR: tuple[TermRule, ...] = (factor_addends, flatten_products)
"""From polynomials to products, which read what they have in common once."""


def simplify_term(term: CalculusTerm) -> CalculusTerm:
    """The polynomial of a term: the rules again, until none of them has anything to do."""
    while (new := run_term_rules(term, POLYNOMIAL)) != term:
        term = new
    return term


def decompose_term(term: CalculusTerm) -> CalculusTerm:
    """The term with every part of its joins that can be stored apart as a Sum, or a relation, of its own."""
    return run_term_rules(term, DECOMPOSE)


def factor_term(term: CalculusTerm) -> CalculusTerm:
    """The term with common factors multiplied once."""
    return run_term_rules(term, FACTOR)


def run_term_rules(term: CalculusTerm, rules: tuple[TermRule, ...]) -> CalculusTerm:
    """The term after all rules, each bottom-up, the term verified after each."""
    for rule in rules:
        new = _bottom_up(term, rule)
        if new is not term:
            verify_term(new)
        term = new
    return term


def _bottom_up(term: CalculusTerm, rule: TermRule) -> CalculusTerm:
    term = with_parts(term, tuple(_bottom_up(part, rule) for part in parts_of(term)))
    while (new := rule(term)) is not None:
        # Only what the rule has made is new; its parts are visited again with the next round.
        term = new
    return term
