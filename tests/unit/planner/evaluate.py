"""View trees computed naively, over relations that map tuples to counts: what a tree means, to compare with the join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product

from everview.planner.delta_tree import DeltaStep
from everview.planner.join_query import JoinQuery
from everview.planner.view_tree import Indicator, Leaf, ViewNode, ViewTree

Counts = Counter[tuple[int, ...]]
Database = Mapping[str, Counts]


class Evaluation:
    """Contents of nodes over a database; a set of variables needed together stands for the predicate that their sum is even."""

    def __init__(self, query: JoinQuery, database: Database) -> None:
        self.query = query
        self.database = database

    def node(self, node: ViewNode) -> Counts:
        """The contents of a node."""
        if isinstance(node, Leaf):
            return self.database[node.atom.name]
        if isinstance(node, Indicator):
            position = [node.atom.variables.index(k) for k in node.keys]
            return Counter({tuple(row[i] for i in position): 1 for row in self.database[node.atom.name]})
        return self.join([(c.keys, self.node(c)) for c in node.children], node.keys)

    def step(self, step: DeltaStep, delta: Counts, contents: Mapping[int, Counts]) -> Counts:
        """The delta of a view: that of its child joined with the contents (by ``id``) of the siblings."""
        factors = [(x.node.keys, contents[id(x.node)]) for x in step.lookups]
        return self.join([(step.child.keys, delta), *factors], step.view.keys)

    def result(self) -> Counts:
        """The query itself: all atoms joined at once."""
        return self.join([(a.variables, self.database[a.name]) for a in self.query.atoms], self.query.free)

    def listing(self, tree: ViewTree) -> Counts:
        """The result that the roots of a tree stand for."""
        return self.join([(root.keys, self.node(root)) for root in tree.roots], tree.free)

    def join(self, factors: list[tuple[tuple[str, ...], Counts]], keys: tuple[str, ...]) -> Counts:
        """⊕ ⨂ factors, with the predicates whose variables are all here."""
        variables: tuple[str, ...] = ()
        rows: Counts = Counter({(): 1})
        for schema, counts in factors:
            new = tuple(v for v in schema if v not in variables)
            shared = [(schema.index(v), variables.index(v)) for v in schema if v in variables]
            fresh = [schema.index(v) for v in new]
            joined: Counts = Counter()
            for (left, m), (right, n) in product(rows.items(), counts.items()):
                if all(right[i] == left[j] for i, j in shared):
                    joined[(*left, *(right[i] for i in fresh))] += m * n
            variables, rows = (*variables, *new), joined
        found: Counts = Counter()
        predicates = [t for t in self.query.across_atoms if t <= set(variables)]
        for row, n in rows.items():
            values = dict(zip(variables, row, strict=True))
            if all(sum(values[v] for v in t) % 2 == 0 for t in predicates):
                found[tuple(values[k] for k in keys)] += n
        return without_zeros(found)

    def enumerated(self, tree: ViewTree) -> set[tuple[int, ...]]:
        """The rows of a factorized result: each free variable from its view, given those before it."""
        by_name = {n.name: n for n in tree.nodes()}
        empty = [root for root in tree.roots if not self.node(root)]
        found: list[dict[str, int]] = [{}] if not empty else []
        for variable, name in tree.enumerate_from:
            node = by_name[name]
            rows = [dict(zip(node.keys, row, strict=True)) for row in self.node(node)]
            found = [
                {**known, variable: value}
                for known in found
                for value in sorted({r[variable] for r in rows if all(r.get(k, v) == v for k, v in known.items())})
            ]
        return {tuple(known[v] for v in tree.free) for known in found}


def without_zeros(counts: Counts) -> Counts:
    """Only what is there: a delta may cancel what was."""
    return Counter({row: n for row, n in counts.items() if n})


def plus(a: Counts, b: Counts) -> Counts:
    """⊎."""
    total = Counter(a)
    for row, n in b.items():
        total[row] += n
    return without_zeros(total)


def minus(a: Counts, b: Counts) -> Counts:
    """What to add to b to have a."""
    return plus(a, Counter({row: -n for row, n in b.items()}))
