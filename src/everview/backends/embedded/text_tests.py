"""Tests of text made where rows come in: ``comment LIKE '%special%'`` as a column of the scan, instead of the comment.

A text that only a test reads needs no code in the dictionary, which never forgets: with a test on it, a column of which every
row is different costs neither the time to encode it nor the memory to keep it. A text that something else reads too is encoded
anyway, and is then tested once for each distinct value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from everview.backends.embedded.expressions.bulk import pattern_of
from everview.backends.embedded.state.memory import address_of_buffer
from everview.backends.embedded.state.text_kernels import match_arrow
from everview.backends.embedded.vectors import Ints, Vector
from everview.relational.expressions import Call, Column, Expression, columns_of, remap_columns, transform
from everview.relational.format import format_expression
from everview.relational.nodes import Field, Filter, Project, Relation, Scan, Schema
from everview.relational.rules.drop_identity_project import drop_identity_project
from everview.relational.rules.merge_projects import merge_projects
from everview.relational.rules.prune_columns import prune_columns
from everview.relational.schema import columns, schema
from everview.relational.traverse import inputs, nodes_of, rewrite_bottom_up
from everview.relational.types import BOOLEAN, STRING
from everview.relational.verify import verify

_WIDTHS: Final = {pa.string(): 4, pa.large_string(): 8}


@dataclass(frozen=True, slots=True)
class TextTest:
    """A LIKE, or one of its kin, of a table's column and a constant pattern."""

    call: Call
    column: int = field(init=False, compare=False)
    """The position of the tested column."""
    _pattern: Ints = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        pattern, (column,) = pattern_of(self.call), columns_of(self.call)
        assert pattern is not None, "only calls with a pattern are made into tests"
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "_pattern", pattern)

    def as_field(self, fields: Schema) -> Field:
        """The column that the test is."""
        names = tuple(f.name for f in fields)
        return Field(format_expression(self.call, names), BOOLEAN, fields[self.column].nullable)

    def read(self, text: pa.Array | pa.ChunkedArray) -> Vector:
        """Whether each text passes; NULL where it is NULL."""
        array = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
        count = len(array)
        found = np.empty(count, dtype=np.int64)
        _, offsets, data = array.buffers()
        if count:
            match_arrow(
                address_of_buffer(data),
                address_of_buffer(offsets),
                _WIDTHS[array.type],
                array.offset,
                count,
                self._pattern,
                found,
            )
        if not array.null_count:
            return Vector(BOOLEAN, found)
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        found[nulls] = 0
        return Vector(BOOLEAN, found, nulls)


@dataclass(frozen=True, slots=True)
class TestedPlan:
    """A plan whose scans have tests for columns, and all tests of each table that it reads so, the new ones behind the old."""

    plan: Relation
    tests: Mapping[str, tuple[TextTest, ...]]


def expose_text_tests(plan: Relation, known: Mapping[str, tuple[TextTest, ...]]) -> TestedPlan:
    """The plan with filters by tests that scans make, wherever the text itself is then read by nobody.

    Args:
        plan: The plan of a view.
        known: The tests that the tables have already, by name in small letters; the columns behind a table's own are its tests.
    """
    needed: set[tuple[str, int]] = set()
    while True:
        tests = _Tests(known)
        tested = rewrite_bottom_up(plan, _rule(tests, frozenset(needed)))
        if not tests.used():
            return TestedPlan(plan, {})
        # Pruned last, so that a projection to what is read stands right above every scan.
        merged = rewrite_bottom_up(rewrite_bottom_up(prune_columns(tested), merge_projects), drop_identity_project)
        tested = prune_columns(merged)
        verify(tested)
        still_read = {place for node in nodes_of(tested) for place in _read_and_tested(node, tests)}
        if not still_read:
            return TestedPlan(tested, tests.used())
        needed |= still_read


