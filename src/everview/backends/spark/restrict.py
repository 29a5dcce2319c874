"""Which stored rows a delta can meet: look-ups outward from the change, so that a small change reads little.

Beginning with the rows of a term's changed input, every other input that an equality connects with a known one is looked up
by the values found there, until all are known. What is found is a superset of what joins, and it is at the driver. Look-ups in
large segments that do not wait for each other are one Spark job together, whatever terms and relations they are of.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.spark.arrow_conditions import passing
from everview.backends.spark.far_rows import Rows
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.row_hashes import row_hashes
from everview.backends.spark.segments import Segment, by_position
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.sql_expressions import expression_sql
from everview.backends.spark.stages import WEIGHT
from everview.backends.spark.task_lookups import Asked
from everview.backends.spark.terms import Term
from everview.relational.expressions import Call, Column, Expression, conjunction
from everview.relational.nodes import Field

_WORTH_FILTERING = 4096
"""From so many rows on, rows at the driver are filtered by key before they are joined."""


@dataclass(frozen=True)
class Source:
    """What an input of a term stands for: stored rows, a change, or both (the new content)."""

    relation: StoredRelation | None
    change: pa.Table | None

    def local(self, limit: int, columns: tuple[int, ...]) -> pa.Table:
        """The weighted rows that are at the driver, of some columns."""
        parts = []
        if self.relation is not None:
            parts.append(self.relation.local(limit, columns))
        if self.change is not None:
            parts.append(by_position(self.change.select([*columns, self.change.num_columns - 1])))
        return pa.concat_tables(parts) if len(parts) > 1 else parts[0]

    def is_remote(self, limit: int) -> bool:
        """Whether some of its rows are only on disk."""
        return self.relation is not None and bool(self.relation.remote(limit))

    def is_empty(self) -> bool:
        """Whether it surely has no rows."""
        stored = 0 if self.relation is None else self.relation.row_count
        return stored == 0 and (self.change is None or self.change.num_rows == 0)


def source_of(relation: StoredRelation | None, change: Rows | None) -> Source:
    """What is stored and what is added to it; a far change is further segments."""
    if not isinstance(change, StoredRelation):
        return Source(relation, change)
    return Source(change if relation is None else relation.over([*relation.segments, *change.segments]), None)


@dataclass(frozen=True)
class BoundSource:
    """A source under a scan's name: some of its columns, or all."""

    source: Source
    columns: tuple[int, ...] | None = None

    def is_remote(self, limit: int) -> bool:
        """Whether some of its rows are only on disk."""
        return self.source.is_remote(limit)

    def local(self, limit: int) -> pa.Table:
        """The weighted rows that are at the driver."""
        return self.source.local(limit, self.chosen())

    def chosen(self) -> tuple[int, ...]:
        """The positions of its columns in the source."""
        if self.columns is not None:
            return self.columns
        if self.source.relation is not None:
            return tuple(range(len(self.source.relation.fields)))
        assert self.source.change is not None
        return tuple(range(self.source.change.num_columns - 1))


@dataclass(frozen=True)
class KeyLookup:
    """Rows of a stored relation wanted by value: ``by`` are positions among ``columns``."""

    relation: StoredRelation
    columns: tuple[int, ...]
    by: tuple[int, ...]
    conditions: tuple[Expression, ...]
    """Over ``columns``: what the rows must satisfy anyway."""


T = TypeVar("T")
Lookups: TypeAlias = Generator[tuple[KeyLookup, pa.Table], pa.Table, T]
"""Asks for rows by their keys, as often as it must, and leads to something."""


@dataclass
class _Walk:
    """One term on its way to knowing all its inputs."""

    term: Term
    start: int
    sources: tuple[Source | None, ...]
    known: dict[int, pa.Table] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)
    """The known inputs that equalities connect with the change. Another is there as a whole: to look up what it meets could
    mean everything, as all customers have a nation."""
    follows: bool = True
    """Whether inputs are looked up in the planner's order, as far as the term has one."""

    def learn(self, position: int, rows: pa.Table, *, reached: bool = True) -> None:
        """Takes rows of an input, and perhaps others, for known: those on which the input's own conditions may hold."""
        self.known[position] = passing(rows, self.term.own_conjuncts(position))
        if reached:
            self.reached.add(position)

    def waiting(self) -> list[int]:
        return [i for i, s in enumerate(self.sources) if s is not None and i not in self.known]

    def comes_later(self, other: int, position: int) -> bool:
        """Whether the planner joins another input after this one, which then is not looked up by what the other has."""
        if not (self.follows and self.term.orders):
            return False
        order = self.term.orders[self.start]
        return order.index(other) > order.index(position)


