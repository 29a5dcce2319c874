"""Making views and assertions: from a query and options to a definition that the backend maintains.

A query that the algebra has no nodes for, or that the backend refuses, is Spark's to answer as a whole, for a view that is
recomputed after every change; any other view of it is refused, with that as the way out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import UnsupportedOperation, UnsupportedQuery, guarded
from everview.frontend.translated import Translated
from everview.relational.column_names import check_columns
from everview.session.queries import UnionMaxQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.core import Core


def define_view(
    core: Core, name: str, query: str | DataFrame | UnionMaxQuery, options: ViewOptions, *, is_assertion: bool
) -> ViewDefinition:
    """Makes a view or an assertion."""
    with core.locked():
        core.catalog.check_name(name)
        translated = core.translate(query, may_be_whole=options.is_recomputed)
        core.heal()
        definition = view_definition(core, name, translated, options, is_assertion=is_assertion)
        try:
            with guarded(query):
                core.add_view(definition)
        except UnsupportedQuery as refused:
            if options.names_a_way:
                raise
            whole = _answered_whole(core, query, refused)
            if not options.is_recomputed:
                raise refused.or_recomputed() from refused.__cause__
            definition = view_definition(core, name, whole, options, is_assertion=is_assertion)
            with guarded(query):
                core.add_view(definition)
        if not isinstance(query, str):
            core.sources[name.lower()] = query
        return definition


def _answered_whole(core: Core, query: str | DataFrame | UnionMaxQuery, refused: UnsupportedQuery) -> Translated:
    """The query of a view that the backend refuses, for Spark to answer as a whole; the refusal if that is none either."""
    if isinstance(query, UnionMaxQuery):
        raise refused
    try:
        return core.gateway.translate_whole(query)
    except UnsupportedQuery:
        raise refused from None


def view_definition(
    core: Core, name: str, translated: Translated, options: ViewOptions, *, is_assertion: bool = False
) -> ViewDefinition:
    """What is known of a view when its query is translated."""
    zone, others = translated.settings.time_zone, translated.settings.others
    view = ViewDefinition(name, translated.plan, translated.text, zone, options, is_assertion, others)
    if is_assertion:
        return view
    check_columns(f"view '{name}'", view.fields)
    return with_on_error(core, view)


def with_on_error(core: Core, view: ViewDefinition) -> ViewDefinition:
    """The view with what becomes of it when it fails: a suspended one is computed anew, which needs rows.

    Raises:
        UnsupportedOperation: it is to be suspended, and reads a table that keeps no rows.
    """
    asked = view.options.on_error
    if asked == "reject":
        return view
    inputs = (d for d in core.catalog.inputs_of(view) if isinstance(d, TableDefinition))
    lost = next((t for t in inputs if not t.retain), None)
    is_strict = view.options.refresh == "incremental_strict"
    if is_strict and asked is not None:
        raise UnsupportedOperation(
            f"view '{view.name}' cannot have on_error='suspend' and refresh='incremental_strict': "
            "a view that was suspended is computed anew.",
            hint="leave one of them out.",
        )
    if lost is not None and asked is not None:
        raise UnsupportedOperation(
            f"view '{view.name}' cannot have on_error='suspend': it reads table '{lost.name}', which keeps no rows "
            "(retain=False), so that it could not be computed anew afterwards.",
            hint="leave it out: transactions on which the view fails are then rejected.",
        )
    decided = "suspend" if lost is None and not is_strict else "reject"
    return replace(view, options=replace(view.options, on_error=decided))
