"""From a trigger program to operators: one for each collection, made and filled where there is none that is equal."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from everview.backends.embedded.build_join import join_operator
from everview.backends.embedded.dependencies import forgets
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.matrix.chain_operator import MatrixChainOperator
from everview.backends.embedded.operator_pool import OperatorPool
from everview.backends.embedded.operators.aggregate import AggregateOperator
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.counted import CountedOperator
from everview.backends.embedded.operators.explode import ExplodeOperator
from everview.backends.embedded.operators.nested import NestedFilterOperator
from everview.backends.embedded.operators.nested_margins import NestedMarginsOperator
from everview.backends.embedded.operators.nested_others import NestedOthersOperator
from everview.backends.embedded.operators.nested_rows import NestedRows
from everview.backends.embedded.operators.recompute import GivenOperator, RecomputeOperator, answer_of_spark
from everview.backends.embedded.operators.recursive import RecursiveOperator
from everview.backends.embedded.operators.stateless import FilterOperator, ProjectOperator, UnionAllOperator
from everview.backends.embedded.operators.threshold import ThresholdOperator
from everview.backends.embedded.operators.top import TopOperator
from everview.backends.embedded.operators.window import WindowOperator
from everview.backends.embedded.row_by_row import BuiltApart, make_rows
from everview.backends.embedded.sources import ConstantOperator, ScanOperator, TableInput
from everview.backends.embedded.tree.factorized_operator import FactorizedOperator
from everview.backends.embedded.tree.join_tree_operator import JoinTreeOperator
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.vectors import Batch
from everview.planner.block_join_builder import Facts
from everview.planner.plan_recursive import RecursivePlan
from everview.planner.plan_tree import TreePlan
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
    Recursive,
    Relation,
    Scan,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
)
from everview.relational.traverse import nodes_of, rename_scans
from everview.trigger.lower_plan import lower_plan
from everview.trigger.plan_block import Lowered
from everview.trigger.program import (
    Anew,
    Apply,
    CheckSingle,
    Collection,
    FactorizedBlock,
    MatrixBlock,
    NestedFilter,
    Program,
    ThresholdFilter,
    TreeBlock,
    scans,
)


@dataclass(frozen=True, slots=True)
class Sources:
    """What programs read, by name in small letters: other views, and tables."""

    views: Mapping[str, Operator]
    tables: Mapping[str, TableInput] = field(default_factory=dict)


def build_operators(
    program: Program, pool: OperatorPool, sources: Sources, dictionary: Dictionary, *, shares: bool = False
) -> Operator:
    """The operator of a program's root, with everything below it; ``shares``: its trees may be in step with those of others."""
    building = _Building(pool, sources, dictionary, shares)
    for collection in program.collections:
        building.made[collection.name] = building.operator(collection)
    return building.read(program.root_scan)


def build_apart(
    plan: Relation, given: Mapping[str, Operator], dictionary: Dictionary, no_tree: str | None = None
) -> BuiltApart:
    """The operators of a plan over what is at hand, beside those of the database."""
    program = lower_plan(plan, lambda _: Facts(), no_tree=no_tree, is_read_once=True, has_order=True)
    pool = OperatorPool()
    root = build_operators(program, pool, Sources(given), dictionary)
    return BuiltApart(tuple(pool.operators), root)


