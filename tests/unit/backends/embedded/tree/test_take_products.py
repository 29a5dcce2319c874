"""A tree takes a product in as it takes in the product's rows, whatever the query, the tree and the factors."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.factorized_batch import FactorBatch, FactorizedBatch, FactorProduct
from everview.backends.embedded.operators.base import consolidated
from everview.backends.embedded.vectors import Batch
from everview.planner.block_build import Facts, Refused, build_block
from everview.relational.expressions import Column
from everview.relational.nodes import Project, Relation, Scan, Schema
from everview.relational.types import Row
from tests.unit.backends.embedded.tree.generate_blocks import Query, Table, random_program, random_query, random_row
from tests.unit.backends.embedded.tree.given_inputs import TreeRun, batch_of


@dataclass(frozen=True)
class GivenFactor:
    """Rows over some columns of a table, with weights."""

    columns: tuple[int, ...]
    rows: tuple[Row, ...]
    weights: tuple[int, ...]


@given(st.integers(0, 2**40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_products_are_their_rows(seed: int) -> None:
    """For random queries, trees and products; a transaction that is rolled back leaves no trace."""
    check_products(seed)


def check_products(seed: int) -> tuple[int, int]:
    """Returns how many products there were, and how many of them were taken in as such."""
    rng = random.Random(seed)
    query = random_query(rng)
    try:
        block = build_block(query.aggregate, lambda _: Facts())
    except Refused:
        assume(False)
    lowered = random_program(rng, block)
    contents = {
        t.name: [random_row(rng, t, has_odd_floats=query.has_odd_floats) for _ in range(rng.choice((0, 3, 12)))]
        for t in query.tables
    }
    whole, rows = (TreeRun(query.aggregate, lowered, deepcopy(contents)) for _ in range(2))
    counted, taken = 0, 0
    triggers = whole.operator.state._products
    run = triggers.run

    def counting(atom: int, product: FactorProduct) -> bool:
        nonlocal counted, taken
        is_taken = run(atom, product)
        counted, taken = counted + 1, taken + is_taken
        return is_taken

    triggers.run = counting  # type: ignore[method-assign]
    for _ in range(rng.randint(1, 4)):
        change = random_products(rng, query)
        rest = {
            t.name: [random_row(rng, t, has_odd_floats=query.has_odd_floats)]
            for t in query.tables
            if t.name in change and rng.random() < 0.3
        }
        ours = push(whole, change, rest, is_expanded=False)
        theirs = push(rows, change, rest, is_expanded=True)
        assert ours == theirs
        if rng.random() < 0.25:
            whole.operator.rollback()
            rows.operator.rollback()
        else:
            whole.operator.commit()
            rows.operator.commit()
        assert words_of(whole, whole.operator.content()) == words_of(rows, rows.operator.content())
    return counted, taken


def push(
    run: TreeRun, change: dict[str, list[list[GivenFactor]]], rest: dict[str, list[Row]], *, is_expanded: bool
) -> Counter[Row]:
    """Pushes products and rows, the products perhaps as rows."""
    batches: list[Batch | None] = []
    for atom in run.atoms:
        scan, read = scanned(atom)
        if scan.table not in change:
            batches.append(None)
            continue
        plain = run._batch(atom, {scan.table: rest.get(scan.table, [])}, {})
        products = [product_of(scan.fields, read, p, run.dictionary) for p in change[scan.table]]
        batch = FactorizedBatch(products, plain if len(plain) else None)
        batches.append(batch.made if is_expanded else batch)
    return words_of(run, run.operator.push(batches))


def words_of(run: TreeRun, batch: Batch | None) -> Counter[Row]:
    """The rows of a batch, as the words of their keys: with negative weights an average need not fit its type."""
    if batch is None:
        return Counter()
    one = consolidated(batch, run.operator.layout)
    keys = run.operator.layout.pack(one.columns, len(one))
    return Counter(dict(zip(map(tuple, keys.tolist()), one.weights.tolist(), strict=True)))


def scanned(atom: Relation) -> tuple[Scan, list[int]]:
    """The table below an atom, and which of its columns the atom reads."""
    assert isinstance(atom, Project)
    assert isinstance(atom.child, Scan)
    assert all(isinstance(e, Column) for e in atom.expressions)
    return atom.child, [e.index for e in atom.expressions if isinstance(e, Column)]


def product_of(fields: Schema, read: list[int], product: list[GivenFactor], dictionary: Dictionary) -> FactorProduct:
    """The factors, in the columns that an atom reads."""
    factors = []
    for factor in product:
        own = [c for c in factor.columns if c in read]
        chosen = [tuple(row[factor.columns.index(c)] for c in own) for row in factor.rows]
        weights = list(factor.weights)
        if not own:
            chosen, weights = [()], [sum(weights)]
        batch = batch_of(tuple(fields[c] for c in own), chosen, weights, dictionary)
        factors.append(FactorBatch(tuple(read.index(c) for c in own), batch))
    return tuple(factors)


def random_products(rng: random.Random, query: Query) -> dict[str, list[list[GivenFactor]]]:
    """Products for some of the tables."""
    return {
        t.name: [random_product(rng, t, query) for _ in range(rng.choice((1, 1, 2)))]
        for t in query.tables
        if rng.random() < 0.7
    }


def random_product(rng: random.Random, table: Table, query: Query) -> list[GivenFactor]:
    """The table's columns, dealt to two or more factors."""
    count = rng.choice((2, 2, 3, len(table.fields)))
    home = [rng.randrange(count) for _ in table.fields]
    product = []
    for number in sorted(set(home)):
        columns = tuple(c for c, h in enumerate(home) if h == number)
        size = rng.choice((1, 2, 3))
        rows = [random_row(rng, table, has_odd_floats=query.has_odd_floats) for _ in range(size)]
        weights = tuple(rng.choice((1, 1, 1, 2, -1)) for _ in range(size))
        product.append(GivenFactor(columns, tuple(tuple(r[c] for c in columns) for r in rows), weights))
    return product


def test_most_products_stay_factorized() -> None:
    """The law above would hold for a tree that expands everything, too."""
    totals = np.zeros(2, dtype=np.int64)
    for seed in range(120):
        with suppress(UnsatisfiedAssumption):
            totals += check_products(seed)
    counted, taken = totals.tolist()
    assert taken > 0.4 * counted
