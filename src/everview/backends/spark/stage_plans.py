"""What each kind of stage computes, as plans over its terms: contents and deltas.

Scans in them: ``k.j`` for input j of term k, and the names below for what the stage itself keeps.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final, assert_never

from everview.backends.spark.payloads import zero
from everview.backends.spark.stages import INPUT, Answered, Grouped, Linear, Partitioned, Stage, TreeView
from everview.backends.spark.term_plans import (
    ONE,
    ZERO,
    add_up,
    consolidated,
    expanded,
    group_sums,
    negated,
    project,
    sum_plan,
    term_plan,
    weighted,
)
from everview.backends.spark.terms import Term, same_value, with_keys
from everview.relational.expressions import Call, Column, conjunction, remap_columns
from everview.relational.nodes import (
    ExceptAll,
    Field,
    Filter,
    Generate,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    Schema,
    TopK,
    UnionAll,
)
from everview.relational.rules.prune_columns import prune_columns
from everview.relational.schema import columns, is_nullable, schema
from everview.relational.traverse import rewrite_bottom_up
from everview.relational.types import BOOLEAN

CHANGED = "@changed"
"""The change of a stage's input or payload."""
OLD = "@old"
"""The stored payload, or output, of the touched groups."""
KEYS = "@keys"
"""The keys of the touched partitions."""
TOTALS: Final = "@totals"
"""Sums of some rows of each group."""
KEPT_PLANS: Final = 512
"""Of each kind: the plans of stages are the same in every transaction, and made once."""


@lru_cache(KEPT_PLANS)
def changed_plan(stage: Stage, picked: tuple[tuple[int, int], ...]) -> Relation:
    """The change of a stage's input, or payload: the sum of terms, each with the input that its joins begin with."""
    total = sum_plan(tuple(stage.terms[number] for number, _ in picked), tuple(start for _, start in picked))
    match stage:
        case Linear():
            made = linear_plan(stage, total)
        case TreeView():
            made = tree_view_plan(stage, total)
        case Grouped():
            made = state_rows(payload_plan(stage, total))
        case Partitioned():
            made = consolidated(total)
        case Answered():
            raise AssertionError("it has no delta: its view is computed anew")
        case _:
            assert_never(stage)
    return prune_columns(made)


@lru_cache(KEPT_PLANS)
def touched_plan(stage: Partitioned) -> tuple[tuple[Term, ...], Relation]:
    """The terms of a stage restricted to the touched partitions, and its delta over them."""
    terms = stage.terms
    if stage.partition:
        terms = tuple(with_keys(t, key_scan(stage), stage.partition) for t in terms)
    return terms, prune_columns(partitioned_delta(stage, sum_plan(terms, (0,) * len(terms))))


@lru_cache(4 * KEPT_PLANS)
def pruned(plan: Relation) -> Relation:
    """The plan that reads only the columns it needs."""
    return prune_columns(plan)


def linear_plan(stage: Linear, total: Relation) -> Relation:
    """The Z-set of a linear stage from the sum of its terms; the same for a content and for a delta."""
    if stage.generate is None:
        return consolidated(total)
    width = len(schema(total)) - 1
    exploded = Generate(
        total, stage.generate.array, stage.generate.outer, stage.generate.with_position, stage.generate.names
    )
    every = columns(exploded)
    return consolidated(project(exploded, (*every[:width], *every[width + 1 :]), every[width]))


def payload_plan(stage: Grouped, total: Relation) -> Relation:
    """The payload of every group that has rows in a sum: keys, sums."""
    return group_sums(total, stage.key_count)


@lru_cache(KEPT_PLANS)
def state_of_totals(stage: Grouped | TreeView) -> Relation:
    """The payload's rows, of the sums of some rows of each group."""
    totals = Scan(TOTALS, tuple(Field(f"c{i}", f.type, f.nullable) for i, f in enumerate(stage.state)))
    summed = add_up(totals, stage.key_count)
    return state_rows(summed) if isinstance(stage, Grouped) else _held(stage, summed)


def tree_view_plan(stage: TreeView, total: Relation) -> Relation:
    """The payloads of a tree's view as rows, from the sum of its terms: a content or a delta; no key has nothing."""
    return _held(stage, group_sums(total, stage.key_count))


def _held(stage: TreeView, summed: Relation) -> Relation:
    payload = columns(summed)[stage.key_count :]
    is_nothing = conjunction(tuple(Call("=", (c, zero(c.type)), BOOLEAN) for c in payload))
    return state_rows(Filter(summed, Call("not", (is_nothing,), BOOLEAN)))


def state_rows(payload: Relation) -> Relation:
    """Payloads as rows of the state's Z-set, without those in which nothing is left."""
    every = columns(payload)
    return project(payload, every, ONE)


