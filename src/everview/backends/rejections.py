"""What every backend says when it rejects a call, so that the same mistake reads the same on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everview.backends.base import Suspension
from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import (
    AssertionViolated,
    EvaluationError,
    InvalidChange,
    OutOfMemory,
    UnsupportedOperation,
    UnsupportedQuery,
    ViewSuspended,
)
from everview.relational.display import show_internal_rows
from everview.relational.nodes import Field, Schema
from everview.relational.types import Row


def absent_rows(table: TableDefinition, missing: Mapping[Row, int]) -> InvalidChange:
    """Rows that a transaction deletes more often (by how much: the value) than the table has them."""
    rows = show_internal_rows(list(missing), table.fields)
    too_often = max(missing.values())
    often = "" if too_often == 1 else f" ({too_often} times too often)"
    return InvalidChange(f"the transaction deletes rows that table '{table.name}' does not have: {rows}{often}.")


def absent_keys(table: TableDefinition, keys: Sequence[Row]) -> InvalidChange:
    """Keys to delete that no row has."""
    shown = show_internal_rows(keys, table.key_fields)
    return InvalidChange(f"table '{table.name}' has no row with the primary key {shown}.")


def duplicate_keys(table: TableDefinition, rows: Sequence[Row]) -> InvalidChange:
    """Rows that would stand in the table with the same primary key."""
    columns = ", ".join(table.primary_key)
    shown = show_internal_rows(rows, table.fields)
    return InvalidChange(
        f"table '{table.name}' would have more than one row with the same primary key ({columns}): {shown}.",
        hint="upsert replaces the row that has the key.",
    )


def repeated_keys(table: TableDefinition, kind: str, rows: Sequence[Row], fields: Schema) -> InvalidChange:
    """Rows of one upsert, or of one delete by key, that share a key."""
    columns = ", ".join(table.primary_key)
    shown = show_internal_rows(rows, fields)
    return InvalidChange(f"one {kind} on table '{table.name}' names the same primary key ({columns}) twice: {shown}.")


def no_text(table: TableDefinition, column: Field) -> InvalidChange:
    """Arrow data with strings that are not UTF-8, which Arrow does not look at."""
    return InvalidChange(
        f"column '{column.name}' of table '{table.name}' is {column.type} and cannot hold text that is not UTF-8.",
        hint="a binary column takes any bytes.",
    )


def static_changed(table: TableDefinition) -> InvalidChange:
    """A second transaction on a table that was declared to be loaded once."""
    return InvalidChange(
        f"table '{table.name}' is static and has been loaded; it takes no further changes.",
        hint="create it without static=True if it changes.",
    )


def not_retained(table: TableDefinition) -> UnsupportedOperation:
    """Reading a table that keeps no rows."""
    return UnsupportedOperation(
        f"table '{table.name}' keeps no rows (retain=False), so it cannot be read.",
        hint="read the views over it, or create it with retain=True.",
    )


def too_late_for_view(view: ViewDefinition, table: TableDefinition) -> UnsupportedOperation:
    """A view over a table without retention that has received rows."""
    return UnsupportedOperation(
        f"{view.kind} '{view.name}' reads table '{table.name}', which keeps no rows (retain=False) "
        "and has received some.",
        hint="create the view before the rows arrive, or the table with retain=True.",
    )


def never_incremental(view: ViewDefinition, backend: str) -> UnsupportedOperation:
    """A view that must never be recomputed, on a backend that only recomputes."""
    return UnsupportedOperation(
        f"the {backend} backend recomputes every view, which refresh='incremental_strict' of {view.kind} '{view.name}' "
        "rules out.",
        hint="the embedded backend maintains views from deltas.",
    )


def failed_in_view(view: ViewDefinition, error: EvaluationError) -> EvaluationError:
    """An error of a view's arithmetic, with the view's name."""
    message = f"{view.kind} '{view.name}' cannot be computed: {error.message}"
    return EvaluationError(message, condition=error.condition, hint=error.hint)


def suspended(view: ViewDefinition, why: Suspension) -> ViewSuspended:
    """Reading a view that has no answer."""
    return ViewSuspended(view.name, why.version, why.reason, why.condition)


def failing(view: ViewDefinition, version: int, error: EvaluationError) -> Suspension:
    """What becomes of a view whose arithmetic fails from this version on.

    Raises:
        EvaluationError: it may not be suspended.
    """
    if not view.options.may_be_suspended:
        raise failed_in_view(view, error) from error
    return Suspension(version, error.message, error.condition)


def waiting(view: ViewDefinition, version: int, over: ViewDefinition, why: Suspension) -> Suspension:
    """What becomes of a view over a suspended one.

    Raises:
        EvaluationError: it may not be suspended.
    """
    reason = f"view '{over.name}', which it reads, is suspended: {why.reason}"
    return failing(view, version, EvaluationError(reason, condition=why.condition))


def out_of_memory(what: str) -> OutOfMemory:
    """The process gets no more memory for a table or view."""
    return OutOfMemory(
        f"there is not enough memory for {what}; nothing has been changed.",
        hint="smaller transactions, or narrower or fewer views, need less.",
    )


def past_memory_limit(what: str, limit: int, held: int, more: int) -> OutOfMemory:
    """A table or view would take a database past the limit that it was opened with."""
    return OutOfMemory(
        f"{what} needs {_bytes(more)} more, and the database has a memory_limit of {_bytes(limit)}, of which its state takes "
        f"{_bytes(held)}; nothing has been changed.",
        hint="delete rows, drop views, use smaller transactions, or connect with a larger memory_limit.",
    )


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def lost_for_memory(views: Sequence[ViewDefinition]) -> OutOfMemory:
    """Views that a lack of memory has left half changed, and that could not be made anew."""
    names = ", ".join(f"'{v.name}'" for v in views)
    return OutOfMemory(
        f"there was not enough memory to change, nor to restore, view{'s' if len(views) > 1 else ''} {names}.",
        hint="the database cannot be used any more; open another, with fewer views or more memory.",
    )


def assertion_violated(assertion: ViewDefinition, rows: Sequence[Row]) -> AssertionViolated | InvalidChange:
    """An assertion whose query would return rows, or a constraint of a table that rows would break."""
    shown = show_internal_rows(rows, assertion.fields)
    constraint = assertion.constraint
    if constraint is not None and constraint.parent is None:
        return InvalidChange(f"table '{constraint.table}' has {constraint.text}, and several rows would have {shown}.")
    if constraint is not None:
        return InvalidChange(
            f"table '{constraint.table}' has {constraint.text}, and would refer to rows that are not there: {shown}.",
            hint="change both tables in one transaction: a foreign key is checked at its end.",
        )
    return AssertionViolated(f"assertion '{assertion.name}' would not hold: its query would return {shown}.")


def no_constraints(table: TableDefinition, backend: str) -> UnsupportedOperation:
    """A constraint on a backend that does not check any but the primary key."""
    declared = ", ".join(c.text for c in table.constraints)
    return UnsupportedOperation(
        f"the {backend} backend does not check {declared} of table '{table.name}'.",
        hint="leave it out, or use the embedded backend; create_assertion checks a query of your own.",
    )


def changes_not_kept(view: str, since: int, kept_since: int, version: int) -> UnsupportedOperation:
    """A request for deltas that are gone, or not there yet."""
    if since > version:
        return UnsupportedOperation(f"version {since} has not been committed; the database is at version {version}.")
    return UnsupportedOperation(
        f"the changes of view '{view}' since version {since} are not kept; they are since version {kept_since}.",
        hint="read the whole view, and follow its changes from the version you read.",
    )


def unknown_explain_mode(mode: str, backend: str, modes: Sequence[str]) -> UnsupportedOperation:
    """An explain mode that the backend does not have."""
    return UnsupportedOperation(
        f"the {backend} backend cannot explain in mode '{mode}'.",
        hint=f"it has {', '.join(modes[:-1])} and {modes[-1]}.",
    )


def not_factorizable(view: ViewDefinition, why: str) -> UnsupportedQuery:
    """A factorized result was asked for that no view tree gives."""
    return UnsupportedQuery(
        f"representation='factorized' cannot hold view '{view.name}': {why}.",
        operator="representation='factorized'",
        hint="leave it out: the rows are then listed.",
    )


def not_by_parts(view: ViewDefinition, why: str) -> UnsupportedQuery:
    """Heavy and light parts were asked for where they do not help."""
    return UnsupportedQuery(
        f"strategy='skew' cannot maintain view '{view.name}': {why}.",
        operator="strategy='skew'",
        hint="use strategy='auto' or 'factorized', whose view trees maintain every aggregate over joins.",
    )


def view_has_no_listing(view: ViewDefinition, why: str) -> UnsupportedOperation:
    """Something needs the rows, or the changes, of a view that is kept as a tree or in arrays."""
    if view.options.representation == "matrix":
        return UnsupportedOperation(
            f"'{view.name}' is a product of matrices in arrays, so there is no listing of its rows, and {why}.",
            hint="create_matrix_chain(…, storage='sparse') keeps a listing; to_numpy(), rows() and lookup() read this one.",
        )
    return UnsupportedOperation(
        f"view '{view.name}' has representation='factorized', so there is no listing of its rows, and {why}.",
        hint="create it with representation='listing', or read it with iter(view), rows() or lookup().",
    )