class _Tests:
    """The tests of tables, known and new."""

    def __init__(self, known: Mapping[str, tuple[TextTest, ...]]) -> None:
        self._all = {table: list(tests) for table, tests in known.items()}
        self._widths: dict[str, int] = {}
        """How many columns of its own a table has, where a test of it is used."""

    def __contains__(self, table: str) -> bool:
        return table.lower() in self._all

    def with_tests(self, scan: Scan, tests: Iterable[TextTest]) -> tuple[Scan, list[int]]:
        """The scan with all tests of its table for columns, and where it has these."""
        name = scan.table.lower()
        own = scan.fields[: self._widths.setdefault(name, len(scan.fields))]
        every = self._all[name]
        every += [test for test in tests if test not in every]
        fields = (*own, *(test.as_field(own) for test in every))
        return replace(scan, fields=fields), [len(own) + every.index(test) for test in tests]

    def tested_column(self, table: str, position: int) -> int | None:
        """The column that the test at a position tests; None for the table's own columns."""
        own = self._widths.get(table.lower())
        return None if own is None or position < own else self._all[table.lower()][position - own].column

    def used(self) -> dict[str, tuple[TextTest, ...]]:
        """All tests of the tables of which some are used."""
        return {table: tuple(self._all[table]) for table in self._widths}


def _rule(tests: _Tests, needed: frozenset[tuple[str, int]]) -> Callable[[Relation], Relation | None]:
    def expose(relation: Relation) -> Relation | None:
        """σ[p(t)](R) = π[R](σ[p(c)](R × c)), where the column c is the test t of R's text."""
        if not isinstance(relation, Filter):
            return None
        found = _columns_of_scan(relation.child)
        if found is None or found[0].table not in tests:
            return None
        scan, chosen = found
        width = len(chosen)
        places: dict[TextTest, int] = {}

        def visit(e: Expression) -> Expression | None:
            text = _tested(e)
            if text is None:
                return None
            test = TextTest(_over_table(e, chosen))
            if (scan.table.lower(), test.column) in needed:
                return None
            return Column(places.setdefault(test, width + len(places)), BOOLEAN, text.nullable)

        condition = transform(relation.condition, visit)
        if not places:
            return None
        wider, found_at = tests.with_tests(scan, places)
        positions = (*chosen, *found_at)
        every = columns(wider)
        read = Project(wider, tuple(every[p] for p in positions), tuple(wider.fields[p].name for p in positions))
        kept = Filter(read, condition)
        return Project(kept, columns(kept)[:width], tuple(f.name for f in schema(relation)))

    return expose


def _over_table(test: Expression, chosen: tuple[int, ...]) -> Call:
    moved = remap_columns(test, chosen.__getitem__)
    assert isinstance(moved, Call)
    return moved


def _tested(e: Expression) -> Column | None:
    """The text that an expression tests; None where it is no test."""
    if not isinstance(e, Call) or pattern_of(e) is None:
        return None
    text = e.args[0]
    return text if isinstance(text, Column) and text.type == STRING else None


def _all_of(scan: Scan) -> tuple[Scan, tuple[int, ...]]:
    return scan, tuple(range(len(scan.fields)))


def _columns_of_scan(relation: Relation) -> tuple[Scan, tuple[int, ...]] | None:
    """The scan below, and the positions of its columns that come out, if that is all there is."""
    if isinstance(relation, Scan):
        return _all_of(relation)
    if not isinstance(relation, Project) or not isinstance(relation.child, Scan):
        return None
    chosen = tuple(e.index for e in relation.expressions if isinstance(e, Column))
    return (relation.child, chosen) if len(chosen) == len(relation.expressions) else None


def _read_and_tested(relation: Relation, tests: _Tests) -> list[tuple[str, int]]:
    """The texts that a node reads from a scan together with a test of theirs."""
    found = _columns_of_scan(relation) if isinstance(relation, Project) else None
    reads = [found] if found is not None else [_all_of(i) for i in inputs(relation) if isinstance(i, Scan)]
    places = []
    for scan, chosen in reads:
        if scan.table in tests:
            tested = {tests.tested_column(scan.table, p) for p in chosen}
            places += [(scan.table.lower(), c) for c in chosen if c in tested]
    return places
