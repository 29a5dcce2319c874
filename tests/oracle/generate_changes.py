"""Change streams: lists of transactions over generated tables, and their replay on plain counters.

A transaction maps tables to rows with weights, as a user would give them: not consolidated, so a row may be inserted and
deleted again, but on the sum nothing is deleted that is not there. Batches have one row or many; some are empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hypothesis import strategies as st

from everview.relational.types import Row
from tests.oracle.choices import Choices
from tests.oracle.generate_tables import TableData, make_row

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


def streams(tables: Sequence[TableData], max_transactions: int = 5) -> st.SearchStrategy[list[Transaction]]:
    """Transactions that the tables can take one after the other."""
    return st.composite(lambda draw: make_stream(Choices.drawn(draw), tables, max_transactions))()


def make_stream(choices: Choices, tables: Sequence[TableData], max_transactions: int) -> list[Transaction]:
    """The same by any choices."""
    content = content_of(tables)
    stream: list[Transaction] = []
    for _ in range(choices.count(1, max_transactions)):
        transaction = make_transaction(choices, tables, content)
        content = apply_transaction(content, transaction)
        stream.append(transaction)
    return stream


def make_transaction(choices: Choices, tables: Sequence[TableData], content: Content) -> Transaction:
    """One transaction that the tables can take when they hold this content."""
    touched = choices.some(tables, 0, 3)
    size = choices.pick((1, 1, 4, 8))
    return {t.name: _batch(choices, t, content[t.name], size) for t in touched}


def _batch(choices: Choices, table: TableData, bag: Counter[Row], size: int) -> tuple[WeightedRow, ...]:
    """At most ``size`` steps on one table, each an insert, a delete, an update or a change that cancels itself."""
    present = Counter(bag)
    rows: list[WeightedRow] = []
    has_edges = choices.once_in(4)
    for _ in range(choices.count(1, size)):
        step = choices.pick(("insert", "delete", "update", "cancel", "clear"))
        held = sorted(present, key=repr)
        made: list[WeightedRow] = []
        if step in ("insert", "update", "cancel") or not held:
            made += _inserted(choices, table, present, has_edges=has_edges)
        free = [row for row in held if row not in dict(made)]
        if step in ("delete", "update") and free:
            gone = choices.pick(free)
            made.append((gone, -choices.count(1, present[gone])))
        if step == "cancel":
            made += [(row, -weight) for row, weight in made]
        if step == "clear":
            made += [(row, -count) for row, count in present.items()]
        for row, weight in made:
            present[row] += weight
        present = +present
        rows += made
    return tuple(choices.shuffled(rows))


def _inserted(choices: Choices, table: TableData, present: Counter[Row], *, has_edges: bool) -> list[WeightedRow]:
    """A new row, perhaps one that is there already; with a primary key, in the place of the row that has its key."""
    new = make_row(choices, table.fields, has_edges=has_edges)
    if table.key:
        return [*((row, -n) for row, n in present.items() if table.key_of(row) == table.key_of(new)), (new, 1)]
    held = sorted(present, key=repr)
    again = choices.pick(held) if held and choices.once_in(2) else new
    return [(again, choices.pick((1, 1, 2)))]
