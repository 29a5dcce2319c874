"""Indicators in the engine: views of cyclic queries stay small, and the answer is what it was, after every change."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal as Number

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.tree.machine import CHUNK
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.planner.block import Block
from everview.planner.block_build import Facts, build_block
from everview.planner.block_join import build_join_block
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_tree import Indicators, TreePlan, plan_tree
from everview.planner.variable_order import parse_order
from everview.planner.view_tree import Indicator, InnerView
from everview.relational.arrow import column_to_arrow, rows_from_arrow
from everview.relational.expressions import Call, Column, Expression
from everview.relational.functions.decimals import product_type
from everview.relational.nodes import Aggregate, AggregateCall, Filter, Project, Relation, Scan, Schema
from everview.relational.schema import schema
from everview.relational.traverse import scans_of
from everview.relational.types import BOOLEAN, FLOAT64, INT64, Decimal, Row
from everview.trigger.lower_factorized import lower_factorized
from everview.trigger.lower_tree import lower_tree
from everview.trigger.plan_block import BlockOptions, Lowered, plan_block
from everview.trigger.plan_factorized import Refused, plan_factorized
from tests.unit.backends.embedded.tree.cyclic_queries import MONEY, ORDERS, SHAPES, cyclic_join
from tests.unit.backends.embedded.tree.factorized_run import FactorizedRun
from tests.unit.backends.embedded.tree.generate_blocks import random_order
from tests.unit.backends.embedded.tree.given_inputs import Change as Changes
from tests.unit.backends.embedded.tree.given_inputs import TreeRun

NAMES = "RSTUWX"
COUNT = AggregateCall("count", (), INT64)


@dataclass(frozen=True)
class Case:
    """A cyclic query with its tables and how many keys each has."""

    relation: Relation
    arities: dict[str, int]
    static: frozenset[str]
    nullable: bool

    def facts(self, relation: Relation) -> Facts:
        return Facts(updatable=not (isinstance(relation, Scan) and relation.table in self.static))


def random_case(rng: random.Random, *, is_join: bool = False) -> Case:
    """Any of the shapes; atoms may be over one table, predicates may go across atoms."""
    shape = SHAPES[rng.choice(tuple(SHAPES))]
    tables = [f"t{len(v)}" if rng.random() < 0.5 else f"t{len(v)}_{rng.randrange(3)}" for v in shape]
    if rng.random() < 0.3:
        tables = [f"t{len(v)}" for v in shape]
    nullable = rng.random() < 0.4
    joined, read = cyclic_join(shape, tables, nullable=nullable, equal=rng.choice(("=", "=", "<=>")))
    if rng.random() < 0.25:
        one, other = rng.sample(range(len(read)), 2)
        joined = Filter(joined, Call("<=", (read[one][0], read[other][1]), BOOLEAN))
    if rng.random() < 0.2:
        joined = Filter(joined, Call("isnotnull", (rng.choice(read)[-1],), BOOLEAN))
    arities = {name: len(v) for v, name in zip(shape, tables, strict=True)}
    static = frozenset(t for t in arities if rng.random() < 0.15)
    if is_join:
        picked = tuple(rng.choice(read)[0] for _ in range(rng.randint(1, 3)))
        relation: Relation = Project(joined, picked, tuple(f"o{i}" for i in range(len(picked))))
    else:
        keys = tuple(rng.choice(read)[0] for _ in range(rng.choice((0, 0, 1, 2))))
        calls = (COUNT, *rng.sample(sums(rng, read), rng.randint(0, 3)))
        relation = Aggregate(joined, keys, calls, tuple(f"o{i}" for i in range(len(keys) + len(calls))))
    return Case(relation, arities, static, nullable)


def sums(rng: random.Random, read: list[tuple[Column, ...]]) -> list[AggregateCall]:
    """Sums of one atom and of products of two, exact and floating."""
    (d, f), (e, g) = (rng.choice(read)[-2:] for _ in range(2))
    exact = Call("*", (d, e), product_type(MONEY, MONEY))
    return [
        AggregateCall("sum", (d,), Decimal(18, 2)),
        AggregateCall("sum", (exact,), Decimal(27, 4)),
        AggregateCall("sum", (f,), FLOAT64),
        AggregateCall("sum", (Call("*", (f, g), FLOAT64),), FLOAT64),
        AggregateCall("avg", (g,), FLOAT64),
    ]


def lowered(rng: random.Random, block: Block, indicators: Indicators, *, keeps_result: bool = True) -> Lowered:
    """Over any order, with views inlined or not."""
    order, inline = random_order(rng, block.query), rng.random() < 0.2
    tree = plan_tree(block.query, order=order, inline=inline, indicators=indicators).tree
    program = lower_tree(block, tree, materialized_nodes(tree, roots=False), keeps_result=keeps_result)
    if all(atom.updatable for atom in block.query.atoms):
        return Lowered(program, None, None)
    joined = {c.name for v in tree.nodes() if isinstance(v, InnerView) and len(v.children) > 1 for c in v.children}
    loading = lower_tree(block, tree, frozenset(joined), keeps_result=keeps_result)
    assert program.stored <= loading.stored
    return Lowered(program, None, loading)


def random_rows(rng: random.Random, arity: int, count: int, *, nullable: bool) -> list[Row]:
    """Rows over few values, so that cycles close; floats whose sums are exact in any order."""
    domain = [0, 1, None] if nullable else [0, 1, 2]
    numbers = [None, Number("0.05"), Number("-3.10"), Number("999999.99")]
    return [
        (*(rng.choice(domain) for _ in range(arity)), rng.choice(numbers), rng.choice((None, 0.5, -2.0, 3.0)))
        for _ in range(count)
    ]


def random_change(rng: random.Random, case: Case, held: dict[str, list[Row]]) -> Changes:
    """Rows that come and go, sometimes all of a table."""
    change = {}
    for name, arity in case.arities.items():
        if name in case.static or rng.random() < 0.3:
            continue
        share = rng.choice((0.0, 0.3, 0.3, 1.0))
        gone = [row for row in held[name] if rng.random() < share]
        come = random_rows(rng, arity, rng.choice((0, 1, 3)), nullable=case.nullable)
        change[name] = (come + (gone[:2] if rng.random() < 0.3 else []), gone)
    return change


@given(st.integers(0, 2**40))
@settings(max_examples=150, deadline=None)
def test_cyclic_aggregates_are_maintained(seed: int) -> None:
    """For any order and all indicators of figure 17; a transaction that fails leaves no trace."""
    rng = random.Random(seed)
    check_stream(rng, random_case(rng), rng.choice(("useful", "all", "all")))


@given(st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_cyclic_joins_are_maintained(seed: int) -> None:
    """The same without an aggregate: the deltas of all paths add up to the rows of the join."""
    rng = random.Random(seed)
    check_stream(rng, random_case(rng, is_join=True), rng.choice(("useful", "all", "all")))


@given(st.integers(0, 2**40))
@settings(max_examples=100, deadline=None)
def test_factorized_cyclic_results_are_maintained(seed: int) -> None:
    """Results that stay spread over the tree are enumerated as before, within a transaction and after it."""
    rng = random.Random(seed)
    case = random_case(rng, is_join=rng.random() < 0.5)
    indicators: Indicators = rng.choice(("useful", "all"))
    try:
        planned = plan_factorized(case.relation, case.facts)
    except Refused:
        return
    tree = plan_tree(planned.block.query, representation="factorized", indicators=indicators).tree
    tables = {t: random_rows(rng, n, rng.choice((0, 2, 5)), nullable=case.nullable) for t, n in case.arities.items()}
    run = FactorizedRun(case.relation, replace(planned, factorized=lower_factorized(planned.block, tree)), tables)
    run.check()
    for _ in range(rng.randint(3, 8)):
        change = random_change(rng, case, run.tables)
        if rng.random() < 0.25:
            run.roll_back(change)
        else:
            run.commit(change, reads_before=rng.random() < 0.5)
        run.check()


def check_stream(rng: random.Random, case: Case, indicators: Indicators) -> None:
    """A random stream of changes."""
    outputs: tuple[Expression, ...] | None = None
    if isinstance(case.relation, Aggregate):
        block = build_block(case.relation, case.facts)
    else:
        join = build_join_block(case.relation, case.facts)
        block, outputs = join.block, join.outputs
    tables = {
        t: random_rows(rng, arity, rng.choice((0, 2, 5)), nullable=case.nullable) for t, arity in case.arities.items()
    }
    run = TreeRun(case.relation, lowered(rng, block, indicators, keeps_result=outputs is None), tables, outputs)
    run.check()
    for _ in range(rng.randint(3, 12)):
        change = random_change(rng, case, run.tables)
        if rng.random() < 0.25:
            run.roll_back(change)
        else:
            run.commit(change)
        run.check()
    state = run.operator.state
    for view in state.program.views:
        if view.indicates is not None and view.name in state.maps:
            entries = state.maps[view.name].entries[state.maps[view.name].live_slots()]
            assert (entries[:, state.maps[view.name].offsets[0]] > 0).all(), "an indicator keeps keys that are gone"


def count_of(name: str, indicators: Indicators) -> tuple[Aggregate, Lowered]:
    """The number of rows of a shape's join, over tables of their own, along the order of the literature."""
    shape = SHAPES[name]
    joined, _ = cyclic_join(shape, list(NAMES[: len(shape)]))
    aggregate = Aggregate(joined, (), (COUNT,), ("n",))
    block = build_block(aggregate, lambda _: Facts())
    order = parse_order(block.query, ORDERS[name])
    plan = plan_tree(block.query, order=order, inline=False, indicators=indicators)
    return aggregate, Lowered(lower_tree(block, plan.tree, materialized_nodes(plan.tree, roots=False)), plan, None)


