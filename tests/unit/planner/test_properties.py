"""Laws over random queries: trees compute their query, deltas are differences, searches are deterministic and no worse."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from typing import get_args

from hypothesis import assume, given
from hypothesis import strategies as st

from everview.planner.build_tree import Representation, view_tree
from everview.planner.check_tree import check_tree
from everview.planner.classes import classify, is_hierarchical
from everview.planner.cost import update_costs
from everview.planner.delta_tree import delta_path, indicator_paths
from everview.planner.dependencies import closure, sigma_reduct
from everview.planner.hypergraph import Hyperedge, hyperedges, is_acyclic, join_forest
from everview.planner.indicators import add_indicators, add_useful_indicators
from everview.planner.inline_views import inline_views
from everview.planner.join_query import JoinQuery
from everview.planner.order_cost import order_cost
from everview.planner.plan_tree import Indicators, plan_tree
from everview.planner.search_orders import search_order
from everview.planner.variable_order import VariableOrder, canonical_order, variable_order
from everview.planner.view_tree import Leaf, ViewNode, ViewTree
from tests.unit.planner.evaluate import Counts, Database, Evaluation, minus, plus
from tests.unit.planner.queries import join_queries


@st.composite
def orders(draw: st.DrawFn, query: JoinQuery) -> VariableOrder:
    """Any variable order: a random variable on top of each component, and so on."""
    parents: dict[str, str | None] = {}

    def place(variables: frozenset[str], above: str | None) -> None:
        top = draw(st.sampled_from(sorted(variables)))
        parents[top] = above
        for component in split(variables - {top}, [frozenset(a.variables) for a in query.atoms]):
            place(component, top)

    edges = [*(frozenset(a.variables) for a in query.atoms), *query.together]
    for component in split(frozenset(query.variables), edges):
        place(component, None)
    return variable_order(query, parents)


def split(variables: frozenset[str], edges: list[frozenset[str]]) -> list[frozenset[str]]:
    """The connected components of some variables."""
    found: list[frozenset[str]] = []
    for edge in edges:
        own = edge & variables
        if own:
            merged = own.union(*(c for c in found if c & own))
            found = [c for c in found if not c & own] + [merged]
    return found


@st.composite
def databases(draw: st.DrawFn, query: JoinQuery) -> Database:
    """A few rows for each atom, over three values."""
    return {a.name: draw(rows(len(a.variables))) for a in query.atoms}


def rows(arity: int) -> st.SearchStrategy[Counts]:
    """Up to four rows with counts."""
    row = st.tuples(*(st.integers(0, 2) for _ in range(arity)))
    return st.dictionaries(row, st.integers(1, 3), max_size=4).map(Counter)


def has_join_tree(edges: tuple[Hyperedge, ...]) -> bool:
    """Definition 14 by trying every tree: the hyperedges of each variable must be connected in it."""
    nodes = range(len(edges))
    pairs = list(combinations(nodes, 2))
    variables = {v for e in edges for v in e.variables}
    return any(
        is_connected(set(nodes), tree)
        and all(is_connected({n for n in nodes if v in edges[n].variables}, tree) for v in variables)
        for tree in combinations(pairs, len(edges) - 1)
    )


def is_connected(nodes: set[int], tree: tuple[tuple[int, int], ...]) -> bool:
    """Whether the nodes hang together by edges of the tree between them."""
    reached = {min(nodes)}
    for _ in nodes:
        reached |= {b for pair in tree for a, b in (pair, pair[::-1]) if a in reached and b in nodes}
    return reached == nodes


@given(join_queries())
def test_gyo_finds_join_trees(query: JoinQuery) -> None:
    """A hypergraph is acyclic by GYO exactly if some tree of its hyperedges has the running intersection property."""
    assert is_acyclic(hyperedges(query)) == has_join_tree(hyperedges(query))


@given(join_queries())
def test_the_join_forest_connects_every_variable(query: JoinQuery) -> None:
    """The pairs that GYO finds are a join tree: the atoms of a variable are connected in it."""
    forest = join_forest(hyperedges(query))
    assume(forest is not None)
    assert forest is not None
    number = {a.name: i for i, a in enumerate(query.atoms)}
    pairs = tuple((number[a], number[b]) for a, b in forest)
    assert all(is_connected({number[a.name] for a in query.atoms_with(v)}, pairs) for v in query.variables)


@given(join_queries())
def test_classes_are_nested(query: JoinQuery) -> None:
    """q-hierarchical queries are hierarchical and free-connex, and all of these are acyclic."""
    found = classify(query)
    assert found.is_hierarchical or not found.is_q_hierarchical
    assert found.is_free_connex or not found.is_q_hierarchical
    assert found.is_acyclic or not (found.is_hierarchical or found.is_free_connex)


@given(st.data())
def test_any_order_gives_a_tree_that_computes_the_query(data: st.DataObject) -> None:
    """Listing trees, composed or not, with views inlined and with indicators, have the result of the join at their roots."""
    query = data.draw(join_queries(dependencies=True, together=True, max_atoms=4))
    order = data.draw(orders(query))
    evaluation = Evaluation(query, data.draw(databases(query)))
    expected = evaluation.result()
    plain = view_tree(query, order, compose_chains=False)
    composed = view_tree(query, order)
    bounded = (add_indicators(query, composed), add_useful_indicators(query, composed))
    for tree in (plain, composed, inline_views(query, composed), *bounded):
        check_tree(query, tree)
        assert evaluation.listing(tree) == expected


@given(st.data())
def test_deltas_are_differences(data: st.DataObject) -> None:
    """A change passed from a leaf, and then from the indicators of its atom, leaves every node as recomputing does."""
    query = data.draw(join_queries(together=True, max_atoms=4))
    tree = view_tree(query, data.draw(orders(query)))
    tree = data.draw(st.sampled_from([tree, inline_views(query, tree), add_indicators(query, tree)]))
    before = data.draw(databases(query))
    atom = data.draw(st.sampled_from(query.atoms))
    gone = data.draw(st.sampled_from([Counter(), *(Counter({r: -n}) for r, n in before[atom.name].items())]))
    change = plus(data.draw(rows(len(atom.variables))), gone)
    old = Evaluation(query, before)
    new = Evaluation(query, {**before, atom.name: plus(before[atom.name], change)})
    contents = {id(n): old.node(n) for n in tree.nodes()}
    for path in (delta_path(tree, atom.name), *indicator_paths(tree, atom.name)):
        start: ViewNode = path[0].child if path else leaf_of(tree, atom.name)
        delta = change if isinstance(start, Leaf) else minus(new.node(start), old.node(start))
        contents[id(start)] = plus(contents[id(start)], delta)
        for step in path:
            delta = old.step(step, delta, contents)
            contents[id(step.view)] = plus(contents[id(step.view)], delta)
    assert {n.name: contents[id(n)] for n in tree.nodes()} == {n.name: new.node(n) for n in tree.nodes()}


def leaf_of(tree: ViewTree, atom: str) -> Leaf:
    """The leaf of an atom."""
    return next(n for n in tree.nodes() if isinstance(n, Leaf) and n.atom.name == atom)


@given(join_queries(dependencies=True))
def test_q_hierarchical_updates_are_constant(query: JoinQuery) -> None:
    """Theorems 13 and 26: over the canonical order every single-row update of a q-hierarchical query or reduct is O(1).

    A dependency that an atom could only show if it had more columns does not help to look rows up in it.
    """
    for a, d in product(query.atoms, query.dependencies):
        own = set(a.variables)
        assume(not (own & d.dependent and d.determinant <= closure(own, query.dependencies)) or d.determinant <= own)
    for reduct in (query, sigma_reduct(query)):
        if classify(reduct).is_q_hierarchical:
            order = canonical_order(reduct, placed=query)
            if order.is_free_top(query.free):
                tree = view_tree(query, order, "factorized")
                assert {c.bound.exponent for c in update_costs(query, tree)} <= {0}


@given(join_queries())
def test_free_connex_updates_are_linear(query: JoinQuery) -> None:
    """Theorem 13: the order found for a free-connex query makes every single-row update O(N) at most."""
    assume(classify(query).is_free_connex)
    plan = plan_tree(query, representation="factorized")
    assert {c.bound.exponent for c in plan.costs} <= {0, 1}


@given(st.data())
def test_factorized_trees_enumerate_the_result(data: st.DataObject) -> None:
    """The views of a factorized tree list exactly the rows of the result, each free variable given those before it."""
    query = data.draw(join_queries(dependencies=True, max_atoms=4))
    plan = plan_tree(query, representation="factorized", indicators=data.draw(st.sampled_from(get_args(Indicators))))
    evaluation = Evaluation(query, data.draw(databases(query)))
    assert evaluation.enumerated(plan.tree) == set(evaluation.result())
    assert {name for _, name in plan.tree.enumerate_from} <= plan.materialized


@given(join_queries(dependencies=True, together=True), st.sampled_from(["listing", "factorized"]))
def test_search_is_deterministic_and_no_worse(query: JoinQuery, representation: Representation) -> None:
    """The same query has the same order, which costs no more than the canonical one, and its plan is valid."""
    assume(representation == "listing" or not any(t & set(query.free) for t in query.across_atoms))
    order = search_order(query, representation)
    assert order == search_order(query, representation)
    plan = plan_tree(query, representation=representation)
    assert plan.order == order
    if is_hierarchical(query) and representation == "listing" and not query.together:
        canonical = order_cost(query, canonical_order(query))
        assert order_cost(query, order) <= canonical * (1 + 1e-6)


@given(st.data())
def test_search_finds_the_cheapest_order(data: st.DataObject) -> None:
    """No random order of a small query is cheaper than the one found, if each variable has a set of several atoms to itself."""
    query = without_alike(data.draw(join_queries(dependencies=True)))
    assume(query.variables)
    best = order_cost(query, search_order(query))
    for _ in range(5):
        assert best <= order_cost(query, data.draw(orders(query))) * (1 + 1e-6)


def without_alike(query: JoinQuery) -> JoinQuery:
    """Without variables of one atom and of the same atoms as another: the search places those by rule."""
    first: dict[frozenset[str], str] = {}
    for v in query.variables:
        found = frozenset(a.name for a in query.atoms_with(v))
        if len(found) > 1:
            first.setdefault(found, v)
    kept = set(first.values())
    atoms = tuple(replace(a, variables=tuple(v for v in a.variables if v in kept)) for a in query.atoms)
    return replace(query, atoms=atoms, free=tuple(v for v in query.free if v in kept))


@given(st.data())
def test_inlining_keeps_bounds(data: st.DataObject) -> None:
    """A view is never inlined at the price of a worse bound of an update."""
    query = data.draw(join_queries(dependencies=True))
    tree = view_tree(query, data.draw(orders(query)))
    before = {c.atom: c.bound for c in update_costs(query, tree)}
    after = {c.atom: c.bound for c in update_costs(query, inline_views(query, tree))}
    assert all(after[atom] <= before[atom] for atom in before)


@given(join_queries())
def test_what_a_delta_joins_with_is_stored(query: JoinQuery) -> None:
    """Every sibling on the path of an atom that changes is materialized, and nothing is that no update needs."""
    plan = plan_tree(query)
    paths = [delta_path(plan.tree, a.name) for a in query.atoms if a.updatable]
    needed = {s.name for path in paths for step in path for s in step.siblings}
    assert plan.materialized == needed | {root.name for root in plan.tree.roots}
