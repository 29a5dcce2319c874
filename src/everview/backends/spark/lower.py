"""How Spark executes a trigger program: linear statements as terms, everything else as a stage over terms.

A collection is a sum of terms over tables, other views and stages. What scans it continues these terms, so that linear
collections are stored nowhere. A view tree is executed as what it computes (``TreeBlock.source``): its joins are terms too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from everview.backends.spark.choose_tree import TreeOptions, choose_tree
from everview.backends.spark.lower_tree import AtomInput, UncutTerms, lower_tree, tells_rows_apart
from everview.backends.spark.payloads import ONE, ZERO, Payload, group_payload, is_ring_aggregate
from everview.backends.spark.stages import (
    INPUT,
    Answered,
    BlockChoice,
    Grouped,
    Linear,
    Partitioned,
    Stage,
    StageProgram,
    TreeView,
)
from everview.backends.spark.terms import Term, filtered, joined, leaf_term, negated, projected, same_value
from everview.errors import UnsupportedQuery
from everview.planner.block_join_builder import Facts
from everview.relational.expressions import (
    Call,
    Case,
    Column,
    Expression,
    columns_of,
    conjunction,
    remap_columns,
)
from everview.relational.join_condition import JoinCondition, split_join_condition
from everview.relational.nodes import (
    Aggregate,
    Distinct,
    ExceptAll,
    Field,
    Filter,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Recursive,
    Relation,
    Scan,
    Schema,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
)
from everview.relational.schema import columns, is_nullable, schema
from everview.relational.traverse import with_inputs
from everview.relational.types import BOOLEAN, INT64
from everview.relational.unique_keys import UniqueKey, unique_keys
from everview.trigger.lower_plan import lower_plan
from everview.trigger.program import (
    Anew,
    Apply,
    CheckSingle,
    FactorizedBlock,
    MatrixBlock,
    NestedFilter,
    Program,
    ProgramStatement,
    ThresholdFilter,
    TreeBlock,
)

_MOST_TERMS = 12
"""A sum with more terms than this becomes a stage of its own: joins of sums multiply them."""


def lower(name: str, program: Program, trees: TreeOptions | None = None) -> StageProgram:
    """The stages of a view; without ``trees``, all joins are terms over the relations that the view reads."""
    lowering = _Lowering(name, trees)
    lowering.root(lowering.collections(program))
    fixed = frozenset[str]() if trees is None else trees.fixed
    return StageProgram(tuple(lowering.stages), program, lowering.choices, fixed)


class _Lowering:
    def __init__(self, name: str, trees: TreeOptions | None) -> None:
        self.stages: list[Stage] = []
        self._trees = trees
        self._view = name
        self._known: dict[tuple[object, ...], Scan] = {}
        self._made: dict[str, list[Term]] = {}
        self._keys: dict[str, tuple[UniqueKey, ...]] = {}
        """The unique keys of collections."""
        self.choices: dict[str, BlockChoice] = {}
        """How the aggregates over joins among the collections are maintained."""

    def collections(self, program: Program) -> Scan:
        """Lowers the collections of a program one after another; returns a scan of the root."""
        for collection in program.collections:
            self._made[collection.name] = self._statement(collection.name, collection.statement)
            self._keys[collection.name] = unique_keys(_relation(collection.statement), lambda s: self._facts(s).keys)
        return program.root_scan

    def _facts(self, relation: Relation) -> Facts:
        if isinstance(relation, Scan) and relation.table in self._made:
            return Facts(self._keys[relation.table])
        return Facts() if self._trees is None else self._trees.facts_of(relation)

    def _statement(self, name: str, statement: ProgramStatement) -> list[Term]:
        match statement:
            case Apply(node=Aggregate() as aggregate, why_no_tree=str() as why):
                return self._block(name, aggregate, BlockChoice(None, why))
            case TreeBlock(source=Aggregate() as aggregate, lowered=lowered):
                options = None if self._trees is None else replace(self._trees, facts_of=self._facts)
                return self._block(name, aggregate, choose_tree(lowered.program.block, options))
            case Apply(node=node):
                return self.terms(node)
            case CheckSingle(node=join):
                self._guard(join)
                return self.terms(join.left)
            case TreeBlock(source=source) | FactorizedBlock(source=source) | MatrixBlock(source=source):
                return self.terms(source)  # a join that nothing sums is passed on, not kept
            case NestedFilter() | ThresholdFilter():
                raise AssertionError("programs for Spark are lowered without ordered state")
            case Anew(plan=plan):
                # Its stages are computed anew one by one.
                return self.terms(self.collections(lower_plan(plan, lambda _: Facts())))
            case _:
                assert_never(statement)

    def _block(self, name: str, node: Aggregate, choice: BlockChoice | None) -> list[Term]:
        if choice is not None:
            self.choices[name] = choice
        return self._stage(node, lambda name: self._aggregate(name, node, choice))

    def root(self, plan: Scan) -> None:
        terms = tuple(self.terms(plan))
        last = self.stages[-1] if self.stages else None
        if last is not None and len(terms) == 1 and _is_whole(terms[0], last) and not _is_guard(last):
            self.stages[-1] = _renamed(last, self._view, schema(plan))
        else:
            self.stages.append(Linear(self._view, schema(plan), terms))

    def terms(self, node: Relation) -> list[Term]:
        match node:
            case Scan():
                known = self._made.get(node.table)
                return known if known is not None else [leaf_term(Scan(node.table.lower(), node.fields))]
            case Values():
                return [leaf_term(node)]
            case Filter():
                return [filtered(t, node.condition) for t in self.terms(node.child)]
            case Project():
                return [projected(t, node.expressions) for t in self.terms(node.child)]
            case Recursive():
                raise UnsupportedQuery(
                    "the spark backend does not maintain recursive queries.",
                    operator="WITH RECURSIVE",
                    hint="the embedded backend does.",
                )
            case SparkQuery():
                return self._stage(node, lambda name: self._answered(name, node))
            case UnionAll():
                return [t for i in node.inputs for t in self.terms(i)]
            case Join():
                return self._join(node)
            case Generate():
                return self._stage(node, lambda name: self._generate(name, node))
            case Aggregate():
                return self._stage(node, lambda name: self._aggregate(name, node, None))
            case Distinct():
                return self._stage(node, lambda name: self._distinct(name, self.terms(node.child), schema(node)))
            case ExceptAll() | IntersectAll() | UnionMax():
                return self._stage(node, lambda name: self._set_operation(name, node))
            case Window():
                return self._stage(node, lambda name: self._window(name, node))
            case TopK():
                return self._stage(node, lambda name: self._partitioned(name, node, (), ()))
            case _:
                assert_never(node)

    # Joins

    def _join(self, join: Join) -> list[Term]:
        match join.kind:
            case JoinKind.INNER:
                left, right = self._factor(join.left), self._factor(join.right)
                return [joined(a, b, join.condition) for a in left for b in right]
            case JoinKind.SEMI:
                return self._matched(join)
            case JoinKind.ANTI:
                return [*self._factor(join.left), *(negated(t) for t in self._matched(join))]
            case _:
                raise AssertionError(f"{join.kind} is split before lowering")

    def _factor(self, node: Relation) -> list[Term]:
        """The terms of a join's input; one of them, over a stage, where there are too many to multiply out."""
        terms = self.terms(node)
        if len(terms) <= _MOST_TERMS // 3:
            return terms
        return self._stage(("sum", node), lambda name: Linear(name, schema(node), tuple(terms)))

    def _matched(self, join: Join) -> list[Term]:
        """L ⋉ R as L ⋈ D."""
        left = self._factor(join.left)
        condition = split_join_condition(join)
        if condition.equalities and not condition.residual:
            keys = tuple(e.right for e in condition.equalities)
            fields = _key_fields(keys)
            below = [projected(t, keys) for t in self.terms(join.right)]
            found = self._stage(("keys", join.right, keys), lambda name: self._distinct(name, below, fields))
            on = _equal_keys(condition, fields, len(schema(join.left)))
        else:
            width = len(schema(join.left))
            read = tuple(sorted(c for c in columns_of(join.condition) if c < width))
            kept = tuple(columns(join.left)[c] for c in read)
            pairs = [joined(a, b, join.condition) for a in left for b in self._factor(join.right)]
            below = [projected(t, kept) for t in pairs]
            fields = _key_fields(kept)
            found = self._stage(("pairs", join), lambda name: self._distinct(name, below, fields))
            on = conjunction(tuple(same_value(c, Column(width + i, c.type, c.nullable)) for i, c in enumerate(kept)))
        whole = [joined(a, b, on) for a in left for b in found]
        return [projected(t, columns(join.left)) for t in whole]

    def _guard(self, join: Join) -> None:
        """A stage that fails where a row of the left side has two partners."""
        width = len(schema(join.left))
        read = tuple(sorted(c for c in columns_of(join.condition) if c < width))
        kept = tuple(columns(join.left)[c] for c in read)
        fields = _key_fields(kept)
        once = [projected(t, kept) for t in self._factor(join.left)]
        distinct = self._stage(("once", join), lambda name: self._distinct(name, once, fields))
        places = {c: i for i, c in enumerate(read)}
        condition = remap_columns(join.condition, lambda c: places[c] if c < width else c - width + len(read))
        pairs = [joined(a, b, condition) for a in distinct for b in self._factor(join.right)]
        below = tuple(
            projected(t, (*(Column(i, f.type, f.nullable) for i, f in enumerate(fields)), ONE)) for t in pairs
        )
        self._stage(
            ("guard", join),
            lambda name: Grouped(
                name,
                fields,
                below,
                len(fields),
                (*fields, _COUNT),
                _columns(fields),
                _present(len(fields)),
                is_single=True,
            ),
        )

    # Stages

    def _stage(self, key: object, make: Callable[[str], Stage]) -> list[Term]:
        entry = (key,)
        if entry not in self._known:
            # What is below has been numbered first, because making the stage asks for its terms.
            stage = make("?")
            stage = _renamed(stage, f"{self._view}#{len(self.stages)}", stage.fields)
            self.stages.append(stage)
            self._known[entry] = Scan(stage.name, stage.fields)
        return [leaf_term(self._known[entry])]

    def _answered(self, name: str, node: SparkQuery) -> Stage:
        terms = []
        for read in node.inputs:
            own = self.terms(read)
            if len(own) != 1:
                sums = Linear("", schema(read), tuple(own))
                own = self._stage(("sum", read), lambda name, sums=sums: _renamed(sums, name, sums.fields))  # type: ignore[misc]
            terms += own
        return Answered(name, node.fields, tuple(terms), node)

    def _generate(self, name: str, node: Generate) -> Stage:
        over = with_inputs(node, (Scan(INPUT, schema(node.child)),))
        assert isinstance(over, Generate)
        return Linear(name, schema(node), tuple(self.terms(node.child)), over)

    def _aggregate(self, name: str, node: Aggregate, choice: BlockChoice | None) -> Stage:
        if choice is not None and choice.tree is not None:
            return self._tree(name, node, choice)
        if not is_ring_aggregate(node):
            keys = tuple(columns(node)[: len(node.keys)])
            return self._partitioned(name, node, node.keys, keys, choice)
        payload = group_payload(node)
        terms = tuple(projected(t, (*node.keys, *payload.contributions)) for t in self.terms(node.child))
        stage = self._payload_stage(name, node, terms, payload, choice)
        if payload.uncut is None:
            return stage
        values = payload.uncut.values
        rows = tuple(projected(t, (*node.keys, *values)) for t in self.terms(node.child))
        fields = (*stage.keys, *_key_fields(values))
        return replace(stage, uncut=Linear(name, fields, rows), parts=payload.uncut.parts)

    def _payload_stage(
        self, name: str, node: Aggregate, terms: tuple[Term, ...], payload: Payload, choice: BlockChoice | None
    ) -> Grouped:
        """The stage of an aggregate's payload; groups with floats that do not fit are computed from the joined rows."""
        keys = tuple(columns(node)[: len(node.keys)])
        return Grouped(
            name,
            schema(node),
            terms,
            len(keys),
            (*schema(node)[: len(keys)], *payload.fields),
            payload.outputs,
            _present(len(keys)) if keys else ONE,
            is_global=not keys,
            anew=self._partitioned(name, node, node.keys, keys) if payload.has_floats else None,
            choice=choice,
        )

    def _tree(self, name: str, node: Aggregate, choice: BlockChoice) -> Stage:
        """The result of a view tree, the other views of which become stages before it."""
        assert choice.tree is not None
        # The program that loads the view joins everything, that of changes only what can change.
        program = choice.tree.loading or choice.tree.program
        atoms = program.block.atoms
        inputs = [AtomInput(tuple(self.terms(a.input)), tells_rows_apart(a, self._facts)) for a in atoms]

        def add_view(
            view: str, terms: tuple[Term, ...], fields: Schema, key_count: int, uncut: UncutTerms | None
        ) -> Scan:
            # Equal views of a self-join, or of two aggregates, are one stage.
            key = ("tree view", terms, tuple(f.type for f in fields), key_count)
            rows = None if uncut is None else Linear(name, uncut.fields, uncut.terms)
            parts = () if uncut is None else uncut.parts
            (only,) = self._stage(key, lambda name: TreeView(name, fields, terms, key_count, view, rows, parts))
            (scan,) = only.inputs
            assert isinstance(scan, Scan)
            return scan

        result = lower_tree(program, inputs, add_view)
        return self._payload_stage(name, node, result.terms, result.payload, choice)

    def _distinct(self, name: str, below: list[Term], fields: Schema) -> Stage:
        terms = tuple(projected(t, (*_outputs(t, fields), ONE)) for t in below)
        state = (*fields, _COUNT)
        return Grouped(name, fields, terms, len(fields), state, _columns(fields), _present(len(fields)))

    def _set_operation(self, name: str, node: ExceptAll | IntersectAll | UnionMax) -> Stage:
        pairs = zip(schema(node.left), schema(node.right), strict=True)
        fields = tuple(Field(a.name, a.type, a.nullable or b.nullable) for a, b in pairs)
        sides = ((self.terms(node.left), (ONE, ONE, ZERO)), (self.terms(node.right), (ONE, ZERO, ONE)))
        terms = tuple(projected(t, (*_outputs(t, fields), *flags)) for below, flags in sides for t in below)
        width = len(fields)
        left, right = Column(width + 1, INT64, False), Column(width + 2, INT64, False)
        match node:
            case ExceptAll():
                weight: Expression = _call("greatest", _call("-", left, right), ZERO)
            case IntersectAll():
                weight = _call("least", left, right)
            case UnionMax():
                weight = _call("greatest", left, right)
        state = (*fields, _COUNT, Field("left", INT64, False), Field("right", INT64, False))
        return Grouped(name, schema(node), terms, width, state, _columns(fields), weight)

    def _window(self, name: str, node: Window) -> Stage:
        return self._partitioned(name, node, node.partition, node.partition)

    def _partitioned(
        self,
        name: str,
        node: Aggregate | Window | TopK,
        partition: tuple[Expression, ...],
        output_key: tuple[Expression, ...],
        choice: BlockChoice | None = None,
    ) -> Partitioned:
        over = with_inputs(node, (Scan(INPUT, schema(node.child)),))
        # A constant tells no rows apart, and neither does the same expression twice.
        told = {p: k for p, k in zip(partition, output_key, strict=True) if columns_of(p)}
        terms = tuple(self.terms(node.child))
        return Partitioned(name, schema(node), terms, tuple(told), over, tuple(told.values()), choice)