def keyed(rows: list[tuple[int, ...]]) -> list[Row]:
    """Rows of keys, with a number each."""
    return [(*row, Number("1.00"), 1.0) for row in rows]


def test_example_31_bounds_the_view() -> None:
    """All of S and T go through one node: without the indicator the view at C has a row a pair, with it at most those of R."""
    n = 40
    tables = {
        "R": keyed([(i, i) for i in range(n)]),
        "S": keyed([(i, 0) for i in range(n)]),
        "T": keyed([(0, i) for i in range(n)]),
    }
    sizes = {}
    for indicators in ("none", "useful", "all"):
        aggregate, made = count_of("triangle", indicators)
        run = TreeRun(aggregate, made, {t: list(rows) for t, rows in tables.items()})
        run.check()
        assert run.content() == Counter({(n,): 1})
        sizes[indicators] = len(run.operator.state.maps["V@C_ST"])
        run.commit({"R": ([], run.tables["R"][1:])})
        run.check()
        assert len(run.operator.state.maps["V@C_ST"]) == (n * n if indicators == "none" else 1)
    assert sizes == {"none": n * n, "useful": n, "all": n}


def test_example_30_counts_rows_by_some_variables() -> None:
    """An indicator over some variables of an atom changes when the first row with their values comes, or the last goes."""
    aggregate, made = count_of("triangle_with_tail", "useful")
    tables = {"R": keyed([(1, 2, 7), (1, 2, 8)]), "S": keyed([(2, 3)]), "T": keyed([(3, 1)]), "U": keyed([(7,)])}
    run = TreeRun(aggregate, made, tables)
    maps = run.operator.state.maps
    assert maps["∃B,A_R"].entries[maps["∃B,A_R"].live_slots(), -1].tolist() == [2]
    work = run.operator.state.work
    run.commit({"R": ([], keyed([(1, 2, 8)]))})
    run.check()
    assert len(maps["V@C_ST"]) == 1
    quiet = run.operator.state.work - work
    run.commit({"R": ([], keyed([(1, 2, 7)]))})
    run.check()
    assert run.operator.state.work - work - quiet > quiet, "the last row has more to do than the others"
    assert len(maps["∃B,A_R"]) == len(maps["V@C_ST"]) == 0


