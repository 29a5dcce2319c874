"""Tests of text made where rows come in: ``comment LIKE '%special%'`` as a column of the scan, instead of the comment.

A text that only a test reads needs no code in the dictionary, which never forgets: with a test on it, a column of which every
row is different costs neither the time to encode it nor the memory to keep it. A text that something else reads too is encoded
anyway, and is then tested once for each distinct value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

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


class Tested(Protocol):
    """A table that can have tests for columns."""

    def test_column(self, test: TextTest) -> int:
        """The position of the column that the test is."""

    def tested_column(self, position: int) -> int | None:
        """The column that the test at a position tests; None where no test is."""

    @property
    def all_fields(self) -> Schema:
        """The table's columns, and its tests behind them."""


def expose_text_tests(plan: Relation, tables: Mapping[str, Tested]) -> Relation:
    """The plan with filters by tests that scans make, wherever the text itself is then read by nobody."""
    needed: set[tuple[str, int]] = set()
    while True:
        tested = prune_columns(rewrite_bottom_up(plan, _rule(tables, frozenset(needed))))
        still_read = {place for node in nodes_of(tested) for place in _read_and_tested(node, tables)}
        if not still_read:
            return rewrite_bottom_up(rewrite_bottom_up(tested, merge_projects), drop_identity_project)
        needed |= still_read


def _rule(tables: Mapping[str, Tested], needed: frozenset[tuple[str, int]]) -> Callable[[Relation], Relation | None]:
    def expose(relation: Relation) -> Relation | None:
        """σ[p(t)](R) = π[R](σ[p(c)](R × c)), where the column c is the test t of R's text."""
        if not isinstance(relation, Filter):
            return None
        found = _columns_of_scan(relation.child)
        if found is None or found[0].table.lower() not in tables:
            return None
        scan, chosen = found
        table, width = tables[scan.table.lower()], len(chosen)
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
        positions = (*chosen, *(table.test_column(test) for test in places))
        wider = replace(scan, fields=table.all_fields)
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


def _read_and_tested(relation: Relation, tables: Mapping[str, Tested]) -> list[tuple[str, int]]:
    """The texts that a node reads from a scan together with a test of theirs."""
    found = _columns_of_scan(relation) if isinstance(relation, Project) else None
    reads = [found] if found is not None else [_all_of(i) for i in inputs(relation) if isinstance(i, Scan)]
    places = []
    for scan, chosen in reads:
        table = tables.get(scan.table.lower())
        if table is not None:
            tested = {table.tested_column(p) for p in chosen}
            places += [(scan.table.lower(), c) for c in chosen if c in tested]
    return places
