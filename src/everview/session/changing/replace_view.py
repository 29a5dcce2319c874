"""``replace_view``: another query under the name of a view, with the views over it kept.

A view that reads the replaced one has a plan that scans its columns by position. Where each column that was there still is,
by name and type, the scan becomes

    scan v [old columns]   →   project [old columns] (scan v [new columns])

and the view over it is made anew with that plan. Contract: a call that raises has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import DependencyError, InvalidQuery, UnsupportedOperation, guarded
from everview.relational.expressions import Column, Literal
from everview.relational.nodes import Project, Relation, Scan, Schema
from everview.relational.traverse import rewrite_bottom_up, tables_of
from everview.session.changing.readers import columns_read, views_over
from everview.session.defining_views import define_view, view_definition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.core import Core
    from everview.session.queries import UnionMaxQuery


def replace_view(core: Core, name: str, query: str | DataFrame | UnionMaxQuery, options: ViewOptions) -> ViewDefinition:
    """Gives a view another query; makes it if there is none.

    Raises:
        UnknownName: the name is that of a table or an assertion.
        DependencyError: a view over it reads a column that it would not have any more, or have with another type.
    """
    with core.locked():
        if name not in core.catalog:
            return define_view(core, name, query, options, is_assertion=False)
        old = core.catalog.view(name)
        translated = core.translate(query, may_be_whole=options.is_recomputed)
        core.heal()
        new = view_definition(core, old.name, translated, options)
        over = views_over(core, old.name)
        _check_reads(new, [old, *over], core)
        for definition in (old, *over):
            for check in core.drop_checks:
                check(definition.name)
        kept = {old.name.lower(): new}
        for definition in over:
            plan = rewrite_bottom_up(definition.plan, _reading(kept))
            # Where the columns are others, a star in the text would mean more today than it did: the plan is what counts.
            is_open_ended = plan != definition.plan and "*" in (definition.query or "")
            text = None if is_open_ended else definition.query
            kept[definition.name.lower()] = replace(definition, plan=plan, query=text)
        with guarded(query), core.uninterrupted:
            swap_views(core, [old, *over], list(kept.values()))
            if isinstance(query, str):
                core.sources.pop(old.name.lower(), None)
            else:
                core.sources[old.name.lower()] = query
        return new


def swap_views(core: Core, old: list[ViewDefinition], new: list[ViewDefinition]) -> None:
    """Puts views in the place of others, all or none; each list with what is read first."""
    with core.uninterrupted, core.locked(), core.together():
        made: list[ViewDefinition] = []
        for definition in reversed(old):
            core.backend.drop(definition.name)
        try:
            for definition in new:
                core.backend.create_view(definition)
                made.append(definition)
        except BaseException:
            for definition in reversed(made):
                core.backend.drop(definition.name)
            for definition in old:
                core.backend.create_view(definition)
            raise
        for before, after in zip(old, new, strict=True):
            core.catalog.remove(before)
            core.supersede(before, after)
        for after in new:
            core.catalog.add(after)
            if not after.is_assertion:
                core.tell_spark_of(after.name)


def _check_reads(new: ViewDefinition, replaced: list[ViewDefinition], core: Core) -> None:
    """Raises if the new view would read itself, if it lacks what others read, or if something could not be made anew."""
    names = {d.name.lower() for d in replaced}
    own = next((n for n in tables_of(new.plan) if n.lower() in names), None)
    if own is not None:
        raise InvalidQuery(f"view '{new.name}' would read '{own}', which is itself or reads it.")
    old, over = replaced[0], replaced[1:]
    columns = {f.name.lower(): f for f in new.fields}
    readers = {d.name: (d, columns_read(d.plan, old.name)) for d in over}
    for number, field in enumerate(old.fields):
        reader = next((d for d, read in readers.values() if number in read), None)
        if reader is None:
            continue
        there = columns.get(field.name.lower())
        if there is None or there.type != field.type or (there.nullable and not field.nullable):
            now = (
                "not be there" if there is None else f"be {there.type}{'' if there.type != field.type else ', or NULL'}"
            )
            raise DependencyError(
                f"view '{old.name}' cannot be replaced: its column '{field.name}' {field.type} would {now}, "
                f"and {reader.kind} '{reader.name}' reads it.",
                hint="keep the column, with a CAST or coalesce if need be, or drop what reads the view first.",
            )
    read_by_all = {d.name: d for view in (new, *replaced) for d in core.catalog.inputs_of(view)}
    for table in read_by_all.values():
        if isinstance(table, TableDefinition) and not table.retain:
            raise UnsupportedOperation(
                f"view '{old.name}' cannot be replaced: table '{table.name}' keeps no rows (retain=False), so that no view "
                "over it can be made anew.",
                hint="create another view beside it before the rows arrive.",
            )


def _reading(kept: dict[str, ViewDefinition]) -> Callable[[Relation], Relation | None]:
    """A rule that lets scans of replaced views read the columns that they did."""

    def rule(node: Relation) -> Relation | None:
        if not isinstance(node, Scan) or node.table.lower() not in kept:
            return None
        fields: Schema = kept[node.table.lower()].fields
        if fields == node.fields:
            return None
        places = {f.name.lower(): i for i, f in enumerate(fields)}
        read = [places.get(f.name.lower()) for f in node.fields]
        columns = tuple(
            Literal(None, f.type)  # nothing computes with it
            if i is None or fields[i].type != f.type
            else Column(i, f.type, fields[i].nullable)
            for i, f in zip(read, node.fields, strict=True)
        )
        return Project(Scan(node.table, fields), columns, tuple(f.name for f in node.fields))

    return rule
