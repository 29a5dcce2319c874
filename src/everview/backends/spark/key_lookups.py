"""Rows wanted by their keys: what is asked for, what was found before it was asked for, and keys as values.

A transaction knows before it is judged what its views will look up first: what the tables' changes meet, if they are as they
were given. So these rows are looked up in the job that looks for the keys of the changes, and are there when a view asks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.segments import by_position
from everview.relational.expressions import Expression

WORTH_FILTERING = 4096
"""From so many rows on, rows at the driver are filtered by key before they are joined."""


@dataclass(frozen=True)
class KeyLookup:
    """Rows of a stored relation wanted by value: ``by`` are positions among ``columns``."""

    relation: StoredRelation
    columns: tuple[int, ...]
    by: tuple[int, ...]
    conditions: tuple[Expression, ...]
    """Over ``columns``: what the rows must satisfy anyway."""


T = TypeVar("T")
Wanted: TypeAlias = tuple[KeyLookup, pa.Table]
"""A look-up, and the keys."""
Lookups: TypeAlias = Generator[Wanted, pa.Table, T]
"""Asks for rows by their keys, as often as it must, and leads to something."""


class FoundAhead:
    """Rows of one transaction that were looked up before anything has asked for them, in a job that ran anyway."""

    def __init__(self) -> None:
        self._found: list[tuple[KeyLookup, pa.Table, pa.Table]] = []

    def ask(self, wanted: Iterable[Wanted]) -> list[Lookups[None]]:
        """Look-ups to be made beside others; what several ask for of the same columns is one."""
        alike: dict[KeyLookup, list[pa.Table]] = {}
        for lookup, keys in wanted:
            if keys.num_rows and most_distinct(keys) is not None:
                alike.setdefault(lookup, []).append(by_position(keys))
        return [self._take_in(lookup, distinct(pa.concat_tables(keys))) for lookup, keys in alike.items()]

    def _take_in(self, lookup: KeyLookup, keys: pa.Table) -> Lookups[None]:
        rows = yield lookup, keys
        self._found.append((lookup, keys, rows))

    def rows(self, lookup: KeyLookup, keys: pa.Table) -> pa.Table | None:
        """The rows with these keys, and perhaps others; None if not all of them have been looked up."""
        for known, among, rows in self._found:
            if (known.relation, known.columns, known.conditions) != (
                lookup.relation,
                lookup.columns,
                lookup.conditions,
            ):
                continue
            places = [lookup.by.index(b) if b in lookup.by else None for b in known.by]
            if all(p is not None and _are_all_in(keys.column(p), among.column(i)) for i, p in enumerate(places)):
                return rows
        return None


def _are_all_in(values: pa.ChunkedArray, among: pa.ChunkedArray) -> bool:
    return values.type == among.type and bool(pc.all(pc.is_in(values, value_set=among.combine_chunks())).as_py())


def most_distinct(keys: pa.Table) -> int | None:
    """The key column with the most values; by it alone more may be found. Not one of floats: -0.0 is to find 0.0."""
    if any(pa.types.is_nested(t) for t in keys.schema.types):
        return None
    counts = [-1 if pa.types.is_floating(c.type) else pc.count_distinct(c, mode="all").as_py() for c in keys.columns]
    return counts.index(max(counts)) if max(counts) >= 0 else None


def matching(rows: pa.Table, by: tuple[int, ...], keys: pa.Table) -> pa.Table:
    """The rows that have a key's value in each of these columns; all rows, where they are too few to be worth it."""
    if rows.num_rows <= WORTH_FILTERING:
        return rows
    kept = None
    for place, values in zip(by, keys.columns, strict=True):
        if pa.types.is_nested(values.type):  # Arrow does not compare lists; the join will
            continue
        found = pc.is_in(comparable(rows.column(place)), value_set=comparable(values).combine_chunks())
        kept = found if kept is None else pc.and_(kept, found)
    return rows if kept is None else rows.filter(kept)


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in the form in which equal ones are equal for Arrow too, which tells -0.0 from 0.0 (decision 003)."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def distinct(keys: pa.Table) -> pa.Table:
    """Each key once."""
    if keys.num_columns == 1 and not pa.types.is_nested(keys.schema.types[0]):
        return by_position(pa.table([pc.unique(keys.column(0))], names=["c0"]))
    plain = by_position(keys)
    if any(pa.types.is_nested(t) for t in plain.schema.types):
        return plain
    return by_position(plain.group_by(plain.column_names, use_threads=False).aggregate([]))
