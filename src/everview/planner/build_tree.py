"""From a variable order to a view tree: τ of figure 4 (listing) and ν of figure 9 (factorized).

At a variable X whose subtree in the order holds the variables C, the view joins the trees below and keeps a variable v if

    v is not in C                                  something above joins on it
    v is free and the representation is "listing"  the root lists the result
    v is in a set of variables needed together, and not all of that set are in C or joined here

and sums out the others. In a factorized tree the free variables are spread over the views at the top: H@X[X, dep(X)] lists
the values of X, V@X[dep(X)] sums them out for the siblings of X. Figure 9 leaves out the sum of a *bound* variable without
siblings; here bound variables are always summed out, as the payload of a result row must be found in a view without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from everview.planner.join_query import JoinQuery
from everview.planner.variable_order import OrderNode, VariableOrder
from everview.planner.view_tree import InnerView, Leaf, ViewNode, ViewTree, atoms_below

Representation: TypeAlias = Literal["listing", "factorized"]

SHORT = 2
"""Names of atoms up to this length are written without a separator, as the paper does: ``V@A_RST``."""


def view_tree(
    query: JoinQuery,
    order: VariableOrder,
    representation: Representation = "listing",
    *,
    compose_chains: bool = True,
) -> ViewTree:
    """The view tree over the order. With ``compose_chains`` a view over a single view becomes one, and copies of leaves go.

    Raises:
        ValueError: for a factorized tree over an order that is not free-top, or with variables needed together that cannot
            be (a free variable among them whose values would be listed without the others).
    """
    builder = _Builder(query, compose_chains)
    loose = tuple(Leaf(atom) for atom in order.loose)
    if representation == "listing":
        roots = tuple(builder.listing_root(node) for node in order.roots)
        return ViewTree((*roots, *loose), query.free)
    if not order.is_free_top(query.free):
        raise ValueError(
            f"a factorized tree needs a free-top order, and {order.text} has a bound variable above a free one"
        )
    if odd := [t for t in builder.together if t & set(query.free)]:
        raise ValueError(
            f"{', '.join(sorted(odd[0]))} are needed together across atoms, which a factorized result cannot be"
        )
    roots = tuple(builder.factorized(node, has_sibling=False) for node in order.roots)
    return ViewTree((*roots, *loose), query.free, tuple(builder.enumerate_from))


@dataclass
class _Builder:
    query: JoinQuery
    compose_chains: bool
    together: tuple[frozenset[str], ...] = field(init=False)
    enumerate_from: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.together = self.query.across_atoms

    def listing_root(self, node: OrderNode) -> ViewNode:
        """A tree whose root has its free variables as keys, in the order of the query's."""
        root = self.listing(node)
        keys = tuple(v for v in self.query.free if v in root.keys)
        if keys == root.keys:
            return root
        if isinstance(root, InnerView):
            return replace(root, keys=keys)
        return InnerView(self.name("V", node, (root,)), (node.variable,), keys, (), (root,))

    def listing(self, node: OrderNode) -> ViewNode:
        children = (*(self.listing(c) for c in node.children), *(Leaf(a) for a in node.atoms))
        return self.view("V", node, children, kept=set(self.query.free) | self.carried(node))

    def factorized(self, node: OrderNode, *, has_sibling: bool) -> ViewNode:
        """ν of figure 9 at one variable."""
        is_free = node.variable in self.query.free
        place = len(self.enumerate_from)
        is_crowded = len(node.children) + len(node.atoms) > 1
        below = tuple(self.factorized(c, has_sibling=is_crowded) for c in node.children)
        children = (*below, *(Leaf(a) for a in node.atoms))
        if not is_free:
            return self.view("V", node, children, kept=self.carried(node))
        if waiting := self.carried(node) & node.below:
            raise ValueError(f"{', '.join(sorted(waiting))} would be listed before what they are needed together with")
        top = self.view("H", node, children, kept={node.variable}) if is_crowded else children[0]
        self.enumerate_from.insert(place, (node.variable, top.name))
        return self.view("V", node, (top,), kept=set()) if has_sibling else top

    def view(self, letter: str, node: OrderNode, children: tuple[ViewNode, ...], kept: set[str]) -> ViewNode:
        """⊕ ⨂ children with what is above and what is kept as keys, composed with a single child if asked for."""
        below = node.below
        joined = self.in_order(v for c in children for v in c.keys)
        keys = tuple(v for v in joined if v not in below or v in kept)
        summed = tuple(v for v in joined if v not in keys)
        name = self.name(letter, node, children)
        if self.compose_chains and len(children) == 1:
            only = children[0]
            if not summed and isinstance(only, Leaf):
                return only
            if isinstance(only, InnerView) and only.name not in {n for _, n in self.enumerate_from}:
                return InnerView(name, (node.variable, *only.at), keys, (*summed, *only.summed), only.children)
        return InnerView(name, (node.variable,), keys, summed, children)

    def carried(self, node: OrderNode) -> set[str]:
        """Variables below that a predicate or term needs together with others that are not here yet."""
        here = node.below | set(node.dep)
        return {v for t in self.together if not t <= here for v in t}

    def in_order(self, variables: Iterable[str]) -> tuple[str, ...]:
        wanted = set(variables)
        return tuple(v for v in self.query.variables if v in wanted)

    def name(self, letter: str, node: OrderNode, children: tuple[ViewNode, ...]) -> str:
        """Such as ``V@A_RST``: unique, as there is one V and one H at most for a variable."""
        found = {a.name for c in children for a in atoms_below(c)}
        atoms = [a.name for a in self.query.atoms if a.name in found]
        return f"{letter}@{node.variable}_" + ("" if all(len(a) <= SHORT for a in atoms) else "_").join(atoms)