def test_what_comes_and_goes_in_one_transaction_is_not_met() -> None:
    """An entry that has become 0 stays in its map until the transaction ends, and must not keep anything alive."""
    aggregate, made = count_of("triangle", "useful")
    run = TreeRun(aggregate, made, {"R": keyed([(1, 2)]), "S": keyed([(2, 3)]), "T": []})
    run.push({"R": ([], keyed([(1, 2)]))})
    run.push({"T": (keyed([(3, 1)]), [])})
    assert len(run.operator.state.maps["V@C_ST"]) == 0
    run.operator.rollback()
    run.check()
    run.commit({"T": (keyed([(3, 1)]), [])})
    run.check()
    assert run.content() == Counter({(1,): 1})


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_batches_of_several_chunks(name: str) -> None:
    """Large changes of all tables at once, mostly the same keys over and over, and all of it taken back."""
    rng = random.Random(name)
    shape = SHAPES[name]
    aggregate, made = count_of(name, "all")
    run = TreeRun(aggregate, made, {name: [] for name in NAMES[: len(shape)]})
    rows = {}
    for table, variables in zip(NAMES, shape, strict=False):
        many = keyed([tuple(rng.randrange(3) for _ in variables)]) * (CHUNK + 7 if table == "S" else 1)
        rows[table] = [*many, *random_rows(rng, len(variables), 4, nullable=False)]
    run.commit({t: (r, []) for t, r in rows.items()})
    assert run.content() == Counter({(weighted_count(rows, shape),): 1})
    run.commit({t: ([], list(r)) for t, r in rows.items()})
    assert run.content() == Counter({(0,): 1})
    assert all(not len(m) for name, m in run.operator.state.maps.items() if name != run.operator.program.result)