class Restriction:
    """Finds the rows for terms.

    Args:
        engine: Where look-ups in large segments run.
        limit: Segments with more rows than this are large.
        zone: The view's time zone, for conditions that depend on it.
    """

    def __init__(self, engine: SparkEngine, limit: int, zone: str) -> None:
        self._engine = engine
        self._limit = limit
        self._zone = zone

    def judges_by_hash(self, relation: StoredRelation) -> bool:
        """Whether rows are known by their hashes sooner than whole: copies have them, files do not."""
        return bool(relation.remote(self._limit)) and self._engine.lookups.are_on

    def rows(
        self, terms: tuple[Term, ...], starts: tuple[int, ...], sources: tuple[tuple[Source | None, ...], ...]
    ) -> list[dict[int, pa.Table]] | None:
        """For each term the weighted rows of its stored inputs (of their used columns).

        None where some input is large and nothing connects it: then the terms are Spark's.
        """
        walks = []
        for term, start, own in zip(terms, starts, sources, strict=True):
            walk = _Walk(term, start, own)
            first = own[start]
            if first is not None:
                if first.is_remote(self._limit):
                    return None
                walk.learn(start, first.local(self._limit, term.used[start]))
            walks.append(walk)
        while any(w.waiting() for w in walks):
            wanted: dict[tuple[object, ...], list[tuple[_Walk, int, KeyLookup, pa.Table]]] = {}
            for walk in walks:
                step = self._step(walk)
                if step is None:
                    return None
                for position, lookup, keys in step:
                    place = (lookup.relation.name, lookup.columns, lookup.by, lookup.conditions)
                    wanted.setdefault(place, []).append((walk, position, lookup, keys))
            self._look_up(list(wanted.values()))
        return [w.known for w in walks]

    def _step(self, walk: _Walk) -> list[tuple[int, KeyLookup, pa.Table]] | None:
        """Takes in what is at the driver and connected; returns the look-ups of the next round, None if there is no way on."""
        while True:
            waiting = walk.waiting()
            if not waiting:
                return []
            lookups: list[tuple[int, KeyLookup, pa.Table]] = []
            advanced = False
            for position in waiting:
                source = walk.sources[position]
                assert source is not None
                if self._has_to_wait(walk, position):
                    continue
                connection = self._connection(walk, position)
                if not source.is_remote(self._limit):
                    rows = source.local(self._limit, walk.term.used[position])
                    if connection is None:
                        if rows.num_rows > _WORTH_FILTERING and self._may_connect(walk, position):
                            continue
                        walk.learn(position, rows, reached=False)
                    else:
                        by, keys = connection
                        walk.learn(position, matching(rows, by, keys))
                    advanced = True
                elif connection is not None:
                    by, keys = connection
                    assert source.relation is not None
                    conditions = walk.term.own_conjuncts(position)
                    lookup = KeyLookup(source.relation, walk.term.used[position], by, conditions)
                    lookups.append((position, lookup, keys))
            if lookups:
                return lookups
            if not advanced:
                if walk.follows and walk.term.orders:
                    walk.follows = False  # the planner begins with what nothing connects: on by what connects the rest
                    continue
                if len(walk.reached) == len(walk.known):
                    return self._without_connection(walk)
                # The change connects nothing more: on by way of what is there as a whole.
                walk.reached.update(walk.known)

    def _without_connection(self, walk: _Walk) -> list[tuple[int, KeyLookup, pa.Table]] | None:
        """Nothing more is connected: rows at the driver are taken whole, rows on disk are beyond us."""
        for position in walk.waiting():
            source = walk.sources[position]
            assert source is not None
            if not source.is_remote(self._limit):
                walk.learn(position, source.local(self._limit, walk.term.used[position]), reached=False)
                return self._step(walk)
        return None

    def _has_to_wait(self, walk: _Walk, position: int) -> bool:
        """Whether the planner has an input that could connect this one looked up first, and it is not known yet."""
        before = [p for p in walk.waiting() if walk.comes_later(position, p)]
        return any(self._equalities(walk.term, position, p) for p in before)

    def _may_connect(self, walk: _Walk, position: int) -> bool:
        """Whether an equality with another input that is not reached yet could connect it later."""
        others = [p for p, s in enumerate(walk.sources) if s is not None and p != position and p not in walk.reached]
        others = [p for p in others if not walk.comes_later(p, position)]
        return any(self._equalities(walk.term, position, other) for other in others)

    def _connection(self, walk: _Walk, position: int) -> tuple[tuple[int, ...], pa.Table] | None:
        """By which of its columns an input can be looked up, and the values.

        They are those of the reached input that gives most columns, and of such the one with the fewest rows.
        """
        best: list[tuple[int, int]] = []
        chosen = -1
        for other in sorted(walk.reached, key=lambda p: walk.known[p].num_rows):
            found = self._equalities(walk.term, position, other)
            if len(found) > len(best) and not walk.comes_later(other, position):
                best, chosen = found, other
        if not best:
            return None
        own = tuple(o for o, _ in best)
        keys = walk.known[chosen].select([t for _, t in best])
        return own, distinct(keys)

    def _equalities(self, term: Term, position: int, other: int) -> list[tuple[int, int]]:
        """Pairs of used columns, of an input and of another, that conjuncts equate."""
        found: dict[int, int] = {}
        for conjunct in term.conjuncts:
            if not (isinstance(conjunct, Call) and conjunct.function in ("=", "<=>")):
                continue
            a, b = conjunct.args
            if not (isinstance(a, Column) and isinstance(b, Column)):
                continue
            ends = {term.input_of(a.index): a.index, term.input_of(b.index): b.index}
            if set(ends) == {position, other}:
                mine = term.used[position].index(ends[position] - term.starts[position])
                found.setdefault(mine, term.used[other].index(ends[other] - term.starts[other]))
        return list(found.items())

    def _look_up(self, groups: list[list[tuple[_Walk, int, KeyLookup, pa.Table]]]) -> None:
        wanted = [(g[0][2], distinct(pa.concat_tables([by_position(k) for *_, k in g]))) for g in groups]
        for group, stored in zip(groups, self.fetch(wanted), strict=True):
            for walk, position, lookup, keys in group:
                source = walk.sources[position]
                assert source is not None
                near = matching(source.local(self._limit, lookup.columns), lookup.by, keys)
                walk.learn(position, pa.concat_tables([near, stored]))

    def answer(self, lookups: Sequence[Lookups[T]]) -> list[T]:
        """What look-ups lead to that run side by side: all that they ask for at a time is one Spark job."""
        answers: dict[int, T] = {}
        asked: dict[int, tuple[KeyLookup, pa.Table]] = {}
        found: dict[int, pa.Table | None] = dict.fromkeys(range(len(lookups)))
        while found:
            for number, rows in found.items():
                try:
                    asked[number] = next(lookups[number]) if rows is None else lookups[number].send(rows)
                except StopIteration as end:
                    answers[number] = end.value
            found = dict(zip(asked, self.fetch(list(asked.values())), strict=True)) if asked else {}
            asked = {}
        return [answers[number] for number in range(len(lookups))]

    def stored_rows(
        self,
        relation: StoredRelation,
        by: tuple[int, ...],
        keys: pa.Table,
        columns: tuple[int, ...] | None = None,
    ) -> pa.Table:
        """The weighted rows of a stored relation that have one of the keys in some columns, and perhaps some others.

        All their columns, or those asked for, which include ``by``.
        """
        return self.answer([self.ask_rows(relation, by, keys, columns)])[0]

    def ask_rows(
        self,
        relation: StoredRelation,
        by: tuple[int, ...],
        keys: pa.Table,
        columns: tuple[int, ...] | None = None,
    ) -> Lookups[pa.Table]:
        """The same as look-ups that others may run beside."""
        if not by:  # the payload of the only group: a row a segment
            return relation.local(relation.row_count)
        chosen = tuple(range(len(relation.fields))) if columns is None else columns
        places = tuple(chosen.index(b) for b in by)
        wanted = distinct(keys.select(list(range(len(by)))))
        near = matching(relation.local(self._limit, chosen), places, wanted)
        if not relation.remote(self._limit):
            return near
        return pa.concat_tables([near, (yield KeyLookup(relation, chosen, places, ()), wanted)])

    def ask_hashes(self, relation: StoredRelation, by: tuple[int, ...], keys: pa.Table) -> Lookups[pa.Table]:
        """Key columns, hash and weight of the rows that have one of the keys, and perhaps of some others."""
        count, wanted = len(relation.fields), distinct(keys)
        whole = matching(relation.local(self._limit), by, wanted)
        hashes = row_hashes(relation.encoded(whole).select(range(count)))
        near = pa.Table.from_arrays(
            [*(whole.column(b) for b in by), pa.chunked_array([hashes]), whole.column(count)],
            names=[f"c{i}" for i in range(len(by) + 2)],
        )
        if not relation.remote(self._limit):
            return near
        lookup = KeyLookup(relation, (*by, count + 1), tuple(range(len(by))), ())
        return pa.concat_tables([near, (yield lookup, wanted)])

    def fetch(self, wanted: list[tuple[KeyLookup, pa.Table]]) -> list[pa.Table]:
        """For each look-up the rows of large segments that have one of its keys, and perhaps some others.

        Taken from the driver's copies of the segments; all that they leave is one Spark job, of tasks that search theirs.
        """
        answers: list[list[pa.Table]] = []
        asked: dict[int, Asked] = {}
        for number, (lookup, keys) in enumerate(wanted):
            relation, searched = lookup.relation, most_distinct(keys)
            if searched is None:
                answers.append([self._joined(lookup, relation.remote(self._limit), keys)])
                continue
            by = lookup.columns[lookup.by[searched]]
            rows, left = relation.found(self._limit, lookup.columns, by, keys.column(searched))
            answers.append([rows])
            if left and not self._engine.lookups.are_on:
                answers[-1].append(self._joined(lookup, left, keys))
            elif left:
                columns = (*lookup.columns, len(relation.fields))
                folder, fields = str(relation.folder.absolute()), relation.searched
                found_by = keys.column(searched)
                asked[number] = Asked(folder, tuple(left), fields, columns, by, found_by, lookup.conditions)
        if asked:
            for number, rows in zip(asked, self._engine.lookups.rows(list(asked.values())), strict=True):
                answers[number].append(rows)
        found = [pa.concat_tables([by_position(p) for p in parts]) for parts in answers]
        return [matching(rows, lookup.by, keys) for rows, (lookup, keys) in zip(found, wanted, strict=True)]

    def _joined(self, lookup: KeyLookup, segments: list[Segment], keys: pa.Table) -> pa.Table:
        """The same by a join on Spark: for keys that tell rows apart only as Spark compares them, floats and arrays."""
        relation = lookup.relation
        view = self._engine.view_of_segments(relation, segments)
        fields = tuple(relation.fields[c] for c in lookup.columns)
        names = [f"t.c{c}" for c in lookup.columns]
        listed = ", ".join(f"{n} AS c{i}" for i, n in enumerate([*names, f"t.c{len(relation.fields)}"]))
        key_fields = tuple(Field(f"c{i}", fields[b].type, True) for i, b in enumerate(lookup.by))
        key_view = self._engine.view_of_rows(keys, key_fields)
        on = " AND ".join(f"{names[b]} <=> k.c{i}" for i, b in enumerate(lookup.by))
        text = f"SELECT /*+ BROADCAST(k) */ {listed} FROM {view} t LEFT SEMI JOIN {key_view} k ON {on}"
        if lookup.conditions:
            text += f" WHERE {expression_sql(conjunction(lookup.conditions), names)}"
        try:
            return self._engine.collect(self._engine.sql(text, self._zone), (*fields, WEIGHT))
        finally:
            self._engine.drop([key_view])


def most_distinct(keys: pa.Table) -> int | None:
    """The key column with the most values; by it alone more may be found. Not one of floats: -0.0 is to find 0.0."""
    if any(pa.types.is_nested(t) for t in keys.schema.types):
        return None
    counts = [-1 if pa.types.is_floating(c.type) else pc.count_distinct(c, mode="all").as_py() for c in keys.columns]
    return counts.index(max(counts)) if max(counts) >= 0 else None


def matching(rows: pa.Table, by: tuple[int, ...], keys: pa.Table) -> pa.Table:
    """The rows that have a key's value in each of these columns; all rows, where they are too few to be worth it."""
    if rows.num_rows <= _WORTH_FILTERING:
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
