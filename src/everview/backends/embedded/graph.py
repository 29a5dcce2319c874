"""The views of a database as operators: what they read, the programs that maintain them, and the operators below them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from everview.backends.base import AlteredTable
from everview.backends.embedded.build_operators import Sources, build_operators
from everview.backends.embedded.dependencies import below, forgets
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operator_pool import OperatorPool
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.sources import TableInput
from everview.backends.embedded.tables.mean_matches import mean_matches
from everview.backends.embedded.tables.stored_table import StoredTable, TableContent
from everview.backends.embedded.vectors import Batch
from everview.backends.row_spread import MOST_COUNTED
from everview.catalog import TableDefinition
from everview.planner.block_join_builder import Facts
from everview.relational.clock import EXPIRED
from everview.relational.nodes import Relation, Scan
from everview.relational.rules import SPLIT_JOINS, run_rules
from everview.relational.traverse import tables_of
from everview.relational.unique_keys import UniqueKey
from everview.trigger.lower_plan import lower_plan
from everview.trigger.program import Program

MANY_CHANGES = 10
"""A table that has not changed while another changed so often is taken to be one that does not change."""
Programs = dict[Relation, Program]
"""The programs of queries, by their plans."""


class Graph:
    """Tables, views, and all operators between them."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self.tables: dict[str, TableInput] = {}
        self.roots: dict[str, Operator] = {}
        self.programs: dict[str, Program] = {}
        """What maintains each view."""
        self._view_keys: dict[str, tuple[UniqueKey, ...]] = {}
        self.pool = OperatorPool(self.views_over)

    @property
    def operators(self) -> list[Operator]:
        """All operators, inputs before their users."""
        return self.pool.operators

    def add_view(self, name: str, program: Program, keys: tuple[UniqueKey, ...], *, shares: bool) -> Operator:
        """Builds what the view needs and does not exist yet; on an error the operators are as before.

        New trees share stored views with those there are, if they may.
        """
        before = set(self.pool.operators)
        try:
            root = build_operators(program, self.pool, self._sources, self.dictionary, shares=shares)
        except BaseException:
            self.pool.forget([o for o in self.pool.operators if o not in before])
            raise
        self.pool.put_in_order()
        if forgets(root) or name.startswith(EXPIRED):
            # Its content cannot be computed from tables that keep no rows, or is read whenever the clock has moved.
            root.arranged().is_asked_by_users = True
        self.roots[name.lower()] = root
        self.programs[name.lower()] = program
        self._view_keys[name.lower()] = keys
        return root

    def drop_view(self, name: str) -> None:
        """Removes a view and the operators that only it used."""
        del self.roots[name.lower()], self.programs[name.lower()], self._view_keys[name.lower()]
        self.collect()

    @contextmanager
    def holding(self, definition: TableDefinition, rows: pa.Table) -> Iterator[None]:
        """A table with these rows, which no view reads; its name is free."""
        source = TableInput(StoredTable(definition, self.dictionary), self.dictionary)
        source.table.restore(TableContent(definition.name, rows, None, received=True))
        self.tables[definition.name.lower()] = source
        try:
            yield
        finally:
            del self.tables[definition.name.lower()]

    def evaluated(self, plan: Relation, programs: Programs | None = None) -> Batch:
        """The answer of a query that is read once, over what is there; ``collect`` removes what it needed.

        ``programs`` are those of plans that were read before, over tables like these; this plan's is added.
        """
        program = None if programs is None else programs.get(plan)
        if program is None:
            split = run_rules(plan, SPLIT_JOINS)
            program = lower_plan(split, self.facts_of, keeps_rows=self.keeps_rows, is_read_once=True, has_order=True)
        if programs is not None:
            programs[plan] = program
        return build_operators(program, self.pool, self._sources, self.dictionary).content()

    def collect(self) -> None:
        """Removes the operators that no view needs, and the arrangements that nothing looks rows up in any more."""
        self.pool.keep_only({id(o) for root in self.roots.values() for o in below(root)})

    def views_over(self, operator: Operator) -> tuple[str, ...]:
        """The names of the views that an operator is used by."""
        return tuple(name for name, root in self.roots.items() if any(o is operator for o in below(root)))

    def alter_table(self, name: str, altered: AlteredTable) -> None:
        """Puts a table that nothing reads into its new form."""
        table = self.tables[name.lower()].table.altered(altered)
        del self.tables[name.lower()]
        self.tables[table.name.lower()] = TableInput(table, self.dictionary)

    @property
    def _sources(self) -> Sources:
        return Sources(self.roots, self.tables)

    def facts_of(self, relation: Relation) -> Facts:
        """What the planner may know of a table or view."""
        if not isinstance(relation, Scan):
            return Facts()
        source = self.tables.get(relation.table.lower())
        if source is None:
            return Facts(self._view_keys.get(relation.table.lower(), ()))
        definition = source.table.definition
        is_fixed = definition.static and source.table.has_received_rows
        rows = float(max(1000, source.table.row_count if definition.retain else 0))
        matches = partial(mean_matches, source.table) if definition.retain else None
        return Facts(definition.unique_keys, not is_fixed, rows, matches, definition.references)

    def keeps_rows(self, name: str) -> bool:
        """Whether a table or view can be read again."""
        source = self.tables.get(name.lower())
        return source is None or source.table.definition.retain

    def can_be_counted(self, name: str) -> bool:
        """Whether the rows of a table or view are at hand, and not too many to be read for ``explain``."""
        source = self.tables.get(name.lower())
        if source is not None:
            return source.table.definition.retain and source.table.row_count <= MOST_COUNTED
        root = self.roots.get(name.lower())
        return root is not None and root.keeps_output and root.count() <= MOST_COUNTED

    def unchanged_tables(self, plan: Relation) -> list[str]:
        """The tables of a plan that were loaded and not changed since, while another one of them was, many times."""
        read = [t for name in dict.fromkeys(tables_of(plan)) if (t := self.tables.get(name.lower())) is not None]
        if max((t.changes for t in read), default=0) < MANY_CHANGES:
            return []
        loaded = [t.table for t in read if t.changes <= 1 and t.table.has_received_rows]
        return [t.name for t in loaded if not t.definition.static]
