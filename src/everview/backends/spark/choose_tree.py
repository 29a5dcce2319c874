"""Whether an aggregate over a join is maintained by a view tree or by terms over the relations that it joins, and why.

With ``factorized``, every block is a tree that can be one, with whatever views the planner wants. With ``auto`` a tree must be
worth its stages (decision 017): by the planner's estimates, one changed row of some relation meets many fewer rows in the views
of the tree than in the relations; and no view but the result may have more rows than one of its relations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from everview.backends.spark.lower_tree import check_exact, tells_rows_apart
from everview.backends.spark.payloads import is_float_sum
from everview.backends.spark.stages import BlockChoice
from everview.planner.block import Block
from everview.planner.block_join_builder import FactsOf, Refused
from everview.planner.encoded_query import EncodedQuery
from everview.planner.estimates import Estimates
from everview.planner.join_query import Dependency, JoinQuery
from everview.planner.plan_tree import TreePlan
from everview.planner.view_tree import atoms_below, joined_keys
from everview.trigger.plan_block import Lowered, plan_plain_tree

WORTHWHILE: Final = 10_000.0
"""With ``auto``, one changed row of some relation must meet so many fewer rows: joining them takes as long as a small stage."""


@dataclass(frozen=True)
class TreeOptions:
    """Which blocks become view trees: all that can (``factorized``), or those that gain by it (``auto``).

    ``fixed`` are the tables that will never change again.
    """

    strategy: str
    facts_of: FactsOf
    fixed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Met:
    """How many rows a changed row of a relation is estimated to meet: in the relations, and in the views of a tree."""

    relation: str
    in_terms: float
    in_tree: float


def choose_tree(block: Block, options: TreeOptions | None) -> BlockChoice | None:
    """The choice for a block; None for an aggregate over one relation, where there is none.

    Without ``options`` joins are terms.
    """
    if len(block.atoms) < 2:
        return None
    if options is None:
        return BlockChoice(None, "the view's strategy has none")
    if block.may_leave_tree:  # no rows could stand in
        return BlockChoice(None, "an expression below the join can fail, also for rows without a partner")
    try:
        check_exact(block)
    except Refused as refused:
        return BlockChoice(None, str(refused))
    if options.strategy == "auto" and any(map(is_float_sum, (a.call for a in block.answers))):
        return BlockChoice(None, "strategy 'auto' has no trees of floats, whose products are nine sums each")
    lowered = plan_plain_tree(block, keeps_wide=options.strategy == "factorized")
    if options.strategy == "auto":
        most = max(rows_met(lowered, options.facts_of), key=lambda m: m.in_terms - m.in_tree, default=Met("", 0, 0))
        if most.in_terms - most.in_tree < WORTHWHILE:
            return BlockChoice(None, _not_worthwhile(most))
    return BlockChoice(lowered, "")


def _not_worthwhile(most: Met) -> str:
    told = f"by estimate, a changed row of {most.relation} meets {most.in_terms:,.0f} rows, and {most.in_tree:,.0f} in a tree"
    return (
        f"strategy 'auto' has trees from {WORTHWHILE:,.0f} fewer rows on; {told}"
        if most.relation
        else "nothing changes"
    )


def rows_met(lowered: Lowered, facts_of: FactsOf) -> Iterator[Met]:
    """The estimates for each relation that changes."""
    block, plan = lowered.program.block, lowered.plan
    assert isinstance(plan, TreePlan), "only asked of trees"
    views, relations = Estimates(EncodedQuery(block.query)), Estimates(EncodedQuery(_of_rows(block, facts_of)))
    every = relations.encoded.variable_set(relations.encoded.variables)
    position = {a.name: i for i, a in enumerate(block.query.atoms)}
    for place, atom in enumerate(block.query.atoms):
        if not atom.updatable:
            continue
        in_tree = 1.0
        for step in plan.delta_path(atom.name):
            below = sum(1 << position[a.name] for a in atoms_below(step.view))
            joined = views.encoded.variable_set(joined_keys(step.view))
            in_tree = max(in_tree, views.matches(joined, views.encoded.atoms[place], below))
        in_terms = relations.matches(every, relations.encoded.atoms[place], relations.encoded.all_atoms)
        yield Met(atom.name, in_terms, in_tree)


def _of_rows(block: Block, facts_of: FactsOf) -> JoinQuery:
    """The block's query as terms join it, row by row: a relation whose variables do not tell its rows apart has one more."""
    query = block.query
    atoms, dependencies = [], list(query.dependencies)
    for atom, planned in zip(block.atoms, query.atoms, strict=True):
        if tells_rows_apart(atom, facts_of):
            atoms.append(planned)
            continue
        row = f"row of {planned.name}"
        dependencies.append(Dependency(frozenset({row}), frozenset(planned.variables)))
        distinct = (*planned.distinct, (row, planned.rows))
        atoms.append(replace(planned, variables=(*planned.variables, row), distinct=distinct))
    return replace(query, atoms=tuple(atoms), dependencies=tuple(dependencies))
