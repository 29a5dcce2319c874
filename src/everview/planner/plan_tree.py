"""The front door of the planner's mathematics: from a join query to a view tree, with what to store and what updates cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from everview.planner.build_tree import Representation, view_tree
from everview.planner.check_tree import check_tree
from everview.planner.classes import QueryClass, classify, classify_reduct
from everview.planner.cost import UpdateCost, update_costs
from everview.planner.delta_tree import DeltaStep, delta_path, indicator_paths
from everview.planner.indicators import add_indicators, add_useful_indicators
from everview.planner.inline_views import inline_views
from everview.planner.join_query import JoinQuery
from everview.planner.materialize import materialized_nodes
from everview.planner.order_cost import order_cost
from everview.planner.search_orders import search_order
from everview.planner.variable_order import VariableOrder
from everview.planner.view_tree import ViewTree

Indicators: TypeAlias = Literal["none", "useful", "all"]


@dataclass(frozen=True, slots=True)
class TreePlan:
    """How a join query is maintained. ``materialized`` names nodes; a leaf among them means a relation that is looked up in."""

    query: JoinQuery
    representation: Representation
    order: VariableOrder
    tree: ViewTree
    materialized: frozenset[str]
    query_class: QueryClass
    reduct_class: QueryClass
    costs: tuple[UpdateCost, ...]
    estimated_cost: float
    """Of the order, in rows touched by one changed row, over all atoms by how often they change."""

    @property
    def class_sentence(self) -> str:
        """The class of the query, and that of its reduct if the dependencies make it better."""
        across = self.query.across_atoms
        if across:
            listed = "; ".join(", ".join(sorted(variables)) for variables in across)
            which = "predicate" if len(across) == 1 else "predicates"
            return (
                f"{self.query_class.name}, counting the {which} over {listed} as "
                f"{'an edge' if len(across) == 1 else 'edges'}: no relation, so the class promises no bound"
            )
        if self.reduct_class.name == self.query_class.name:
            return self.query_class.name
        return f"{self.query_class.name}, {self.reduct_class.name} under the dependencies"

    def delta_path(self, atom: str) -> tuple[DeltaStep, ...]:
        """The steps of an update to an atom, from its leaf to the root, with the best order of look-ups."""
        return delta_path(self.tree, atom, self.query.dependencies)

    def indicator_paths(self, atom: str) -> tuple[tuple[DeltaStep, ...], ...]:
        """The steps that follow if indicators of the atom change."""
        return indicator_paths(self.tree, atom, self.query.dependencies)


def plan_tree(
    query: JoinQuery,
    *,
    representation: Representation = "listing",
    order: VariableOrder | None = None,
    inline: bool = True,
    indicators: Indicators = "none",
    keeps_wide: bool = True,
) -> TreePlan:
    """The plan of a query over the given order, or over the best one found.

    Args:
        query: The join query; its atoms have distinct names, its free variables and those needed together occur in atoms.
        representation: A listing of the result at the root, or the factorized result spread over the views at the top.
        order: The variable order to use; free-top for a factorized result.
        inline: Whether views of a listing that cost more than they save become part of the views above.
        indicators: Which indicator projections keep views of cyclic queries small: all of figure 17, or those that are useful.
        keeps_wide: Whether a listing may have views, besides the result, with more rows than any one relation below them.

    Raises:
        ValueError: for a query or an order that does not fit this contract.
    """
    _check_query(query)
    if order is None:
        order = search_order(query, representation)
    tree = view_tree(query, order, representation)
    if inline and representation == "listing":
        tree = inline_views(query, tree, keeps_wide=keeps_wide)
    if indicators != "none":
        tree = (add_indicators if indicators == "all" else add_useful_indicators)(query, tree)
    check_tree(query, tree, representation)
    return TreePlan(
        query=query,
        representation=representation,
        order=order,
        tree=tree,
        materialized=materialized_nodes(tree),
        query_class=classify(query),
        reduct_class=classify_reduct(query),
        costs=update_costs(query, tree),
        estimated_cost=order_cost(query, order, representation),
    )


def _check_query(query: JoinQuery) -> None:
    names = [a.name for a in query.atoms]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"atoms need distinct names, and there must be some: {names}")
    for atom in query.atoms:
        if len(set(atom.variables)) < len(atom.variables):
            raise ValueError(f"{atom.name} has a variable twice: {atom.variables}")
    if len(set(query.free)) < len(query.free):
        raise ValueError(f"a free variable is named twice: {query.free}")
    unknown = set(query.free).union(*query.together) - set(query.variables)
    if unknown:
        raise ValueError(f"no atom has the variables {sorted(unknown)}")