_COUNT = Field("count", INT64, False)


def _present(position: int) -> Expression:
    """1 where the count at this position is positive, else 0."""
    is_there = Call(">", (Column(position, INT64, False), ZERO), BOOLEAN)
    return Case(((is_there, ONE),), ZERO)


def _call(name: str, left: Expression, right: Expression) -> Expression:
    return Call(name, (left, right), INT64)


def _columns(fields: Schema) -> tuple[Expression, ...]:
    return tuple(Column(i, f.type, f.nullable) for i, f in enumerate(fields))


def _outputs(term: Term, fields: Schema) -> tuple[Expression, ...]:
    return tuple(Column(i, e.type, f.nullable) for i, (e, f) in enumerate(zip(term.outputs, fields, strict=True)))


def _key_fields(keys: tuple[Expression, ...]) -> Schema:
    return tuple(Field(f"k{i}", k.type, is_nullable(k)) for i, k in enumerate(keys))


def _equal_keys(condition: JoinCondition, fields: Schema, width: int) -> Expression:
    """The equalities of a join with the key columns in place of the right side's expressions."""
    parts = []
    for i, (equality, key) in enumerate(zip(condition.equalities, fields, strict=True)):
        right = Column(width + i, key.type, key.nullable)
        parts.append(Call("<=>" if equality.null_safe else "=", (equality.left, right), BOOLEAN))
    return conjunction(tuple(parts))


def _is_whole(term: Term, stage: Stage) -> bool:
    """Whether the term is just the output of the stage."""
    (first, *others) = term.inputs
    is_scan = not others and isinstance(first, Scan) and first.table == stage.name
    return is_scan and term.sign == 1 and not term.conjuncts and term.outputs == columns(first)


def _is_guard(stage: Stage) -> bool:
    return isinstance(stage, Grouped) and stage.is_single


def _renamed(stage: Stage, name: str, fields: Schema) -> Stage:
    if isinstance(stage, Grouped) and stage.anew is not None:
        stage = replace(stage, anew=replace(stage.anew, name=name, fields=fields))
    return replace(stage, name=name, fields=fields)


def _relation(statement: ProgramStatement) -> Relation:
    """What a statement makes, as a relation over scans of collections and inputs."""
    match statement:
        case Apply(node=node):
            return node
        case CheckSingle(node=join):
            return join.left
        case TreeBlock(source=source) | FactorizedBlock(source=source) | MatrixBlock(source=source):
            return source
        case NestedFilter() | ThresholdFilter():
            raise AssertionError("programs for Spark are lowered without ordered state")
        case Anew(plan=plan):
            return plan
        case _:
            assert_never(statement)