@dataclass(frozen=True, slots=True)
class _Building:
    pool: OperatorPool
    sources: Sources
    dictionary: Dictionary
    shares: bool
    made: dict[str, Operator] = field(default_factory=dict)
    contents: dict[int, Batch] = field(default_factory=dict)

    def read(self, scan: Scan) -> Operator:
        """What a scan in a statement reads."""
        known = self.made.get(scan.table) or self.sources.views.get(scan.table.lower())
        return known if known is not None else self._table(scan, tuple(range(len(scan.fields))))

    def _table(self, scan: Scan, columns: tuple[int, ...]) -> Operator:
        source = self.sources.tables[scan.table.lower()]

        def make() -> Operator:
            source.scans[columns] = ScanOperator(source, columns)
            return source.scans[columns]

        return self._shared(("scan", scan.table.lower(), columns), make)

    def _shared(self, key: Hashable, make: Callable[[], Operator]) -> Operator:
        return self.pool.shared(key, make, self.contents, shares=self.shares)

    def operator(self, collection: Collection) -> Operator:
        """The operator of a collection."""
        statement = collection.statement
        match statement:
            case Apply(node=Project(child=Scan() as scan, expressions=expressions)) if (
                scan.table.lower() in self.sources.tables and scan.table not in self.made and _only_columns(expressions)
            ):
                return self._table(scan, tuple(e.index for e in expressions if isinstance(e, Column)))
        inputs = tuple(self.read(scan) for scan in scans(statement))
        names = {scan.table: str(id(i)) for scan, i in zip(scans(statement), inputs, strict=True)}
        fields, dictionary = collection.fields, self.dictionary
        match statement:
            case Apply(node=Join() as join, keeps_slices=True):
                key: Hashable = ("slices", rename_scans(join, names))
                return self._shared(key, lambda: join_operator(join, inputs, dictionary, keeps_slices=True))
            case Apply(node=node):
                made = self._shared(rename_scans(node, names), lambda: _operator(node, inputs, dictionary))
                if statement.why_no_tree is not None:
                    made.why_no_tree = statement.why_no_tree
                return made
            case CheckSingle(node=node):
                key = ("check", rename_scans(node, names))
                return self._shared(key, lambda: join_operator(node, inputs, dictionary))
            case NestedFilter():
                key = ("nested", tuple(names[scan.table] for scan in scans(statement)), _without_scans(statement))
                kind = _nested_operator(statement)
                return self._shared(key, lambda: kind(fields, statement, inputs, dictionary))
            case ThresholdFilter(column=column, condition=condition):
                key = ("threshold", tuple(names[scan.table] for scan in scans(statement)), column, condition)
                return self._shared(key, lambda: ThresholdOperator(fields, statement, inputs, dictionary))
            case TreeBlock(lowered=lowered, outputs=outputs, source=source):
                key = ("tree", _kind_of_plan(lowered), lowered.skew, rename_scans(source, names))
                if outputs is not None:
                    return self._shared(key, lambda: JoinTreeOperator(fields, lowered, outputs, inputs, dictionary))
                assert isinstance(source, Aggregate)
                rows = None
                if not any(forgets(i) for i in inputs):
                    atoms = tuple(scan.table for scan in scans(statement))
                    rows = make_rows(source, atoms, lambda p, given, why: build_apart(p, given, dictionary, why))
                return self._shared(key, lambda: TreeOperator(fields, lowered, inputs, dictionary, rows))
            case FactorizedBlock(planned=planned, source=source):
                key = ("factorized", planned.skew, rename_scans(source, names))
                return self._shared(key, lambda: FactorizedOperator(fields, planned, inputs, dictionary))
            case MatrixBlock(names=matrices, source=source):
                key = ("matrices", rename_scans(source, names))
                return self._shared(key, lambda: MatrixChainOperator(fields, matrices, inputs))
            case Anew(plan=plan):
                evaluate = _evaluation(plan, scans(statement), dictionary)
                by = "by Spark" if any(isinstance(n, SparkQuery) for n in nodes_of(plan)) else ""
                return self._shared(
                    ("anew", rename_scans(plan, names)), lambda: RecomputeOperator(fields, inputs, evaluate, by)
                )


def _without_scans(nested: NestedFilter) -> Hashable:
    """What a statement does, whatever it reads."""
    return nested.groups, nested.compared, nested.call, nested.argument, nested.condition, nested.bounds


def _nested_operator(nested: NestedFilter) -> type[NestedRows]:
    if not nested.is_by_keys:
        return NestedFilterOperator
    return NestedOthersOperator if nested.call.function in ("max", "min") else NestedMarginsOperator


def _kind_of_plan(lowered: Lowered) -> Hashable:
    """What tells the trees of different strategies apart, which are not shared as a whole."""
    match lowered.plan:
        case None:
            return "first_order"
        case RecursivePlan(depth=depth):
            return "recursive", depth
        case TreePlan():
            return "tree"


def _evaluation(plan: Relation, read: Sequence[Scan], dictionary: Dictionary) -> Callable[[Sequence[Batch]], Batch]:
    """Evaluates a plan anew, for the contents of what it reads."""
    program = lower_plan(plan, lambda _: Facts(), is_read_once=True, has_order=True)

    def evaluate(contents: Sequence[Batch]) -> Batch:
        pairs = zip(read, contents, strict=True)
        given = {scan.table.lower(): GivenOperator(scan.fields, content) for scan, content in pairs}
        return build_operators(program, OperatorPool(), Sources(given), dictionary).content()

    return evaluate


def _operator(node: Relation, inputs: tuple[Operator, ...], dictionary: Dictionary) -> Operator:
    """The push operator of a node."""
    match node:
        case Values():
            return ConstantOperator(node, dictionary)
        case Filter():
            return FilterOperator(node, inputs[0], dictionary)
        case Project():
            return ProjectOperator(node, inputs[0], dictionary)
        case Join():
            return join_operator(node, inputs, dictionary)
        case Aggregate():
            return AggregateOperator(node, inputs[0], dictionary)
        case Distinct() | ExceptAll() | IntersectAll() | UnionMax():
            return CountedOperator(node, inputs)
        case UnionAll():
            return UnionAllOperator(node, inputs)
        case SparkQuery():
            return RecomputeOperator(node.fields, inputs, answer_of_spark(node, dictionary), "by Spark")
        case Recursive():
            return RecursiveOperator(node, inputs, lambda plan, given, why: build_apart(plan, given, dictionary, why))
        case Window():
            partition = tuple(e.index for e in node.partition if isinstance(e, Column))
            return WindowOperator(node, inputs[0], partition, dictionary)
        case TopK():
            return TopOperator(node, inputs[0], dictionary)
        case Generate():
            return ExplodeOperator(node, inputs[0], dictionary)
        case Scan():
            raise AssertionError("a scan is no statement")
        case _:
            assert_never(node)


def _only_columns(expressions: tuple[Expression, ...]) -> bool:
    indexes = [e.index for e in expressions if isinstance(e, Column)]
    return len(indexes) == len(expressions) == len(set(indexes))
