"""Change streams: lists of transactions over generated tables, and their replay on plain counters.

A transaction maps tables to rows with weights, as a user would give them: not consolidated, so a row may be inserted and
deleted again, but on the sum nothing is deleted that is not there. Batches have one row or many; some are empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hypothesis import strategies as st

from everview.relational.types import Row
from tests.oracle.generate_tables import TableData, row_of

WeightedRow = tuple[Row, int]
Transaction = Mapping[str, tuple[WeightedRow, ...]]
Content = dict[str, Counter[Row]]
"""The bag of every table."""


def content_of(tables: Sequence[TableData]) -> Content:
    """What the tables hold before the first transaction."""
    return {t.name: Counter(t.rows) for t in tables}


def apply_transaction(content: Content, transaction: Transaction) -> Content:
    """The content after one transaction."""
    after = {name: Counter(bag) for name, bag in content.items()}
    for name, rows in transaction.items():
        for row, weight in rows:
            after[name][row] += weight
        assert all(count >= 0 for count in after[name].values()), f"table {name} would have negative rows"
        after[name] = +after[name]
    return after


def replay(tables: Sequence[TableData], stream: Iterable[Transaction]) -> Iterator[Content]:
    """The content after each transaction of a stream."""
    content = content_of(tables)
    for transaction in stream:
        content = apply_transaction(content, transaction)
        yield content


@st.composite
def streams(draw: st.DrawFn, tables: Sequence[TableData], max_transactions: int = 5) -> list[Transaction]:
    """Transactions that the tables can take one after the other."""
    content = content_of(tables)
    stream: list[Transaction] = []
    for _ in range(draw(st.integers(1, max_transactions))):
        transaction = draw(_transaction(tables, content))
        content = apply_transaction(content, transaction)
        stream.append(transaction)
    return stream


@st.composite
def _transaction(draw: st.DrawFn, tables: Sequence[TableData], content: Content) -> Transaction:
    touched = draw(st.lists(st.sampled_from(tables), max_size=3, unique_by=lambda t: t.name))
    size = draw(st.sampled_from((1, 1, 4, 8)))
    return {t.name: draw(_batch(t, content[t.name], size)) for t in touched}


@st.composite
def _batch(draw: st.DrawFn, table: TableData, bag: Counter[Row], size: int) -> tuple[WeightedRow, ...]:
    """At most ``size`` steps on one table, each an insert, a delete, an update or a change that cancels itself."""
    present = Counter(bag)
    rows: list[WeightedRow] = []
    for _ in range(draw(st.integers(min(size, 1), size))):
        step = draw(st.sampled_from(("insert", "delete", "update", "cancel", "clear")))
        held = sorted(present, key=repr)
        new = row_of(table.fields) if not held else row_of(table.fields) | st.sampled_from(held)
        made: list[WeightedRow] = []
        if step in ("insert", "update", "cancel") or not held:
            made.append((draw(new), draw(st.sampled_from((1, 1, 2)))))
        if step in ("delete", "update") and held:
            gone = draw(st.sampled_from(held))
            made.append((gone, -draw(st.integers(1, present[gone]))))
        if step == "cancel":
            made += [(row, -weight) for row, weight in made]
        if step == "clear":
            made += [(row, -count) for row, count in present.items()]
        for row, weight in made:
            present[row] += weight
        present = +present
        rows += made
    return tuple(draw(st.permutations(rows)))
