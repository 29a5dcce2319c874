"""What the database knows by name: tables with their keys, views with their plans, and who reads whom.

Names are case-insensitive and keep the case they were given, as in Spark. Tables, views and assertions share one name
space. Contract: a view is only ever added after everything it reads, so the order of creation is a topological order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from everview.errors import (
    AlreadyExists,
    DependencyError,
    InvalidQuery,
    UnknownName,
    UnsupportedOperation,
    did_you_mean,
)
from everview.relational.clock import WATERMARK, is_hidden
from everview.relational.column_names import find_column
from everview.relational.constraints import missing_keys, repeated_keys
from everview.relational.expressions import Literal
from everview.relational.nodes import Relation, Scan, Schema
from everview.relational.references import Reference
from everview.relational.schema import schema
from everview.relational.traverse import tables_of
from everview.relational.unique_keys import UniqueKey

_OWN_NAMES = re.compile(r"__clock$|__expired_|__watermark_", re.IGNORECASE)
_LONGEST_NAME = 128
"""Names that Spark's catalog takes without quotes, but for those of ``relational.clock``; tables are temporary views there."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the rows of a table must satisfy: ``UNIQUE (columns)``, or with a ``parent`` a FOREIGN KEY to its ``referenced``."""

    table: str
    columns: tuple[str, ...]
    parent: str | None = None
    referenced: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As SQL writes it; ``REFERENCES t`` without columns means the primary key of t."""
        columns = f"({', '.join(self.columns)})"
        if self.parent is None:
            return f"UNIQUE {columns}"
        referenced = f" ({', '.join(self.referenced)})" if self.referenced else ""
        return f"FOREIGN KEY {columns} REFERENCES {self.parent}{referenced}"


@dataclass(frozen=True, slots=True)
class Followed:
    """The Delta table that an external table stands for: where it is, and its own id, which no other has."""

    uri: str
    id: str


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class TableDefinition:
    """A base table: its columns, its primary key (empty for none), how it is kept, what holds of its rows, its defaults."""

    name: str
    fields: Schema
    primary_key: tuple[str, ...] = ()
    static: bool = False
    retain: bool = True
    constraints: tuple[Constraint, ...] = ()
    defaults: tuple[tuple[str, Literal], ...] = ()
    follows: Followed | None = None

    def check_is_ours(self, what: str) -> None:
        """Raises UnsupportedOperation if the table is external, so that its rows are not for us to change."""
        if self.follows is not None:
            raise UnsupportedOperation(
                f"table '{self.name}' {what}: it follows the Delta table {self.follows.uri}, and has its rows and no others.",
                hint="change the Delta table, and call db.refresh().",
            )

    def positions(self, columns: Iterable[str]) -> tuple[int, ...]:
        """Where these columns stand in a row."""
        names = [f.name for f in self.fields]
        return tuple(names.index(c) for c in columns)

    @property
    def key_positions(self) -> tuple[int, ...]:
        """Where the columns of the primary key stand in a row."""
        return self.positions(self.primary_key)

    @property
    def unique_keys(self) -> tuple[UniqueKey, ...]:
        """What no two rows agree on: the primary key, and UNIQUE columns where none of them is NULL."""
        keys = [UniqueKey(frozenset(self.key_positions))] if self.primary_key else []
        for constraint in self.constraints:
            if constraint.parent is None:
                columns = frozenset(self.positions(constraint.columns))
                keys.append(UniqueKey(columns, frozenset(i for i in columns if self.fields[i].nullable)))
        return tuple(keys)

    @property
    def references(self) -> tuple[Reference, ...]:
        """The foreign keys, once they are checked and written out."""
        return tuple(
            Reference(self.positions(c.columns), c.parent, c.referenced)
            for c in self.constraints
            if c.parent is not None
        )

    @property
    def scan(self) -> Scan:
        """The table in a plan."""
        return Scan(self.name, self.fields)

    @property
    def key_fields(self) -> Schema:
        """The columns of the primary key, in the key's order."""
        return tuple(self.fields[i] for i in self.key_positions)


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How the user asked a view to be maintained; the meaning of each is in ``interface.md``.

    ``refresh`` says whether a transaction may recompute the view (``view_options.REFRESHES``); None is the backend's own
    way: ``incremental`` on embedded. ``on_error`` says what becomes of rows on which its arithmetic fails: they ``suspend`` the
    view, or their transaction is ``reject``ed, as for assertions; None, before the session has decided: as its tables allow.
    """

    strategy: str = "auto"
    lazy: bool = False
    representation: str = "auto"
    depth: int | None = None
    epsilon: float | tuple[tuple[str, float], ...] | None = None
    """The exponent of the threshold of heavy and light parts, for all relations or by name."""
    refresh: str | None = None
    partitions: str = "single"
    """Whether relations are partitioned on one key each, or on each of their keys (``refined``)."""
    on_error: str | None = "reject"
    on_violation: str = "reject"
    """Of an assertion: whether rows that it catches ``reject`` their transaction, are left out (``drop``), or put aside."""

    @property
    def is_recomputed(self) -> bool:
        """Whether every change of what it reads computes it anew."""
        return self.strategy == "recompute" or self.refresh == "full"

    @property
    def names_a_way(self) -> bool:
        """Whether it is to be maintained in one way of maintaining, so that what is refused may be that way, not the query."""
        return self.representation != "auto" or self.strategy not in ("auto", "recompute")

    @property
    def may_be_suspended(self) -> bool:
        """Whether rows on which its arithmetic fails are taken in all the same."""
        return self.on_error == "suspend"


@dataclass(frozen=True, slots=True)
class CovarianceFeatures:
    """What a view sums up, if it is a covariance: the names of its features, and of the columns that it is grouped by.

    The view itself has the sums of the continuous features and of their products. Categories and pairs of categories are
    counted by views of their own, its *parts*, which come and go with it.
    """

    continuous: tuple[str, ...]
    categorical: tuple[str, ...]
    group_by: tuple[str, ...]

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of categorical features, by their numbers."""
        return tuple(combinations(range(len(self.categorical)), 2))

    def parts(self, name: str) -> tuple[str, ...]:
        """The names of the parts of a covariance of this name: one for each categorical feature, then one for each pair."""
        single = (f"{name}__c{i}" for i in range(len(self.categorical)))
        return (*single, *(f"{name}__c{i}_c{j}" for i, j in self.pairs))


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view, or an assertion (a view that must stay empty).

    ``query`` is the SQL text, None for a view made from a DataFrame. ``time_zone`` is the session time zone in which
    the query was translated, ``settings`` are the others of the session that decided what it means and were not at their
    default.
    """

    name: str
    plan: Relation
    query: str | None
    time_zone: str
    options: ViewOptions = field(default_factory=ViewOptions)
    is_assertion: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    constraint: Constraint | None = None
    """Of a table, if this is how the backend maintains it: an assertion that no catalog has."""
    covariance: CovarianceFeatures | None = None
    part_of: str | None = None
    """The covariance that this view is a part of."""

    @property
    def fields(self) -> Schema:
        """The columns of the view."""
        return schema(self.plan)

    @property
    def kind(self) -> str:
        """What to call it in a message."""
        return "assertion" if self.is_assertion else "view"


Definition = TableDefinition | ViewDefinition


class Catalog:
    """The definitions of one database."""

    def __init__(self) -> None:
        self._definitions: dict[str, Definition] = {}
        self._sorts: bool | None = None
        self._watermarks: dict[str, ViewDefinition] | None = None
        self.generation = 0
        """Grows whenever a definition comes, goes or changes."""

    def _changed(self) -> None:
        self._sorts = self._watermarks = None
        self.generation += 1

    def add(self, definition: Definition) -> None:
        """Enters a definition whose name and columns have been checked."""
        assert definition.name.lower() not in self._definitions, definition.name
        self._definitions[definition.name.lower()] = definition
        self._changed()

    def remove(self, definition: Definition) -> None:
        """Forgets a definition that ``droppable`` has given."""
        del self._definitions[definition.name.lower()]
        self._changed()

    def exchange(self, before: Definition, after: Definition) -> None:
        """Puts a definition in the place of another, also under another name."""
        exchanged = [after if d is before else d for d in self._definitions.values()]
        self._definitions = {d.name.lower(): d for d in exchanged}
        self._changed()

    def droppable(self, name: str) -> Definition:
        """The definition of this name, which nothing else needs but its own retention and watermark.

        Raises:
            UnknownName: nothing has this name.
            DependencyError: a view or assertion reads it.
        """
        definition = self.get(name)
        if isinstance(definition, ViewDefinition) and definition.part_of is not None:
            raise DependencyError(
                f"view '{definition.name}' cannot be dropped: it is a part of the covariance '{definition.part_of}'.",
                hint="drop that.",
            )
        parts = self.parts_of(definition)
        every = (d for one in (definition, *parts) for d in self.dependents(one.name))
        dependents = tuple(d for d in every if not is_hidden(d.name))
        if dependents:
            listed = ", ".join(f"{d.kind} '{d.name}'" for d in dependents)
            raise DependencyError(
                f"{kind_of(definition)} '{definition.name}' cannot be dropped: {listed} "
                f"{'reads' if len(dependents) == 1 else 'read'} it.",
                hint=f"drop {'that' if len(dependents) == 1 else 'those'} first.",
            )
        for table in self.tables:
            for constraint in table.constraints if table is not definition else ():
                if constraint.parent == definition.name:
                    raise DependencyError(
                        f"table '{definition.name}' cannot be dropped: table '{table.name}' has {constraint.text}.",
                        hint=f"drop table '{table.name}' first.",
                    )
        return definition

    def parts_of(self, definition: Definition) -> tuple[ViewDefinition, ...]:
        """The parts of a covariance; none of anything else."""
        if not isinstance(definition, ViewDefinition) or definition.covariance is None:
            return ()
        return tuple(self.view(part) for part in definition.covariance.parts(definition.name))

    def has(self, definition: Definition) -> bool:
        """Whether this very definition is in force: not dropped, and not dropped and made anew."""
        return self._definitions.get(definition.name.lower()) is definition

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._definitions

    def get(self, name: str) -> Definition:
        """The definition of this name, in whatever case."""
        found = self._definitions.get(name.lower())
        if found is None:
            raise UnknownName(f"there is no table or view '{name}'.", hint=self.near(name))
        return found

    def near(self, name: str) -> str | None:
        """The hint for a misspelt name, if any is near."""
        return self._near(name, self._definitions.values())

    def table(self, name: str) -> TableDefinition:
        """The table of this name."""
        found = self._definitions.get(name.lower())
        if isinstance(found, TableDefinition):
            return found
        hint = self._near(name, self.tables)
        if found is not None:
            hint = "changes go to the tables it reads; db.view() gives the view."
            raise UnknownName(f"'{found.name}' is {_article(found)}, not a table.", hint=hint)
        raise UnknownName(f"there is no table '{name}'.", hint=hint)

    def view(self, name: str) -> ViewDefinition:
        """The view of this name (not an assertion)."""
        found = self._definitions.get(name.lower())
        if isinstance(found, ViewDefinition) and not found.is_assertion:
            return found
        if found is not None:
            hint = (
                "db.table() gives it." if isinstance(found, TableDefinition) else "it cannot be read, only explained."
            )
            raise UnknownName(f"'{found.name}' is {_article(found)}, not a view.", hint=hint)
        raise UnknownName(f"there is no view '{name}'.", hint=self._near(name, self.views))

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """Everything, in order of creation."""
        return tuple(self._definitions.values())

    @property
    def tables(self) -> tuple[TableDefinition, ...]:
        """All tables, in order of creation."""
        return tuple(d for d in self._definitions.values() if isinstance(d, TableDefinition))

    @property
    def views(self) -> tuple[ViewDefinition, ...]:
        """All views without the assertions, each after what it reads."""
        return tuple(d for d in self.computed if not d.is_assertion)

    @property
    def assertions(self) -> tuple[ViewDefinition, ...]:
        """All assertions."""
        return tuple(d for d in self.computed if d.is_assertion)

    @property
    def sorts_rows_out(self) -> bool:
        """Whether an assertion leaves rows out of transactions; every transaction asks."""
        if self._sorts is None:
            self._sorts = any(a.options.on_violation != "reject" for a in self.computed)
        return self._sorts

    @property
    def watermarks(self) -> Mapping[str, ViewDefinition]:
        """The views of watermarks, by table in small letters; every transaction asks."""
        if self._watermarks is None:
            found = {v.name.removeprefix(WATERMARK).lower(): v for v in self.computed if v.name.startswith(WATERMARK)}
            self._watermarks = found
        return self._watermarks

    def constraint_views(self, table: TableDefinition) -> tuple[ViewDefinition, ...]:
        """The constraints of a table as assertions, with names that no view can have."""
        return tuple(
            ViewDefinition(
                f"{c.table} {c.text}", self._violations(table, c), None, "UTC", is_assertion=True, constraint=c
            )
            for c in table.constraints
        )

    def constraints_over(self, table: TableDefinition) -> tuple[ViewDefinition, ...]:
        """The constraints, of whichever table, that read a table, as assertions."""
        wanted = table.name.lower()
        every = (c for t in self.tables for c in self.constraint_views(t))
        return tuple(c for c in every if wanted in {s.lower() for s in tables_of(c.plan)})

    def with_references(self, table: TableDefinition) -> TableDefinition:
        """The table with its foreign keys checked against what they refer to, and written out.

        Raises:
            UnknownName: there is no such table or column.
            InvalidQuery: the columns are no key of the parent, or of other types.
            UnsupportedOperation: a table that keeps no rows cannot be looked up in.
        """
        resolved = []
        for constraint in table.constraints:
            parent = self._parent(table, constraint)
            resolved.append(constraint if parent is None else _with_reference(table, constraint, parent))
            for kept in (table, parent):
                if kept is not None and not kept.retain:
                    raise UnsupportedOperation(
                        f"{constraint.text} of table '{table.name}' cannot be checked: "
                        f"table '{kept.name}' keeps no rows (retain=False).",
                        hint="create it with retain=True, or leave the constraint out.",
                    )
        return replace(table, constraints=tuple(dict.fromkeys(resolved)))

    def _parent(self, table: TableDefinition, constraint: Constraint) -> TableDefinition | None:
        """The table that a foreign key refers to, perhaps its own; none for another constraint."""
        if constraint.parent is None:
            return None
        return table if constraint.parent.lower() == table.name.lower() else self.table(constraint.parent)

    def _violations(self, table: TableDefinition, constraint: Constraint) -> Relation:
        parent, own = self._parent(table, constraint), table.positions(constraint.columns)
        if parent is None:
            return repeated_keys(table.scan, own)
        return missing_keys(table.scan, own, parent.scan, parent.positions(constraint.referenced))

    def dependents(self, name: str) -> tuple[ViewDefinition, ...]:
        """The views and assertions that read this table or view directly."""
        wanted = name.lower()
        return tuple(d for d in self.computed if wanted in {s.lower() for s in tables_of(d.plan)})

    def inputs_of(self, definition: ViewDefinition) -> tuple[Definition, ...]:
        """Everything a view needs, directly or through other views, each after what it needs itself."""
        needed: set[str] = set()
        waiting = [s.lower() for s in tables_of(definition.plan)]
        while waiting:
            name = waiting.pop()
            if name in needed:
                continue
            needed.add(name)
            inner = self._definitions[name]
            if isinstance(inner, ViewDefinition):
                waiting.extend(s.lower() for s in tables_of(inner.plan))
        return tuple(d for key, d in self._definitions.items() if key in needed)

    def check_name(self, name: object) -> None:
        """Raises unless a new table, view or assertion may have this name."""
        if not isinstance(name, str) or _why_no_name(name) is not None:
            why = _why_no_name(name) if isinstance(name, str) else "it is no text"
            raise InvalidQuery(
                f"{name!r} is not a name for a table or view: {why}.",
                hint="best are letters, digits and underscores, as in orders_2024; others are written `like this` in SQL.",
            )
        taken = self._definitions.get(name.lower())
        if taken is not None:
            raise AlreadyExists(
                f"there is already {_article(taken)} '{taken.name}'.", hint="choose another name or drop it."
            )

    @property
    def computed(self) -> tuple[ViewDefinition, ...]:
        """All views and assertions, each after what it reads."""
        return tuple(d for d in self._definitions.values() if isinstance(d, ViewDefinition))

    @staticmethod
    def _near(name: str, among: Iterable[Definition]) -> str | None:
        return did_you_mean(name, [d.name for d in among])


def _with_reference(table: TableDefinition, constraint: Constraint, parent: TableDefinition) -> Constraint:
    owner = f"table '{parent.name}'"
    found = [find_column(owner, parent.fields, c) for c in constraint.referenced or parent.primary_key]
    if frozenset(found) not in {key.columns for key in parent.unique_keys} or len(found) != len(constraint.columns):
        raise InvalidQuery(
            f"{constraint.text} of table '{table.name}' refers to no key of {owner}.",
            hint=f"name {len(constraint.columns)} column(s) that are the PRIMARY KEY of '{parent.name}' or UNIQUE in it.",
        )
    for i, j in zip(table.positions(constraint.columns), found, strict=True):
        own, other = table.fields[i], parent.fields[j]
        if own.type != other.type:
            raise InvalidQuery(
                f"{constraint.text} of table '{table.name}' compares {own.type} '{own.name}' with {other.type} '{other.name}'.",
                hint="give both columns the same type.",
            )
    return replace(constraint, parent=parent.name, referenced=tuple(parent.fields[i].name for i in found))


def kind_of(definition: Definition) -> str:
    """Table, view or assertion: what to call it in a message."""
    return "table" if isinstance(definition, TableDefinition) else definition.kind


def _article(definition: Definition) -> str:
    return f"an {kind}" if (kind := kind_of(definition)) == "assertion" else f"a {kind}"


def _why_no_name(name: str) -> str | None:
    """What keeps a text from being a name; None if nothing does. Files are never named by it alone."""
    if not name.strip():
        return "it is empty"
    if name != name.strip():
        return "it has blanks at its ends"
    if not all(c == " " or c.isprintable() for c in name):
        return "it has characters that cannot be printed"
    if len(name) > _LONGEST_NAME:
        return f"it has more than {_LONGEST_NAME} characters"
    return "everview has names like it for itself" if _OWN_NAMES.match(name) else None