def weighted_count(tables: dict[str, list[Row]], shape: tuple[str, ...]) -> int:
    """The number of rows of the join, by definition over distinct keys."""
    counts = [Counter(row[: len(v)] for row in tables[name]) for name, v in zip(NAMES, shape, strict=False)]

    def total(number: int, known: dict[str, object]) -> int:
        if number == len(shape):
            return 1
        found = 0
        for key, times in counts[number].items():
            own = dict(zip(shape[number], key, strict=True))
            if all(known.get(v, value) == value for v, value in own.items()):
                found += times * total(number + 1, {**known, **own})
        return found

    return total(0, {})


def test_plans_use_indicators_for_cycles_only() -> None:
    """Where a view would have more rows than the database; ``first_order`` stores no view that could."""
    joined, _ = cyclic_join(SHAPES["triangle"], ["R", "S", "T"])
    aggregate = Aggregate(joined, (), (COUNT,), ("n",))
    plan = plan_block(aggregate, lambda _: Facts(), BlockOptions("auto")).plan
    assert isinstance(plan, TreePlan)
    assert [n.name for n in plan.tree.nodes() if isinstance(n, Indicator)] != []
    path, _ = cyclic_join(("AB", "BC", "CD"), ["R", "S", "T"])
    plan = plan_block(Aggregate(path, (), (COUNT,), ("n",)), lambda _: Facts(), BlockOptions("auto")).plan
    assert isinstance(plan, TreePlan)
    assert [n.name for n in plan.tree.nodes() if isinstance(n, Indicator)] == []
    flat = plan_block(aggregate, lambda _: Facts(), BlockOptions("first_order")).program
    assert not any(flat.has_indicators(t) for t in flat.triggers)


def test_explain_shows_them() -> None:
    """Where they stand, what a change of one costs, and what it runs."""
    joined, _ = cyclic_join(SHAPES["triangle_with_tail"], list(NAMES[:4]))
    plan = Aggregate(joined, (), (COUNT,), ("n",))
    backend = EmbeddedBackend()
    for scan in scans_of(plan):
        backend.create_table(TableDefinition(scan.table, scan.fields))
    backend.create_view(ViewDefinition("v", plan, None, "UTC"))
    text, triggers, code = (backend.explain("v", mode) for mode in ("text", "triggers", "code"))
    assert "⊗ ∃" in text
    assert "O(N) when an indicator of it changes" in text
    assert "a changed row of R costs O(matches): " in text
    assert "1 for the keys that it has gained" in triggers
    assert {line.split()[0] for line in code.splitlines()} >= {"held", "turn"}
    updates = json.loads(backend.explain("v", "json"))["operators"][-1]["view_tree"]["updates"]
    assert [name for name, cost in updates.items() if "indicator_exponent" in cost] == ["R"]


STRATEGIES = ("auto", "factorized", "first_order", "recompute")


@pytest.mark.parametrize("is_self_join", [False, True])
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_all_strategies_agree(name: str, is_self_join: bool) -> None:
    """Views of one query under each strategy, over changes of all its tables, failed ones among them."""
    rng = random.Random(f"{name} {is_self_join}")
    shape = SHAPES[name]
    tables = [f"t{len(v)}" if is_self_join else NAMES[i] for i, v in enumerate(shape)]
    joined, read = cyclic_join(shape, tables, nullable=True)
    calls = (COUNT, *sums(rng, read)[:2])
    plan = Aggregate(joined, (read[0][0],), calls, ("k", "n", "s", "p"))
    backend = EmbeddedBackend()
    fields = {s.table: s.fields for s in scans_of(plan)}
    for t, own in fields.items():
        backend.create_table(TableDefinition(t, own))
    for strategy in STRATEGIES:
        backend.create_view(ViewDefinition(strategy, plan, None, "UTC", options=ViewOptions(strategy=strategy)))
    held: dict[str, list[Row]] = {t: [] for t in fields}
    for _ in range(6):
        changes = []
        for t, own in fields.items():
            come = random_rows(rng, len(own) - 2, rng.choice((1, 4)), nullable=True)
            gone = [r for r in held[t] if rng.random() < 0.3]
            changes.append(change_of(t, own, come, gone))
            for row in gone:
                held[t].remove(row)
            held[t] += come
        backend.apply(changes)
        answers = [Counter(rows_from_arrow(backend.read(s), schema(plan))) for s in STRATEGIES]
        assert all(a == answers[0] for a in answers)


def change_of(name: str, fields: Schema, come: list[Row], gone: list[Row]) -> Change:
    """A weighted change."""
    rows = [*come, *gone]
    columns = [column_to_arrow([r[i] for r in rows], f.type) for i, f in enumerate(fields)]
    weights = pa.array(np.array([1] * len(come) + [-1] * len(gone), dtype=np.int64))
    return Change(name, ChangeKind.WEIGHTED, pa.table(columns, names=[f.name for f in fields]), weights)
