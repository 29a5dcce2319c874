"""The DAG of operators, and how a plan becomes part of it.

An operator is determined by what it computes from which inputs; what is equal is built once, whichever view asked for it. A new
operator takes in the contents of its inputs before it joins the DAG.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import assert_never

from everview.backends.embedded.dependencies import below, content_of, forgets, in_order
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.lower_join import lower_join
from everview.backends.embedded.operators.aggregate import AggregateOperator
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.counted import CountedOperator
from everview.backends.embedded.operators.explode import ExplodeOperator
from everview.backends.embedded.operators.recompute import GivenOperator, RecomputeOperator
from everview.backends.embedded.operators.stateless import FilterOperator, ProjectOperator, UnionAllOperator
from everview.backends.embedded.operators.top import TopOperator
from everview.backends.embedded.operators.window import WindowOperator
from everview.backends.embedded.row_by_row import STRATEGY, make_rows
from everview.backends.embedded.shared_views import SharedViews
from everview.backends.embedded.sources import ConstantOperator, ScanOperator, TableInput
from everview.backends.embedded.tree.factorized_operator import FactorizedOperator
from everview.backends.embedded.tree.join_tree_operator import JoinTreeOperator
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked, TreeGroup
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.vectors import Batch
from everview.backends.embedded.view_choices import ViewChoices
from everview.planner.block_flatten import flatten
from everview.planner.block_join_builder import Facts
from everview.relational.expressions import Column, Expression
from everview.relational.nodes import (
    Aggregate,
    Distinct,
    ExceptAll,
    Filter,
    Generate,
    IntersectAll,
    Join,
    Project,
    Relation,
    Scan,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
)
from everview.relational.schema import columns, schema
from everview.relational.traverse import scans_of, tables_of
from everview.relational.unique_keys import UniqueKey, unique_keys
from everview.trigger.plan_block import Refused, plan_block, plan_join
from everview.trigger.plan_factorized import plan_factorized

TREES_FOR_JOINS = frozenset({"factorized", "first_order"})
"""The strategies under which all joins without an aggregate are trees too."""
MANY_RELATIONS = 3
"""A view that is a join of so many is a tree under every strategy; inside a plan, binary joins share more."""


class Graph:
    """All operators of a database, in an order in which inputs come before their users."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self.operators: list[Operator] = []
        self.generation = 0
        """Grows whenever an operator comes or goes."""
        self.tables: dict[str, TableInput] = {}
        self.roots: dict[str, Operator] = {}
        self._view_keys: dict[str, tuple[UniqueKey, ...]] = {}
        self._shared: dict[Hashable, Operator] = {}
        self._keys: dict[Operator, Hashable] = {}
        self._strategy = "auto"
        self._plan: Relation | None = None
        """The whole plan of the view that is being added."""
        self._sharing = SharedViews(self.views_over)
        self._shares = False

    def add_view(self, name: str, plan: Relation, choices: ViewChoices) -> Operator:
        """Builds what the view needs and does not exist yet; on an error the DAG is as before.

        New trees share stored views with those there are, if they may.

        Raises:
            Refused: the view is to be factorized and cannot be.
        """
        before = set(self.operators)
        self._shares, self._plan = choices.shares, plan
        try:
            root = self._factorized(plan) if choices.is_factorized else self.build(plan, choices.strategy)
        except BaseException:
            self._forget([o for o in self.operators if o not in before])
            raise
        finally:
            self._shares, self._plan = False, None
        self._in_order()
        if forgets(root):
            # Its content cannot be computed from tables that keep no rows, so it is kept itself.
            root.arranged().is_asked_by_users = True
        self.roots[name.lower()] = root
        self._view_keys[name.lower()] = unique_keys(plan, lambda scan: self._facts(scan).keys)
        return root

    def drop_view(self, name: str) -> None:
        """Removes a view and the operators that only it used."""
        del self.roots[name.lower()], self._view_keys[name.lower()]
        self.collect()

    def collect(self) -> None:
        """Removes the operators that no view needs, and the arrangements that nothing looks rows up in any more."""
        needed = {id(o) for root in self.roots.values() for o in below(root)}
        self._forget([o for o in self.operators if id(o) not in needed and o in self._keys])
        searched = {id(a) for o in self.operators for a in o.searches()}
        for operator in self.operators:
            kept = operator.arrangement
            if kept is not None and not kept.is_asked_by_users and id(kept) not in searched:
                operator.arrangement = None

    def _forget(self, gone: list[Operator]) -> None:
        dropped = {id(o) for o in gone}
        for operator in gone:
            del self._shared[self._keys.pop(operator)]
            if isinstance(operator, ScanOperator):
                del operator.source.scans[operator.columns]
        self._sharing.remove(gone)
        self.operators = [o for o in self.operators if id(o) not in dropped]
        self._in_order()

    def _in_order(self) -> None:
        """Puts the groups of trees where they belong, as they are now."""
        groups = self._sharing.groups
        if groups or any(isinstance(o, TreeGroup) for o in self.operators):
            self.operators = in_order([*(o for o in self.operators if not isinstance(o, TreeGroup)), *groups])
        self.generation += 1

    def let_go(self, tree: TreeBacked) -> None:
        """Lets a tree leave its group, with a copy of what it shares: its numbers are beyond what a tree can sum."""
        self._sharing.let_go(tree)
        self._in_order()

    def views_over(self, operator: Operator) -> tuple[str, ...]:
        """The names of the views that an operator is used by."""
        return tuple(name for name, root in self.roots.items() if any(o is operator for o in below(root)))

    def build(self, plan: Relation, strategy: str = "auto") -> Operator:
        """The operator of a plan, with everything below it; ``strategy`` is for its join-aggregate blocks.

        An aggregate that is no block, which ``explain`` then says with the reason, gets push operators under every strategy.
        """
        contents: dict[int, Batch] = {}
        if strategy == "recompute":
            return self._recomputed(plan, contents)
        self._strategy = strategy
        done: dict[int, Operator] = {}

        def visit(relation: Relation) -> Operator:
            if id(relation) not in done:
                done[id(relation)] = self._lower(relation, visit, contents)
            return done[id(relation)]

        return visit(plan)

    def _share(
        self,
        key: Hashable,
        inputs: tuple[Operator, ...],
        contents: dict[int, Batch],
        make: Callable[[], Operator],
    ) -> Operator:
        """The operator with this key, made and loaded if there is none."""
        known = self._shared.get(key)
        if known is not None:
            return known
        made = make()
        if isinstance(made, TreeBacked):
            contents[id(made)] = self._load_tree(made, contents)
        else:
            contents[id(made)] = made.load([content_of(i, contents) for i in inputs])
        made.commit()
        self._shared[key] = made
        self._keys[made] = key
        self.operators.append(made)
        if isinstance(made, TreeBacked) and self._shares and not _is_alone(made):
            self._sharing.add(made)
        self.generation += 1
        return made

    def _load_tree(self, tree: TreeBacked, contents: dict[int, Batch]) -> Batch:
        """Fills a tree: what it finds stored already it borrows, and does not read the inputs of."""
        known = self._sharing.borrow(tree) if self._shares and not _is_alone(tree) else frozenset()
        return tree.load([None if a in known else content_of(i, contents) for a, i in enumerate(tree.inputs)])

    def _lower(self, relation: Relation, visit: Callable[[Relation], Operator], contents: dict[int, Batch]) -> Operator:
        dictionary = self.dictionary
        match relation:
            case Scan():
                return self._scan(relation, tuple(range(len(relation.fields))), contents)
            case Project(child=Scan() as scan) if _only_columns(relation.expressions):
                if scan.table.lower() in self.tables:
                    chosen = tuple(e.index for e in relation.expressions if isinstance(e, Column))
                    return self._scan(scan, chosen, contents)
        least = 2 if self._strategy in TREES_FOR_JOINS else MANY_RELATIONS if relation is self._plan else None
        if least is not None and isinstance(relation, Join | Project | Filter):
            joined = self._join_tree(relation, least, visit, contents)
            if joined is not None:
                return joined
        match relation:
            case Scan():
                raise AssertionError("handled above")
            case Values():
                return self._share(("values", relation), (), contents, lambda: ConstantOperator(relation, dictionary))
            case Filter():
                child = visit(relation.child)
                key: Hashable = ("filter", id(child), relation.condition)
                return self._share(key, (child,), contents, lambda: FilterOperator(relation, child, dictionary))
            case Project() if relation.expressions == columns(relation.child):
                return visit(relation.child)  # pruning leaves projections that return their input
            case Project():
                child = visit(relation.child)
                key = ("project", id(child), relation.expressions)
                return self._share(key, (child,), contents, lambda: ProjectOperator(relation, child, dictionary))
            case Join():
                inputs = (visit(relation.left), visit(relation.right))
                return lower_join(relation, inputs, lambda k, i, make: self._share(k, i, contents, make), dictionary)
            case Aggregate():
                tree = self._tree(relation, visit, contents)
                if isinstance(tree, Operator):
                    return tree
                child = visit(relation.child)
                key = ("aggregate", id(child), relation.keys, relation.aggregates)
                made = self._share(key, (child,), contents, lambda: AggregateOperator(relation, child, dictionary))
                made.why_no_tree = tree
                return made
            case Distinct():
                return self._counted(relation, (visit(relation.child),), contents)
            case ExceptAll() | IntersectAll() | UnionMax():
                return self._counted(relation, (visit(relation.left), visit(relation.right)), contents)
            case UnionAll():
                united = tuple(visit(i) for i in relation.inputs)
                key = ("union all", tuple(id(i) for i in united))
                return self._share(key, united, contents, lambda: UnionAllOperator(relation, united))
            case Window():
                child = visit(relation.child)
                partition = tuple(e.index for e in relation.partition if isinstance(e, Column))
                key = ("window", id(child), relation.partition, relation.order, relation.functions)
                return self._share(
                    key, (child,), contents, lambda: WindowOperator(relation, child, partition, dictionary)
                )
            case TopK():
                child = visit(relation.child)
                key = ("top", id(child), relation.order, relation.limit, relation.offset)
                return self._share(key, (child,), contents, lambda: TopOperator(relation, child, dictionary))
            case Generate():
                child = visit(relation.child)
                key = ("explode", id(child), relation.array, relation.outer, relation.with_position)
                return self._share(key, (child,), contents, lambda: ExplodeOperator(relation, child, dictionary))
            case _:
                assert_never(relation)

    def _tree(
        self, aggregate: Aggregate, visit: Callable[[Relation], Operator], contents: dict[int, Batch]
    ) -> Operator | str:
        """The view tree of an aggregate, or why it has none."""
        if self._strategy == STRATEGY:
            return "its numbers are beyond what a tree can sum"
        try:
            lowered = plan_block(aggregate, self._facts, self._strategy, may_watch=True)
            inputs = tuple(visit(atom.input) for atom in lowered.program.block.atoms)
            if lowered.program.block.watches and any(forgets(i) for i in inputs):
                # Without rows, nothing could stand in for a tree whose numbers get too large.
                lowered = plan_block(aggregate, self._facts, self._strategy)
                inputs = tuple(visit(atom.input) for atom in lowered.program.block.atoms)
        except Refused as refused:
            return str(refused)
        key: Hashable = ("tree", self._strategy, tuple(id(i) for i in inputs), aggregate)
        rows = None
        if not any(forgets(i) for i in inputs):
            rows = make_rows(lambda: Graph(self.dictionary), aggregate, lowered.program.block)
        fields = schema(aggregate)
        return self._share(key, inputs, contents, lambda: TreeOperator(fields, lowered, inputs, self.dictionary, rows))

    def _join_tree(
        self, relation: Relation, least: int, visit: Callable[[Relation], Operator], contents: dict[int, Batch]
    ) -> Operator | None:
        """The view tree of a join that no aggregate stands on; None where it joins too few relations, or has no tree."""
        if len(flatten(relation).inputs) < least:
            return None
        try:
            lowered, join = plan_join(relation, self._facts, self._strategy)
        except Refused:
            return None
        inputs = tuple(visit(atom.input) for atom in lowered.program.block.atoms)
        key: Hashable = ("join tree", self._strategy, tuple(id(i) for i in inputs), relation)
        fields = schema(relation)
        return self._share(
            key, inputs, contents, lambda: JoinTreeOperator(fields, lowered, join.outputs, inputs, self.dictionary)
        )

    def _factorized(self, plan: Relation) -> Operator:
        planned = plan_factorized(plan, self._facts)
        inputs = tuple(self.build(atom.input) for atom in planned.block.atoms)
        key: Hashable = ("factorized", tuple(id(i) for i in inputs), plan)
        return self._share(key, inputs, {}, lambda: FactorizedOperator(schema(plan), planned, inputs, self.dictionary))

    def _recomputed(self, plan: Relation, contents: dict[int, Batch]) -> Operator:
        names = tuple(dict.fromkeys(n.lower() for n in tables_of(plan)))
        scans = {s.table.lower(): s for s in scans_of(plan)}
        inputs = tuple(self._scan(scans[n], tuple(range(len(scans[n].fields))), contents) for n in names)

        def evaluate(given: Sequence[Batch]) -> Batch:
            graph = Graph(self.dictionary)
            for name, operator, content in zip(names, inputs, given, strict=True):
                graph.roots[name] = GivenOperator(operator.fields, content)
            return graph.build(plan).content()

        key: Hashable = ("recompute", tuple(id(i) for i in inputs), plan)
        return self._share(key, inputs, contents, lambda: RecomputeOperator(schema(plan), inputs, evaluate))

    def _facts(self, relation: Relation) -> Facts:
        if not isinstance(relation, Scan):
            return Facts()
        source = self.tables.get(relation.table.lower())
        if source is None:
            return Facts(self._view_keys.get(relation.table.lower(), ()))
        definition = source.table.definition
        is_fixed = definition.static and source.table.has_received_rows
        rows = float(max(1000, source.table.row_count if definition.retain else 0))
        return Facts(definition.unique_keys, not is_fixed, rows)

    def _scan(self, scan: Scan, columns: tuple[int, ...], contents: dict[int, Batch]) -> Operator:
        root = self.roots.get(scan.table.lower())
        if root is not None:
            return root
        source = self.tables[scan.table.lower()]

        def make() -> Operator:
            source.scans[columns] = ScanOperator(source, columns)
            return source.scans[columns]

        return self._share(("scan", scan.table.lower(), columns), (), contents, make)

    def _counted(
        self,
        relation: Distinct | ExceptAll | IntersectAll | UnionMax,
        inputs: tuple[Operator, ...],
        contents: dict[int, Batch],
    ) -> Operator:
        key = (type(relation).__name__, tuple(id(i) for i in inputs))
        return self._share(key, inputs, contents, lambda: CountedOperator(relation, inputs))


def _is_alone(tree: TreeBacked) -> bool:
    """Whether a tree shares nothing: rows stand in for it, or may have to at any moment."""
    return isinstance(tree, TreeOperator) and (tree.rows is not None or bool(tree.program.block.watches))


def _only_columns(expressions: tuple[Expression, ...]) -> bool:
    indexes = [e.index for e in expressions if isinstance(e, Column)]
    return len(indexes) == len(expressions) == len(set(indexes))
