"""Other columns and names for a table, with the views over it kept.

A view reads the columns of its tables by position, under the names that they had. Over an altered table its plan becomes

    scan t [old columns]   →   project [old columns] (scan t [new columns])

and it is made anew with that plan: its rows are the same. Contract: a call that raises has changed nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.backends.base import AlteredTable, AltersTables
from everview.catalog import Constraint, TableDefinition, ViewDefinition
from everview.errors import DependencyError, UnsupportedOperation
from everview.relational.column_names import check_columns, find_column
from everview.relational.expressions import Column, Literal
from everview.relational.nodes import Field, Project, Relation, Scan
from everview.relational.traverse import rewrite_bottom_up
from everview.relational.types import NULL
from everview.session.changing.readers import check_can_be_made_anew, columns_read, told_as, views_over
from everview.session.changing.sort_out import quarantine_name

if TYPE_CHECKING:
    from everview.session.core import Core

_MEANS_ALL_COLUMNS = re.compile(r"\*|\bnatural\b|\bpivot\b|\bunpivot\b|\btable\b|\|>", re.IGNORECASE)
_COUNT_OF_ROWS = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)


def with_column(core: Core, table: TableDefinition, field: Field, filling: Literal) -> TableDefinition:
    """Adds a column behind the others; rows get ``filling`` in it, those that are there, and those that come without it."""
    fields = (*table.fields, field)
    check_columns(f"table '{table.name}'", fields)
    defaults = (*table.defaults, (field.name, filling))
    wider = replace(table, fields=fields, defaults=defaults)
    altered = AlteredTable(wider, (*range(len(table.fields)), None), filling)
    with core.uninterrupted:
        _alter(core, table, altered, field.name)
    return altered.definition


def rename_column(core: Core, name: str, column: str, new: str) -> TableDefinition:
    """Gives a column another name.

    Raises:
        DependencyError: a view, an assertion or a constraint reads it.
    """
    with core.uninterrupted, core.locked():
        table = core.catalog.table(name)
        place = find_column(f"table '{table.name}'", table.fields, column)
        old = table.fields[place].name
        readers = [f"{d.kind} '{d.name}'" for d in views_over(core, table.name) if place in columns_read(d.plan, name)]
        for other in core.catalog.tables:
            readers += [
                f"{c.text} of table '{other.name}'" for c in other.constraints if _names(c, other, table.name, old)
            ]
        if readers:
            raise DependencyError(
                f"column '{old}' of table '{table.name}' cannot be renamed: "
                f"{', '.join(readers)} {'reads' if len(readers) == 1 else 'read'} it.",
                hint="drop what reads it first.",
            )
        fields = tuple(replace(f, name=new) if i == place else f for i, f in enumerate(table.fields))
        check_columns(f"table '{table.name}'", fields)
        key = tuple(new if k == old else k for k in table.primary_key)
        defaults = tuple((new if c == old else c, default) for c, default in table.defaults)
        altered = replace(table, fields=fields, primary_key=key, defaults=defaults)
        _alter(core, table, AlteredTable(altered, tuple(range(len(fields))), Literal(None, NULL)), new)
        return altered


def rename_table(core: Core, name: str, new: str) -> TableDefinition:
    """Gives a table another name.

    Raises:
        DependencyError: a view, an assertion or the constraint of another table reads it.
    """
    with core.uninterrupted, core.locked():
        table = core.catalog.table(name)
        core.catalog.check_name(new)
        with told_as("renamed"):
            core.catalog.droppable(table.name)
        constraints = tuple(
            replace(c, table=new, parent=new if c.parent == table.name else c.parent) for c in table.constraints
        )
        altered = replace(table, name=new, constraints=constraints)
        _alter(core, table, AlteredTable(altered, tuple(range(len(table.fields))), Literal(None, NULL)), new)
        core.forget_in_spark(table.name)
        return altered


def _alter(core: Core, before: TableDefinition, altered: AlteredTable, new_name: str) -> None:
    """Alters a table and makes the views over it anew; ``new_name`` is what queries could not name before."""
    core.heal()
    over = views_over(core, before.name)
    _check(core, before, over)
    backend, after = core.backend, altered.definition
    assert isinstance(backend, AltersTables)
    rule = _reading(before.name, altered)
    kept = [_over_altered(view, rewrite_bottom_up(view.plan, rule), new_name) for view in over]
    dropped = [*core.catalog.constraints_over(before), *reversed(over)]
    with core.together(), ExitStack() as undo:
        for view in dropped:
            backend.drop(view.name)
            undo.callback(backend.create_view, view)
        backend.alter_table(before.name, altered)
        undo.callback(backend.alter_table, after.name, altered.undone(before))
        core.catalog.exchange(before, after)
        undo.callback(core.catalog.exchange, after, before)
        for view in (*kept, *core.catalog.constraints_over(after)):
            backend.create_view(view)
            undo.callback(backend.drop, view.name)
        undo.pop_all()
    core.supersede(before, after)
    for old in over:
        core.catalog.remove(old)
    for old, new in zip(over, kept, strict=True):
        core.catalog.add(new)
        if new is not old:
            core.supersede(old, new)
            core.sources.pop(old.name.lower(), None)
    core.tell_spark_of(after.name)


def _check(core: Core, table: TableDefinition, over: list[ViewDefinition]) -> None:
    table.check_is_ours("cannot be altered")
    if not isinstance(core.backend, AltersTables):
        raise UnsupportedOperation(
            f"table '{table.name}' cannot be altered: the {core.backend.name} backend does not alter tables.",
            hint="make another with CREATE TABLE … AS SELECT.",
        )
    with told_as("altered"):
        for check in core.drop_checks:
            check(table.name)
    check_can_be_made_anew(core, f"table '{table.name}' cannot be altered", over)
    for assertion in core.catalog.assertions:
        sorts_out = assertion.options.on_violation != "reject"
        if sorts_out and (assertion in over or quarantine_name(assertion.name).lower() == table.name.lower()):
            raise UnsupportedOperation(
                f"table '{table.name}' cannot be altered: assertion '{assertion.name}' sorts its rows out.",
                hint="drop the assertion first, and create it again afterwards.",
            )


def _reading(name: str, altered: AlteredTable) -> Callable[[Relation], Relation | None]:
    """A rule that lets scans of the table read the columns that they did."""
    fields = altered.definition.fields

    def rule(node: Relation) -> Relation | None:
        if not isinstance(node, Scan) or node.table.lower() != name.lower() or node.fields == fields:
            return None
        places = [altered.columns.index(i) for i in range(len(node.fields))]
        columns = tuple(Column(i, fields[i].type, fields[i].nullable) for i in places)
        return Project(Scan(altered.definition.name, fields), columns, tuple(f.name for f in node.fields))

    return rule


def _over_altered(view: ViewDefinition, plan: Relation, new_name: str) -> ViewDefinition:
    """The view with its new plan; without its text where that could mean something else today than it did."""
    if plan == view.plan:
        return view
    text = view.query
    if text is not None:
        names = {word.lower() for word in re.findall(r"\w+", text)}
        is_open = _MEANS_ALL_COLUMNS.search(_COUNT_OF_ROWS.sub("", text)) or "select" not in names
        if is_open or not names.isdisjoint(w.lower() for w in re.findall(r"\w+", new_name)):
            text = None
    return replace(view, plan=plan, query=text)


def _names(constraint: Constraint, owner: TableDefinition, table: str, column: str) -> bool:
    """Whether a constraint of ``owner`` is about a column of a table."""
    own = owner.name == table and column in constraint.columns
    return own or (constraint.parent == table and column in constraint.referenced)