def grouped_content(stage: Grouped) -> Relation:
    """The output of a grouped stage from its whole payload, scanned as ``OLD``."""
    state = Scan(OLD, weighted(stage.state))
    summed = add_up(_without_weight(state), stage.key_count)
    return _group_rows(stage, _fitting(stage, summed, 0), 0)


@lru_cache(KEPT_PLANS)
def unfit_groups(stage: Grouped, scans: tuple[str, ...]) -> Relation:
    """The groups that have a float that does not fit, in payloads that are scanned under these names, as keys of ``anew``."""
    assert stage.anew is not None
    payloads = tuple(_without_weight(Scan(name, weighted(stage.state))) for name in scans)
    summed = add_up(payloads[0] if len(payloads) == 1 else UnionAll(payloads), stage.key_count)
    is_unfit = Call("not", (Call("=", (columns(summed)[stage.key_count + 1], ZERO), BOOLEAN),), BOOLEAN)
    return project(Filter(summed, is_unfit), stage.anew.output_key, ONE)


@lru_cache(KEPT_PLANS)
def anew_content(stage: Partitioned) -> tuple[tuple[Term, ...], Relation]:
    """The terms of a stage restricted to some groups, and what they are."""
    terms = stage.terms
    if stage.partition:
        terms = tuple(with_keys(t, key_scan(stage), stage.partition) for t in terms)
    return terms, consolidated(partitioned_content(stage, sum_plan(terms, tuple(0 for _ in terms))))


def _fitting(stage: Grouped, summed: Relation, skip: int) -> Relation:
    """Without the groups that are computed anew, by the payload that begins ``skip`` columns after the keys."""
    if stage.anew is None:
        return summed
    return Filter(summed, Call("=", (columns(summed)[stage.key_count + 1 + skip], ZERO), BOOLEAN))


@lru_cache(KEPT_PLANS)
def grouped_delta(stage: Grouped) -> Relation:
    """The output's delta from ``OLD`` payloads and the ``CHANGED`` ones: the new row of each touched group, less the old."""
    keys, payload = stage.keys, stage.payload
    old, changed = (_without_weight(Scan(name, weighted(stage.state))) for name in (OLD, CHANGED))
    nothing = tuple(zero(f.type) for f in payload)
    width = len(keys)
    names = tuple(f"c{i}" for i in range(width + 2 * len(payload)))
    # old, and old + change, side by side
    before = Project(old, (*columns(old), *columns(old)[width:]), names)
    after = Project(changed, (*columns(changed)[:width], *nothing, *columns(changed)[width:]), names)
    both = add_up(UnionAll((before, after)), width)
    touched = _of_changed(stage, both)
    gone = negated(_group_rows(stage, _fitting(stage, touched, 0), 0))
    come = _group_rows(stage, _fitting(stage, touched, len(payload)), len(payload))
    return consolidated(UnionAll((gone, come)))


@lru_cache(KEPT_PLANS)
def group_counts(stage: Grouped) -> Relation:
    """The number of rows of each touched group after the change: for stages that allow but one."""
    old, changed = (_without_weight(Scan(name, weighted(stage.state))) for name in (OLD, CHANGED))
    summed = add_up(UnionAll((old, changed)), stage.key_count)
    too_many = Filter(summed, Call(">", (columns(summed)[stage.key_count], ONE), BOOLEAN))
    return Project(too_many, (columns(too_many)[stage.key_count],), ("n",))


def _of_changed(stage: Grouped, both: Relation) -> Relation:
    """Only groups that the change names: a look-up of the old payloads may have found more."""
    changed = Scan(CHANGED, weighted(stage.state))
    keys = tuple(columns(changed)[: stage.key_count])
    if not keys:
        return both
    width = len(schema(both))
    on = conjunction(
        tuple(same_value(columns(both)[i], Column(width + i, k.type, k.nullable)) for i, k in enumerate(keys))
    )
    return Join(both, changed, JoinKind.SEMI, on)


def _group_rows(stage: Grouped, summed: Relation, skip: int) -> Relation:
    """The rows of groups; the payload begins ``skip`` columns after the keys."""

    def place(index: int) -> int:
        return index if index < stage.key_count else index + skip

    weight = remap_columns(stage.weight, place)
    present = Filter(summed, Call("not", (Call("=", (weight, ZERO), BOOLEAN),), BOOLEAN))
    return project(present, tuple(remap_columns(e, place) for e in stage.outputs), weight)


@lru_cache(KEPT_PLANS)
def partition_keys(stage: Partitioned) -> Relation:
    """The keys that a ``CHANGED`` input touches, each once, as a Z-set."""
    changed = Scan(CHANGED, weighted(input_fields(stage)))
    every = project(changed, stage.partition, ONE)
    summed = add_up(every, len(stage.partition))
    return project(summed, columns(summed)[:-1], ONE)


