"""From a relational plan to the trigger program of a view: what is a view tree, what an operator, and why.

Outer and mark joins have been split before (``WITH_TREES``). Equal sub-plans become one collection. An aggregate over inner
joins is a view tree where it can be. So is a join without an aggregate under the strategies that keep trees for joins, and
where a whole view joins many relations, unless that tree would scan where joins of two find rows in order. Everything else
is an operator with its delta rule.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial

from everview.planner.block import Block
from everview.planner.block_flatten import as_relation, flatten
from everview.planner.block_join_builder import Facts, FactsOf, Refused
from everview.planner.matrix_chain import MatrixTable, chain_of, chain_plan
from everview.planner.skew_options import SkewOptions
from everview.planner.skew_search import NoSkewPlan
from everview.relational.columns_used import columns_used
from everview.relational.expressions import Column, Expression, conjunction, substitute
from everview.relational.nodes import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    Schema,
    UnionAll,
    Window,
)
from everview.relational.rules.expose_keys import expose_keys
from everview.relational.rules.project_joined_filter import project_joined_filter
from everview.relational.rules.prune_columns import prune_columns
from everview.relational.rules.split_outer_join import split_outer_join
from everview.relational.schema import columns, schema
from everview.relational.traverse import inputs, nodes_of, rewrite_bottom_up, with_inputs
from everview.trigger.block_source import block_source
from everview.trigger.few_rows import join_few_first
from everview.trigger.find_nested import find_nested, origins_of, outer_columns, outer_rows, without_nested
from everview.trigger.find_threshold import find_threshold, without_threshold
from everview.trigger.join_partners import finds_few, is_searched, is_surely_single
from everview.trigger.operator_rules import rules_of
from everview.trigger.order_accesses import has_ranges, has_scans, order_accesses
from everview.trigger.plan_block import (
    BlockOptions,
    Lowered,
    plan_block,
    plan_join,
    plan_skew_block,
    without_first_moments,
)
from everview.trigger.plan_factorized import plan_factorized
from everview.trigger.program import (
    Anew,
    Apply,
    CheckSingle,
    Collection,
    FactorizedBlock,
    MatrixBlock,
    NestedFilter,
    Program,
    ProgramInput,
    ProgramStatement,
    ThresholdFilter,
    TreeBlock,
    identity_of_statement,
)
from everview.trigger.verify import verify_program

TREES_FOR_JOINS = frozenset({"factorized", "first_order", "recursive"})
"""The strategies under which all joins without an aggregate are trees too."""
MANY_RELATIONS = 3
"""A view that is a join of so many is a tree under every strategy; inside a plan, binary joins share more."""
KeepsRows = Callable[[str], bool]


def lower_plan(
    plan: Relation,
    facts_of: FactsOf,
    strategy: str = "auto",
    *,
    keeps_rows: KeepsRows = lambda _: True,
    no_tree: str | None = None,
    is_read_once: bool = False,
    skew: SkewOptions | None = None,
    depth: int | None = None,
    has_order: bool = False,
    has_recursive: bool = False,
    few_first: bool | None = None,
) -> Program:
    """The program of a view.

    Args:
        plan: What the view computes, its outer joins split.
        facts_of: What the planner may know of a relation.
        strategy: For its blocks; with ``recompute`` the whole plan is evaluated anew.
        keeps_rows: Whether a table or view, by name, can be read again. Without rows nothing could stand in for a tree whose
            numbers get too large, so such trees hold only what cannot overflow.
        no_tree: Why there shall be no view trees, if so.
        is_read_once: The plan is evaluated and not maintained, so that a tree for a join at its root would not pay.
        skew: The thresholds for heavy and light parts, from an engine that has them.
        depth: For the strategy ``recursive``: after how many steps deltas read the relations themselves; None: never.
        has_order: The engine keeps ordered state, so that ranges are summed, and not paired. Classical maintenance
            (``first_order``, and ``recursive`` with depth 1) does without.
        has_recursive: The engine runs recursive views, so that ``auto`` may take them.
        few_first: Filtered tables are joined first (``few_rows``); if nothing is said, where the engine keeps order.

    Raises:
        NoSkewPlan: the strategy is ``skew``, and a block cannot be maintained so, and why.
    """
    has_order = has_order and strategy not in ("first_order", "skew") and depth != 1
    blocks = BlockOptions(strategy, depth, has_recursive and not is_read_once)
    few_first = strategy == "auto" and (has_order if few_first is None else few_first)
    skew = None if is_read_once else skew
    lowering = _Lowering(plan, facts_of, blocks, keeps_rows, no_tree, skew, has_order=has_order, few_first=few_first)
    if strategy == "recompute":
        return lowering.finish(lowering.add(Anew(lowering.spelled(plan)), schema(plan)))
    return lowering.finish(lowering.root(plan, is_view=not is_read_once))


def lower_factorized_view(plan: Relation, facts_of: FactsOf, skew: SkewOptions | None = None) -> Program:
    """The program of a view whose result stays factorized, with ``skew`` over heavy and light parts.

    Raises:
        Refused: it cannot, and why.
        NoSkewPlan: it cannot by heavy and light parts, and why.
    """
    planned = plan_factorized(plan, facts_of, skew)
    lowering = _Lowering(plan, facts_of, BlockOptions("auto"), lambda _: True, None, None)
    read = [lowering.visit(atom.input) for atom in planned.block.atoms]
    source = block_source(_block_of(plan), planned.block, read)
    if isinstance(plan, Project) and isinstance(source, Aggregate):
        source = Project(source, plan.expressions, plan.names)
    block = _over(planned.block, read)
    program, loading = (
        None if p is None else replace(p, block=block) for p in (planned.factorized.program, planned.factorized.loading)
    )
    assert program is not None
    factorized = replace(planned.factorized, program=program, loading=loading)
    made = FactorizedBlock(replace(planned, block=block, factorized=factorized), source)
    return lowering.finish(lowering.add(made, schema(plan)))


def lower_matrix_chain(plan: Relation, facts_of: FactsOf) -> Program:
    """The program of a product of matrices that is kept in arrays.

    Raises:
        Refused: the plan is no such product.
    """
    matrices = chain_of(plan)
    if matrices is None:
        raise Refused("it is no product of matrices, as create_matrix_chain makes them")
    lowering = _Lowering(plan, facts_of, BlockOptions("auto"), lambda _: True, None, None)
    cells = tuple(lowering.visit(m.columns) for m in matrices)
    own = [MatrixTable(scan.table, scan.fields) for scan in cells]
    made = MatrixBlock(tuple(m.table for m in matrices), cells, chain_plan(own))
    return lowering.finish(lowering.add(made, schema(plan)))


class _Lowering:
    """Collections as they are made, inputs before their users."""

    def __init__(
        self,
        plan: Relation,
        facts_of: FactsOf,
        blocks: BlockOptions,
        keeps_rows: KeepsRows,
        no_tree: str | None,
        skew: SkewOptions | None,
        *,
        has_order: bool = False,
        few_first: bool = False,
    ) -> None:
        self._has_order, self._is_kept = has_order, True
        self._few_first = few_first

        def known_facts(relation: Relation) -> Facts:
            is_own = isinstance(relation, Scan) and relation.table in self._collections
            return Facts() if is_own else facts_of(relation)

        self._skew = skew
        self._has_parts, self._is_summed, self._why_no_parts = False, False, ""
        self._facts_of, self._blocks, self._keeps_rows, self._no_tree = known_facts, blocks, keeps_rows, no_tree
        self._trees_from = 2 if blocks.strategy in TREES_FOR_JOINS and no_tree is None else None
        self._collections: dict[str, Collection] = {}
        self._known: dict[Hashable, Scan] = {}
        self._done: dict[int, tuple[Relation, Scan]] = {}
        self._inputs: dict[str, Scan] = {}
        for node in nodes_of(plan):
            if isinstance(node, Scan):
                widest = self._inputs.get(node.table.lower(), node)
                self._inputs[node.table.lower()] = node if len(node.fields) > len(widest.fields) else widest

    def finish(self, root: Scan) -> Program:
        """The program whose view is ``root``, verified."""
        read = self._inputs.values()
        inputs_read = tuple(ProgramInput(s.table, s.fields, self._facts_of(s).updatable) for s in read)
        program = Program(inputs_read, tuple(self._collections.values()), root.table)
        if self._blocks.strategy == "skew" and not self._has_parts and (self._why_no_parts or not self._is_summed):
            raise NoSkewPlan(self._why_no_parts or "it sums nothing")
        verify_program(program)
        return program

    def spelled(self, plan: Relation) -> Relation:
        """The plan with one spelling of each name that it reads."""

        def rule(relation: Relation) -> Relation | None:
            if not isinstance(relation, Scan):
                return None
            name = self._inputs[relation.table.lower()].table
            return None if name == relation.table else Scan(name, relation.fields)

        return rewrite_bottom_up(plan, rule)

    def root(self, plan: Relation, *, is_view: bool) -> Scan:
        """The scan of what the whole plan becomes."""
        self._is_kept = is_view
        plan = self._without_nested(plan) or plan
        if is_view and self._no_tree is None and self._trees_from is None:
            plan = self._without_threshold(plan) or plan
            joined = self._join_tree(plan, MANY_RELATIONS)
            if joined is not None:
                return joined
        return self.visit(plan)

    def visit(self, relation: Relation) -> Scan:
        """The scan of what a sub-plan becomes."""
        if id(relation) not in self._done:
            self._done[id(relation)] = relation, self._lower(relation)
        return self._done[id(relation)][1]

    def add(self, statement: ProgramStatement, fields: Schema) -> Scan:
        """A scan of the collection that a statement makes; equal statements make one."""
        key = identity_of_statement(statement)
        if key not in self._known:
            number = len(self._collections) + 1
            while f"#{number}" in self._inputs or f"#{number}" in self._collections:
                number += 1
            made = Collection(f"#{number}", fields, statement)
            self._collections[made.name] = made
            self._known[key] = made.scan
        return self._known[key]

    def _lower(self, relation: Relation) -> Scan:
        if self._trees_from is not None:
            joined = self._join_tree(relation, self._trees_from)
            if joined is not None:
                return joined
        match relation:
            case Scan() if relation.table in self._collections:
                return relation
            case Scan():
                return Scan(self._inputs[relation.table.lower()].table, relation.fields)
            case Join() | Filter() | Project() if (plain := self._without_nested(relation)) is not None:
                return self.visit(plain)
            case Join() | Filter() | Project() if (plain := self._without_threshold(relation)) is not None:
                return self.visit(plain)
            case Join() | Filter() | Project() if (plain := self._with_few_first(relation)) is not None:
                return self.visit(plain)
            case Project() if relation.expressions == columns(relation.child):
                return self.visit(relation.child)  # pruning leaves projections that return their input
            case Project(child=Project(child=Scan() as scan) as inner) if _only_columns(relation) and _only_columns(
                inner
            ):
                # A scan yields its columns in any order.
                expressions = tuple(substitute(e, inner.expressions) for e in relation.expressions)
                return self.visit(Project(scan, expressions, relation.names))
            case Join(kind=JoinKind.SINGLE):
                return self._single(relation)
            case Aggregate():
                return self._aggregate(relation)
            case _:
                few = isinstance(relation, Join) and finds_few(relation, self._facts_of)
                return self._apply(with_inputs(relation, tuple(map(self.visit, inputs(relation)))), keeps_slices=few)

    def _apply(self, node: Relation, why_no_tree: str | None = None, *, keeps_slices: bool = False) -> Scan:
        made = Apply(node, rules_of(node, keeps_slices=keeps_slices), why_no_tree, keeps_slices)
        return self.add(made, schema(node))

    def _single(self, join: Join) -> Scan:
        """A left join over a left side that has been checked to have at most one partner a row, unless it surely has."""
        left, right = self.visit(join.left), self.visit(join.right)
        if not is_surely_single(join):
            checked = Join(left, right, JoinKind.SINGLE, join.condition)
            left = self.add(CheckSingle(checked, rules_of(checked)), left.fields)
        padded = split_outer_join(Join(left, right, JoinKind.LEFT, join.condition))
        assert isinstance(padded, UnionAll)
        matched, lonely = padded.inputs
        assert isinstance(lonely, Project)
        return self._apply(
            UnionAll((self._apply(matched), self._apply(replace(lonely, child=self._apply(lonely.child)))))
        )

    def _without_nested(self, relation: Relation) -> Relation | None:
        """The relation over filtered relations in place of nested aggregates, which become statements; None if it has none."""
        if not self._has_order or not isinstance(relation, Join | Filter | Project):
            return None
        flat = first = flatten(relation)
        origins = origins_of(flat)
        while (found := find_nested(flat, origins)) is not None:
            flat, origins, nested = found
            kept, (rows, compared) = outer_columns(flat, nested), outer_rows(flat, nested)
            outer = self.visit(rows)
            statement = NestedFilter(
                outer,
                self.visit(_ready(nested.inner)),
                None if nested.value is None else self.visit(flat.inputs[nested.value]),
                tuple((kept.index(o), i) for o, i in nested.groups),
                compared,
                nested.call,
                nested.argument,
                nested.condition,
                tuple(kept.index(c) for c in nested.bounds),
            )
            flat, origins = without_nested(flat, origins, nested, self.add(statement, outer.fields))
        if flat is first:
            return None
        return _ready(as_relation(flat, tuple(f.name for f in schema(relation))))

    def _without_threshold(self, relation: Relation) -> Relation | None:
        """The relation over rows on one side of a maintained value, in place of a join with that; None if it has none."""
        if not self._has_order or not self._is_kept:
            return None
        flat = flatten(relation)
        found = find_threshold(flat)
        if found is None:
            return None
        whole, given = flat.inputs[found.rows], columns(flat.inputs[found.rows])
        passing = Filter(whole, conjunction(found.filters)) if found.filters else whole
        read = tuple(given[c] for c in found.kept)
        rows = self.visit(_ready(Project(passing, read, tuple(schema(whole)[c].name for c in found.kept))))
        value, column = self.visit(_ready(found.value)), found.kept.index(found.column)
        filtered = self.add(ThresholdFilter(rows, value, column, found.condition), rows.fields)
        return _ready(as_relation(without_threshold(flat, found, filtered), tuple(f.name for f in schema(relation))))

    def _with_few_first(self, relation: Relation) -> Relation | None:
        """The relation with its joins in an order that keeps fewer rows; None where they are in such an order."""
        if not self._few_first:
            return None
        flat = join_few_first(flatten(relation), self._facts_of)
        return None if flat is None else _ready(as_relation(flat, tuple(f.name for f in schema(relation))))

    def _aggregate(self, aggregate: Aggregate) -> Scan:
        """The view tree of an aggregate, or an operator with the reason why it has none."""
        plain = self._without_nested(aggregate.child)
        if plain is not None:
            aggregate = replace(aggregate, child=plain)
        why = self._no_tree
        if why is None:
            try:
                return self._tree(aggregate, self._planned(aggregate))
            except Refused as refused:
                why = str(refused)
                self._why_no_parts = self._why_no_parts or why
        return self._apply(replace(aggregate, child=self.visit(aggregate.child)), why)

    def _planned(self, aggregate: Aggregate) -> Lowered:
        lowered = self._plan(aggregate, may_watch=True)
        block = lowered.program.block
        self._has_parts, self._is_summed = self._has_parts or lowered.skew is not None, True
        self._why_no_parts = self._why_no_parts or lowered.why_no_parts
        if not any(self._forgets(atom.input) for atom in block.atoms):
            return lowered
        if block.may_leave_tree:
            lowered = self._plan(aggregate, may_watch=False)
        return without_first_moments(lowered)

    def _plan(self, aggregate: Aggregate, *, may_watch: bool) -> Lowered:
        if self._blocks.strategy == "skew" and self._skew is not None:
            return plan_skew_block(aggregate, self._facts_of, self._skew, may_watch=may_watch)
        may_split = self._blocks.strategy == "auto" and self._skew is not None
        return plan_block(aggregate, self._facts_of, self._blocks, may_watch=may_watch, may_split=may_split)

    def _forgets(self, relation: Relation) -> bool:
        """Whether the content of a relation would be computed from a table that keeps no rows."""
        match relation:
            case Scan():
                return not self._keeps_rows(relation.table)
            case Filter() | Project() | UnionAll() | Generate() | Window():
                return any(self._forgets(i) for i in inputs(relation))
            case Join():  # an operator keeps what it joins, a tree passes it on
                return self._trees_from is not None and any(self._forgets(i) for i in inputs(relation))
            case _:
                return False

    def _join_tree(self, relation: Relation, least: int) -> Scan | None:
        """The view tree of a join that no aggregate stands on; None where it joins too few relations, or has no tree."""
        if not isinstance(relation, Join | Project | Filter) or len(flatten(relation).inputs) < least:
            return None
        try:
            lowered, join = plan_join(relation, self._facts_of, self._blocks)
        except Refused:
            return None
        if self._trees_from is None and has_scans(lowered.program) and is_searched(relation):
            return None
        return self._tree(relation, lowered, join.outputs)

    def _tree(self, relation: Relation, lowered: Lowered, outputs: tuple[Expression, ...] | None = None) -> Scan:
        block = lowered.program.block
        read = [self.visit(atom.input) for atom in block.atoms]
        source = block_source(relation, block, read)
        over = _over(block, read)
        ordered = [
            None if p is None else order_accesses(p, self._facts_of) if self._has_order else p
            for p in (lowered.program, lowered.loading)
        ]
        if any(p is not None and has_ranges(p) for p in ordered):
            over = replace(over, moments=None)  # what is summed by ranges is summed part by part
        program, loading = (None if p is None else replace(p, block=over) for p in ordered)
        assert program is not None
        moved = replace(lowered, program=program, loading=loading)
        return self.add(TreeBlock(moved, source, outputs), schema(relation))


def _ready(relation: Relation) -> Relation:
    """A relation that was made here, with its join keys as columns, and without those that nobody reads."""
    keyed = rewrite_bottom_up(relation, expose_keys)
    return prune_columns(rewrite_bottom_up(keyed, partial(project_joined_filter, used=columns_used(keyed))))


def _over(block: Block, read: Sequence[Scan]) -> Block:
    """The block with other relations for its atoms."""
    return replace(block, atoms=tuple(replace(a, input=scan) for a, scan in zip(block.atoms, read, strict=True)))


def _block_of(plan: Relation) -> Relation:
    """The part of a factorized view's plan that is its block: without the projection above an aggregate."""
    return plan.child if isinstance(plan, Project) and isinstance(plan.child, Aggregate) else plan


def _only_columns(project: Project) -> bool:
    return all(isinstance(e, Column) for e in project.expressions)
