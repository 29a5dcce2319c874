"""Which stored rows a delta can meet: look-ups outward from the change, so that a small change reads little.

Beginning with the rows of a term's changed input, every other input that an equality connects with a known one is looked up
by the values found there, until all are known. What is found is a superset of what joins, and it is at the driver. Look-ups in
large segments that do not wait for each other are one Spark job together, whatever terms and relations they are of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import pyarrow as pa

from everview.backends.spark.arrow_conditions import passing
from everview.backends.spark.far_rows import Rows
from everview.backends.spark.key_lookups import (
    WORTH_FILTERING,
    FoundAhead,
    KeyLookup,
    Lookups,
    Wanted,
    distinct,
    matching,
    most_distinct,
)
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.row_hashes import row_hashes
from everview.backends.spark.segments import Segment, by_position, empty_rows
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.sql_expressions import expression_sql
from everview.backends.spark.stages import WEIGHT
from everview.backends.spark.task_lookups import Asked
from everview.backends.spark.terms import Term
from everview.relational.expressions import Call, Column, conjunction
from everview.relational.nodes import Field


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


TermSources: TypeAlias = tuple[tuple[Source | None, ...], ...]
"""Of several terms what their inputs stand for; None for constant rows."""


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
        self.known[position] = passing(rows, self.term.sure_conjuncts(position))
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


T = TypeVar("T")
_Step: TypeAlias = tuple[_Walk, int, KeyLookup, pa.Table]
"""An input of a term, and by which keys it is looked up."""


class Restriction:
    """Finds the rows for terms.

    Args:
        engine: Where look-ups in large segments run.
        limit: Segments with more rows than this are large.
        zone: The view's time zone, for conditions that depend on it.
        ahead: What has been looked up before it is asked for.
    """

    def __init__(self, engine: SparkEngine, limit: int, zone: str, ahead: FoundAhead | None = None) -> None:
        self._engine = engine
        self._limit = limit
        self._zone = zone
        self._ahead = ahead or FoundAhead()

    def judges_by_hash(self, relation: StoredRelation) -> bool:
        """Whether rows are known by their hashes sooner than whole: copies have them, files do not."""
        return bool(relation.remote(self._limit)) and self._engine.lookups.are_on

    def rows(
        self, terms: tuple[Term, ...], starts: tuple[int, ...], sources: TermSources
    ) -> list[dict[int, pa.Table]] | None:
        """For each term the weighted rows of its stored inputs (of their used columns).

        None where some input is large and nothing connects it: then the terms are Spark's.
        """
        walks = self._walks(terms, starts, sources)
        while walks is not None and any(w.waiting() for w in walks):
            groups = self._round(walks)
            if groups is None:
                return None
            for group, stored in zip(groups, self.fetch([_asked_by(group) for group in groups]), strict=True):
                for walk, position, lookup, keys in group:
                    source = walk.sources[position]
                    assert source is not None
                    near = matching(source.local(self._limit, lookup.columns), lookup.by, keys)
                    walk.learn(position, pa.concat_tables([near, stored]))
        return None if walks is None else [w.known for w in walks]

    def first_round(self, terms: tuple[Term, ...], starts: tuple[int, ...], sources: TermSources) -> list[Wanted]:
        """The look-ups with which ``rows`` would begin."""
        walks = self._walks(terms, starts, sources)
        groups = None if walks is None else self._round(walks)
        return [_asked_by(group) for group in groups or ()]

    def groups_of(
        self,
        state: StoredRelation,
        key_count: int,
        terms: tuple[Term, ...],
        starts: tuple[int, ...],
        sources: TermSources,
    ) -> list[Wanted]:
        """The look-up of payloads by those key columns that the changed inputs alone tell, if there are such."""
        walks = self._walks(terms, starts, sources) or []
        told = [self._keys_told(walk, key_count) for walk in walks]
        by = tuple(k for k in range(key_count) if all(k in own for own in told))
        if not walks or not by:
            return []
        keys = [by_position(w.known[w.start].select([own[k] for k in by])) for w, own in zip(walks, told, strict=True)]
        return [(KeyLookup(state, tuple(range(len(state.fields))), by, ()), distinct(pa.concat_tables(keys)))]

    def _keys_told(self, walk: _Walk, key_count: int) -> dict[int, int]:
        """The key columns of a term that are columns of its changed input, or equal to one; and which."""
        found: dict[int, int] = {}
        for number, key in enumerate(walk.term.outputs[:key_count]):
            if isinstance(key, Column):
                position = walk.term.input_of(key.index)
                place = walk.term.used[position].index(key.index - walk.term.starts[position])
                if position == walk.start:
                    found[number] = place
                elif (equal := dict(self._equalities(walk.term, position, walk.start)).get(place)) is not None:
                    found[number] = equal
        return found

    def _walks(self, terms: tuple[Term, ...], starts: tuple[int, ...], sources: TermSources) -> list[_Walk] | None:
        """The terms with their changed inputs known; None if one of these is large."""
        walks = []
        for term, start, own in zip(terms, starts, sources, strict=True):
            walk = _Walk(term, start, own)
            first = own[start]
            if first is not None:
                if first.is_remote(self._limit):
                    return None
                walk.learn(start, first.local(self._limit, term.used[start]))
            walks.append(walk)
        return walks

    def _round(self, walks: list[_Walk]) -> list[list[_Step]] | None:
        """The next look-ups of all terms, those that are alike together; None if one has no way on."""
        groups: dict[KeyLookup, list[_Step]] = {}
        for walk in walks:
            found = self._step(walk)
            if found is None:
                return None
            for position, lookup, keys in found:
                groups.setdefault(lookup, []).append((walk, position, lookup, keys))
        return list(groups.values())

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
                        if rows.num_rows > WORTH_FILTERING and self._may_connect(walk, position):
                            continue
                        walk.learn(position, rows, reached=False)
                    else:
                        by, keys = connection
                        walk.learn(position, matching(rows, by, keys))
                    advanced = True
                elif connection is not None:
                    by, keys = connection
                    assert source.relation is not None
                    conditions = walk.term.sure_conjuncts(position)
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
            if not keys.num_rows:
                columns = (*lookup.columns, len(relation.fields))
                answers.append([empty_rows(tuple(relation.searched[c] for c in columns))])
                continue
            if (known := self._ahead.rows(lookup, keys)) is not None:
                answers.append([known])
                continue
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


def _asked_by(group: list[_Step]) -> Wanted:
    """One look-up for several terms."""
    return group[0][2], distinct(pa.concat_tables([by_position(keys) for *_, keys in group]))