def key_scan(stage: Partitioned) -> Scan:
    """The touched keys, as an input of terms."""
    return Scan(KEYS, key_fields(stage))


def key_fields(stage: Partitioned) -> Schema:
    """The columns of the touched keys."""
    return tuple(Field(f"k{i}", e.type, is_nullable(e)) for i, e in enumerate(stage.partition))


def partitioned_content(stage: Partitioned, total: Relation) -> Relation:
    """The operator over the rows of a sum, as a Z-set."""
    applied = _applied(stage.operator, expanded(consolidated(total)))
    return project(applied, columns(applied), ONE)


def answered_content(stage: Answered) -> Relation:
    """Spark's answer over the rows of the terms, as a Z-set."""
    bags = tuple(expanded(consolidated(term_plan(t, k, t.first))) for k, t in enumerate(stage.terms))
    answered = replace(stage.query, inputs=tuple(map(_named, bags, stage.query.inputs)))
    return consolidated(project(answered, columns(answered), ONE))


def _named(bag: Relation, like: Relation) -> Relation:
    """A bag with the column names that a query knows its input by."""
    return Project(bag, columns(bag), tuple(f.name for f in schema(like)))


def _applied(operator: Relation, bag: Relation) -> Relation:
    return rewrite_bottom_up(operator, lambda n: bag if isinstance(n, Scan) and n.table == INPUT else None)


@lru_cache(KEPT_PLANS)
def top_delta(stage: Partitioned) -> Relation:
    """The delta of the first k rows, from the ``OLD`` ones and the input's change alone, where that is enough.

    What is not among the first k comes behind the last of them, t. So among the old rows and those that came, less those that
    went, rows up to t are as often as in the input, but for t itself, of which there may be more. With k rows up to t, the
    first k of these are the answer. ``top_is_open`` says whether there are fewer.
    """
    old = _old_rows(stage)
    first = _applied(stage.operator, _candidates(stage))
    return consolidated(UnionAll((project(first, columns(first), ONE), negated(old))))


@lru_cache(KEPT_PLANS)
def top_is_open(stage: Partitioned) -> Relation:
    """Rows, if fewer than k of what ``top_delta`` looks at come no later than the last of k old ones; else none.

    One more t changes the first k rows exactly if t, or something behind it, is among them or would have to be.
    """
    assert isinstance(stage.operator, TopK)
    held = expanded(consolidated(_old_rows(stage)))
    before = TopK(held, stage.operator.order, stage.first - 1)
    candidates = _candidates(stage)
    one_more = _applied(stage.operator, UnionAll((candidates, ExceptAll(held, before))))
    return ExceptAll(one_more, _applied(stage.operator, candidates))


def _candidates(stage: Partitioned) -> Relation:
    return expanded(consolidated(UnionAll((_old_rows(stage), Scan(CHANGED, schema(_old_rows(stage)))))))


def _old_rows(stage: Partitioned) -> Scan:
    pairs = zip(stage.fields, input_fields(stage), strict=True)
    return Scan(OLD, weighted(tuple(Field(a.name, a.type, a.nullable or b.nullable) for a, b in pairs)))


def partitioned_delta(stage: Partitioned, total: Relation) -> Relation:
    """New rows of the touched partitions (``total`` is restricted to them), less the ``OLD`` ones with the same keys."""
    return consolidated(UnionAll((partitioned_content(stage, total), negated(_touched_rows(stage)))))


@lru_cache(KEPT_PLANS)
def partitions_gone(stage: Partitioned) -> Relation:
    """Less the ``OLD`` rows of the touched partitions."""
    return consolidated(negated(_touched_rows(stage)))


def _touched_rows(stage: Partitioned) -> Relation:
    old = Scan(OLD, weighted(stage.fields))
    if not stage.partition:
        return old
    width = len(schema(old))
    on = conjunction(
        tuple(same_value(e, Column(width + i, e.type, is_nullable(e))) for i, e in enumerate(stage.output_key))
    )
    return Join(old, Scan(KEYS, weighted(key_fields(stage))), JoinKind.SEMI, on)


def input_fields(stage: Partitioned) -> Schema:
    """The columns of the operator's input."""
    # The terms of a union have their NULLs in different columns.
    alike = zip(*(term.outputs for term in stage.terms), strict=True)
    return tuple(Field(f"c{i}", es[0].type, any(map(is_nullable, es))) for i, es in enumerate(alike))


def _without_weight(plan: Relation) -> Relation:
    return Project(plan, columns(plan)[:-1], tuple(f.name for f in schema(plan)[:-1]))
